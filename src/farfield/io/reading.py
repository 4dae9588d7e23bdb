"""Read tables and collections; formats are recognised by content."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from farfield.collection import Card, Collection
from farfield.errors import FarfieldWarning, FileError, InputError, TableError, did_you_mean
from farfield.io import beir, irds
from farfield.io.files import Content, PathLike, load, name_of
from farfield.io.records import (
    parquet_names,
    read_delimited,
    read_json,
    read_jsonl,
    read_parquet,
    rename,
)
from farfield.io.text import Column, fields_of, read_columns, read_pairs
from farfield.tables import Allocation, Corpus, Partition, PerQuery, Qrels, Queries, Run, Table

__all__ = ["read", "read_collection", "read_corpus", "read_qrels", "read_queries", "read_run"]

T = TypeVar("T", bound=Table)

_RUN_LINE = "query Q0 document rank score tag"
_QRELS_LINE = "query 0 document relevance"


def read_run(path: PathLike, *, ties: str = "trec", name: str | None = None) -> Run:
    """Read a run: TREC, MS MARCO (query, document, rank), JSON, jsonl, csv, tsv or parquet.

    The run is called ``name``, or after the file. For ``ties`` see :class:`~farfield.tables.Run`.
    """
    return _read(path, Run, partial(Run, name=name or name_of(path), ties=ties))


def read_qrels(path: PathLike) -> Qrels:
    """Read judgements: TREC, BEIR's tsv, JSON, jsonl, csv or parquet; ``ir:NAME`` works too."""
    if irds.is_name(path):
        return irds.qrels(str(path))
    return _read(path, Qrels, Qrels)


def read_queries(path: PathLike) -> Queries:
    """Read queries: tsv (id, tab, text), jsonl, csv, parquet, a BEIR folder or ``ir:NAME``."""
    if irds.is_name(path):
        return irds.queries(str(path))
    folder = Path(path)
    return _read(beir.find(folder, "queries.jsonl") if folder.is_dir() else path, Queries, Queries)


def read_corpus(path: PathLike) -> Corpus:
    """Read documents: jsonl, tsv (id, tab, text), csv, parquet, a BEIR folder or ``ir:NAME``."""
    if irds.is_name(path):
        return irds.corpus(str(path))
    folder = Path(path)
    return _read(beir.find(folder, "corpus.jsonl") if folder.is_dir() else path, Corpus, Corpus)


def read_collection(path: PathLike) -> Collection:
    """Read a BEIR folder, or ``ir:NAME`` through ir_datasets. Parts are read when first used."""
    if irds.is_name(path):
        return irds.collection(str(path))
    folder = Path(path)
    if not beir.is_beir(folder):
        what = "is not a BEIR folder" if folder.is_dir() else "is not a folder"
        raise FileError(
            folder,
            f"{what}. A collection is a folder with corpus.jsonl, queries.jsonl and "
            "qrels/test.tsv (each may end in .gz or .zst), or ir:NAME for ir_datasets.",
        )
    return Collection(
        folder.resolve().name,
        corpus=partial(read_corpus, folder),
        queries=partial(read_queries, folder),
        qrels={split: partial(read_qrels, file) for split, file in beir.splits(folder).items()},
        card=_card(folder / "card.json"),
    )


def read(path: PathLike, kind: type[T]) -> T:
    """Read a table of any kind."""
    readers: dict[type[Table], Callable[[PathLike], Any]] = {
        Run: read_run,
        Qrels: read_qrels,
        Queries: read_queries,
        Corpus: read_corpus,
    }
    if kind in readers:
        return readers[kind](path)  # type: ignore[no-any-return]
    if kind in (PerQuery, Partition, Allocation):
        return _read(path, kind, kind)
    raise InputError(f"{kind!r} is not a table of farfield.")


