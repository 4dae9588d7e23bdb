"""Carry out the steps of an experiment in a directory.

The directory holds ``experiment.toml`` as given, ``resolved.json`` (every default, version, seed
and fingerprint), ``steps/`` with a folder for each, ``logs/``, and ``tables/`` at the end. A step
is done when its ``done.json`` is there. Two processes may work in one directory: whoever holds the
lock of a step does it, the other waits.
"""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import polars as pl

from farfield.errors import FileError, InputError
from farfield.experiments.manifest import Experiment
from farfield.experiments.record import write_steps
from farfield.experiments.steps import FORMAT, Step, plan
from farfield.experiments.tables import collect
from farfield.experiments.workers import (
    LIBRARIES,
    Processes,
    ShortOfMemory,
    Task,
    Workers,
    is_taken,
)
from farfield.fingerprint import versions_of
from farfield.io import read_collection
from farfield.io.files import PathLike, replacing, write_json

__all__ = ["Outcome", "Planned", "run", "survey"]

# Seconds that a step takes where none of its kind was done yet, on two cores: a first guess.
_GUESS = {"collection": 5, "shift": 10, "train": 60, "index": 20, "search": 15, "fuse": 2}
_GUESS |= {"nearfar": 10, "distance": 10, "picture": 20}
_BYTES = {"collection": 20e6, "shift": 2e6, "train": 60e6, "index": 30e6, "search": 5e6}

# Seconds after which to look again at what waits: another process may have done what it needs.
_LOOK = 5.0


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


