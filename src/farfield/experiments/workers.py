"""Who carries out steps: anything that takes a task and promises to say what came of it.

A task is plain data, and :func:`carry_out` is all that is to be done with it, in any process that
sees the run directory. Processes of this machine are one kind of workers; a cluster's are another
file like this one, with a class that has ``submit``.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from farfield import progress
from farfield.errors import FarfieldError
from farfield.fingerprint import versions_of
from farfield.io.files import write_json
from farfield.training.memory import keep_freed_memory

__all__ = ["LIBRARIES", "Processes", "ShortOfMemory", "Task", "Workers", "carry_out", "is_taken"]

#: Whose versions are noted.
LIBRARIES = ("farfield", "numpy", "polars", "scikit-learn", "torch", "sentence-transformers")

# No step begins beside others when less of the machine's memory is free: bytes, and a part of it.
_SPARE = 3e9, 0.15

# After so many steps for each that runs, one more is tried beside them where memory was short.
_ROUNDS = 3


class ShortOfMemory(Exception):
    """A step found too little memory, of the machine or of its GPU."""


@dataclass(frozen=True)
class Task:
    """A step to carry out: what, where, and the folders of the steps that it needs."""

    directory: str
    kind: str
    folder: str
    spec: dict[str, Any]
    needs: dict[str, str]
    home: str = ""  # paths in specs count from here
    sharing: int = 1  # how many tasks share the machine


class Workers(Protocol):
    """Carry out tasks, with :func:`carry_out`, in other processes or on other machines."""

    def room(self, running: int) -> bool:
        """Whether one more task may begin beside those that are ``running``."""

    def submit(self, task: Task) -> Future[str]:
        """Begin a task; the result is that of :func:`carry_out`.

        A worker that is gone before it could say anything raises BrokenExecutor there.
        """

    def fewer(self, than: int) -> None:
        """Have room for fewer tasks from now on: one of so many found too little memory."""

    def __enter__(self) -> Self:
        """Be ready."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Begin nothing more."""


class Processes:
    """Processes of this machine, which start afresh: nothing of this one is in them."""

    def __init__(self, number: int) -> None:
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(number, mp_context=context, initializer=_begin)
        self._number = self._most = number
        self._since = 0  # steps that went well since the last that did not

    def room(self, running: int) -> bool:
        """Whether there are fewer than wanted, and memory for one more; one there always may be."""
        return running == 0 or (running < self._most and not _memory_is_short())

    def submit(self, task: Task) -> Future[str]:
        """Give the task to the next process that is free."""
        job = self._pool.submit(carry_out, task)
        job.add_done_callback(self._learn)
        return job

    def fewer(self, than: int) -> None:
        """Run at most two thirds as many at a time; several short at once count as one.

        It is one more again after a few rounds of steps that went well: memory may have been short
        because of another program, or of steps that are over.
        """
        self._most = min(self._most, max(1, than * 2 // 3))
        self._since = 0

    def _learn(self, job: Future[str]) -> None:
        well = not job.cancelled() and job.exception() is None and not job.result()
        self._since = self._since + 1 if well else 0
        if self._since >= _ROUNDS * self._most and self._most < self._number:
            self._most, self._since = self._most + 1, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Set up a process of this machine."""
    _end_with_the_parent()
    keep_freed_memory()
    progress.log()  # what a step says goes into its log


def _end_with_the_parent() -> None:
    """End this process when the one that began it is gone, however that ended.

    Otherwise it would wait for tasks for ever, and hold the lock of the step it is at.
    """
    import multiprocessing
    import threading

    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


def carry_out(task: Task) -> str:
    """Carry out a step in this process; return what went wrong, or nothing.

    Too little memory is raised as ShortOfMemory: with fewer steps at a time it may go well.
    """
    from farfield.experiments.kinds import KINDS

    steps = Path(task.directory) / "steps"
    out = steps / task.folder
    out.mkdir(parents=True, exist_ok=True)
    log = Path(task.directory) / "logs" / f"{task.folder}.log"
    with _lock(out / "lock"), _logged(log), chdir(task.home or "."):
        if (out / "done.json").exists():  # another process was faster
            return ""
        begin, problem, short = time.perf_counter(), "", False
        try:
            _share_cores(task.sharing)
            needs = {name: steps / need for name, need in task.needs.items()}
            KINDS[task.kind](task.spec, needs, out)
        except FarfieldError as error:
            print(error, file=sys.stderr)
            problem, short = str(error) or type(error).__name__, _is_want_of_memory(error)
        except Exception as error:  # whatever it is, it belongs to this step
            traceback.print_exc()
            problem, short = f"{type(error).__name__}: {error}", _is_want_of_memory(error)
        # Only now: an error that is still at hand keeps everything that its frames hold.
        _give_back_gpu()
        if short:
            raise ShortOfMemory(problem)
        if problem:
            return problem
        record = {
            "kind": task.kind,
            "seconds": time.perf_counter() - begin,
            "bytes": sum(f.stat().st_size for f in out.rglob("*") if f.is_file()),
            "peak_memory_mb": _peak_memory(),
            "versions": versions_of(*LIBRARIES),
        }
        write_json(out / "done.json", record)
    return ""


def is_taken(folder: Path) -> bool:
    """Is a process, this or another, at the step of this folder?"""
    import fcntl

    try:
        with open(folder / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass  # nobody has begun it
    return False


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


def _share_cores(tasks: int) -> None:
    if tasks > 1:
        threads = max(1, (os.cpu_count() or 1) // tasks)
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # torch reads it when it is loaded
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)


def _is_want_of_memory(error: BaseException | None) -> bool:
    """Is this, or what it was raised from, about memory?"""
    # torch says it with a class of its own, or with one for everything, depending on who noticed.
    return error is not None and (
        isinstance(error, MemoryError)
        or any(words in str(error) for words in ("out of memory", "ALLOC_FAILED"))
        or _is_want_of_memory(error.__cause__)
    )


def _memory_is_short() -> bool:
    """Is little of the machine's memory free? No, where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        return sizes["MemAvailable"] * 1024 < min(_SPARE[0], _SPARE[1] * sizes["MemTotal"] * 1024)
    except (OSError, ValueError, KeyError, IndexError):
        return False


def _give_back_gpu() -> None:
    """Keep no memory of the GPU for later: other processes work on it, too."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def _peak_memory() -> float:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 if sys.platform != "darwin" else 1024**2), 1)
