"""Columns of text separated by blanks: TREC runs and qrels and their cousins.

The rule: the text is UTF-8 and lines end in a line feed, with or without a carriage return before
it; a carriage return anywhere else is a fault. A line's fields are what stands between spaces and
tabs, in any number; all other characters belong to fields. Lines without a field do not count.
A number is written in decimals, perhaps with an exponent, or is ``inf``, ``infinity`` or ``nan``.

polars reads such text very fast if fields are separated by one character; where they are not, the
text is first brought into that form. A line that breaks the rules is then looked for, line by
line, to be named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import FileError
from farfield.io.files import Content, in_memory

__all__ = ["Column", "fields_of", "is_number", "read_columns", "read_pairs", "shown"]

_CHUNK = 1 << 18
# Bytes from which a second thread is worth its start.
_LARGE = 1 << 24
_TAB, _END, _RETURN, _SPACE = b"\t\n\r "
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
    """Split a line into its fields; from the 64th on they count as one."""
    return [field for field in re.split(rb"[ \t]+", line.strip(b" \t"), maxsplit=63) if field]


def is_number(field: bytes) -> bool:
    """Is this how a number is written? It is what polars takes for one."""
    return _NUMBER.fullmatch(field) is not None


def read_columns(
    content: Content,
    columns: list[Column],
    *,
    layout: str,
    exact: bool = False,
    header: bool = False,
) -> pl.DataFrame:
    """Read the named fields of every line; ``layout`` describes a line in error messages.

    A line needs fields up to the last one that is named; if ``exact``, it may have no more.
    """
    values = np.frombuffer(content.data, dtype=np.uint8)
    frame = _read_single(content, values, columns, exact, header)
    if frame is None and not _stray_return(content, values):
        tabbed = _tabbed(content)
        values = np.frombuffer(tabbed, dtype=np.uint8)
        frame = _scan(in_memory(tabbed), values, "\t", columns, exact, header)
    if frame is not None:
        return frame
    raise _explain(content, columns, layout, exact, header)


def read_pairs(content: Content, names: tuple[str, str]) -> pl.DataFrame:
    """Read lines of an id, a tab and a text that may hold anything but a line end."""
    lines = pl.Series("line", content.text().split("\n"), dtype=pl.String).str.strip_suffix("\r")
    lines = lines.filter(lines.str.strip_chars(" \t") != "")
    parts = lines.str.splitn("\t", 2).struct.rename_fields(list(names)).struct.unnest()
    if parts[names[1]].null_count():
        row = int(parts[names[1]].is_null().arg_true()[0])
        raise content.error(
            f"no tab in {shown(lines[row])}. Expected {names[0]}, a tab and {names[1]}.",
            content.line_of(row),
        )
    return parts


# -- the fast way -------------------------------------------------------------------------------


def _read_single(
    content: Content,
    values: npt.NDArray[np.uint8],
    columns: list[Column],
    exact: bool,
    header: bool,
) -> pl.DataFrame | None:
    """Read a text that has one character between all fields; ``None`` if this one has not."""
    separator = "\t" if b"\t" in content.first_line() else " "
    if len(values) < _LARGE:
        if not _is_single(content, values, separator):
            return None
        return _scan(content.source, values, separator, columns, exact, header)
    from concurrent.futures import ThreadPoolExecutor  # half of a small job's imports

    with ThreadPoolExecutor(1) as thread:  # looking takes a third as long as reading
        frame = thread.submit(_scan, content.source, values, separator, columns, exact, header)
        single = _is_single(content, values, separator)
        return frame.result() if single else None


def _is_single(content: Content, values: npt.NDArray[np.uint8], separator: str) -> bool:
    """Is this character all there is between fields, and no carriage return out of place?"""
    blank, other = (_TAB, b" ") if separator == "\t" else (_SPACE, b"\t")
    if values[0] == blank or content.data.find(other) >= 0 or _stray_return(content, values):
        return False
    for start in range(0, len(values), _CHUNK):  # in chunks that stay in the cache
        chunk = values[start : start + _CHUNK + 1]
        between = chunk == blank
        if (between[1:] & (between[:-1] | (chunk[:-1] == _END))).any():
            return False
    return True


def _stray_return(content: Content, values: npt.NDArray[np.uint8]) -> bool:
    """Is there a carriage return that no line feed and no end of the file follows?"""
    if content.data.find(b"\r") < 0:
        return False
    after = np.flatnonzero(values == _RETURN) + 1
    return bool((values[after[after < len(values)]] != _END).any())


def _scan(
    source: Any,
    values: npt.NDArray[np.uint8],
    separator: str,
    columns: list[Column],
    exact: bool,
    header: bool,
) -> pl.DataFrame | None:
    """Let polars read the fields; ``None`` if it cannot read all of them."""
    schema: dict[str, Any] = {f"field_{i}": pl.String for i in range(_needed(columns))}
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
        extra_columns="ignore",
    )
    try:
        frame = lazy.select(chosen).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    if any(frame[c.name].null_count() for c in columns):
        return None
    if exact:  # no line has a field too few, so one with a field too many shows in the sum
        fields = np.count_nonzero(values == ord(separator)) + len(frame)
        return frame if fields == len(frame) * _needed(columns) else None
    return frame


def _needed(columns: list[Column]) -> int:
    return max(column.field for column in columns) + 1


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
    blank = (values == _SPACE) | (values == _TAB)
    ends = np.append(values[1:], _END) == _END
    follows = np.append(blank[1:], True)
    # Of a stretch of blanks keep the last one, unless the line ends there.
    values = np.where(blank, _TAB, values)[~blank | (~follows & ~ends)].astype(np.uint8)
    # Then drop blanks that start a line, and line ends that follow a line end.
    before = np.concatenate(([_END], values[:-1]))
    values = values[(before != _END) | (values != _TAB)]
    before = np.concatenate(([_END], values[:-1]))
    kept = values[(before != _END) | (values != _END)]
    return bytes(kept)


# -- the line to blame --------------------------------------------------------------------------


def _explain(
    content: Content, columns: list[Column], layout: str, exact: bool, header: bool
) -> FileError:
    """Find the first line that breaks the rules."""
    for at, (number, line) in enumerate(content.lines()):
        message = _complaint(line, columns, layout, exact, header and at == 0)
        if message is not None:
            cut = content.data[-1:] != b"\n" and content.data[-len(line) :] == line
            hint = " It has no line end: the file may be cut short." if cut else ""
            return content.error(message + hint, number)
    return content.error(f"cannot be read as lines of {layout}.")


def _complaint(
    line: bytes, columns: list[Column], layout: str, exact: bool, header: bool
) -> str | None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"{shown(line)} is not UTF-8 ({error.reason}). Convert the file to UTF-8."
    if b"\r" in line:
        return (
            f"a carriage return in the middle of {shown(line)}. "
            "Lines end in a line feed: convert the line ends."
        )
    fields, needed = fields_of(line), _needed(columns)
    if len(fields) < needed or (exact and len(fields) > needed):
        s = "" if len(fields) == 1 else "s"
        return f"{len(fields)} field{s} in {shown(line)}. Expected {layout}."
    for column in [] if header else columns:
        field = fields[column.field]
        if column.kind == "number" and not is_number(field):
            return f"{column.name} is {shown(field)}, which is not a number. Expected {layout}."
    return None


def shown(text: bytes | str) -> str:
    """A text as it can be shown in a message: in quotes, on one line, not too long."""
    readable = text.decode(errors="backslashreplace") if isinstance(text, bytes) else text
    readable = readable if len(readable) <= 60 else readable[:57] + "…"
    return repr(readable)
