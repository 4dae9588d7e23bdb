"""Carry out the steps of an experiment in a directory, with processes of this machine.

The directory holds ``experiment.toml`` as given, ``resolved.json`` (every default, version, seed
and fingerprint), ``steps/`` with a folder for each, ``logs/``, and ``tables/`` at the end. A step
is done when its ``done.json`` is there. Two processes may work in one directory: whoever holds the
lock of a step does it, the other waits.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl

from farfield.errors import FarfieldError, FileError, InputError
from farfield.experiments.manifest import Experiment
from farfield.experiments.steps import FORMAT, Step, plan
from farfield.fingerprint import versions_of
from farfield.io import read_collection
from farfield.io.files import PathLike, replacing, write_json

__all__ = ["Outcome", "Planned", "run", "survey"]

_LIBRARIES = ("farfield", "numpy", "polars", "scikit-learn", "torch", "sentence-transformers")
_TABLES = ("table", "by_memory", "losses", "matrix")

# Seconds that a step takes where none of its kind was done yet, on two cores: a first guess.
_GUESS = {"collection": 5, "shift": 10, "train": 60, "index": 20, "search": 15, "fuse": 2}
_GUESS |= {"nearfar": 10}
_BYTES = {"collection": 20e6, "shift": 2e6, "train": 60e6, "index": 30e6, "search": 5e6}


@dataclass(frozen=True)
class Planned:
    """A step, whether it is done, and what it took or may take."""

    step: Step
    done: bool
    seconds: float
    bytes: float


@dataclass
class Outcome:
    """What became of the steps of an experiment."""

    directory: Path
    done: list[str] = field(default_factory=list)  # labels, in the order they were finished
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # label: what went wrong
    skipped: list[str] = field(default_factory=list)  # because of what failed before
    seconds: float = 0.0

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables that came out, with a column that names the shift."""
        folder = self.directory / "tables"
        return {path.stem: pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}


def survey(experiment: Experiment, directory: PathLike) -> list[Planned]:
    """Say which steps there are, which are done, and roughly what the others cost.

    Steps of a shift that is not dealt out yet are not known before it is.
    """
    place = Path(directory)
    steps = _steps(experiment, place)
    records = {step.key: _record(place, step) for step in steps}
    took: dict[str, list[tuple[float, float]]] = {}
    for step in steps:
        record = records[step.key]
        if record is not None:
            took.setdefault(step.kind, []).append((record["seconds"], record["bytes"]))
    found = []
    for step in steps:
        record = records[step.key]
        if record is not None:
            found.append(Planned(step, True, record["seconds"], record["bytes"]))
            continue
        known = took.get(step.kind)
        seconds = sum(s for s, _ in known) / len(known) if known else _GUESS[step.kind]
        size = sum(b for _, b in known) / len(known) if known else _BYTES.get(step.kind, 1e6)
        found.append(Planned(step, False, seconds, size))
    return found


