"""Everything farfield raises on purpose.

FarfieldError                 catch this to catch them all
├── InputError                what the user gave cannot be used (the command line exits 2)
│   ├── FileError             a file cannot be read or written; names file and line
│   ├── TableError            rows that break the rules of a table; names the row
│   ├── SpecError             a text like ``nDCG@10`` does not parse, or names nothing we know
│   └── MissingDependency     an optional package is needed; says how to install it
└── CheckFailed               a check the user asked for did not hold (the command line exits 1)

FarfieldWarning               said aloud, never silently repaired; the result still stands

Every message says what was given, what was expected and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "CheckFailed",
    "FarfieldError",
    "FarfieldWarning",
    "FileError",
    "InputError",
    "MissingDependency",
    "SpecError",
    "TableError",
    "did_you_mean",
]


class FarfieldError(Exception):
    """The root of everything farfield raises on purpose."""


class InputError(FarfieldError):
    """What the user gave cannot be used."""


class FileError(InputError):
    """A file cannot be read or written as asked."""

    def __init__(self, path: object, message: str, *, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        where = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{where}: {message}")


class TableError(InputError):
    """Rows that break the rules of a table.

    ``row`` counts from 0 in the order the rows were given; ``first_row`` is set when the fault
    is between two rows (a duplicate). Readers use both to name the lines of the file.
    """

    def __init__(
        self,
        message: str,
        *,
        row: int | None = None,
        first_row: int | None = None,
        table: str = "table",
    ) -> None:
        self.message = message
        self.row = row
        self.first_row = first_row
        where = table if row is None else f"{table}, row {row}"
        also = "" if first_row is None else f" (first in row {first_row})"
        super().__init__(f"{where}: {message}{also}")


class SpecError(InputError):
    """A spec does not parse, or names nothing we know."""


class MissingDependency(InputError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, needed_for: str, *, extra: str | None = None) -> None:
        target = package if extra is None else f"'farfield[{extra}]'"
        super().__init__(
            f"{needed_for} needs the package {package}, which is not installed. "
            f"Install it with: pip install {target}"
        )


class CheckFailed(FarfieldError):
    """A check the user asked for did not hold."""


class FarfieldWarning(UserWarning):
    """Something the user should know; the result still stands."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'nDCG'?"``, or an empty text when nothing is close."""
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean {by_folded[close[0]]!r}?" if close else ""
