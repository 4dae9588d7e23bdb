"""What people see: tables on a terminal, plain columns in a pipe, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from farfield.cli.options import suffix_of, table_to_write

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

__all__ = [
    "check_table",
    "deliver",
    "interval",
    "note",
    "number",
    "p_value",
    "print_json",
    "table",
    "write_frame",
    "write_report",
]


def print_json(document: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def note(text: str) -> None:
    """Say something beside the result."""
    print(f"note: {text}", file=sys.stderr)


def number(value: float, *, sign: bool = False) -> str:
    """Write a value with four decimals."""
    return f"{value:{'+' if sign else ''}.4f}"


def interval(low: float, high: float, *, sign: bool = False) -> str:
    """Write an interval, or a dash where there is none."""
    if isnan(low) or isnan(high):  # a single query says nothing about the spread
        return "[—]"
    return f"[{number(low, sign=sign)}, {number(high, sign=sign)}]"


def p_value(value: float) -> str:
    """Write a p-value."""
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    notes: Iterable[str] = (),
    text_columns: int = 1,
) -> None:
    """Print a table; columns after the first ``text_columns`` are numbers, to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich(header, cells, title, text_columns)
    else:
        _plain(header, cells, title, text_columns)
    for line in notes:
        print(line)


def _plain(header: Sequence[str], rows: list[list[str]], title: str, text_columns: int) -> None:
    if title:
        print(title)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        padded = [
            cell.ljust(width) if at < text_columns else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(padded).rstrip())


def _rich(header: Sequence[str], rows: list[list[str]], title: str, text_columns: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(
        title=title or None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold"
    )
    for at, name in enumerate(header):
        shown.add_column(
            name, justify="left" if at < text_columns else "right", no_wrap=at >= text_columns
        )
    for row in rows:
        shown.add_row(*row)
    Console(highlight=False, markup=False, emoji=False).print(shown)


def check_table(table: str, tables: Sequence[str]) -> None:
    """Refuse a table that a command does not have, before anything is computed."""
    if table not in tables:
        from farfield.errors import InputError, did_you_mean

        raise InputError(
            f"--table is {table!r}.{did_you_mean(table, tables)} Expected {', '.join(tables)}."
        )


def deliver(
    answer: Any,
    show: Callable[[Any], None],
    *,
    json: bool,
    table: str = "table",
    output: Path | None = None,
    per_query: Path | None = None,
    figure: Path | None = None,
    html: Path | None = None,
) -> None:
    """Write what was asked for of an answer, then print it."""
    if output is not None:
        write_frame(getattr(answer, table), output)
    if per_query is not None:
        from farfield import io

        io.write(getattr(answer, "evaluation", answer).per_query, per_query)
    if figure is not None:
        from farfield import figures

        figures.save(answer.figure(), figure)
    write_report(answer, html)
    if json:
        print_json(answer.to_dict())
    else:
        show(answer)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write any frame in the format of the suffix: csv, jsonl or parquet."""
    from farfield.io.files import replacing

    table_to_write(path)
    writers: dict[str, Callable[[Any], Any]] = {
        ".csv": frame.write_csv,
        ".jsonl": frame.write_ndjson,
        ".parquet": frame.write_parquet,
    }
    with replacing(path) as file:
        writers[suffix_of(path)](file)


def write_report(answer: Any, path: Path | None) -> None:
    """Write a page about an answer, if one was asked for."""
    if path is not None:
        from farfield.reports import report

        report(answer, path)
