"""The documentation is true: every command and program in it runs, every link leads somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "benchmarks" / "README.md",
        ROOT / "examples" / "README.md",
    ]
)
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"  # begins in a folder of its own
WARM = os.environ.get("FARFIELD_TEST_SERVER")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, farfield):
    """A folder with what `farfield demo` leaves, in which the pages' commands run."""
    path = tmp_path_factory.mktemp("docs")
    assert farfield("demo", "--quick", cwd=path).status == 0
    return path


def with_code() -> list[Path]:
    shown = (page for page in PAGES if page != TUTORIAL)
    return [page for page in shown if blocks(page, "console") or blocks(page, "python")]


def run(command: str, folder: Path, *, afresh: bool = False) -> subprocess.CompletedProcess[str]:
    """Type a command, as a reader would; ``farfield`` finds its libraries loaded, or not."""
    places = [str(Path(sys.executable).parent), os.environ["PATH"]]
    path = os.pathsep.join(places if afresh or not WARM else [WARM, *places])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done


def typed(page: Path) -> list[tuple[str, list[str]]]:
    """Commands of a page, each with the lines that the page shows of its output."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(blocks(page, "console")).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip() not in ("", "…"):
            found[-1][1].append(line)
    return found


@pytest.mark.parametrize("page", with_code(), ids=lambda p: p.name)
def test_every_command_and_program_runs(page, folder):
    """In one test, for programs use files that commands of their page have made."""
    afresh = page == README
    for command, _ in typed(page):
        run(command, folder, afresh=afresh)
    python = "farfield" if WARM and not afresh else f"{sys.executable} -W error"
    for program in blocks(page, "python"):
        run(f"{python} -c {shlex.quote(program)}", folder, afresh=afresh)


def test_the_tutorial_works_from_an_empty_folder_and_shows_what_it_prints(tmp_path):
    for file in blocks(TUTORIAL, "toml"):
        (tmp_path / file.split()[1]).write_text(file)  # "# experiment.toml" is its first line
    for command, shown in typed(TUTORIAL):
        done = run(command, tmp_path)
        printed = [" ".join(line.split()) for line in (done.stdout + done.stderr).splitlines()]
        for line in shown:
            assert " ".join(line.split()) in printed, f"{command}\n{line}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def generated() -> dict[str, Callable[[], str]]:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate.PAGES


@pytest.mark.parametrize("page", generated())
def test_generated_pages_are_up_to_date(page):
    assert (ROOT / "docs" / page).read_text() == generated()[page](), "run: make docs"


def test_every_command_has_its_place_in_the_documentation():
    from farfield.cli import app

    names = [c.name or c.callback.__name__ for c in app.registered_commands]
    page = (ROOT / "docs" / "commands.md").read_text()
    for name in names:
        assert f"## farfield {name}" in page
        assert f"farfield {name}" in "".join(
            p.read_text() for p in PAGES if p.name != "commands.md"
        )


def test_every_shipped_measure_is_documented():
    from farfield import measures

    page = (ROOT / "docs" / "measures.md").read_text()
    for name in measures.names():
        assert f"| `{name}" in page, name


def test_every_shipped_fusion_and_dialect_is_documented():
    from farfield import fusions
    from farfield.fusions.rrf import DIALECTS

    page = (ROOT / "docs" / "fusion.md").read_text()
    for name in fusions.names():
        assert f"| `{name}` |" in page, name
    for name, dialect in DIALECTS.items():
        assert f"| `{name}` | {dialect.k} | {dialect.first_rank} |" in page, name


def test_the_changelog_has_a_place_for_what_comes():
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