def kind_of(path: PathLike) -> type[Table]:
    """Tell from a file's content which table it holds, or raise if it could be several."""
    content = load(path)
    if content.data[:4] == b"PAR1":
        names = set(parquet_names(content))
    elif content.data[:1] in (b"{", b"["):
        first = content.first_line()
        names = set(_json_object(first) or ())
        if "_id" in names:  # both BEIR files have _id and text; a title marks documents
            return Corpus if "title" in names else Queries
    else:
        fields = [field.decode(errors="replace") for field in _split(content.first_line())]
        if len(fields) >= 5 and not _header(fields):
            return Run
        if len(fields) == 4 and not _header(fields):
            return Qrels
        names = set(rename(pl.DataFrame({f: [] for f in dict.fromkeys(fields)}), _NAMES).columns)
    for kind in (PerQuery, Partition, Allocation, Run, Qrels, Queries, Corpus):
        if set(kind.columns) <= names:
            return kind
    raise FileError(
        os.fspath(path),
        "it cannot be told what this file holds. Say it: run, qrels, queries or corpus (--kind).",
    )


# -- inside -------------------------------------------------------------------------------------


def _read(path: PathLike, kind: type[T], make: Callable[[Any], T]) -> T:
    content = load(path)
    if not len(content):
        raise content.error("the file is empty. Expected at least one row.")
    data, header = _rows(content, kind)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table = make(data)
    except TableError as error:
        raise content.table_error(error, header) from None
    for warning in said:  # say of which file it is true
        text = f"{content.path}: {warning.message}"
        warnings.warn(text, FarfieldWarning, stacklevel=4)
    if not len(table):
        raise content.error("there are no rows in it. Expected at least one.")
    return table


def _rows(content: Content, kind: type[Table]) -> tuple[Any, bool]:
    """What a table is made of, and whether a header line comes before the first row."""
    wanted = list(kind.columns)
    start = bytes(content.data[:64]).lstrip()
    if start[:4] == b"PAR1":
        return rename(read_parquet(content, wanted if not kind.open else None), wanted), False
    if start[:1] == b"[":
        return _from_array(content, kind), False
    if start[:1] == b"{":
        first = _json_object(content.first_line())
        if first is not None and not _is_nested(first):
            return rename(_known(read_jsonl(content), kind), wanted), False
        return _from_nested(content, kind), False
    fields = _split(content.first_line())
    if _header([field.decode(errors="replace") for field in fields]):
        return _with_header(content, kind), True
    if kind is Run:
        return _headless_run(content, len(fields)), False
    if kind is Qrels:
        return _headless_qrels(content, len(fields)), False
    if kind in (Queries, Corpus):
        return read_pairs(content, (wanted[0], wanted[1])), False
    raise content.error(
        f"no header line. Expected parquet, jsonl, csv or tsv with columns {', '.join(wanted)}."
    )


def _headless_run(content: Content, width: int) -> pl.DataFrame:
    if width == 3:
        columns = [Column("query_id", 0), Column("doc_id", 1), Column("rank", 2, "number")]
        frame = read_columns(content, columns, layout="query document rank (MS MARCO)")
        bad = (frame["rank"] != frame["rank"].floor()) | frame["rank"].is_infinite()
        if bad.any():
            row = int(bad.arg_true()[0])
            message = f"rank is {frame['rank'][row]}, expected a whole number."
            raise content.error(message, content.line_of(row))
        return frame
    columns = [Column("query_id", 0), Column("doc_id", 2), Column("score", 4, "number")]
    _check_last_line(content, width)
    return read_columns(content, columns, layout=_RUN_LINE)


def _headless_qrels(content: Content, width: int) -> pl.DataFrame:
    if width == 3:
        columns = [Column("query_id", 0), Column("doc_id", 1), Column("relevance", 2, "number")]
        return read_columns(content, columns, layout="query document relevance")
    if width > 4:
        raise content.error(
            f"{width} fields in the first line. Expected judgements ({_QRELS_LINE}); "
            "a run has six fields: were the two files swapped?",
            line=content.line_of(0),
        )
    columns = [Column("query_id", 0), Column("doc_id", 2), Column("relevance", 3, "number")]
    return read_columns(content, columns, layout=_QRELS_LINE)


def _check_last_line(content: Content, width: int) -> None:
    """A last line without an end and with fewer fields than the first was cut off in writing."""
    size = len(content)
    if content.data[size - 1 : size] == b"\n":
        return
    start = content.data.rfind(b"\n") + 1
    last = fields_of(content.data[start:size])
    if last and start and len(last) < width:
        raise content.error(
            f"the last line has {len(last)} fields and no end, the first line has {width}: "
            "the file is cut short. Get it again.",
            line=content.data[:].count(b"\n") + 1,
        )


