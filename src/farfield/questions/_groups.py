"""Queries of a kind: by length, by wh-word, by any column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from farfield.errors import InputError, did_you_mean
from farfield.tables import Queries

__all__ = ["KINDS", "Groups", "group"]

#: What queries can be grouped by, beside their columns.
KINDS = ("length", "content", "wh")

_WH = ("what", "how", "who", "when", "where", "which", "why")
_OTHER = "other"
_MISSING = "(none)"
# Chen et al. 2022, Table 5: one word, two words … ten and more.
_LENGTHS = tuple(range(1, 11))
_MOST = 40


@dataclass(frozen=True)
class Groups:
    """A label for every query, and the labels in their order."""

    by: str
    names: tuple[str, ...]
    of: dict[str, str]  # query_id: label


def group(queries: Queries, by: str, edges: Sequence[float] | None = None) -> Groups:
    """Group queries by ``length``, ``content``, ``wh`` or any of their columns.

    ``length`` counts the words between blanks, ``content`` those that are no stop words. Numbers
    are put into buckets that start at ``edges``: 1, 4, 8 makes 1-3, 4-7 and 8+. ``wh`` is the first
    of what, how, who, when, where, which and why that a query holds.
    """
    frame = queries.frame
    if by in frame.columns[2:]:
        values = frame[by]
        if edges is None or not values.dtype.is_numeric():
            return _by_value(frame["query_id"], values, by, edges)
    elif by == "wh":
        _no_edges(by, edges)
        found = (
            _words(frame["text"])
            .list.eval(pl.element().filter(pl.element().is_in(_WH)))
            .list.first()
        )
        labels = found.fill_null(_OTHER)
        return _named(frame["query_id"], labels, by, (*_WH, _OTHER))
    elif by == "length":
        values = frame["text"].str.strip_chars().str.count_matches(r"\S+")
    elif by == "content":
        values = _content(frame["text"])
    else:
        known = [*KINDS, *frame.columns[2:]]
        raise InputError(
            f"the queries have no column {by!r}.{did_you_mean(by, known)} "
            f"Group by one of {', '.join(known)}."
        )
    starts = _LENGTHS if edges is None else edges
    return _by_number(frame["query_id"], values, by, starts)


def _words(texts: pl.Series) -> pl.Series:
    return texts.str.to_lowercase().str.extract_all(r"\p{L}+")


def _content(texts: pl.Series) -> pl.Series:
    from farfield.analysis import STOP_WORDS

    words = texts.str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+")
    return words.list.eval(pl.element().filter(~pl.element().is_in(list(STOP_WORDS)))).list.len()


def _by_number(query_ids: pl.Series, values: pl.Series, by: str, edges: Sequence[float]) -> Groups:
    starts = np.asarray(edges, dtype=np.float64)
    if len(starts) == 0 or (np.diff(starts) <= 0).any() or not np.isfinite(starts).all():
        raise InputError(
            f"edges are {list(edges)}, expected numbers that rise, like 1,4,8 for 1-3, 4-7 and 8+."
        )
    numbers = values.cast(pl.Float64)
    bucket = np.searchsorted(starts, numbers.fill_null(np.nan).to_numpy(), side="right")
    names = [f"<{starts[0]:g}", *(_range(a, b) for a, b in pairwise(starts.tolist()))]
    names.append(f"{starts[-1]:g}+")
    labels = pl.Series(names).gather(np.minimum(bucket, len(names) - 1))
    labels = labels.zip_with(numbers.is_not_null(), pl.Series([_MISSING]))
    return _named(query_ids, labels, by, (*names, _MISSING))


def _range(start: float, end: float) -> str:
    if start == int(start) and end == int(end):  # of whole numbers, as counts are
        return f"{start:g}" if end == start + 1 else f"{start:g}-{end - 1:g}"
    return f"{start:g} to {end:g}"


def _by_value(
    query_ids: pl.Series, values: pl.Series, by: str, edges: Sequence[float] | None
) -> Groups:
    if values.dtype.is_nested():
        raise InputError(f"the column {by!r} holds lists or objects, expected one value a query.")
    _no_edges(by, edges)
    labels = values.cast(pl.String).fill_null(_MISSING)
    if labels.n_unique() > _MOST:
        raise InputError(
            f"the column {by!r} has {labels.n_unique():,} different values, more than {_MOST}. "
            "Put numbers into buckets with edges (--edges 10,20,50), or group by another column."
        )
    in_order = values.unique().sort(nulls_last=True).cast(pl.String).fill_null(_MISSING)
    return _named(query_ids, labels, by, tuple(in_order))


def _no_edges(by: str, edges: Sequence[float] | None) -> None:
    if edges is not None:
        raise InputError(f"edges are for numbers; {by} holds texts. Leave them out.")


def _named(query_ids: pl.Series, labels: pl.Series, by: str, order: Sequence[str]) -> Groups:
    there = set(labels)
    names = tuple(name for name in order if name in there)
    return Groups(by, names, dict(zip(query_ids, labels, strict=True)))
