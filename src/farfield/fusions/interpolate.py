"""Interpolation of normalised scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from farfield.fusions.base import Floats, Fusion, Lists

__all__ = ["interpolate", "normalised"]

Norm = Literal["minmax", "z", "dbsf", "rank", "none"]


@dataclass(frozen=True, kw_only=True)
class interpolate(Fusion):
    """Weighted sum of scores, made comparable within each query's list first.

    ``norm`` is ``minmax`` (0 to 1 over the list; 1 where all are equal), ``z`` (mean 0, deviation
    1), ``dbsf`` (mean plus and minus three deviations become 1 and 0, as in Qdrant's score fusion
    by distribution), ``rank`` (1 at the top down to 1 / length) or ``none``. A document that a list
    lacks gets ``absent``: ``min``, the list's lowest normalised score (Ma et al. 2021), or
    ``zero``. Weights are divided by their sum.

    Relations: rrf needs no scores; comb_sum is this without weights.
    """

    norm: Norm = "minmax"
    absent: Literal["min", "zero"] = "zero"

    def _share(self, number: int) -> float:
        return self.weights[number] / sum(self.weights) if self.weights else 1.0

    def _points(self, lists: Lists, number: int, k: int | None) -> Floats:
        return self._share(number) * normalised(lists, self.norm)

    def _absent(self, lists: Lists, number: int, k: int | None) -> Floats:
        if self.absent == "zero":
            return super()._absent(lists, number, k)
        scores = Lists(
            lists.query, lists.rank, normalised(lists, self.norm), lists.starts, lists.lengths
        )
        return self._share(number) * scores.per_query(np.minimum, 0.0)


def normalised(lists: Lists, norm: Norm) -> Floats:
    """Bring the scores of each list to a common scale."""
    if norm == "none":
        return lists.score
    if norm == "rank":
        return 1.0 - (lists.rank - 1.0) / lists.lengths[lists.query]
    if norm == "minmax":
        low, high = lists.per_query(np.minimum, 0.0), lists.per_query(np.maximum, 0.0)
        return _scaled(lists, low, high - low, equal=1.0)
    mean = lists.per_query(np.add, 0.0) / np.maximum(lists.lengths, 1)
    squares = Lists(
        lists.query, lists.rank, (lists.score - mean[lists.query]) ** 2, lists.starts, lists.lengths
    )
    # dbsf estimates the deviation from a sample (n - 1), z takes the list for all there is (n).
    free = lists.lengths - 1 if norm == "dbsf" else lists.lengths
    deviation = np.sqrt(squares.per_query(np.add, 0.0) / np.maximum(free, 1))
    if norm == "z":
        return _scaled(lists, mean, deviation, equal=0.0)
    return _scaled(lists, mean - 3 * deviation, 6 * deviation, equal=0.5)


def _scaled(lists: Lists, low: Floats, width: Floats, equal: float) -> Floats:
    """(score - low) / width; ``equal`` for lists whose scores are all the same."""
    width_of = width[lists.query]
    scaled = np.full(len(lists.score), equal)
    np.divide(lists.score - low[lists.query], width_of, out=scaled, where=width_of > 0)
    return scaled
