"""What tests share: real data where it is there, small tables, the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import warm

if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has a core; more threads would only wait
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "farfield", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("farfield")

SLOW = {
    "test_docs.py",
    "test_experiments_trained.py",
    "test_recipes.py",
    "test_report.py",
    "test_report_browser.py",
    "test_training.py",
}
SERVER = pytest.StashKey[warm.Server]()


def pytest_configure(config: pytest.Config) -> None:
    """Start one server of commands for all workers; without workers, commands start afresh."""
    if getattr(config.option, "numprocesses", None) and sys.platform == "linux":
        config.stash[SERVER] = server = warm.Server()
        os.environ["FARFIELD_TEST_SERVER"] = server.folder


def pytest_unconfigure(config: pytest.Config) -> None:
    if SERVER in config.stash:
        config.stash[SERVER].close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is slow, so that no worker ends with it alone.

    A worker is given hundreds of tests at first, so that what a module shares is made but once.
    """
    items.sort(key=lambda item: item.path.name not in SLOW)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real collections; tests that need it are skipped where it is not."""
    path = os.environ.get("FARFIELD_REAL_DATA")
    if not path or not Path(path).is_dir():
        pytest.skip("FARFIELD_REAL_DATA names no folder")
    return Path(path)


class Result:
    """What a command printed, and how it ended."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def farfield():
    """Run the command line in a process of its own, as a user does."""
    server = os.environ.get("FARFIELD_TEST_SERVER")

    def run(*arguments: object, cwd: Path | None = None) -> Result:
        given, folder = [str(argument) for argument in arguments], str(cwd or Path.cwd())
        with (
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
            open(os.devnull) as nothing,
        ):
            streams = [file.fileno() for file in (nothing, out, err)]
            if server is not None:
                status = warm.call(server, given, folder, streams, 120)
            else:
                command = [sys.executable, "-m", "farfield", *given]
                options = dict(zip(("stdin", "stdout", "stderr"), streams, strict=True))
                status = subprocess.run(command, cwd=folder, timeout=120, **options).returncode
            out.seek(0)
            err.seek(0)
            result = Result(status, out.read(), err.read())
        assert "Traceback" not in result.err, result.err
        return result

    return run


@pytest.fixture(scope="session")
def run_directory(tmp_path_factory) -> Path:
    """What an experiment leaves, with hostile texts in it."""
    from test_report import make_directory

    return make_directory(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def page(run_directory):
    """The report of that experiment."""
    from farfield import reports

    return reports.page_of(run_directory)


@pytest.fixture
def own_members():
    """Members that a test adds are gone after it."""
    from farfield import measures

    yield
    measures.family._added.clear()