def survey(
    experiment: Experiment, directory: PathLike, *, only: str | None = None
) -> list[Planned]:
    """Say which steps there are, which are done, and roughly what the others cost.

    ``only`` is as for :func:`run`. Steps of a shift that is not dealt out yet are not known before
    it is.
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
    for step in _chosen(steps, only):
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
    workers: Workers | None = None,
) -> Outcome:
    """Carry out all steps that are not done; ``only`` those whose label fits a pattern.

    At most ``jobs`` steps are worked on at the same time, as many as there is memory for, by
    ``workers``: processes of this machine, unless others are given. When a step fails the others in
    progress are finished and no more begun, unless ``keep_going``: then everything that does not
    need it is. ``tell`` is called with a line for each event.
    """
    if jobs < 1:
        raise InputError(f"jobs is {jobs}, expected 1, 2, 3 …")
    place = Path(directory).absolute()
    _open_directory(place, experiment)
    outcome = Outcome(Path(directory))
    begin = time.perf_counter()
    handled: set[str] = set()
    with workers or Processes(jobs) as crew:
        work = _Work(experiment, place, crew, jobs, outcome, keep_going, tell)
        while True:
            steps = _chosen(_steps(experiment, place), only)
            fresh = [step for step in steps if step.key not in handled]
            if not fresh or (outcome.failed and not keep_going):
                break
            work.carry_out(fresh)
            handled |= {step.key for step in fresh}
    if not outcome.failed and only is None:
        steps = _steps(experiment, place)
        write_steps(place, steps)
        collect(steps, place)
    outcome.seconds = time.perf_counter() - begin
    return outcome


# -- what there is to do ------------------------------------------------------------------------


def _steps(experiment: Experiment, place: Path) -> list[Step]:
    def folds(step: Step) -> list[str]:
        if _record(place, step) is None:
            return []
        found: list[str] = json.loads((place / "steps" / step.folder / "folds.json").read_text())
        return found

    models = partial(_models, Path(experiment.home))
    steps = plan(experiment, _source(experiment.collection, place), folds, models)
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


def _models(home: Path, text: str) -> list[str]:
    """What decides the models in a text: the files of folders, which count from ``home``.

    The text is a spec, with or without folders in quotes, or the folder or name of a base model.
    """
    if "(" in text:
        named = [path for pair in re.findall(r"'([^']+)'|\"([^\"]+)\"", text) for path in pair]
        places = [home / name for name in named if name and (home / name).is_dir()]
        return [_digest(str(place), _changed(place)) for place in places]
    return [_digest(text, _changed(Path(text)))]


@lru_cache
def _digest(model: str, changed: int) -> str:
    from farfield.training.scratch import digest_of

    return digest_of(model)


def _changed(model: Path) -> int:
    """When a file of a model was last changed: hashing hundreds of megabytes takes a while."""
    return max((path.stat().st_mtime_ns for path in model.rglob("*")), default=0)


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


@dataclass
class _Work:
    """Steps that wait, that are in progress, and that cannot be done any more.

    ``beside`` has for each step the most that ran at once with it, itself counted.
    """

    experiment: Experiment
    place: Path
    workers: Workers
    jobs: int
    outcome: Outcome
    keep_going: bool
    tell: Callable[[str], None]
    waiting: list[Step] = field(default_factory=list)
    running: dict[Future[str], Step] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)  # failed, or in need of what failed
    beside: dict[str, int] = field(default_factory=dict)

    def carry_out(self, steps: Sequence[Step]) -> None:
        self.waiting = list(steps)
        while self.waiting or self.running:
            for step in list(self.waiting):
                self._consider(step)
            if not self.running and not self._wait_for_others():
                break
            finished, _ = wait(self.running, timeout=_LOOK, return_when=FIRST_COMPLETED)
            for job in finished:
                self._finish(job)

    def _consider(self, step: Step) -> None:
        """Begin a step if it can be, or strike it off."""
        if any(need.key in self.bad for need in step.needs.values()):
            self.bad.add(step.key)
            self.outcome.skipped.append(step.label)
        elif self._is_done(step):
            self.outcome.reused.append(step.label)
        elif self._is_ready(step) and not is_taken(self.place / "steps" / step.folder):
            self._begin(step)
        else:
            return
        self.waiting.remove(step)

    def _is_ready(self, step: Step) -> bool:
        needed = step.needs.values()
        return self.workers.room(len(self.running)) and all(map(self._is_done, needed))

    def _wait_for_others(self) -> bool:
        """Begin what another process is at, if nothing else is left: it waits there for the end."""
        taken = next(filter(self._is_ready, self.waiting), None)
        if taken is not None:
            self._begin(taken)
            self.waiting.remove(taken)
        return taken is not None

    def _begin(self, step: Step) -> None:
        self.tell(f"{step.label} …")
        device = {"device": self.experiment.device} if step.kind == "train" else {}
        spec = step.spec | step.where | device
        needs = {name: need.folder for name, need in step.needs.items()}
        home = self.experiment.home
        task = Task(str(self.place), step.kind, step.folder, spec, needs, home, self.jobs)
        self.running[self.workers.submit(task)] = step
        for one in self.running.values():
            self.beside[one.key] = max(self.beside.get(one.key, 0), len(self.running))

    def _finish(self, job: Future[str]) -> None:
        step = self.running.pop(job)
        try:
            problem = job.result()
        except BrokenExecutor:
            self._fail(step, "its process was killed, perhaps for want of memory", alone=False)
        except ShortOfMemory as short:
            if self.beside[step.key] > 1:
                self._again(step)
            else:
                self._fail(step, str(short))
        else:
            if problem:
                self._fail(step, problem)
            else:
                self.outcome.done.append(step.label)
                record = _record(self.place, step) or {"seconds": 0.0}
                self.tell(f"{step.label}: {record['seconds']:.1f} s")

    def _again(self, step: Step) -> None:
        self.tell(f"{step.label}: too little memory, again with fewer steps at a time")
        self.workers.fewer(than=self.beside.pop(step.key))
        self.waiting.insert(0, step)

    def _fail(self, step: Step, problem: str, alone: bool = True) -> None:
        """Note that a step failed; if it is not ``alone`` in this, no other can be done either."""
        self.bad.add(step.key)
        self.outcome.failed[step.label] = problem
        self.tell(f"{step.label}: failed")
        if not (self.keep_going and alone):
            self.outcome.skipped += [other.label for other in self.waiting]
            self.waiting.clear()

    def _is_done(self, step: Step) -> bool:
        return _record(self.place, step) is not None


# -- the directory ------------------------------------------------------------------------------


def _open_directory(place: Path, experiment: Experiment) -> None:
    if place.exists() and not place.is_dir():
        raise FileError(place, "this is a file; expected a folder for the experiment.")
    known = place / "resolved.json"
    # Another process may just be writing: what is not whole yet has a hidden name.
    strange = place.is_dir() and any(not entry.name.startswith(".") for entry in place.iterdir())
    if known.exists():
        found = json.loads(known.read_text())
        if found.get("format") != FORMAT:
            raise FileError(
                place, f"a run directory of format {found.get('format')!r}, expected {FORMAT}."
            )
    elif strange:
        raise FileError(place, "this folder holds other files. Give a new or an empty folder.")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(place, f"cannot be made: {error.strerror or error}.") from error
    resolved = {
        "format": FORMAT,
        **experiment.to_dict(),
        "versions": versions_of(*LIBRARIES),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    write_json(known, resolved)  # first of all: it says whose folder this is
    (place / "steps").mkdir(exist_ok=True)
    with replacing(place / "experiment.toml") as file:
        file.write(experiment.text.encode())
