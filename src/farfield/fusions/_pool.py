"""Documents of a query, brought together from all runs: each once, with where every run put it.

Strings are slow to group. So documents meet by the hashes of their ids, and every meeting is
confirmed by comparing the ids themselves. Queries are taken in blocks that fit the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import InputError
from farfield.tables import Run

__all__ = ["Lists", "Pool", "Rankings", "blocks", "gather"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)

# Cells of a block's matrix: large enough that calls cost little, small enough for the cache.
_BLOCK = 1 << 18
# So many documents of a query have their ranks counted rather than sorted out.
_FEW = 4
_KEPT = 31 << 20
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Lists:
    """The rankings that one run has for some queries, one after the other.

    ``query`` counts the queries of the block; ``rank`` counts from 1, and need not rise where
    scores tie; ``starts`` and ``lengths`` say where each query's
    list is (0 long where the run lacks the query). ``kept`` is for what takes long to make and is
    needed again, when the same lists are fused with other weights.
    """

    query: Ints
    rank: Ints
    starts: Ints
    lengths: Ints
    _run: Run
    _rows: slice | Ints  # of the run as given, or else ranked
    kept: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def score(self) -> Floats:
        """The scores, taken from the run when somebody asks: a fusion of ranks does not."""
        given = self._run.as_given()
        if isinstance(self._rows, slice) and given is not None:
            scores = given[1][self._rows].to_numpy()
        else:
            scores = self._run.scores[self._rows]
        if not np.isfinite(scores).all():
            raise InputError(
                f"the run {self._run.name!r} holds infinite scores, which cannot be added up. Fuse "
                "by rrf, which needs no scores, or rescore the run."
            )
        return scores

    def per_query(self, reduce: np.ufunc, values: Floats) -> Floats:
        """Reduce values of the rows over each list; 0 for lists that are empty."""
        found = np.zeros(len(self.lengths))
        full = self.lengths > 0
        if len(values):
            found[full] = reduce.reduceat(values, self.starts[full])
        return found


@dataclass(frozen=True)
class Pool:
    """All documents that the runs have for some queries, grouped by query.

    ``query`` is that of each document; ``places[r]`` says which document each row of ``lists[r]``
    is; ``bounds`` holds where each query starts (and, last, the number of documents).
    """

    queries: pl.Series
    lists: tuple[Lists, ...]
    places: tuple[Ints, ...]
    query: Ints
    bounds: Ints
    _docs: pl.Series  # of all rows of all lists, run by run
    _row: Ints  # where among them each document is

    def __len__(self) -> int:
        return len(self.query)

    def doc_ids(self, documents: Ints | None = None) -> pl.Series:
        """Return the ids of these documents (of all by default)."""
        return self._docs.gather(self._row if documents is None else self._row[documents])

    @cached_property
    def count(self) -> Ints:
        """How many runs have each document."""
        return np.bincount(np.concatenate(self.places), minlength=len(self))

    def ranked(self, scores: Floats, k: int | None = None) -> Ints:
        """Return the first ``k`` documents of each query by score, equal ones by descending id."""
        chosen = np.arange(len(self)) if k is None else self._hopeful(scores, k)
        query = self.query[chosen]
        bounds = np.searchsorted(query, np.arange(len(self.queries) + 1))
        matrix = _Matrix.of(np.diff(bounds))
        columns = np.argsort(matrix.filled(-scores[chosen], np.inf), axis=1)
        columns += bounds[:-1, None]
        order: Ints = chosen[matrix.taken(columns)]
        self._break_ties(scores, order, query)
        return order if k is None else order[np.arange(len(order)) - bounds[query] < k]

    def ranks(self, scores: Floats, documents: Ints) -> Ints:
        """Return the ranks of these documents, which come in the order of the pool."""
        query = self.query[documents]
        turn = np.arange(len(query)) - np.searchsorted(query, query)
        if (turn > _FEW).any():
            place = np.empty(len(self), dtype=np.int64)
            place[self.ranked(scores)] = np.arange(len(self))
            return place[documents] - self.bounds[query] + 1
        # For few documents it is faster to count what is above them than to sort all.
        found = np.empty(len(documents), dtype=np.int64)
        for number in range(int(turn.max(initial=-1)) + 1):
            now = turn == number
            found[now] = 1 + self._above(scores, documents[now])
        return found

    def _above(self, scores: Floats, documents: Ints) -> Ints:
        """How many documents are ranked above each of these, one for a query."""
        query = self.query[documents]
        own = np.full(len(self.queries), np.inf)
        own[query] = scores[documents]
        own = np.repeat(own, np.diff(self.bounds))
        counts = np.bincount(self.query[scores > own], minlength=len(self.queries))
        equal = np.flatnonzero(scores == own)
        if len(equal) > len(documents):  # more than the documents themselves
            mine = np.zeros(len(self.queries), dtype=np.int64)
            mine[query] = documents
            after = self.doc_ids(equal) > self.doc_ids(mine[self.query[equal]])
            tied = self.query[equal[after.to_numpy()]]
            counts += np.bincount(tied, minlength=len(self.queries))
        return counts[query]

    def _hopeful(self, scores: Floats, k: int) -> Ints:
        """Documents that may be among the first ``k``: those that no ``k`` others are above."""
        lengths = np.diff(self.bounds)
        matrix = _Matrix.of(lengths)
        if matrix.width <= k:
            return np.arange(len(self))
        # Single precision is enough, and faster: rounding keeps the order, or makes a tie of it.
        with np.errstate(over="ignore"):
            rough = -scores.astype(np.float32)
        table = matrix.filled(rough, np.inf)
        table.partition(k - 1, axis=1)
        return np.flatnonzero(rough <= np.repeat(table[:, k - 1], lengths))

    def _break_ties(self, scores: Floats, order: Ints, query: Ints) -> None:
        """Bring neighbours of equal score into descending order of their ids, in place."""
        ranked = scores[order]
        tied = np.zeros(len(order) + 1, dtype=np.bool_)  # with the one before, and an end
        tied[1:-1] = (ranked[1:] == ranked[:-1]) & (query[1:] == query[:-1])
        first = np.flatnonzero(tied[1:] & ~tied[:-1])
        size = np.flatnonzero(tied[:-1] & ~tied[1:]) - first + 1
        # Most are pairs, which take a comparison; larger groups are sorted.
        one, other = order[first[size == 2]], order[first[size == 2] + 1]
        turned = (self.doc_ids(one) < self.doc_ids(other)).to_numpy()
        at = first[size == 2][turned]
        order[at], order[at + 1] = other[turned], one[turned]
        size, first = size[size > 2], first[size > 2]
        if len(first):
            group = np.repeat(np.arange(len(first)), size)
            at = first[group] + np.arange(len(group)) - (np.cumsum(size) - size)[group]
            ties = pl.DataFrame({"group": group, "doc": self.doc_ids(order[at])})
            by_id = ties.select(pl.arg_sort_by("group", "doc", descending=[False, True]))
            order[at] = order[at][by_id.to_series().to_numpy()]


class Rankings:
    """Where each of some runs has each query: for all queries of any run, in order.

    ``depth`` is how much of each list counts; ``queries`` leaves out all other queries.
    """

    def __init__(
        self, runs: Sequence[Run], depth: int | None, queries: pl.Series | None = None
    ) -> None:
        self.runs, self.depth = tuple(runs), depth
        self.queries = pl.concat([run.query_ids for run in runs]).unique(maintain_order=True)
        if queries is not None:
            self.queries = self.queries.filter(self.queries.is_in(queries.implode()))
        self.firsts = np.zeros((len(runs), len(self.queries)), dtype=np.int64)
        self.lengths = np.zeros_like(self.firsts)
        for number, run in enumerate(runs):
            names = run.query_ids.to_frame("id").with_row_index("at")
            wanted = self.queries.to_frame("id")
            at = wanted.join(names, on="id", how="left", maintain_order="left")["at"]
            there = at.is_not_null().to_numpy()
            place = at.drop_nulls().to_numpy()
            self.firsts[number, there] = run.bounds[:-1][place]
            self.lengths[number, there] = np.diff(run.bounds)[place]
        if depth is not None:
            np.minimum(self.lengths, depth, out=self.lengths)

    def lists(self, number: int, start: int, stop: int) -> tuple[Lists, pl.Series]:
        """Return what a run has for the queries from ``start`` to ``stop``, with its documents."""
        run = self.runs[number]
        firsts, lengths = self.firsts[number, start:stop], self.lengths[number, start:stop]
        starts = np.cumsum(lengths) - lengths
        query = np.repeat(np.arange(stop - start), lengths)
        count = np.arange(len(query))
        rank = count + 1 - np.repeat(starts, lengths)
        shift = (firsts - starts)[lengths > 0]
        whole = self.depth is None or not (lengths == self.depth).any()
        if whole and len(shift) and (shift == shift[0]).all():
            rows = slice(int(shift[0]), int(shift[0]) + len(query))
            lists = Lists(query, rank, starts, lengths, run, rows)
            moved = _moved_ties(run, rows)
            if moved is not None:
                docs, here, there = moved
                rank[here] = rank[there]
                return lists, docs
        at = count + np.repeat(firsts - starts, lengths)
        return Lists(query, rank, starts, lengths, run, at), run.doc_ids.gather(at)


def _moved_ties(run: Run, rows: slice) -> tuple[pl.Series, Ints, Ints] | None:
    """Documents as they were given, and which of them ranking moves from here to there.

    ``None`` unless what moves only changes places with what has the same score. Then nothing needs
    to be copied: ranks move in place of rows, and scores are in ranked order all the same.
    """
    given = run.as_given()
    if given is None:
        return None
    docs, scores, moved, places = given
    within = slice(*np.searchsorted(places, (rows.start, rows.stop)))
    here, there = moved[within] - rows.start, places[within] - rows.start
    if len(here) and not (scores[rows].gather(here) == scores[rows].gather(there)).all():
        return None
    return docs[rows], here, there


def blocks(rankings: Rankings) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of queries so that a matrix of their rows stays small."""
    # The arrays of a block come and go with it. A larger one that is freed before (untouched, so
    # that it costs nothing) keeps the C library from giving their memory back each time.
    np.empty(_KEPT, dtype=np.uint8)
    widths = rankings.lengths.sum(axis=0)
    start = 0
    while start < len(widths):
        widest = np.maximum.accumulate(widths[start : start + _BLOCK])
        cells = widest * np.arange(1, len(widest) + 1)
        stop = start + max(1, int(np.searchsorted(cells, _BLOCK, side="right")))
        yield start, stop
        start = stop


