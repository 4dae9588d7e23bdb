"""The parts of a report, one file each: what a section shows of an answer or of a run directory.

A new section is a new file here with a :class:`Part` called ``PART``; nothing else has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from farfield.reports.page import Section
from farfield.reports.rundir import RunDirectory

__all__ = ["Part", "known_parts"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a file contributes.

    ``order`` is its place among the others. ``of_answer`` makes sections of an answer whose class
    is called ``answer``; ``of_run`` makes sections of a run directory, none if it holds nothing of
    the kind.
    """

    order: int
    answer: str | None = None
    of_answer: Callable[[Any], Sequence[Section]] | None = None
    of_run: Callable[[RunDirectory], Sequence[Section]] | None = None


@cache
def known_parts() -> tuple[Part, ...]:
    """Return all parts, in order."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(sorted((module.PART for module in modules), key=lambda part: part.order))
