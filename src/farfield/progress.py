"""Progress on standard error, for work that takes a while; silent unless somebody asks.

The command line asks for bars, where there is a terminal; a process whose words go into a log asks
for lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["counting", "log", "show", "track"]

T = TypeVar("T")

_shown = False
_every: float | None = None  # seconds between lines, if there are lines


def show(on: bool = True) -> None:
    """Show progress from now on, if standard error is a terminal."""
    global _shown
    _shown = on and sys.stderr.isatty()


def log(every: float | None = 10.0) -> None:
    """Write lines from now on, at most one in so many seconds; with None no longer."""
    global _every
    _every = every


def track(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield the items, with a bar that shows how many are done and how long it will take."""
    if _every is not None:
        with counting(len(items), what) as count:
            for item in items:
                yield item
                count(1)
        return
    if not _shown or len(items) < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as bar

    yield from bar(items, what, console=Console(stderr=True), transient=True)


@contextmanager
def counting(total: int, what: str, *, done: int = 0) -> Iterator[Callable[..., None]]:
    """Give a function to call with how many more are done; a bar shows rate and time left.

    A second argument takes the place of ``what``, to say how it goes. What was ``done`` before says
    nothing of the rate.
    """
    if _every is not None:
        yield _Lines(total, what, done, _every)
        return
    if not _shown or total < 2:
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda more, now=None: bar.update(task, advance=more, description=now)


class _Lines:
    """Says how far it is, how fast it goes and how long it will take, now and then."""

    def __init__(self, total: int, what: str, done: int, every: float) -> None:
        self.total, self.what, self.every = total, what, every
        self.done = self.before = done
        self.begin = self.said = time.monotonic()

    def __call__(self, more: int, now: str | None = None) -> None:
        self.done += more
        self.what = now or self.what
        clock = time.monotonic()
        if clock - self.said < self.every:
            return
        self.said = clock
        rate = (self.done - self.before) / (clock - self.begin)
        left = f", {(self.total - self.done) / rate:,.0f} s left" if rate else ""
        print(
            f"{self.what}: {self.done:,} of {self.total:,}, {rate:,.1f}/s{left}",
            file=sys.stderr,
            flush=True,
        )