def gather(rankings: Rankings, start: int, stop: int) -> Pool:
    """Bring together the documents of the queries from ``start`` to ``stop``."""
    parts = [rankings.lists(number, start, stop) for number in range(len(rankings.runs))]
    lists = tuple(part[0] for part in parts)
    docs = pl.concat([part[1] for part in parts], rechunk=True)
    query = np.concatenate([part.query for part in lists])
    first = _first_rows(docs, query, rankings.lengths[:, start:stop].sum(axis=0))
    # Documents are numbered by query, and within it in the order of their first rows.
    own = np.flatnonzero(first == np.arange(len(docs)))
    ends = np.cumsum([len(part.query) for part in lists])
    by_run = np.split(query[own], np.searchsorted(own, ends[:-1]))
    counts = np.stack([np.bincount(part, minlength=stop - start) for part in by_run])
    lengths = counts.sum(axis=0)
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    before = (bounds[:-1] + np.cumsum(counts, axis=0) - counts).ravel()
    counts = counts.ravel()
    number = np.arange(len(own)) + np.repeat(before - (np.cumsum(counts) - counts), counts)
    row = np.empty(len(own), dtype=np.int64)
    row[number] = own
    document = np.empty(len(docs), dtype=np.int64)
    document[own] = number
    return Pool(
        queries=rankings.queries.slice(start, stop - start),
        lists=lists,
        places=tuple(np.split(document[first], ends[:-1])),
        query=np.repeat(np.arange(stop - start), lengths),
        bounds=bounds,
        _docs=docs,
        _row=row,
    )


