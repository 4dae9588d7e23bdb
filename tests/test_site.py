"""The site builds offline, without a broken link, and asks nothing of other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    find_spec("mkdocs") is None or find_spec("material") is None,
    reason="mkdocs and mkdocs-material are not installed (the extra docs)",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make site` builds it: a broken link, a lost anchor or an unlisted page fails."""
    path = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return path


def test_every_page_is_there(site):
    for source in (ROOT / "docs").rglob("*.md"):
        name = source.relative_to(ROOT / "docs").with_suffix("")
        page = site / ("" if name == Path("index") else name) / "index.html"
        assert page.exists(), name
    for outside in ("CHANGELOG", "CONTRIBUTING", "benchmarks", "examples"):
        assert (site / outside / "index.html").exists()
    assert (site / "examples" / "own_runs.py").read_text().startswith('"""')
    assert (site / "search" / "search_index.json").exists()


def test_nothing_is_fetched_from_elsewhere(site):
    loads = re.compile(r'<(?:script|img|iframe|link(?=[^>]*stylesheet))[^>]*(?:src|href)="(.*?)"')
    for page in site.rglob("*.html"):
        for target in loads.findall(page.read_text()):
            assert not target.startswith(("http:", "https:", "//")), f"{page}: {target}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", style.read_text()), style
