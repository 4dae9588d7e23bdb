"""What all fusions share: documents of a query are brought together from all runs and scored.

A fusion says what a document is worth in one list (:meth:`Fusion._points`), what it is worth in a
list that lacks it (:meth:`Fusion._absent`), and what becomes of the sum (:meth:`Fusion._total`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import InputError, SpecError
from farfield.fusions._pool import Lists, Pool, Rankings, blocks, gather
from farfield.spec import Member
from farfield.tables import Qrels, Run

__all__ = ["Fusion", "Lists", "Pool"]

Floats = npt.NDArray[np.float64]


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
        if any(not 0 <= weight < np.inf for weight in self.weights) or (
            self.weights and not any(self.weights)
        ):
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
        self.check(runs, k=k, qrels=qrels)
        rankings = Rankings(runs, self.window(k))
        names = rankings.queries.cast(pl.Categorical)  # a quarter of the memory of their texts

        def part(block: tuple[int, int]) -> pl.DataFrame:
            pool = gather(rankings, *block)
            scores = self.scores(pool, qrels)
            order = pool.ranked(scores, k)
            return pl.DataFrame(
                {
                    "query_id": names.gather(pool.query[order] + block[0]),
                    "doc_id": pool.doc_ids(order),
                    "score": scores[order],
                }
            )

        with ThreadPoolExecutor(2) as threads:  # numpy and polars release the lock for most of it
            parts = list(threads.map(part, blocks(rankings)))
        frame = pl.concat(parts) if parts else pl.DataFrame(schema=Run.columns)
        return Run(frame, name=name or str(self), ties="file")

    def check(
        self, runs: Sequence[object], *, k: int | None = None, qrels: Qrels | None = None
    ) -> None:
        """Raise if these runs cannot be fused so."""
        if k is not None and k < 1:
            raise InputError(f"k is {k}, expected 1, 2, 3 … documents for each query.")
        if len(runs) < 2:
            raise InputError(f"{self} was given {len(runs)} run, expected at least 2.")
        if self.weights and len(self.weights) != len(runs):
            raise InputError(
                f"{self} has {len(self.weights)} weights for {len(runs)} runs. Give one for each."
            )
        if self.needs_qrels and qrels is None:
            raise InputError(f"{self} needs judgements. Pass qrels (--qrels on the command line).")

    def window(self, k: int | None) -> int | None:
        """How much of each list is looked at when ``k`` results are asked for; ``None``: all."""
        return self.depth

    def shares(self, runs: int) -> tuple[float, ...]:
        """The weight of each of so many runs."""
        return self.weights or (1.0,) * runs

    def weighted(self, weights: Sequence[float]) -> Fusion:
        """The same fusion with these shares of the whole as weights."""
        return replace(self, weights=tuple(weights))

    def choices(self) -> dict[str, tuple[Any, ...]]:
        """Options, other than weights, that are left open, with values worth trying."""
        return {}

    def scores(self, pool: Pool, qrels: Qrels | None = None) -> Floats:
        """The score of every document of a pool."""
        total = np.zeros(len(pool))
        shares = self.shares(len(pool.lists))
        with np.errstate(over="ignore", invalid="ignore"):
            for lists, places, share in zip(pool.lists, pool.places, shares, strict=True):
                missing = self._absent(lists, share)
                points = self._points(lists, share)
                if missing is None:
                    total[places] += points  # a document is in a list once
                else:
                    worth = missing[pool.query]
                    worth[places] = points
                    total += worth
            total = self._total(total, pool)
        if not np.isfinite(total).all():
            raise InputError(
                f"{self} cannot add up the scores of these runs: they are too large. Fuse by rrf, "
                "which needs no scores, or rescore the runs."
            )
        return total

    # -- what members say -------------------------------------------------------------------

    def _points(self, lists: Lists, weight: float) -> Floats:
        """What each document is worth in a run of this weight."""
        raise NotImplementedError(f"{type(self).__name__} defines no _points")

    def _absent(self, lists: Lists, weight: float) -> Floats | None:
        """What a document is worth, for each query, in a run that lacks it; ``None``: nothing."""
        return None

    def _total(self, points: Floats, pool: Pool) -> Floats:
        """What becomes of the sum of the points."""
        return points