def _first_rows(docs: pl.Series, query: Ints, widths: Ints) -> Ints:
    """For each row, the one row that stands for all rows of its query and document."""
    seed = 0
    while True:
        first = _meet(_hashes(docs, seed), query, widths)
        again = np.flatnonzero(first != np.arange(len(first)))
        if (docs.gather(again) == docs.gather(first[again])).all():
            return first
        seed += 1  # two ids with one hash: another hash tells them apart


def _meet(hashes: npt.NDArray[np.uint64], query: Ints, widths: Ints) -> Ints:
    """For each row, one row of the same query and hash, the same for all of them.

    Every row writes its number into a place that its hash chooses among those of its query. Who
    then finds there itself or its like has met; the others try again in other places. In each
    round somebody leaves every place, so that there are few.
    """
    bits = (2 * int(widths.max(initial=1)) - 1).bit_length()
    shift = np.uint64(64 - bits)
    table = np.empty(len(widths) << bits, dtype=np.int64)
    at = (query << bits) + (hashes >> shift).view(np.int64)
    table[at] = np.arange(len(hashes))
    met: Ints = table[at]
    left = np.flatnonzero(hashes[met] != hashes)
    mixed, own = hashes[left], hashes[left]
    while len(left):
        mixed *= _ODD
        at = (query[left] << bits) + (mixed >> shift).view(np.int64)
        table[at] = left
        there = table[at]
        met[left] = there
        again = np.flatnonzero(hashes[there] != own)
        left, mixed, own = left[again], mixed[again], own[again]
    return met


def _hashes(docs: pl.Series, seed: int) -> npt.NDArray[np.uint64]:
    return docs.hash(seed).to_numpy()


@dataclass(frozen=True)
class _Matrix:
    """A matrix whose rows have different lengths, so that some end in empty cells."""

    width: int
    real: Bools | None  # which cells are not empty; None: all

    @classmethod
    def of(cls, lengths: Ints) -> _Matrix:
        width = int(lengths.max(initial=0))
        full = bool((lengths == width).all())
        return cls(width, None if full else np.arange(width) < lengths[:, None])

    def filled(self, values: npt.NDArray[T], empty: float) -> npt.NDArray[T]:
        """Put values into the rows of a new matrix, and ``empty`` into the cells that remain."""
        if self.real is None:
            return values.reshape(-1, max(self.width, 1)).copy()
        table = np.full(self.real.shape, empty, dtype=values.dtype)
        table[self.real] = values
        return table

    def taken(self, table: npt.NDArray[T]) -> npt.NDArray[T]:
        """Return what is not empty, row by row."""
        return table.ravel() if self.real is None else table[self.real]