def run(
    experiment: Experiment,
    directory: PathLike,
    *,
    jobs: int = 1,
    only: str | None = None,
    keep_going: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Carry out all steps that are not done; ``only`` those whose label fits a pattern.

    ``jobs`` processes work at the same time. When a step fails the others in progress are finished
    and no more begun, unless ``keep_going``: then everything that does not need it is. ``tell`` is
    called with a line for each event.
    """
    if jobs < 1:
        raise InputError(f"jobs is {jobs}, expected 1, 2, 3 …")
    place = Path(directory)
    _open_directory(place, experiment)
    outcome = Outcome(place)
    begin = time.perf_counter()
    handled: set[str] = set()
    with _workers(jobs) as pool:
        while True:
            steps = _chosen(_steps(experiment, place), only)
            fresh = [step for step in steps if step.key not in handled]
            if not fresh or (outcome.failed and not keep_going):
                break
            _carry_out(fresh, experiment, place, pool, jobs, outcome, keep_going, tell)
            handled |= {step.key for step in fresh}
    if not outcome.failed and only is None:
        _collect(_steps(experiment, place), place)
    outcome.seconds = time.perf_counter() - begin
    return outcome


# -- what there is to do ------------------------------------------------------------------------


def _steps(experiment: Experiment, place: Path) -> list[Step]:
    def folds(step: Step) -> list[str]:
        if _record(place, step) is None:
            return []
        found: list[str] = json.loads((place / "steps" / step.folder / "folds.json").read_text())
        return found

    bases = {str(s.base): _base_content(str(s.base)) for s in experiment.systems if s.trained}
    steps = plan(experiment, _source(experiment.collection, place), folds, bases)
    unique: dict[str, Step] = {}
    for step in steps:
        unique.setdefault(step.key, step)
    return list(unique.values())


def _source(collection: str, place: Path) -> str:
    """The fingerprint of a collection, remembered for as long as its files do not change."""
    known = place / "sources.json"
    stamp = _stamp(collection)
    if stamp is not None and known.exists():
        found = json.loads(known.read_text())
        if found.get("stamp") == stamp:
            return str(found["fingerprint"])
    fingerprint = read_collection(collection).fingerprint
    if stamp is not None and place.is_dir():
        write_json(known, {"stamp": stamp, "fingerprint": fingerprint})
    return fingerprint


def _stamp(collection: str) -> list[list[Any]] | None:
    from farfield.io import beir

    folder = Path(collection)
    if not folder.is_dir():
        return None
    return [
        [str(path), path.stat().st_size, path.stat().st_mtime_ns]
        for path in sorted(beir.files(folder))
    ]


def _base_content(base: str) -> str:
    """What decides a base model: its files if it is a folder, else its spec or name."""
    if "(" in base:
        return base
    from farfield.training.scratch import digest_of

    return str(digest_of(base))


def _chosen(steps: list[Step], only: str | None) -> list[Step]:
    if only is None:
        return steps
    wanted: set[str] = set()

    def want(step: Step) -> None:
        if step.key not in wanted:
            wanted.add(step.key)
            for need in step.needs.values():
                want(need)

    matching = [step for step in steps if fnmatch(step.label, only) or only in step.label]
    for step in matching:
        want(step)
    # What is not known before a shift is dealt out may match later.
    for step in steps:
        if step.kind in ("collection", "shift"):
            want(step)
    return [step for step in steps if step.key in wanted]


def _record(place: Path, step: Step) -> dict[str, Any] | None:
    path = place / "steps" / step.folder / "done.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found


# -- doing it -----------------------------------------------------------------------------------


def _carry_out(
    steps: Sequence[Step],
    experiment: Experiment,
    place: Path,
    pool: ProcessPoolExecutor,
    jobs: int,
    outcome: Outcome,
    keep_going: bool,
    tell: Callable[[str], None],
) -> None:
    waiting = list(steps)
    running: dict[Future[str], Step] = {}
    bad: set[str] = set()
    while waiting or running:
        for step in list(waiting):
            if any(need.key in bad for need in step.needs.values()):
                bad.add(step.key)
                outcome.skipped.append(step.label)
                waiting.remove(step)
            elif _record(place, step) is not None:
                outcome.reused.append(step.label)
                waiting.remove(step)
            elif len(running) < jobs and all(
                _record(place, need) is not None for need in step.needs.values()
            ):
                tell(f"{step.label} …")
                spec = step.spec | ({"device": experiment.device} if step.kind == "train" else {})
                needs = {name: need.folder for name, need in step.needs.items()}
                job = pool.submit(_work, str(place), step.kind, step.folder, spec, needs, jobs)
                running[job] = step
                waiting.remove(step)
        if not running:
            break
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for job in finished:
            step = running.pop(job)
            try:
                problem = job.result()
            except BrokenProcessPool:
                problem = "its process was killed, perhaps for want of memory"
            if problem:
                bad.add(step.key)
                outcome.failed[step.label] = problem
                tell(f"{step.label}: failed")
                if not keep_going or "process was killed" in problem:
                    outcome.skipped += [other.label for other in waiting]
                    waiting.clear()
            else:
                outcome.done.append(step.label)
                record = _record(place, step) or {"seconds": 0.0}
                tell(f"{step.label}: {record['seconds']:.1f} s")


def _work(
    place: str, kind: str, folder: str, spec: dict[str, Any], needs: dict[str, str], jobs: int
) -> str:
    """Carry out a step in this process; return what went wrong, or nothing."""
    from farfield.experiments.kinds import KINDS

    steps = Path(place) / "steps"
    out = steps / folder
    out.mkdir(parents=True, exist_ok=True)
    log = Path(place) / "logs" / f"{folder}.log"
    with _lock(out / "lock"), _logged(log):
        if (out / "done.json").exists():  # another process was faster
            return ""
        begin = time.perf_counter()
        try:
            _share_cores(jobs)
            KINDS[kind](spec, {name: steps / need for name, need in needs.items()}, out)
        except FarfieldError as error:
            print(error, file=sys.stderr)
            return str(error)
        except Exception as error:  # whatever it is, it belongs to this step
            traceback.print_exc()
            return f"{type(error).__name__}: {error}"
        record = {
            "kind": kind,
            "seconds": time.perf_counter() - begin,
            "bytes": sum(f.stat().st_size for f in out.rglob("*") if f.is_file()),
            "peak_memory_mb": _peak_memory(),
            "versions": versions_of(*_LIBRARIES),
        }
        write_json(out / "done.json", record)
    return ""


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that start afresh: nothing of this one is in them."""
    import multiprocessing

    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that the system takes back when the process ends, however it ends."""
    import fcntl

    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def _logged(path: Path) -> Iterator[None]:
    """Let everything that this process says go into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with open(path, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, saved in enumerate(kept, start=1):
            os.dup2(saved, number)
            os.close(saved)


def _share_cores(jobs: int) -> None:
    if jobs > 1 and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(max(1, (os.cpu_count() or 1) // jobs))


def _peak_memory() -> float:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 if sys.platform != "darwin" else 1024**2), 1)


# -- the directory ------------------------------------------------------------------------------


def _open_directory(place: Path, experiment: Experiment) -> None:
    if place.exists() and not place.is_dir():
        raise FileError(place, "this is a file; expected a folder for the experiment.")
    known = place / "resolved.json"
    if place.is_dir() and any(place.iterdir()) and not known.exists():
        raise FileError(place, "this folder holds other files. Give a new or an empty folder.")
    if known.exists():
        found = json.loads(known.read_text())
        if found.get("format") != FORMAT:
            raise FileError(
                place, f"a run directory of format {found.get('format')!r}, expected {FORMAT}."
            )
    try:
        (place / "steps").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(place, f"cannot be made: {error.strerror or error}.") from error
    with replacing(place / "experiment.toml") as file:
        file.write(experiment.text.encode())
    resolved = {
        "format": FORMAT,
        **experiment.to_dict(),
        "versions": versions_of(*_LIBRARIES),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    write_json(known, resolved)


def _collect(steps: Sequence[Step], place: Path) -> None:
    """Bring the tables of all shifts together."""
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in _TABLES}
    for step in steps:
        if step.kind != "nearfar":
            continue
        for name in _TABLES:
            frame = pl.read_parquet(place / "steps" / step.folder / f"{name}.parquet")
            shift = step.needs["shift"].spec["shift"]
            parts[name].append(frame.select(pl.lit(shift).alias("shift"), pl.all()))
    (place / "tables").mkdir(exist_ok=True)
    for name, frames in parts.items():
        if frames:
            with replacing(place / "tables" / f"{name}.parquet") as file:
                pl.concat(frames, how="diagonal").write_parquet(file)
