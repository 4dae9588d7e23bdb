"""Write tables and collections: atomically, exactly, in the format of the path's suffix."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import polars as pl

from farfield.collection import Collection
from farfield.errors import FileError, InputError, did_you_mean
from farfield.io import beir
from farfield.io.files import Content, PathLike, replacing, write_json
from farfield.io.form import form_of
from farfield.io.text import shown
from farfield.tables import Corpus, Qrels, Queries, Run, Table

__all__ = ["FORMATS", "format_for", "write", "write_collection"]

_BLANK, _TSV = r"[ \t\r\n]", r"[\t\r\n]"
_MARK = "\ufeff".encode()


def write(table: Table, path: PathLike, *, format: str | None = None) -> None:
    """Write a table. The format is that of the suffix (before .gz or .zst) unless it is given."""
    name = format_for(path, type(table)) if format is None else _known(format, type(table), path)
    with replacing(path) as file:
        FORMATS[name](table, file, os.fspath(path))


def write_collection(collection: Collection, path: PathLike) -> None:
    """Write a BEIR folder: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv and card.json."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileError(folder, "this is a file; expected a folder, or a name that is free.")
    stale = set(beir.files(folder)) - {
        folder / name
        for name in ("corpus.jsonl", "queries.jsonl", *(f"qrels/{s}.tsv" for s in collection.qrels))
    }
    if stale:
        raise FileError(
            folder,
            f"it holds {min(stale).relative_to(folder)} of another collection, which would be read "
            "along. Remove it, or write into another folder.",
        )
    try:
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made: {error.strerror}.") from error
    for table, name in ((collection.corpus, "corpus"), (collection.queries, "queries")):
        write(table, folder / f"{name}.jsonl", format="beir")
    for split, qrels in collection.qrels.items():
        write(qrels, folder / "qrels" / f"{split}.tsv", format="beir")
    write_json(folder / "card.json", collection.card.to_dict())


def format_for(path: PathLike, kind: type[Table]) -> str:
    """Return the format that a path's suffix stands for."""
    suffixes = [s for s in Path(path).suffixes if s not in (".gz", ".zst")]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix in (".trec", ".run", ".res", ".qrels", ".txt"):
        name = "trec"
    elif suffix == ".tsv":
        name = "msmarco" if kind in (Run, Queries, Corpus) else "beir" if kind is Qrels else "tsv"
    else:
        name = suffix.removeprefix(".")
    if name not in FORMATS:
        known = ".trec, .tsv, .csv, .json, .jsonl, .parquet"
        raise FileError(
            path, f"the suffix {suffix!r} stands for no format. Use one of {known}, or say format=."
        )
    return _known(name, kind, path)


def _known(name: str, kind: type[Table], path: PathLike) -> str:
    if name not in FORMATS:
        raise InputError(
            f"no format is called {name!r}.{did_you_mean(name, FORMATS)} "
            f"Known: {', '.join(FORMATS)}."
        )
    fitting = {
        "trec": (Run, Qrels),
        "msmarco": (Run, Queries, Corpus),
        "beir": (Qrels, Queries, Corpus),
        "json": (Run, Qrels),
    }
    if name in fitting and kind not in fitting[name]:
        raise FileError(
            path,
            f"{kind.__name__} cannot be written as {name}. Use .parquet, .jsonl or .csv.",
        )
    return name


# -- the formats: one function each -------------------------------------------------------------


def _trec(table: Any, file: IO[bytes], path: str) -> None:
    frame = table.frame
    _check_texts(frame, path, _BLANK, "blanks", columns=["query_id", "doc_id"])
    if isinstance(table, Run):
        tag = "_".join(table.name.split()) or "run"
        frame = frame.select(
            "query_id", pl.lit("Q0").alias("q0"), "doc_id", "rank", "score", pl.lit(tag).alias("t")
        )
    else:
        frame = frame.select("query_id", pl.lit("0").alias("i"), "doc_id", "relevance")
    _write_lines(frame, file, path, " ")


def _msmarco(table: Any, file: IO[bytes], path: str) -> None:
    frame = table.frame
    if isinstance(table, Run):
        _check_texts(frame, path, _BLANK, "blanks", columns=["query_id", "doc_id"])
        frame = frame.select("query_id", "doc_id", "rank")
    else:
        others = frame.columns[2:]
        if others:
            raise FileError(
                path, f"tsv has no place for {', '.join(others)}. Use .jsonl, .csv or .parquet."
            )
        _check_texts(frame, path, r"\t|^ *$", "a tab or only spaces", columns=frame.columns[:1])
        _check_texts(frame, path, r"[\r\n]", "a line end", columns=frame.columns)
    _write_lines(frame, file, path, "\t")


