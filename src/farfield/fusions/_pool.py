"""Documents of a query, brought together from all runs: each once, with where every run put it.

Strings are slow to group, so documents are met by 64-bit numbers made from the hashes of their
ids, and every meeting is then confirmed by comparing the ids themselves. Queries are taken in
blocks that fit the cache, each a matrix with a row for every query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.tables import Run

__all__ = ["Lists", "Pool", "Rankings", "blocks", "gather"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Cells of a block's matrix: large enough that calls cost little, small enough for the cache.
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Lists:
    """The rankings that one run has for some queries, row by row in ranked order.

    ``query`` counts the queries of the block; ``starts`` and ``lengths`` say where each query's
    list is (0 long where the run lacks the query).
    """

    query: Ints
    rank: Ints
    starts: Ints
    lengths: Ints
    _run: Run
    _rows: slice | Ints

    @cached_property
    def score(self) -> Floats:
        """The scores, read when somebody asks: a fusion of ranks needs none."""
        return self._run.scores[self._rows]

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
        lengths = np.diff(self.bounds)
        width = int(lengths.max(initial=0))
        cells, padded = _cells(self.query, np.arange(len(self)) - self.bounds[self.query], width)
        matrix = np.full((len(lengths), width), np.inf)
        matrix.ravel()[cells] = -scores
        order = np.argsort(matrix, axis=1)
        order += self.bounds[:-1, None]
        place = np.broadcast_to(np.arange(width), order.shape)
        if padded:  # what fills a row up comes last in it
            real = place < lengths[:, None]
            order, place = order[real], place[real]
        order, place = order.ravel(), place.ravel()
        if k is not None and k < width:
            # Ties may reach over the edge, so the cut comes after them.
            self._break_ties(scores, order, place < k)
            return order[place < k]
        self._break_ties(scores, order, None)
        return order

    def _break_ties(self, scores: Floats, order: Ints, wanted: Bools | None) -> None:
        """Bring neighbours of equal score into descending order of their ids, in place."""
        sorted_scores, query = scores[order], self.query[order]
        tied = (sorted_scores[1:] == sorted_scores[:-1]) & (query[1:] == query[:-1])
        if not tied.any():
            return
        group = np.cumsum(np.concatenate(([True], ~tied)))
        inside = np.concatenate((tied, [False])) | np.concatenate(([False], tied))
        if wanted is not None:  # groups of which nothing is wanted may stay as they are
            inside &= np.bincount(group, weights=wanted)[group] > 0
        at = np.flatnonzero(inside)
        ties = pl.DataFrame({"group": group[at], "doc": self.doc_ids(order[at])})
        by_id = ties.select(pl.arg_sort_by("group", "doc", descending=[False, True])).to_series()
        order[at] = order[at][by_id.to_numpy()]


class Rankings:
    """Where each of some runs has each query: for all queries of any run, in order."""

    def __init__(self, runs: Sequence[Run], depth: int | None) -> None:
        self.runs = tuple(runs)
        self.queries = pl.concat([run.query_ids for run in runs]).unique(maintain_order=True)
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
        within = np.arange(len(query)) - starts[query]
        filled = firsts[lengths > 0]
        low = int(filled.min(initial=0))
        if (filled - low == starts[lengths > 0]).all():  # one after the other: nothing is copied
            rows: slice | Ints = slice(low, low + len(query))
            docs = run.doc_ids.slice(low, len(query))
        else:
            rows = firsts[query] + within
            docs = run.doc_ids.gather(rows)
        return Lists(query, within + 1, starts, lengths, run, rows), docs


def blocks(rankings: Rankings) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of queries so that a matrix of their rows stays small."""
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
    totals = rankings.lengths[:, start:stop].sum(axis=0)
    query = np.repeat(np.arange(stop - start), totals)
    cells, padded = _table(lists, totals)
    seed = 0
    while True:
        rows, new = _meet(docs, cells, padded, totals, seed)
        if _confirmed(docs, rows, new):
            break
        seed += 1  # two ids with one hash: another hash tells them apart
    document = np.empty(len(docs), dtype=np.int64)
    document[rows] = np.cumsum(new) - 1
    ends = np.cumsum([len(part.query) for part in lists])
    found = query[new]
    return Pool(
        queries=rankings.queries.slice(start, stop - start),
        lists=lists,
        places=tuple(np.split(document, ends[:-1])),
        query=found,
        bounds=np.searchsorted(found, np.arange(stop - start + 1)),
        _docs=docs,
        _row=rows[new],
    )


def _table(lists: Sequence[Lists], totals: Ints) -> tuple[Ints, bool]:
    """Which cell of a matrix with a row for each query each row of the lists takes."""
    before = np.zeros(len(totals), dtype=np.int64)
    queries, columns = [], []
    for part in lists:
        queries.append(part.query)
        columns.append(part.rank - 1 + before[part.query])
        before += part.lengths
    width = int(totals.max(initial=0))
    return _cells(np.concatenate(queries), np.concatenate(columns), width)


def _cells(row: Ints, column: Ints, width: int) -> tuple[Ints, bool]:
    """Cells of a matrix, and whether any cell of it stays empty."""
    rows = int(row.max(initial=-1)) + 1
    return row * width + column, rows * width > len(row)


def _meet(
    docs: pl.Series, cells: Ints, padded: bool, totals: Ints, seed: int
) -> tuple[Ints, Bools]:
    """Sort the rows of each query by the hash of their document; say where another one begins."""
    width = int(totals.max(initial=0))
    # The low bits hold the row, so that sorting numbers carries it along and keeps equal ones in
    # the order of the runs: sums come out the same on every machine.
    bits = np.uint64(max(1, int(len(docs)).bit_length()))
    keys = (_hashes(docs, seed) >> bits << bits) | np.arange(len(docs), dtype=np.uint64)
    matrix = np.full((len(totals), width), np.iinfo(np.uint64).max)
    matrix.ravel()[cells] = keys
    matrix.sort(axis=1)
    if padded:
        matrix = matrix[np.arange(width) < totals[:, None]]
    flat = matrix.ravel()
    rows = (flat & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    hashes = flat >> bits
    new = np.ones(len(flat), dtype=np.bool_)
    new[1:] = hashes[1:] != hashes[:-1]
    starts = np.cumsum(totals) - totals
    new[starts[totals > 0]] = True
    return rows, new


def _hashes(docs: pl.Series, seed: int) -> npt.NDArray[np.uint64]:
    return docs.hash(seed).to_numpy()


def _confirmed(docs: pl.Series, rows: Ints, new: Bools) -> bool:
    """Do rows that were taken for one document have the same id?"""
    again = np.flatnonzero(~new)
    return bool((docs.gather(rows[again]) == docs.gather(rows[again - 1])).all())
