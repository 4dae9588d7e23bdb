"""Imports go downward, the surface is what it says, and starting costs little."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import farfield

SOURCE = Path(farfield.__file__).parent

# Rooms from the ground up. A room may use those before it; families of a layer never one another.
GROUND = [
    "fingerprint",
    "errors",
    "progress",
    "stats",
    "ranking",
    "tables",
    "collection",
    "io",
    "spec",
    "registry",
    "judged",
    "analysis",
    "sparse",
    "similarity",
    "neural",
    "training",
]
# Families whose members stand alone, and families whose members may hold members of those.
SINGLE = ["measures", "fusions", "allocations", "encoders", "indicators"]
COMPOSED = ["shifts", "retrievers"]
# Families whose members make members of those.
TRAINED = ["recipes"]
FAMILIES = [*SINGLE, *COMPOSED, *TRAINED]
ABOVE = [
    "lab",
    "overlap",
    "figures",
    "questions",
    "experiments",
    "reports",
    "demo",
    "cli",
    "__main__",
]
ROOMS = [*GROUND, *FAMILIES, *ABOVE]


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"farfield.{alias.name}" for alias in node.names]
                if node.module == "farfield"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("farfield.")}
    return found & set(ROOMS)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_downward(path):
    room = room_of(path)
    if room == "__init__":
        return
    assert room in ROOMS, f"{room} is not in the plan: give it a place in ROOMS"
    for used in imported_rooms(path) - {room}:
        assert ROOMS.index(used) < ROOMS.index(room), f"{room} must not use {used}"
        for layer in (SINGLE, COMPOSED, TRAINED):
            assert not (room in layer and used in layer), "families do not use one another"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_stays_a_room(path):
    assert len(path.read_text().splitlines()) < 500


def test_the_public_names_are_sorted_and_there():
    assert farfield.__all__ == sorted(farfield.__all__)
    assert {*farfield._HOME_OF, *farfield._MODULES} == set(farfield.__all__)
    for name in farfield.__all__:
        assert getattr(farfield, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        farfield.nothing_of_the_kind  # noqa: B018


def test_every_public_name_is_documented():
    missing = []
    for name in farfield.__all__:
        value = getattr(farfield, name)
        if not (value.__doc__ or "").strip():
            missing.append(name)
        for attribute in getattr(value, "__all__", ()):
            inner = getattr(value, attribute)
            if callable(inner) and not (inner.__doc__ or "").strip():
                missing.append(f"{name}.{attribute}")
        if isinstance(value, type):
            missing += [
                f"{name}.{attribute}"
                for attribute, member in vars(value).items()
                if attribute[0] != "_"
                and (callable(member) or isinstance(member, property))
                and not (member.__doc__ or "").strip()
            ]
    assert not missing


def loaded(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_loads_nothing_heavy():
    heavy = {"numpy", "polars", "scipy", "rich", "typer", "torch", "numba"}
    assert not loaded("import farfield") & heavy


def test_help_loads_nothing_heavy():
    code = "import sys\nfrom farfield.cli import app\n"
    assert not loaded(code) & {"numpy", "polars", "scipy", "torch", "numba"}


def test_evaluating_loads_neither_scipy_nor_rich(tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n2 0 a 1\n")
    (tmp_path / "r").write_text("1 Q0 a 1 2.0 t\n")
    files = f"{str(tmp_path / 'q')!r}, {str(tmp_path / 'r')!r}"
    code = f"import farfield; farfield.evaluate({files}).to_dict()"
    assert not loaded(code) & {"scipy", "rich", "torch", "numba", "ir_measures"}


def test_types_are_shipped():
    assert (SOURCE / "py.typed").exists()
