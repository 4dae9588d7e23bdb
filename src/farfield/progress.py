"""Progress on standard error, for work that takes a while; silent unless the command line asks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["counting", "show", "track"]

T = TypeVar("T")

_shown = False


def show(on: bool = True) -> None:
    """Show progress from now on, if standard error is a terminal."""
    global _shown
    _shown = on and sys.stderr.isatty()


def track(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield the items, with a bar that shows how many are done and how long it will take."""
    if not _shown or len(items) < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as bar

    yield from bar(items, what, console=Console(stderr=True), transient=True)


@contextmanager
def counting(total: int, what: str) -> Iterator[Callable[..., None]]:
    """Give a function to call with how many more are done; a bar shows rate and time left.

    A second argument takes the place of ``what``, to say how it goes.
    """
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
        task = bar.add_task(what, total=total)
        yield lambda done, now=None: bar.update(task, advance=done, description=now)
