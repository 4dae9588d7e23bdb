"""Columns of text separated by blanks: TREC runs and qrels and their cousins.

The rule: a line's fields are what stands between spaces and tabs, in any number; blank lines and
a carriage return at the end of a line do not count. polars reads such text very fast if fields are
separated by one character; where they are not, the text is first brought into that form. A line
that breaks the rules is then looked for, line by line, to be named.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from farfield.errors import FileError
from farfield.io.files import Content

__all__ = ["Column", "fields_of", "read_columns", "read_pairs"]

_CHUNK = 1 << 18
_NUMBER = re.compile(
    rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE
)


@dataclass(frozen=True)
class Column:
    """Which field of a line becomes which column."""

    name: str
    field: int
    kind: str = "id"  # or "number"

    @property
    def dtype(self) -> Any:
        """The type it has when read."""
        return pl.Float64 if self.kind == "number" else pl.String


def fields_of(line: bytes) -> list[bytes]:
    """Split a line into its fields."""
    return [field for field in re.split(rb"[ \t]+", line) if field]


def read_columns(
    content: Content, columns: list[Column], *, layout: str, header: bool = False
) -> pl.DataFrame:
    """Read the named fields of every line; ``layout`` describes a line in error messages."""
    width = len(fields_of(content.first_line()))
    needed = max(column.field for column in columns) + 1
    if width >= needed:
        separator = _single_separator(content)
        source = content.path if content.plain else io.BytesIO(content.data)
        if separator is not None:
            frame = _scan(source, separator, width, columns, header)
            if frame is not None:
                return frame
        frame = _scan(io.BytesIO(_tabbed(content)), "\t", width, columns, header)
        if frame is not None:
            return frame
    raise _explain(content, columns, needed, layout, header)


def read_pairs(content: Content, names: tuple[str, str]) -> pl.DataFrame:
    """Read lines of an id, a tab and a text that may hold anything but a line end."""
    text = _decode(content)
    lines = pl.Series("line", text.split("\n"), dtype=pl.String).str.strip_suffix("\r")
    lines = lines.filter(lines.str.strip_chars(" \t") != "")
    parts = lines.str.splitn("\t", 2).struct.rename_fields(list(names)).struct.unnest()
    if parts[names[1]].null_count():
        row = int(parts[names[1]].is_null().arg_true()[0])
        raise content.error(
            f"no tab in {_shown(lines[row])}. Expected {names[0]}, a tab and {names[1]}.",
            content.line_of(row),
        )
    return parts


# -- the fast way -------------------------------------------------------------------------------


def _single_separator(content: Content) -> str | None:
    """The one character between all fields, or ``None`` if a line has more or others."""
    line = content.data[: len(content.first_line()) + 1]
    separator, other = (b"\t", b" ") if b"\t" in line else (b" ", b"\t")
    if content.data.find(other) >= 0:
        return None
    values = np.frombuffer(content.data, dtype=np.uint8)
    blank = separator[0]
    if values[0] == blank:
        return None
    for start in range(0, len(values), _CHUNK):  # in chunks that stay in the cache
        chunk = values[start : start + _CHUNK + 1]
        after, before = chunk[1:] == blank, chunk[:-1]
        if (after & ((before == blank) | (before == 10))).any():
            return None
    return separator.decode()


def _scan(
    source: Any, separator: str, width: int, columns: list[Column], header: bool
) -> pl.DataFrame | None:
    """Let polars read the fields; ``None`` if it cannot read all of them."""
    schema: dict[str, Any] = {f"field_{i}": pl.String for i in range(width)}
    schema |= {f"field_{column.field}": column.dtype for column in columns}
    # A query's id is repeated on every line; as a category it takes a quarter of the memory.
    chosen = [
        pl.col(f"field_{c.field}")
        .cast(pl.Categorical if c.name == "query_id" else c.dtype)
        .alias(c.name)
        for c in columns
    ]
    lazy = pl.scan_csv(
        source,
        separator=separator,
        has_header=False,
        skip_lines=int(header),
        glob=False,
        schema=schema,
        quote_char=None,
        truncate_ragged_lines=True,
    )
    try:
        frame = lazy.select(chosen).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    return None if any(frame[c.name].null_count() for c in columns) else frame


def _tabbed(content: Content) -> bytes:
    """Rewrite the text: one tab between fields, none around them, no blank lines."""
    parts: list[bytes] = []
    start, size = 0, len(content.data)
    while start < size:
        end = content.data.find(b"\n", min(start + (1 << 23), size))
        end = size if end < 0 else end + 1
        parts.append(_tabbed_lines(content.data[start:end]))
        start = end
    return b"".join(parts)


def _tabbed_lines(text: bytes) -> bytes:
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
    values = np.frombuffer(text, dtype=np.uint8)
    blank = (values == 32) | (values == 9)
    ends = np.append(values[1:], 10) == 10
    follows = np.append(blank[1:], True)
    # Of a stretch of blanks keep the last one, unless the line ends there.
    values = np.where(blank, 9, values)[~blank | (~follows & ~ends)].astype(np.uint8)
    # Then drop blanks that start a line, and line ends that follow a line end.
    before = np.concatenate(([10], values[:-1]))
    values = values[(before != 10) | (values != 9)]
    before = np.concatenate(([10], values[:-1]))
    kept = values[(before != 10) | (values != 10)]
    return bytes(kept)


# -- the line to blame --------------------------------------------------------------------------


def _explain(
    content: Content, columns: list[Column], needed: int, layout: str, header: bool
) -> FileError:
    """Find the first line that breaks the rules."""
    for at, (number, line) in enumerate(content.lines()):
        if header and at == 0:
            continue
        message = _complaint(line, columns, needed, layout)
        if message is not None:
            return content.error(message, number)
    return content.error(f"cannot be read as lines of {layout}.")


def _complaint(line: bytes, columns: list[Column], needed: int, layout: str) -> str | None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"{_shown(line)} is not UTF-8 ({error.reason}). Convert the file to UTF-8."
    fields = fields_of(line)
    if len(fields) < needed:
        s = "" if len(fields) == 1 else "s"
        return f"{len(fields)} field{s} in {_shown(line)}. Expected {layout}."
    for column in columns:
        field = fields[column.field]
        if column.kind == "number" and not _NUMBER.fullmatch(field):
            return f"{column.name} is {_shown(field)}, which is not a number. Expected {layout}."
    return None


def _decode(content: Content) -> str:
    try:
        return bytes(content.data).decode()
    except UnicodeDecodeError:
        for number, line in content.lines():
            try:
                line.decode()
            except UnicodeDecodeError as error:
                message = f"{_shown(line)} is not UTF-8 ({error.reason}). Convert it to UTF-8."
                raise content.error(message, number) from None
        raise


def _shown(text: bytes | str) -> str:
    """A text as it can be shown in a message: in quotes, on one line, not too long."""
    readable = text.decode(errors="backslashreplace") if isinstance(text, bytes) else text
    readable = readable if len(readable) <= 60 else readable[:57] + "…"
    return repr(readable)
