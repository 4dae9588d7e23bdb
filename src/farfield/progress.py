"""Progress on standard error, for work that takes a while; silent unless the command line asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

__all__ = ["show", "track"]

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
