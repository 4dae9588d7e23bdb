"""What tests share: real data where it is there, small tables, the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has a core; more threads would only wait
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "farfield", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("farfield")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real collections; tests that need it are skipped where it is not."""
    path = os.environ.get("FARFIELD_REAL_DATA")
    if not path or not Path(path).is_dir():
        pytest.skip("FARFIELD_REAL_DATA names no folder")
    return Path(path)


class Result:
    """What a command printed, and how it ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def farfield():
    """Run the command line in a process of its own, as a user does."""

    def run(*arguments: object, cwd: Path | None = None) -> Result:
        command = [sys.executable, "-m", "farfield", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)
        assert "Traceback" not in done.stderr, done.stderr
        return Result(done)

    return run


@pytest.fixture
def own_members():
    """Members that a test adds are gone after it."""
    from farfield import measures

    yield
    measures.family._added.clear()