def _beir(table: Any, file: IO[bytes], path: str) -> None:
    frame = table.frame
    if isinstance(table, Qrels):
        _check_texts(frame, path, _TSV, "tabs or line ends", columns=["query_id", "doc_id"])
        frame = frame.rename({"query_id": "query-id", "doc_id": "corpus-id", "relevance": "score"})
        frame.write_csv(file, separator="\t", quote_style="never")
        return
    names = [table.key[0], *(n for n in ("title", "text") if n in frame.columns)]
    others = [name for name in frame.columns if name not in names]
    if "_id" in others:
        raise FileError(path, "BEIR's _id is the id. Call the column _id something else.")
    metadata = [pl.struct(others).alias("metadata")] if others else []
    rows = _jsonable(frame, path)
    rows.select(pl.col(names[0]).alias("_id"), *names[1:], *metadata).write_ndjson(file)


def _json(table: Any, file: IO[bytes], path: str) -> None:
    _jsonable(table.frame, path)
    file.write(json.dumps(table.to_dict(), ensure_ascii=False).encode() + b"\n")


def _jsonl(table: Any, file: IO[bytes], path: str) -> None:
    if isinstance(table.frame.schema.get("metadata"), pl.Struct):
        raise FileError(path, "the entries of metadata would become columns. Use .parquet.")
    _jsonable(table.frame, path).write_ndjson(file)


def _csv(table: Any, file: IO[bytes], path: str) -> None:
    _delimitable(table, path).write_csv(file)


def _tsv(table: Any, file: IO[bytes], path: str) -> None:
    frame = _delimitable(table, path)
    texts = [n for n, t in frame.schema.items() if t == pl.String]
    _check_texts(frame, path, _TSV, "tabs or line ends", columns=texts)
    frame.write_csv(file, separator="\t", quote_style="never")


def _parquet(table: Any, file: IO[bytes], path: str) -> None:
    # lz4 reads fastest of all that every reader knows.
    table.frame.write_parquet(file, compression="lz4", statistics=False)


FORMATS: dict[str, Callable[[Any, IO[bytes], str], None]] = {
    "trec": _trec,
    "msmarco": _msmarco,
    "beir": _beir,
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": _tsv,
    "parquet": _parquet,
}


# -- what a format can hold ---------------------------------------------------------------------


def _write_lines(frame: pl.DataFrame, file: IO[bytes], path: str, separator: str) -> None:
    """Write lines without a header, unless the first would be taken for something else."""
    options: dict[str, Any] = {
        "separator": separator,
        "include_header": False,
        "quote_style": "never",
    }
    first = frame.head(1).write_csv(**options).encode()
    if first and (first.startswith(_MARK) or form_of(Content(path, first, False)).kind != "lines"):
        raise FileError(
            path,
            f"a file that starts with {shown(first.strip())} would be taken for another format. "
            "Use .jsonl or .parquet.",
        )
    frame.write_csv(file, **options)


def _check_texts(
    frame: pl.DataFrame, path: str, pattern: str, what: str, *, columns: list[str]
) -> None:
    for name in columns:
        bad = frame[name].str.contains(pattern)
        if bad.any():
            value = frame[name][int(bad.arg_true()[0])]
            raise FileError(
                path,
                f"{name} {shown(value)} contains {what}, which this format cannot hold. "
                "Use .jsonl or .parquet.",
            )


def _jsonable(frame: pl.DataFrame, path: str) -> pl.DataFrame:
    """Turn what JSON has no type for into text, and make sure that it can hold the rest."""
    for name, dtype in frame.schema.items():
        column = frame[name]
        if dtype.is_nested():
            try:
                json.dumps(column.to_list(), allow_nan=False)
            except (TypeError, ValueError) as error:
                raise FileError(path, f"{name} cannot be JSON: {error}. Use .parquet.") from None
        elif dtype.is_float():
            if column.is_infinite().any() or column.is_nan().any():
                raise FileError(
                    path, f"{name} is infinite or NaN, which JSON cannot hold. Use .parquet."
                )
            frame = frame.with_columns(column.cast(pl.Float64))
        elif not (dtype.is_integer() or dtype in (pl.Boolean, pl.String)):
            frame = _with_text(frame, name, path)
    return frame


def _delimitable(table: Table, path: str) -> pl.DataFrame:
    """Make sure that csv gives back what it gets: of other columns than ours, only texts."""
    frame = table.frame
    for name in frame.columns:
        if any(character in name for character in "\t\r\n"):
            raise FileError(path, f"the column {name!r} cannot be named in a header line.")
        if name in table.columns or name == "rank":
            continue
        if frame[name].dtype.is_numeric() or frame[name].dtype == pl.Boolean:
            dtype = frame[name].dtype
            raise FileError(path, f"{name} holds {dtype}, csv only texts. Use .jsonl or .parquet.")
        if frame[name].null_count():
            raise FileError(
                path,
                f"{name} is missing in some rows, which csv cannot tell from an empty text. "
                "Use .jsonl or .parquet.",
            )
        frame = _with_text(frame, name, path)
    return frame


def _with_text(frame: pl.DataFrame, name: str, path: str) -> pl.DataFrame:
    """Replace a column by its text."""
    dtype = frame[name].dtype
    with suppress(pl.exceptions.PolarsError):
        if dtype != pl.Binary:  # bytes need not be a text
            return frame.with_columns(frame[name].cast(pl.String))
    raise FileError(path, f"{name} holds {dtype}, which has no text. Use .parquet.")
