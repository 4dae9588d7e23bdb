"""Rows with named columns: parquet, json, jsonl, csv and tsv with a header."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isinf
from typing import Any, NoReturn

import polars as pl

from farfield.io.files import Content, first_sentence
from farfield.io.text import shown

__all__ = [
    "JSON_BLANKS",
    "delimited_line",
    "parquet_names",
    "read_delimited",
    "read_json",
    "read_jsonl",
    "read_parquet",
]

#: A line of these is skipped among lines of JSON.
JSON_BLANKS = b" \t\r"

# Half of a character that only exists in pairs: polars would read it as NUL.
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
# Objects inside objects, some hundreds deep, overflow the stack of polars, which ends the process.
_DEEPEST = 64
_TOO_DEEP = f"objects in objects, more than {_DEEPEST} deep. Flatten them."
_DEEP = (b"}" * _DEEPEST, b"]" * _DEEPEST, b"}]" * (_DEEPEST // 2))


# -- parquet ------------------------------------------------------------------------------------


def read_parquet(content: Content, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a parquet file: all columns, or those of ``columns`` if it has them all."""
    held = parquet_names(content)
    chosen = columns if columns is not None and all(name in held for name in columns) else held
    with _parquet_errors(content):
        return _scan_parquet(content).select(chosen).collect(engine="streaming")


def parquet_names(content: Content) -> list[str]:
    """Return the names of a parquet file's columns."""
    with _parquet_errors(content):
        return _scan_parquet(content).collect_schema().names()


def _scan_parquet(content: Content) -> pl.LazyFrame:
    return pl.scan_parquet(content.source, glob=False)


@contextmanager
def _parquet_errors(content: Content) -> Iterator[None]:
    if content.data[-4:] != b"PAR1":
        raise content.error("the parquet data is cut short. Get the file again.")
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        message = f"the parquet data cannot be read: {first_sentence(error)}. Get the file again."
        raise content.error(message) from error


# -- JSON ---------------------------------------------------------------------------------------


def read_jsonl(content: Content) -> pl.DataFrame:
    """Read one JSON object per line; the entries of BEIR's ``metadata`` become columns.

    Of an entry that an object has twice, the first counts.
    """
    data = bytes(content.data)
    if _may_be_deep(data):
        _blame_json(content, _may_be_deep)
    if (b"\\ud" in data or b"\\uD" in data) and _LONE_SURROGATE.search(data):
        _blame_json(content, _LONE_SURROGATE.search)
    try:
        frame = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        _blame_json(content)
        reason = first_sentence(error)
        raise content.error(f"cannot be read as JSON, one object per line: {reason}.") from error
    metadata = frame.schema.get("metadata")
    if isinstance(metadata, pl.Struct):
        inner = {field.name for field in metadata.fields}
        if not inner & (set(frame.columns) - {"metadata"}):
            return frame.unnest("metadata")
    return frame


def read_json(content: Content) -> Any:
    """Read a whole JSON document."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for at, name in enumerate(names) if name in names[:at])
            raise content.error(f"{twice!r} appears twice in one object. Keep one of them.")
        return made

    try:
        value = json.loads(content.text(), parse_constant=float, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise content.error(f"this is not JSON: {first_sentence(error)}.", line) from error
    if _may_be_deep(content.data) and _is_deep(value):
        raise content.error(_TOO_DEEP)
    return value


def _may_be_deep(data: Any) -> bool:
    return any(data.find(brackets) >= 0 for brackets in _DEEP)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        inner = (
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)
        )
        level = [value for values in inner for value in values]
    return bool(level)


def _blame_json(content: Content, suspect: Callable[[bytes], Any] = bool) -> None:
    """Raise for the first of the suspect lines that is not a JSON object, if there is one."""
    for number, line in content.lines(JSON_BLANKS):
        if not suspect(line):
            continue
        try:
            value = json.loads(
                line.decode(), parse_constant=_refuse, parse_float=_float, parse_int=_int
            )
            json.dumps(value, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            message = f"{shown(line)} is not JSON ({error}). Expected one object per line."
            raise content.error(message, number) from None
        if not isinstance(value, dict):
            message = f"{shown(line)} is not an object. Expected one {{…}} per line."
            raise content.error(message, number)
        if _may_be_deep(line) and _is_deep(value):
            raise content.error(_TOO_DEEP, number)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is too large, or no number at all")


def _float(text: str) -> float:
    value = float(text)
    if isinf(value) or len(text.lower().partition("e")[2]) > 6:  # polars reads no such exponent
        _refuse(shown(text))
    return value


def _int(text: str) -> int:
    value = int(text)
    if abs(value) >= 2**127:
        _refuse(shown(text))
    return value


# -- csv and tsv --------------------------------------------------------------------------------


def read_delimited(content: Content, separator: str) -> pl.DataFrame:
    """Read a table with a header line; all columns are texts.

    Fields may stand in quotes, except between tabs, where quotes are characters like others.
    """
    frame = _delimited_fast(content, separator)
    return _delimited(content, separator) if frame is None else frame


def delimited_line(content: Content, separator: str, row: int) -> int:
    """Return the number of the line in which a row of :func:`read_delimited` starts."""
    for at, (number, _) in enumerate(_records(content, separator)):
        if at == row + 1:
            return number
    raise IndexError(row)


def _delimited_fast(content: Content, separator: str) -> pl.DataFrame | None:
    """Let polars read a table in which every line is a row; ``None`` if it is not so simple."""
    data = bytes(content.data)
    if data.count(b"\r") > data.count(b"\r\n") or (separator != "\t" and b'"' in data):
        return None
    try:
        frame = pl.read_csv(
            data,
            separator=separator,
            infer_schema=False,
            quote_char=None,
            empty_string_is_null=False,
        )
    except pl.exceptions.PolarsError:
        return None
    # A line with a field too many raises; one with a field too few shows in the sum.
    complete = data.count(separator.encode()) == (len(frame) + 1) * (frame.width - 1)
    named = list(frame.columns) == content.first_line().decode().split(separator)
    return frame if complete and named else None


def _delimited(content: Content, separator: str) -> pl.DataFrame:
    records = _records(content, separator)
    at, names = next(records)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise content.error(f"the column {twice[0]!r} is there twice.", at)
    rows = []
    for number, fields in records:
        if len(fields) != len(names):
            raise content.error(
                f"{len(fields)} field{'' if len(fields) == 1 else 's'}, but the header names "
                f"{len(names)}: {', '.join(names)}.",
                number,
            )
        rows.append(fields)
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _records(content: Content, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its first line, fields) of the header and every row."""
    if separator == "\t":
        for number, line in content.lines(blanks=b" "):
            try:
                yield number, line.decode().split("\t")
            except UnicodeDecodeError as error:
                message = f"{shown(line)} is not UTF-8 ({error.reason}). Convert the file to UTF-8."
                raise content.error(message, number) from None
        return
    text = content.text()
    limit = csv.field_size_limit()
    csv.field_size_limit(max(limit, len(text)))  # a document may be long
    try:
        lines = io.StringIO(text, newline="\n")
        reader = csv.reader(lines, strict=True, delimiter=separator)
        number = 1
        try:
            for fields in reader:
                if any(field.strip(" ") for field in fields) or len(fields) > 1:
                    yield number, fields
                number = reader.line_num + 1
        except csv.Error as error:
            raise content.error(f"this is not csv: {error}.", number) from None
    finally:
        csv.field_size_limit(limit)
