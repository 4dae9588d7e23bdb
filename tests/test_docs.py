"""The documentation is true: every command and program in it runs, every link leads somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "benchmarks" / "README.md"]
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, farfield):
    """A folder with what `farfield demo` leaves, in which the pages' commands run."""
    path = tmp_path_factory.mktemp("docs")
    assert farfield("demo", cwd=path).status == 0
    return path


def with_commands(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.parametrize("page", with_commands("console"), ids=lambda p: p.name)
def test_every_command_runs(page, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page, "console"):
        for line in block.splitlines():
            if not line.startswith("$ "):
                continue
            done = subprocess.run(
                ["bash", "-c", line[2:]],
                cwd=folder,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.parametrize("page", with_commands("python"), ids=lambda p: p.name)
def test_every_program_runs(page, folder):
    for program in blocks(page, "python"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{program}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_the_generated_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.PAGE.read_text() == generate.page(), "run: make docs"


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
