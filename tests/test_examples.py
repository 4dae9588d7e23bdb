"""The examples run as they are, and find what the lab planted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# What each leaves in the folder it runs in.
LEAVES = {
    "own_runs.py": ["qrels.txt", "lexical.trec"],
    "audit_training_data.py": ["clean-test.tsv"],
    "shift_for_training_elsewhere.py": ["partition.parquet"],
    "near_and_far.py": [],
    "fuse_and_complement.py": ["fused.trec.gz"],
    "allocate_over_sources.py": ["allocation.csv", "allocated.trec"],
}


def run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tried_and_listed():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(LEAVES)
    page = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.iterdir():
        assert path.name == "README.md" or path.is_dir() or f"({path.name})" in page, path.name


@pytest.mark.parametrize("name", LEAVES)
def test_the_example_runs(name, tmp_path):
    printed = run(name, tmp_path)
    for file in LEAVES[name]:
        assert (tmp_path / file).stat().st_size
    if name == "audit_training_data.py":
        assert "copies: 30 planted, 30 of them found" in printed
    if name == "shift_for_training_elsewhere.py":
        assert len(list(tmp_path.glob("*/qrels/far.tsv"))) == 2


def test_the_experiment_runs(tmp_path, farfield):
    shutil.copy(EXAMPLES / "experiment.toml", tmp_path)
    made = farfield("lab", "world", "--passages", 500, "--train", 1000, "--test", 200, cwd=tmp_path)
    assert made.status == 0, made.err
    done = farfield("run", "experiment.toml", "-o", "run", cwd=tmp_path)
    assert done.status == 0, done.err
    assert (tmp_path / "run" / "tables").is_dir()
