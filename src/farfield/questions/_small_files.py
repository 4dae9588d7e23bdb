"""Small files that say one thing about each of many: the date of a run, the stratum of a query."""

from __future__ import annotations

import json
import os
from typing import Any

import polars as pl

from farfield.errors import FileError, did_you_mean
from farfield.io.files import load
from farfield.io.form import renamed
from farfield.io.records import read_delimited, read_json, read_jsonl, read_parquet

__all__ = ["read_pairs", "read_rows"]


def read_pairs(path: str | os.PathLike[str], key: str, *values: str) -> dict[str, str]:
    """Read two columns as ``{key: value}``, in the order of the file.

    The file is csv or tsv with a header, jsonl, a JSON object ``{key: value}`` or parquet. The
    value is the first of ``values`` that is there; other columns are passed over.
    """
    frame = _read(path, key, values[0])
    names = renamed(frame.columns, [key])
    frame = frame.rename(dict(zip(frame.columns, names, strict=True)))
    value = next((name for name in values if name in frame.columns), values[0])
    for name in (key, value):
        if name not in frame.columns:
            raise FileError(
                path,
                f"no column {name!r}.{did_you_mean(name, frame.columns)} Found "
                f"{', '.join(frame.columns)}; expected {key} and {value}.",
            )
    for name in (key, value):
        if frame[name].dtype.is_nested():
            raise FileError(path, f"{name} holds lists or objects, expected texts.")
    texts = frame.select(pl.col(key, value).cast(pl.String).str.strip_chars())
    for number, row in enumerate(texts.iter_rows(), start=1):
        if not all(row):
            missing = value if row[0] else key
            raise FileError(path, f"row {number}: {missing} is missing. Every row needs one.")
    twice = texts.filter(pl.col(key).is_duplicated())
    if len(twice):
        raise FileError(path, f"{key} {twice[key][0]!r} is there twice. Keep one of the rows.")
    return dict(texts.iter_rows())


def read_rows(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a table with any columns: jsonl, parquet, or text with a header.

    The columns of a text are separated by whichever of tab, comma, semicolon and bar its header has
    most of.
    """
    content = load(path)
    if content.data[:4] == b"PAR1":
        return read_parquet(content)
    first = content.first_line()
    if first.lstrip()[:1] == b"{":
        return read_jsonl(content)
    return read_delimited(content, max("\t,;|", key=lambda mark: first.count(mark.encode())))


def _read(path: str | os.PathLike[str], key: str, value: str) -> pl.DataFrame:
    content = load(path)
    if content.data[:4] == b"PAR1":
        return read_parquet(content)
    first = content.first_line()
    if first.lstrip()[:1] not in (b"{", b"["):
        return read_delimited(content, "\t" if b"\t" in first else ",")
    try:
        rows = key in json.loads(first)
    except ValueError:
        rows = False
    if rows:
        return read_jsonl(content)
    found: Any = read_json(content)
    if not isinstance(found, dict) or not all(isinstance(v, str | int) for v in found.values()):
        raise content.error(f"expected {{{key}: {value}}}, or one object per line with both.")
    return pl.DataFrame({key: list(found), value: [str(text) for text in found.values()]})
