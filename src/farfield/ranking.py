"""Put the rows of a run in ranked order: the one place that decides it.

Rows are looked at in blocks of whole queries: a well-formed run of seven million rows is
confirmed, not sorted, and needs hardly any memory of its own. Strings are compared only where
scores tie or hashes meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import InputError, did_you_mean

__all__ = ["Ranked", "Ties", "check_ties", "rank_rows"]

Ties = Literal["trec", "trec9", "file"]
Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, dtype=np.int64)

# Rows in a block, so that a call into polars costs little beside its work.
_BLOCK = 131_072


def check_ties(ties: str) -> Ties:
    """Return ``ties`` if it names a rule, or raise."""
    known = get_args(Ties)
    if ties not in known:
        raise InputError(
            f"ties={ties!r} is not a rule for ties.{did_you_mean(ties, known)} "
            "Use 'trec' (score, then document id descending), 'trec9' (the same with scores "
            "compared in single precision) or 'file' (the order of the rows)."
        )
    return ties  # type: ignore[return-value]  # just checked


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """How given rows become a run: grouped by query, then ranked.

    ``bounds`` holds where each query starts (and, last, the number of rows). ``grouping`` maps
    grouped to given rows (``None``: they are the same); ranking then puts ``rows`` of the given
    rows at ``places``, and leaves all others where they are. ``tied`` counts neighbours in a
    ranking whose scores are equal; ``duplicates`` says whether a document is given twice for a
    query.
    """

    query_ids: pl.Series
    bounds: Ints
    grouping: Ints | None
    places: Ints
    rows: Ints
    tied: int
    duplicates: bool

    @property
    def in_order(self) -> bool:
        """Were the rows given in ranked order?"""
        return self.grouping is None and not len(self.places)

    def order(self) -> Ints:
        """Return the given row at each place."""
        order = np.arange(self.bounds[-1]) if self.grouping is None else self.grouping.copy()
        order[self.places] = self.rows
        return order

    def places_of(self, rows: Ints) -> Ints:
        """Return the place of each of these given rows (the inverse of :meth:`order`)."""
        if self.in_order:
            return rows
        if self.grouping is not None:
            order = self.order()
            inverse = np.empty_like(order)
            inverse[order] = np.arange(len(order))
            return inverse[rows]
        by_row = np.argsort(self.rows)
        moved = self.rows[by_row]
        at = np.minimum(np.searchsorted(moved, rows), len(moved) - 1)
        return np.where(moved[at] == rows, self.places[by_row][at], rows)


def rank_rows(
    query_ids: pl.Series, doc_ids: pl.Series, scores: pl.Series, ties: Ties = "trec"
) -> Ranked:
    """Group rows by query, in order of first appearance, and rank them within each query."""
    queries, bounds, grouping = _group(query_ids)
    look = partial(_look, doc_ids, scores, ties, bounds, grouping)
    from concurrent.futures import ThreadPoolExecutor  # half of a small job's imports

    with ThreadPoolExecutor(2) as threads:  # polars and numpy release the lock for most of it
        seen = list(threads.map(look, _blocks(bounds)))
    places = np.concatenate([_NONE, *(block.places for block in seen)])
    rows = np.concatenate([_NONE, *(block.rows for block in seen)])
    tied = np.concatenate([_NONE, *(block.tied for block in seen)])
    if ties != "file":
        places, rows = _break_ties(doc_ids, grouping, places, rows, tied)
    return Ranked(
        query_ids=queries,
        bounds=bounds,
        grouping=grouping,
        places=places,
        rows=rows,
        tied=len(tied),
        duplicates=any(block.duplicates for block in seen),
    )


def _group(query_ids: pl.Series) -> tuple[pl.Series, Ints, Ints | None]:
    """Unique queries, where each starts, and the order that brings their rows together."""
    stretches = query_ids.rle().struct.unnest()
    lengths = stretches["len"].to_numpy().astype(np.int64)
    names = stretches["value"].cast(pl.String)
    unique = names.unique(maintain_order=True)
    grouping: Ints | None = None
    if len(unique) < len(names):
        numbers = unique.to_frame("q").with_row_index("code")
        numbered = names.to_frame("q").join(numbers, on="q", how="left", maintain_order="left")
        codes = np.repeat(numbered["code"].to_numpy(), lengths)
        grouping = np.argsort(codes, kind="stable")
        lengths = np.bincount(codes, minlength=len(unique)).astype(np.int64)
    bounds = np.zeros(len(unique) + 1, dtype=np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return unique.alias("query_id"), bounds, grouping


class _Block(NamedTuple):
    """What was seen in a block of whole queries: the rows that move when sorted by score, and
    the places that tie with the place before them."""

    places: Ints
    rows: Ints
    tied: Ints
    duplicates: bool


def _blocks(bounds: Ints) -> Iterator[tuple[int, int]]:
    """Yield (first query, past the last query) of blocks of about ``_BLOCK`` rows."""
    first, queries = 0, len(bounds) - 1
    while first < queries:
        last = int(np.searchsorted(bounds, bounds[first] + _BLOCK, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _look(
    doc_ids: pl.Series,
    scores: pl.Series,
    ties: Ties,
    bounds: Ints,
    grouping: Ints | None,
    queries: tuple[int, int],
) -> _Block:
    """Rank one block and look for duplicates in it."""
    first, last = queries
    low, high = int(bounds[first]), int(bounds[last])
    lengths = np.diff(bounds[first : last + 1])
    if grouping is None:
        docs = doc_ids.slice(low, high - low)
        keys = scores.slice(low, high - low).to_numpy()
    else:
        members = grouping[low:high]
        docs, keys = doc_ids.gather(members), scores.gather(members).to_numpy()

    # Adding zero turns -0.0 into 0.0, so that the two tie however they are compared.
    keys = (keys.astype(np.float32) if ties == "trec9" else keys) + 0.0
    same_query = np.ones(len(keys) - 1, dtype=np.bool_)
    same_query[np.cumsum(lengths[:-1]) - 1] = False
    moved = order = _NONE
    if ties != "file" and (same_query & (keys[1:] > keys[:-1])).any():
        order = _sorted(np.repeat(np.arange(len(lengths)), lengths), pl.Series(keys))
        keys = keys[order]
        moved = np.flatnonzero(order != np.arange(len(order)))
        order = order[moved]
    tied = np.flatnonzero(same_query & (keys[1:] == keys[:-1])) + 1

    rows = order + low if grouping is None else members[order]
    return _Block(moved + low, rows, tied + low, _has_duplicates(docs, lengths))


def _break_ties(
    doc_ids: pl.Series, grouping: Ints | None, places: Ints, rows: Ints, tied: Ints
) -> tuple[Ints, Ints]:
    """Order tied neighbours by descending document id, on top of the moves made so far."""
    if not len(tied):
        return places, rows
    groups = np.unique(np.concatenate((tied, tied - 1)))
    starts = ~np.isin(groups, tied, assume_unique=True)
    here = groups if grouping is None else grouping[groups]
    if len(places):
        at = np.minimum(np.searchsorted(places, groups), len(places) - 1)
        here = np.where(places[at] == groups, rows[at], here)
    sorted_here = here[_sorted(np.cumsum(starts), doc_ids.gather(here))]
    kept = ~np.isin(places, groups, assume_unique=True)
    all_places = np.concatenate((places[kept], groups))
    all_rows = np.concatenate((rows[kept], sorted_here))
    still = all_places if grouping is None else grouping[all_places]
    moves = np.flatnonzero(all_rows != still)
    moves = moves[np.argsort(all_places[moves])]
    return all_places[moves], all_rows[moves]


def _sorted(group: Ints, values: pl.Series) -> Ints:
    """Stable order by group, then values descending (strings by their bytes)."""
    frame = pl.DataFrame({"group": group, "value": values})
    order = frame.select(
        pl.arg_sort_by("group", "value", descending=[False, True], maintain_order=True)
    )
    return order.to_series().to_numpy().astype(np.int64)


def _has_duplicates(docs: pl.Series, lengths: Ints) -> bool:
    """Is a document given twice for a query?"""
    hashes = docs.hash().to_numpy().astype(np.uint32)
    starts = np.cumsum(lengths) - lengths
    # Queries with lists of one length are sorted together, each in the first-level cache.
    for length in np.unique(lengths):
        queries = np.flatnonzero(lengths == length)
        if len(queries) == len(lengths):
            lists = hashes.reshape(-1, length)
        else:
            lists = hashes[starts[queries, None] + np.arange(length)]
        lists = np.sort(lists, axis=1)
        met = (lists[:, 1:] == lists[:, :-1]).any(axis=1)
        # 32 bits meet by chance now and then, so look again at the strings.
        if any(docs.slice(start, length).n_unique() < length for start in starts[queries[met]]):
            return True
    return False