def _with_header(content: Content, kind: type[Table]) -> pl.DataFrame:
    first = content.first_line()
    names = [field.decode(errors="replace").strip('"') for field in _split(first)]
    renamed = rename(pl.DataFrame({name: [] for name in dict.fromkeys(names)}), list(kind.columns))
    ours = renamed.columns
    if b"," not in first and not kind.open and all(c in ours for c in kind.columns):
        columns = [
            Column(name, ours.index(name), "id" if dtype == pl.String else "number")
            for name, dtype in kind.columns.items()
        ]
        return read_columns(content, columns, layout=" ".join(names), header=True)
    frame = rename(read_delimited(content, "," if b"," in first else "\t"), list(kind.columns))
    return _with_numbers(content, _known(frame, kind), kind)


def _with_numbers(content: Content, frame: pl.DataFrame, kind: type[Table]) -> pl.DataFrame:
    """Turn the texts of columns that hold numbers into numbers."""
    numeric = [name for name, dtype in kind.columns.items() if dtype != pl.String]
    for name in [*numeric, *(["rank"] if kind is Run else [])]:
        if name in frame.columns:
            numbers = frame[name].str.strip_chars().cast(pl.Float64, strict=False)
            if numbers.null_count():
                row = int(numbers.is_null().arg_true()[0])
                message = f"{name} is {frame[name][row]!r}, which is not a number."
                raise content.error(message, content.line_of(row, header=True))
            frame = frame.with_columns(numbers)
    return frame


def _from_array(content: Content, kind: type[Table]) -> pl.DataFrame:
    rows = read_json(content)
    if not all(isinstance(row, dict) for row in rows):
        raise content.error("expected a list of objects, one for each row.")
    return rename(_known(kind._to_frame(rows), kind), list(kind.columns))


def _from_nested(content: Content, kind: type[Table]) -> Any:
    nested = read_json(content)
    if kind in (Run, Qrels) and _is_nested(nested):
        return nested
    names = ", ".join(kind.columns)
    expected = f"one object per line with {names}"
    if kind in (Run, Qrels):
        expected += ", or {query: {document: number}}"
    raise content.error(f"expected {expected}.")


def _known(frame: pl.DataFrame, kind: type[Table]) -> pl.DataFrame:
    """Leave out columns that other tools write beside ours: a run's tag, a qrels' iteration."""
    ignored = {"rank", "tag", "run", "iteration", "iter", "Q0", "q0", "system"}
    if kind is Run and "score" not in frame.columns:
        ignored -= {"rank"}
    drop = [c for c in frame.columns if c in ignored and c not in kind.columns]
    return frame if kind.open else frame.drop(drop)


def _is_nested(value: dict[str, Any]) -> bool:
    return all(isinstance(inner, dict) for inner in value.values()) and bool(value)


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_NAMES = ["query_id", "doc_id", "relevance", "score", "text", "system", "measure", "value", "fold"]
_HEADERS = {"query_id", "query-id", "qid", "doc_id", "corpus-id", "docid", "docno", "pid", "_id"}
_HEADERS |= {"fold", "role", "system", "measure", "source", "budget", "text", "relevance", "id"}


def _split(line: bytes) -> list[bytes]:
    """Split a first line, which may be a header of any kind."""
    return fields_of(line.replace(b",", b"\t") if b"," in line and b"\t" not in line else line)


def _header(fields: list[str]) -> bool:
    return len(_HEADERS & {field.strip('"') for field in fields}) >= 2


def _card(path: Path) -> Card:
    if not path.is_file():
        return Card()
    given = read_json(load(path))
    known = Card.__dataclass_fields__
    for name, value in given.items() if isinstance(given, dict) else ():
        if name not in known or not isinstance(value, str):
            raise FileError(
                path,
                f"unknown entry {name!r}.{did_you_mean(name, known)} "
                f"A card holds texts called {', '.join(known)}.",
            )
    if not isinstance(given, dict):
        raise FileError(path, "expected one JSON object.")
    return Card(**given)
