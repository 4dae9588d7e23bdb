"""Rows with named columns: parquet, json, jsonl, csv and tsv with a header."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from farfield.errors import FileError
from farfield.io.files import Content
from farfield.io.text import _shown

__all__ = ["parquet_names", "read_delimited", "read_json", "read_jsonl", "read_parquet", "rename"]

#: What people call our columns.
_CALLED = {
    "query_id": ("query-id", "qid", "query", "topic", "q_id", "topic_id"),
    "doc_id": ("corpus-id", "docid", "docno", "pid", "doc", "passage_id", "document_id"),
    "relevance": ("rel", "label", "score", "grade", "judgement", "judgment"),
    "score": ("sim", "similarity"),
    "text": ("query", "contents", "passage", "body"),
}

# Half of a character that only exists in pairs: polars would read it as NUL.
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def rename(frame: pl.DataFrame, wanted: list[str]) -> pl.DataFrame:
    """Give columns known under another name ours; ``_id`` is the id of what the table holds."""
    names: dict[str, str] = {}
    for name in wanted:
        called = (*_CALLED.get(name, ()), "_id", "id") if name == wanted[0] else _CALLED.get(name)
        other = next((c for c in called or () if c in frame.columns and c not in names), None)
        if name not in frame.columns and other is not None:
            names[other] = name
    return frame.rename(names)


def read_parquet(content: Content, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a parquet file: all columns, or those of ``columns`` that it has."""
    held = parquet_names(content)
    chosen = columns if columns is not None and all(name in held for name in columns) else held
    with _parquet_errors(content):
        return _scan_parquet(content).select(chosen).collect(engine="streaming")


def parquet_names(content: Content) -> list[str]:
    """Return the names of a parquet file's columns."""
    with _parquet_errors(content):
        return _scan_parquet(content).collect_schema().names()


def _scan_parquet(content: Content) -> pl.LazyFrame:
    source: Any = content.path if content.plain else io.BytesIO(content.data)
    return pl.scan_parquet(source, glob=False)


@contextmanager
def _parquet_errors(content: Content) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        raise content.error(f"the parquet data cannot be read: {_first(error)}.") from error


def read_jsonl(content: Content) -> pl.DataFrame:
    """Read one JSON object per line; objects inside (BEIR's metadata) become columns."""
    if _LONE_SURROGATE.search(content.data):
        raise _blame_json(content, "half of a surrogate pair")
    try:
        frame = pl.read_ndjson(io.BytesIO(content.data), infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _blame_json(content, _first(error)) from error
    for name in frame.columns:
        dtype = frame[name].dtype
        if isinstance(dtype, pl.Struct):
            inner = [field.name for field in dtype.fields]
            taken = [i for i in inner if i in frame.columns]
            frame = frame.unnest(name) if not taken else frame
    return frame


def read_json(content: Content) -> Any:
    """Read a whole JSON document."""
    try:
        return json.loads(bytes(content.data), parse_constant=float)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise content.error(f"this is not JSON: {error}.", line) from error


def read_delimited(content: Content, separator: str) -> pl.DataFrame:
    """Read a table with a header line, separated by commas or tabs."""
    try:
        return pl.read_csv(
            io.BytesIO(content.data),
            separator=separator,
            infer_schema=False,
            quote_char='"' if separator == "," else None,
            empty_string_is_null=False,
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise content.error(f"the table cannot be read: {_first(error)}.") from error


def _blame_json(content: Content, why: str) -> FileError:
    """Find the first line that is not a JSON object."""
    for number, line in content.lines():
        try:
            value = json.loads(line)
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            message = f"{_shown(line)} is not JSON ({error}). Expected one object per line."
            return content.error(message, number)
        if not isinstance(value, dict):
            message = f"{_shown(line)} is not an object. Expected one {{…}} per line."
            return content.error(message, number)
    return content.error(f"cannot be read as JSON, one object per line: {why}.")


def _first(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
