"""Write tables and collections: atomically, exactly, in the format of the path's suffix."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import polars as pl

from farfield.collection import Collection
from farfield.errors import FileError, InputError, did_you_mean
from farfield.io.files import PathLike, replacing
from farfield.tables import Corpus, Qrels, Queries, Run, Table

__all__ = ["FORMATS", "format_for", "write", "write_collection"]


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
    try:
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made: {error.strerror}.") from error
    for table, name in ((collection.corpus, "corpus"), (collection.queries, "queries")):
        write(table, folder / f"{name}.jsonl", format="beir")
    for split, qrels in collection.qrels.items():
        write(qrels, folder / "qrels" / f"{split}.tsv", format="beir")
    with replacing(folder / "card.json") as file:
        file.write((json.dumps(collection.card.to_dict(), indent=2) + "\n").encode())


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
    if isinstance(table, Run):
        tag = "_".join(table.name.split()) or "run"
        frame = frame.select(
            "query_id", pl.lit("Q0").alias("q0"), "doc_id", "rank", "score", pl.lit(tag).alias("t")
        )
    else:
        frame = frame.select("query_id", pl.lit("0").alias("i"), "doc_id", "relevance")
    _check_blanks(frame, path, r"[ \t\r\n]", "blanks", columns=["query_id", "doc_id"])
    frame.write_csv(file, separator=" ", include_header=False, quote_style="never")


def _msmarco(table: Any, file: IO[bytes], path: str) -> None:
    if isinstance(table, Run):
        frame = table.frame.select("query_id", "doc_id", "rank")
        _check_blanks(frame, path, r"[ \t\r\n]", "blanks", columns=["query_id", "doc_id"])
    else:
        frame = table.frame
        others = frame.columns[2:]
        if others:
            raise FileError(
                path, f"tsv has no place for {', '.join(others)}. Use .jsonl, .csv or .parquet."
            )
        _check_blanks(frame, path, r"\t", "a tab", columns=frame.columns[:1])
        _check_blanks(frame, path, r"[\r\n]", "a line end", columns=frame.columns)
    frame.write_csv(file, separator="\t", include_header=False, quote_style="never")


def _beir(table: Any, file: IO[bytes], path: str) -> None:
    frame = table.frame
    if isinstance(table, Qrels):
        _check_blanks(frame, path, r"[ \t\r\n]", "blanks", columns=["query_id", "doc_id"])
        frame = frame.rename({"query_id": "query-id", "doc_id": "corpus-id", "relevance": "score"})
        frame.write_csv(file, separator="\t", quote_style="never")
        return
    names = [table.key[0], *(n for n in ("title", "text") if n in frame.columns)]
    others = [name for name in frame.columns if name not in names]
    rows = frame.select(
        pl.col(names[0]).alias("_id"),
        *names[1:],
        *([pl.struct(others).alias("metadata")] * bool(others)),
    )
    rows.write_ndjson(file)


def _json(table: Any, file: IO[bytes], path: str) -> None:
    file.write(json.dumps(table.to_dict(), ensure_ascii=False).encode() + b"\n")


def _jsonl(table: Any, file: IO[bytes], path: str) -> None:
    table.frame.write_ndjson(file)


def _csv(table: Any, file: IO[bytes], path: str) -> None:
    _check_flat(table.frame, path)
    table.frame.write_csv(file)


def _tsv(table: Any, file: IO[bytes], path: str) -> None:
    _check_flat(table.frame, path)
    texts = [n for n, t in table.frame.schema.items() if t == pl.String]
    _check_blanks(table.frame, path, r"[\t\r\n]", "tabs or line ends", columns=texts)
    table.frame.write_csv(file, separator="\t", quote_style="never")


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


def _check_blanks(
    frame: pl.DataFrame, path: str, pattern: str, what: str, *, columns: list[str]
) -> None:
    for name in columns:
        bad = frame[name].str.contains(pattern)
        if bad.any():
            value = frame[name][int(bad.arg_true()[0])]
            raise FileError(
                path,
                f"{name} {value[:60]!r} contains {what}, which this format cannot hold. "
                "Use .jsonl or .parquet.",
            )


def _check_flat(frame: pl.DataFrame, path: str) -> None:
    for name, dtype in frame.schema.items():
        if dtype.is_nested():
            raise FileError(path, f"{name} holds lists or objects. Use .jsonl or .parquet.")
