"""The results that every source has for every query, as one block of scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import InputError
from farfield.tables import Run

__all__ = ["Lists", "gather", "sums_of_exponentials"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_HEAD = 10  # results that are not yet the tail of a list
_TAIL = 101  # where the tail ends; its excess is measured against the score there


@dataclass(frozen=True, eq=False)
class Lists:
    """What every source has for every query.

    ``scores`` is (queries, sources, depth), each list in ranked order and -inf where it ends. Where
    the results are in the runs is remembered, so that nothing is copied but scores.
    """

    query_ids: pl.Series
    runs: tuple[Run, ...]
    scores: Floats
    firsts: Ints  # (queries, sources): where a list starts among the ranked rows of its run

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources."""
        return tuple(run.name for run in self.runs)

    @property
    def depth(self) -> int:
        """The length of the longest list."""
        return int(self.scores.shape[2])

    @cached_property
    def there(self) -> Bools:
        """Which cells hold a result."""
        return np.isfinite(self.scores)

    @cached_property
    def lengths(self) -> Ints:
        """How many results each source has for each query."""
        return np.asarray(self.there.sum(axis=2), dtype=np.int64)

    @cached_property
    def turns(self) -> Ints:
        """For each query the source that comes first among equals.

        By a hash of the query's id: no source is preferred, and other queries change nothing.
        """
        codes = [crc32(query.encode()) % len(self.runs) for query in self.query_ids]
        return np.array(codes, dtype=np.int64)

    @cached_property
    def tails(self) -> Floats:
        """By how much, in the mean, the tail of a list exceeds its end: a scale for each source.

        The tail are ranks 11 to 100 and its end is rank 101, or the last there is. Lists of fewer
        than 12 results have no tail; a source that has no other gets the mean of the others, and
        where nobody has a tail whole lists are taken.
        """
        found = self._excess(_HEAD)
        if np.isnan(found).all():
            found = self._excess(0)
        if np.isnan(found).all():
            return np.ones(len(self.runs))
        return np.where(np.isnan(found), np.nanmean(found), found)

    def _excess(self, head: int) -> Floats:
        """The mean excess after ``head`` ranks for each source; NaN where it is not above 0."""
        ends = np.minimum(self.lengths, _TAIL)
        long = ends >= head + 2
        last = np.take_along_axis(self.scores, np.maximum(ends - 1, 0)[:, :, None], axis=2)
        ranks = np.arange(min(self.depth, _TAIL))
        inside = (ranks >= head) & (ranks < (ends - 1)[:, :, None]) & long[:, :, None]
        with np.errstate(invalid="ignore"):
            above = np.where(inside, self.scores[:, :, : len(ranks)] - last, 0.0).sum(axis=2)
            means = np.where(long, above / np.maximum(inside.sum(axis=2), 1), 0.0).sum(axis=0)
            found = means / long.sum(axis=0)
        return np.where(found > 0, found, np.nan)

    def mean_of_top(self, depth: int) -> Floats:
        """The mean score of the first ``depth`` results of each list; 0 where there is none."""
        there = self.there[:, :, :depth]
        total = np.where(there, self.scores[:, :, :depth], 0.0).sum(axis=2)
        return np.asarray(total / np.maximum(there.sum(axis=2), 1), dtype=np.float64)

    def soft_mean_of_top(self, depth: int, temperature: float) -> Floats:
        """T ln(mean of exp(s / T)) over the first ``depth`` of each list; 0 where there is none.

        Between the mean (T large) and the maximum (T small) of the scores.
        """
        there = self.there[:, :, :depth]
        sums = sums_of_exponentials(self.scores[:, :, :depth] / temperature)
        found = temperature * (sums - np.log(np.maximum(there.sum(axis=2), 1)))
        return np.where(there.any(axis=2), found, 0.0)

    def take(self, rows: Ints) -> Lists:
        """Return the lists of some queries."""
        ids = self.query_ids.gather(rows)
        return replace(self, query_ids=ids, scores=self.scores[rows], firsts=self.firsts[rows])


def gather(
    runs: Mapping[str, Run], *, depth: int | None = None, queries: pl.Series | None = None
) -> Lists:
    """Bring the runs of several sources together, one run for each source.

    ``depth`` is how much of each list counts (``None``: all of it); ``queries`` says which queries,
    by default all that any source has results for.
    """
    if len(runs) < 2:
        raise InputError(f"{len(runs)} source was given, expected at least 2.")
    if depth is not None and depth < 1:
        raise InputError(f"depth is {depth}, expected 1, 2, 3 … results of each list.")
    opened = tuple(run.named(name) for name, run in runs.items())
    _check_disjoint(opened)
    if queries is None:
        queries = pl.concat([run.query_ids.cast(pl.String) for run in opened]).unique().sort()
    found = [_places(run, queries) for run in opened]
    firsts = np.stack([first for first, _ in found], axis=1)
    lengths = np.stack([length for _, length in found], axis=1)
    if depth is not None:
        np.minimum(lengths, depth, out=lengths)
    width = max(1, int(lengths.max(initial=0)))
    scores = np.full((*firsts.shape, width), -np.inf)
    ranks = np.arange(width)
    for number, run in enumerate(opened):
        there = ranks < lengths[:, number, None]
        query, rank = np.nonzero(there)
        scores[:, number][there] = run.scores[firsts[query, number] + rank]
        if not np.isfinite(scores[:, number][there]).all():
            raise InputError(
                f"the run {run.name!r} holds infinite scores, which cannot be compared with those "
                "of other sources. Rescore the run."
            )
    return Lists(queries, opened, scores, firsts)


def sums_of_exponentials(values: Floats) -> Floats:
    """ln of the sum of exp over the last axis, without overflow; -inf of nothing."""
    highest = values.max(axis=-1, keepdims=True)
    safe = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(values - safe).sum(axis=-1))
    return np.asarray(sums + safe[..., 0], dtype=np.float64)


def _places(run: Run, queries: pl.Series) -> tuple[Ints, Ints]:
    """Where the list of each query starts in a run, and how long it is (0: it is not there)."""
    names = run.query_ids.cast(pl.String).to_frame("id").with_row_index("at")
    at = queries.to_frame("id").join(names, on="id", how="left", maintain_order="left")["at"]
    there = at.is_not_null().to_numpy()
    place = at.drop_nulls().to_numpy()
    first, length = (np.zeros(len(queries), dtype=np.int64) for _ in range(2))
    first[there] = run.bounds[:-1][place]
    length[there] = np.diff(run.bounds)[place]
    return first, length


def _check_disjoint(runs: tuple[Run, ...]) -> None:
    """Refuse a document that two sources have: an allocation would give it out twice."""
    seen = [
        run.doc_ids.unique().to_frame("doc").with_columns(run=pl.lit(number))
        for number, run in enumerate(runs)
    ]
    twice = pl.concat(seen).filter(pl.col("doc").is_duplicated()).sort("doc", "run")
    if len(twice):
        doc = twice["doc"][0]
        one, other = (runs[number].name for number in twice["run"][:2])
        raise InputError(
            f"the document {doc!r} is in {one!r} and in {other!r}, but a budget is spread over "
            "sources that share no documents. Runs of one collection are brought together by "
            "farfield fuse; documents of different sources need ids of their own."
        )
