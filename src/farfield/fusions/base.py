"""What all fusions share: documents of a query are brought together from all runs and scored.

A fusion says what a document is worth in one list (:meth:`Fusion._points`), what it is worth in a
list that lacks it (:meth:`Fusion._absent`), and what becomes of the sum (:meth:`Fusion._total`).
Queries are taken in blocks, so that memory is that of the runs and of what is kept of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import InputError, SpecError
from farfield.spec import Member
from farfield.tables import Qrels, Run

__all__ = ["Fusion", "Lists"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Rows of all runs together in a block of queries.
_BLOCK = 2_000_000


@dataclass(frozen=True)
class Lists:
    """The rankings that one run has for some queries, row by row in ranked order.

    ``query`` counts the queries of the block; ``starts`` and ``lengths`` say where each query's
    list is (0 long where the run lacks the query).
    """

    query: Ints
    rank: Ints
    score: Floats
    starts: Ints
    lengths: Ints

    def per_query(self, reduce: np.ufunc, otherwise: float) -> Floats:
        """Reduce the scores of each list, with a value for lists that are empty."""
        found = np.full(len(self.lengths), otherwise)
        full = self.lengths > 0
        if len(self.score):
            found[full] = reduce.reduceat(self.score, self.starts[full])
        return found


@dataclass(frozen=True, kw_only=True)
class Fusion(Member):
    """Several rankings become one.

    ``weights`` gives each run its weight, in order (all the same by default). ``depth`` takes only
    the first so many documents of each list.
    """

    #: Does it need to know which documents are relevant?
    needs_qrels: ClassVar[bool] = False

    weights: tuple[float, ...] = ()
    depth: int | None = None

    def __post_init__(self) -> None:
        if any(weight < 0 for weight in self.weights) or (self.weights and not any(self.weights)):
            raise SpecError(f"weights are {list(self.weights)}, expected at least 0 and one above.")
        if self.depth is not None and self.depth < 1:
            raise SpecError(f"depth is {self.depth}, expected 1, 2, 3 …")

    def fuse(
        self,
        runs: Sequence[Run],
        *,
        k: int | None = 1000,
        name: str | None = None,
        qrels: Qrels | None = None,
    ) -> Run:
        """Fuse runs and keep the first ``k`` documents of each query (``None``: all).

        A query counts if any run has it. Equal scores are ordered by document id, descending, as
        everywhere.
        """
        self._check(runs, qrels)
        parts = [
            self._rank(self._block(runs, queries, k, qrels), queries, k)
            for queries in _blocks(runs)
        ]
        frame = pl.concat(parts) if parts else pl.DataFrame(schema=Run.columns)
        return Run(frame, name=name or str(self), ties="file")

    # -- what members say -------------------------------------------------------------------

    def _points(self, lists: Lists, number: int, k: int | None) -> Floats:
        """What each document is worth in the run of this number."""
        raise NotImplementedError(f"{type(self).__name__} defines no _points")

    def _absent(self, lists: Lists, number: int, k: int | None) -> Floats:
        """What a document is worth, for each query, in a run that does not have it."""
        return np.zeros(len(lists.lengths))

    def _total(self, points: pl.Expr, count: pl.Expr) -> pl.Expr:
        """The score: of the sum of the points and the number of runs that have the document."""
        return points

    def _informed(self, fused: pl.DataFrame, queries: pl.Series, qrels: Qrels) -> pl.DataFrame:
        """Change the scores of query, doc_id, score in the light of judgements (an oracle does)."""
        return fused

    def _depth(self, k: int | None) -> int | None:
        """How much of each list is looked at."""
        return self.depth

    # -- inside -----------------------------------------------------------------------------

    def _weight(self, number: int) -> float:
        return self.weights[number] if self.weights else 1.0

    def _check(self, runs: Sequence[Run], qrels: Qrels | None) -> None:
        if len(runs) < 2:
            raise InputError(f"{self} was given {len(runs)} run, expected at least 2.")
        if self.weights and len(self.weights) != len(runs):
            raise InputError(
                f"{self} has {len(self.weights)} weights for {len(runs)} runs. Give one for each."
            )
        if self.needs_qrels and qrels is None:
            raise InputError(f"{self} needs judgements. Pass qrels (--qrels on the command line).")

    def _block(
        self, runs: Sequence[Run], queries: pl.Series, k: int | None, qrels: Qrels | None
    ) -> pl.DataFrame:
        """One row for each query and document of a block: query, doc_id, score."""
        rows: list[pl.DataFrame] = []
        absent = np.zeros(len(queries))
        for number, run in enumerate(runs):
            lists, docs = _lists(run, queries, self._depth(k))
            missing = self._absent(lists, number, k)
            absent += missing
            points = self._points(lists, number, k) - missing[lists.query]
            rows.append(
                pl.DataFrame({"query": lists.query.astype(np.uint32), "doc_id": docs, "p": points})
            )
        # Keeping the order makes the sums the same whatever the number of threads.
        together = pl.concat(rows).group_by("query", "doc_id", maintain_order=True)
        fused = together.agg(pl.col("p").sum(), pl.len().alias("count"))
        total = pl.col("p") + pl.Series(absent).gather(fused["query"])
        scored = fused.select("query", "doc_id", self._total(total, pl.col("count")).alias("score"))
        return scored if qrels is None else self._informed(scored, queries, qrels)

    def _rank(self, fused: pl.DataFrame, queries: pl.Series, k: int | None) -> pl.DataFrame:
        ranked = fused.sort("query", "score", "doc_id", descending=[False, True, True])
        if k is not None:
            query = ranked["query"].to_numpy()
            rank = np.arange(len(query)) - np.searchsorted(query, query)
            ranked = ranked.filter(pl.Series(rank < k))
        ids = queries.gather(ranked["query"]).alias("query_id")
        return ranked.select(ids, "doc_id", "score")


def _blocks(runs: Sequence[Run]) -> Iterator[pl.Series]:
    """Yield the ids of queries, in order of first appearance, so many that a block is full."""
    queries = pl.concat([run.query_ids for run in runs]).unique(maintain_order=True)
    rows = sum(len(run) for run in runs)
    size = max(1, int(len(queries) * _BLOCK / max(rows, 1)))
    for start in range(0, len(queries), size):
        yield queries.slice(start, size)


def _lists(run: Run, queries: pl.Series, depth: int | None) -> tuple[Lists, pl.Series]:
    """The rankings that a run has for these queries, and their documents."""
    names = run.query_ids.to_frame("id").with_row_index("at")
    at = queries.to_frame("id").join(names, on="id", how="left", maintain_order="left")["at"]
    there = at.is_not_null().to_numpy()
    place = at.fill_null(0).to_numpy().astype(np.int64)
    lengths = np.zeros(len(queries), dtype=np.int64)
    firsts = np.zeros(len(queries), dtype=np.int64)
    if there.any():
        lengths[there] = np.diff(run.bounds)[place[there]]
        firsts[there] = run.bounds[place[there]]
    if depth is not None:
        lengths = np.minimum(lengths, depth)
    starts = np.cumsum(lengths) - lengths
    query = np.repeat(np.arange(len(queries)), lengths)
    within = np.arange(lengths.sum()) - starts[query]
    rows = firsts[query] + within
    lists = Lists(query, within + 1, run.scores[rows], starts, lengths)
    return lists, run.doc_ids.gather(rows)
