"""Options that several commands share, spelled once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from farfield.errors import FileError

__all__ = [
    "Device",
    "DropSelf",
    "FigureFile",
    "HtmlFile",
    "Json",
    "Level",
    "Measures",
    "OneMeasure",
    "Output",
    "PerQueryFile",
    "QrelsFile",
    "QueryEncoder",
    "Resamples",
    "RunFiles",
    "Seed",
    "Ties",
    "keep_freed_memory",
    "on_device",
    "one_thread_for_algebra",
    "page_to_write",
    "run_to_write",
    "suffix_of",
    "table_to_write",
    "to_write",
]


def suffix_of(path: Path, *, packed: bool = True) -> str:
    """Return the suffix that stands for a format: before .gz or .zst, where files may be packed."""
    known = [suffix for suffix in path.suffixes if not packed or suffix not in (".gz", ".zst")]
    return known[-1].lower() if known else ""


def to_write(
    what: str, *suffixes: str, packed: bool = True
) -> Callable[[Path | None], Path | None]:
    """Return a callback that refuses a file before anything is computed for it."""

    def check(path: Path | None) -> Path | None:
        if path is None:
            return None
        suffix = suffix_of(path, packed=packed)
        if suffix not in suffixes:
            known = ", ".join(suffixes[:-1]) + " or " * (len(suffixes) > 1) + suffixes[-1]
            raise FileError(path, f"the suffix {suffix!r} stands for no {what}. Use {known}.")
        if path.is_dir():
            raise FileError(path, "cannot be written: this is a folder, expected a file.")
        if not path.parent.is_dir():
            raise FileError(path, f"cannot be written: there is no folder {path.parent}.")
        return path

    return check


run_to_write = to_write(
    "format", ".trec", ".tsv", ".csv", ".json", ".jsonl", ".parquet", ".run", ".res", ".txt"
)
page_to_write = to_write("page", ".html", ".htm", packed=False)
table_to_write = to_write("table format", ".csv", ".jsonl", ".parquet")

QrelsFile = Annotated[
    str, typer.Argument(metavar="QRELS", help="Judgements: a file, or ir:NAME.", show_default=False)
]
QueryEncoder = Annotated[
    str, typer.Option("--encoder", help="Makes vectors of queries, like lsa(dimensions=64).")
]
RunFiles = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="One or more run files.", show_default=False)
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help='A measure, like nDCG@10 or "RR(rel=2)@10"; may be given several times.',
        show_default="nDCG@10, RR@10, R@1000, AP",
    ),
]
OneMeasure = Annotated[
    str, typer.Option("--measure", "-m", help='A measure, like nDCG@10 or "RR(rel=2)@10".')
]
PerQueryFile = Annotated[
    Path | None,
    typer.Option(
        "--per-query",
        help="Write the value of every query to this .parquet, .csv or .jsonl.",
        callback=table_to_write,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the table to this .csv, .jsonl or .parquet.",
        callback=table_to_write,
    ),
]
FigureFile = Annotated[
    Path | None,
    typer.Option(
        "--figure",
        help="Draw the result into this .html, which opens in any browser.",
        callback=to_write("figure", ".html", ".json", packed=False),
    ),
]
HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html",
        help="Write a report of the result, one page that opens anywhere.",
        callback=page_to_write,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Ties = Annotated[
    str,
    typer.Option(
        help="Order of equal scores: trec (document id descending), trec9 (the same, scores in "
        "single precision) or file (as in the file)."
    ),
]
DropSelf = Annotated[
    bool, typer.Option("--drop-self", help="Leave out documents with the id of their query.")
]
Device = Annotated[
    str,
    typer.Option(
        help="Where neural models work: auto (a GPU if there is one), cpu, cuda, cuda:1 …"
    ),
]
Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
Resamples = Annotated[int, typer.Option(help="Bootstrap resamples.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]


def one_thread_for_algebra() -> None:
    """Keep numpy from starting threads, which would only wait; call before it is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def keep_freed_memory() -> None:
    """Let polars keep what it frees, to use it again; call before it is imported.

    It would give memory back to the system soon, and memory that is touched for the first time is
    what reading large runs spends most of its time on.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:-1,muzzy_decay_ms:-1")


def on_device(device: str) -> None:
    """Let neural models of this process work on a device."""
    if device != "auto":
        os.environ["FARFIELD_DEVICE"] = device
