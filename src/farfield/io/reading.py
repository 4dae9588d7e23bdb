"""Read tables and collections; formats are recognised by content."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from farfield.collection import Card, Collection
from farfield.errors import FarfieldWarning, FileError, InputError, TableError, did_you_mean
from farfield.io import beir, irds
from farfield.io.files import Content, PathLike, Where, load, name_of
from farfield.io.form import form_of, renamed
from farfield.io.records import (
    JSON_BLANKS,
    delimited_line,
    parquet_names,
    read_delimited,
    read_json,
    read_jsonl,
    read_parquet,
)
from farfield.io.text import Column, fields_of, is_number, read_columns, read_pairs, shown
from farfield.tables import Allocation, Corpus, Partition, PerQuery, Qrels, Queries, Run, Table

__all__ = [
    "kind_of",
    "read",
    "read_collection",
    "read_corpus",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_texts",
]

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


def read_texts(path: PathLike) -> pl.DataFrame:
    """Read rows of doc_id and text, of which a document may have several; formats as for a corpus.

    A text may be a list of texts.
    """
    content = load(path)
    frame, where = _rows(content, Corpus)
    missing = [name for name in Corpus.columns if name not in frame.columns]
    if missing:
        found = ", ".join(frame.columns)
        raise content.error(f"no column {missing[0]!r}. Found {found}; expected doc_id and text.")
    frame = frame.select("doc_id", "text")
    if isinstance(frame["text"].dtype, pl.List):
        frame = frame.explode("text")
    try:
        frame = Corpus._conform(frame)
        Corpus._check_values(frame)
    except TableError as error:
        raise content.table_error(error, where) from None
    if not len(frame):
        raise content.error("there are no rows in it. Expected at least one.")
    return frame


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
    form = form_of(content)
    names: list[str] = []
    if form.kind == "parquet":
        names = parquet_names(content)
    elif form.kind == "array":
        rows = read_json(content)
        names = list(rows[0]) if rows and isinstance(rows[0], dict) else []
    elif form.kind == "object":
        names = list(_json_object(content.first_line()) or ())
    elif form.kind == "header":
        names = list(form.names)
    else:
        fields = fields_of(content.first_line())
        if len(fields) >= 5 and is_number(fields[4]):
            return Run
        if len(fields) == 4 and is_number(fields[3]):
            return Qrels
    kinds = _kinds_with(names)
    if len(kinds) == 1:
        return kinds[0]
    raise content.error(
        "it cannot be told what this file holds. Say it: run, qrels, queries or corpus (--kind)."
    )


def _kinds_with(names: list[str]) -> list[type[Table]]:
    """Which tables have these columns?"""
    if "_id" in names:  # both of BEIR's files have _id and text; a title marks documents
        return [Corpus if "title" in names else Queries]
    if "corpus-id" in names:  # BEIR calls a judgement a score
        return [Qrels]
    given = [*names, "score"] if "rank" in names and "score" not in names else names
    tables: list[type[Table]] = [PerQuery, Partition, Allocation, Run, Qrels]
    for kind in tables:
        if set(kind.columns) <= set(renamed(given, list(kind.columns))):
            return [kind]
    open_tables: list[type[Table]] = [Queries, Corpus]
    kinds = [k for k in open_tables if set(k.columns) <= set(renamed(given, list(k.columns)))]
    return [Corpus] if len(kinds) > 1 and "title" in names else kinds


# -- inside -------------------------------------------------------------------------------------


def _read(path: PathLike, kind: type[T], make: Callable[[Any], T]) -> T:
    content = load(path)
    data, where = _rows(content, kind)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table = make(data)
    except TableError as error:
        raise content.table_error(error, where) from None
    for warning in said:  # say of which file it is true
        if issubclass(warning.category, FarfieldWarning):
            text = f"{content.path}: {warning.message}"
            warnings.warn(text, FarfieldWarning, stacklevel=3)
    if not len(table):
        raise content.error("there are no rows in it. Expected at least one.")
    return table


def _rows(content: Content, kind: type[Table]) -> tuple[Any, Where]:
    """What a table is made of, and where in the file each row of it is."""
    wanted = list(kind.columns)
    form = form_of(content)
    if form.kind == "parquet":
        return _ours(read_parquet(content, None if kind.open else wanted), kind), _row
    if form.kind == "array":
        return _from_array(content, kind), _row
    if form.kind == "object":
        first = _json_object(content.first_line())
        if first and not _is_nested(first):
            return _ours(read_jsonl(content), kind), partial(content.line_of, blanks=JSON_BLANKS)
        nested = _from_nested(content, kind)
        return nested, partial(_nested_place, nested)
    if form.kind == "header" and form.separator is not None:
        frame = _ours(read_delimited(content, form.separator), kind)
        line_of = partial(delimited_line, content, form.separator)
        return _with_numbers(content, frame, kind, line_of), line_of
    if form.kind == "header" and not kind.open:
        return _headed(content, kind, list(form.names)), lambda row: content.line_of(row + 1)
    if kind is Run:
        return _headless_run(content), content.line_of
    if kind is Qrels:
        return _headless_qrels(content), content.line_of
    if kind in (Queries, Corpus):
        return read_pairs(content, (wanted[0], wanted[1])), content.line_of
    raise content.error(
        f"no header line. Expected parquet, jsonl, csv or tsv with columns {', '.join(wanted)}."
    )


def _row(row: int) -> str:
    return f"row {row + 1}"


def _headless_run(content: Content) -> pl.DataFrame:
    width = len(fields_of(content.first_line()))
    if width == 3:
        columns = [Column("query_id", 0), Column("doc_id", 1), Column("rank", 2, "number")]
        layout = "query document rank (MS MARCO)"
        frame = read_columns(content, columns, layout=layout, exact=True)
        bad = (frame["rank"] != frame["rank"].floor()) | ~frame["rank"].is_finite()
        if bad.any():
            row = int(bad.arg_true()[0])
            message = f"rank is {frame['rank'][row]}, expected a whole number."
            raise content.error(message, content.line_of(row))
        return frame
    swapped = " (judgements have four fields: were the two files swapped?)"
    layout = _RUN_LINE + (swapped if width == 4 else "")
    columns = [Column("query_id", 0), Column("doc_id", 2), Column("score", 4, "number")]
    frame = read_columns(content, columns, layout=layout)
    _check_last_line(content, width)
    return frame


def _headless_qrels(content: Content) -> pl.DataFrame:
    width = len(fields_of(content.first_line()))
    if width == 3:
        columns = [Column("query_id", 0), Column("doc_id", 1), Column("relevance", 2, "number")]
        return read_columns(content, columns, layout="query document relevance", exact=True)
    swapped = " (a run has six fields: were the two files swapped?)"
    layout = _QRELS_LINE + (swapped if width > 4 else "")
    columns = [Column("query_id", 0), Column("doc_id", 2), Column("relevance", 3, "number")]
    return read_columns(content, columns, layout=layout, exact=True)


def _check_last_line(content: Content, width: int) -> None:
    """A last line without an end and with fewer fields than the first was cut off in writing."""
    if content.data[-1:] == b"\n":
        return
    start = content.data.rfind(b"\n") + 1
    last = fields_of(content.data[start:].removesuffix(b"\r"))
    if last and len(last) < width:
        raise content.error(
            f"the last line has {len(last)} fields and no end, the first line has {width}: "
            "the file is cut short. Get it again.",
            line=bytes(content.data).count(b"\n") + 1,
        )


def _headed(content: Content, kind: type[Table], names: list[str]) -> pl.DataFrame:
    """Read columns that are separated by blanks and named in the first line."""
    ours = renamed(names, list(kind.columns))
    wanted = dict(kind.columns)
    if kind is Run and "score" not in ours:
        wanted["rank"] = pl.Float64
    twice = [name for name in wanted if ours.count(name) > 1]
    if twice:
        raise content.error(f"the column {twice[0]!r} is there twice.", content.line_of(0))
    columns = [
        Column(name, ours.index(name), "id" if dtype == pl.String else "number")
        for name, dtype in wanted.items()
        if name in ours
    ]
    return read_columns(content, columns, layout=" ".join(names), header=True)


def _with_numbers(
    content: Content, frame: pl.DataFrame, kind: type[Table], where: Callable[[int], int]
) -> pl.DataFrame:
    """Turn the texts of columns that hold numbers into numbers."""
    numeric = [name for name, dtype in kind.columns.items() if dtype != pl.String]
    for name in [*numeric, *(["rank"] if kind is Run else [])]:
        if name in frame.columns:
            numbers = frame[name].str.strip_chars(" ").cast(pl.Float64, strict=False)
            if numbers.null_count():
                row = int(numbers.is_null().arg_true()[0])
                message = f"{name} is {shown(frame[name][row])}, which is not a number."
                raise content.error(message, where(row))
            frame = frame.with_columns(numbers)
    return frame


def _from_array(content: Content, kind: type[Table]) -> pl.DataFrame:
    rows = read_json(content)
    if not all(isinstance(row, dict) for row in rows):
        raise content.error("expected a list of objects, one for each row.")
    try:
        return _ours(kind._to_frame(rows), kind)
    except TableError as error:
        raise content.error(error.message) from None


def _from_nested(content: Content, kind: type[Table]) -> dict[str, dict[str, Any]]:
    nested = read_json(content)
    if kind not in (Run, Qrels) or not _is_nested(nested):
        expected = f"one object per line with {', '.join(kind.columns)}"
        if kind in (Run, Qrels):
            expected += ", or {query: {document: number}}"
        raise content.error(f"expected {expected}.")
    for query, documents in nested.items():
        for doc, value in documents.items():
            if not isinstance(value, int | float):
                place = f"in query {query!r}, document {doc!r}"
                raise content.error(f"{place}: {shown(json.dumps(value))} is not a number.")
    return nested  # type: ignore[no-any-return]  # just checked


def _nested_place(nested: dict[str, dict[str, Any]], row: int) -> str:
    pairs = ((query, doc) for query, documents in nested.items() for doc in documents)
    query, doc = next(islice(pairs, row, None))
    return f"query {query!r}, document {doc!r}"


def _ours(frame: pl.DataFrame, kind: type[Table]) -> pl.DataFrame:
    """Call columns as we do, and leave out what other tools write beside them: a run's tag …"""
    names = renamed(frame.columns, list(kind.columns))
    frame = frame.rename(dict(zip(frame.columns, names, strict=True)))
    if kind.open:
        return frame
    ignored = {"", "rank", "tag", "run", "iteration", "iter", "Q0", "q0", "system"}
    if kind is Run and "score" not in names:
        ignored -= {"rank"}
    return frame.drop(name for name in names if name in ignored and name not in kind.columns)


def _is_nested(value: dict[str, Any]) -> bool:
    return all(isinstance(inner, dict) for inner in value.values())


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


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
