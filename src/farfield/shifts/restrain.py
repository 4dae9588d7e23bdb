"""ReSTrain: resample the training queries, keep the test queries (Zhan et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from farfield.encoders import Encoder, default
from farfield.errors import InputError, SpecError
from farfield.shifts.base import Dealt, Fold, Pool, Shift, counted

__all__ = ["restrain"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class restrain(Shift):
    """Two training sets of equal size for the same test queries: near them, and far from them.

    The fold ``interpolation`` trains on the I training queries most similar to each test query, the
    fold ``extrapolation`` on those that are left without the E most similar ones to any. I and E
    are found so that both hold ``size`` queries (half of all without it); where a whole step of I
    or E would be too much, its more similar queries are taken first, or last. ``match`` says what
    is counted: ``queries``, or ``judgements`` (lines of qrels), as in the released sets.
    """

    size: int | None = None
    encoder: Encoder = field(default_factory=default)
    match: Literal["queries", "judgements"] = "queries"

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise SpecError(f"size is {self.size}, expected 1, 2, 3 …")

    def deal_pool(self, pool: Pool, seed: int = 0) -> Dealt:
        """Deal out the training queries by their ranks among those similar to test queries."""
        from farfield.similarity.vectors import best_ranks

        tested, trained = self.encoder.encode(pool.at(pool.test), pool.at(pool.train))
        ranks, similarity = best_ranks(tested, trained)
        # By rank, then similarity: the first n are what the n most similar are, step by step.
        order = np.lexsort((np.arange(len(ranks)), -similarity, ranks))
        weights = np.ones_like(order)
        if self.match == "judgements":
            weights = pool.judgements[pool.train][order]
        near, far = self._ends(weights, pool)
        facts: dict[str, Any] = {
            "I": int(ranks[order[near - 1]]),
            "E": int(ranks[order[far]]) - 1,
            "judgements": {
                "interpolation": int(weights[:near].sum()) if self.match == "judgements" else None,
                "extrapolation": int(weights[far:].sum()) if self.match == "judgements" else None,
            },
            "similarity to the nearest test query": {
                "interpolation": float(similarity[order[:near]].mean()),
                "extrapolation": float(similarity[order[far:]].mean()),
            },
        }
        if self.match == "queries":
            del facts["judgements"]
        folds = (
            Fold(
                "interpolation",
                train=np.sort(pool.train[order[:near]]),
                near=pool.test,
                dropped=counted({"training queries farther away": len(order) - near}),
            ),
            Fold(
                "extrapolation",
                train=np.sort(pool.train[order[far:]]),
                far=pool.test,
                dropped=counted({"training queries nearer by": far}),
            ),
        )
        return Dealt(self, pool, folds, seed, facts=facts)

    def _ends(self, weights: Ints, pool: Pool) -> tuple[int, int]:
        """Up to where the near training queries go, and from where on the far ones."""
        total = int(weights.sum())
        size = total // 2 if self.size is None else self.size
        if not 1 <= size <= total // 2:
            raise InputError(
                f"{self}: two training sets of {size:,} {self.match} were asked for, and "
                f"{pool.collection.name} has {total:,} to train on. Expected at most "
                f"{total // 2:,}, so that they have no query in common."
            )
        near = int(np.searchsorted(np.cumsum(weights), size, side="right"))
        far = len(weights) - int(np.searchsorted(np.cumsum(weights[::-1]), size, side="right"))
        return max(near, 1), min(far, len(weights) - 1)
