"""Interpolation of normalised scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from farfield.fusions._norms import Norm, normalised
from farfield.fusions.base import Floats, Fusion, Lists

__all__ = ["interpolate"]


@dataclass(frozen=True, kw_only=True)
class interpolate(Fusion):
    """Weighted mean of scores, made comparable within each query's list first.

    With two runs and ``weights=[0.3, 0.7]`` a document gets 0.3 of its score in the first and 0.7
    of its score in the second; weights are divided by their sum, and are equal by default.
    ``norm`` is ``minmax`` (0 to 1 over the list; 1 where all are equal), ``z`` (mean 0, deviation
    1), ``dbsf`` (mean plus and minus three deviations become 1 and 0, as in Qdrant's fusion by
    distribution), ``rank`` (1 at the top down to 1 / length) or ``none``. A document that a list
    lacks gets ``absent``: ``zero``, or ``min``, the list's lowest normalised score (Ma et al.
    2021).

    Relations: rrf needs no scores; comb_sum is the same with weights that need not share a whole.
    """

    norm: Norm = "minmax"
    absent: Literal["min", "zero"] = "zero"

    def shares(self, runs: int) -> tuple[float, ...]:
        """The weight of each of so many runs; together they are 1."""
        weights = super().shares(runs)
        return tuple(weight / sum(weights) for weight in weights)

    def _points(self, lists: Lists, weight: float) -> Floats:
        return weight * normalised(lists, self.norm)

    def _absent(self, lists: Lists, weight: float) -> Floats | None:
        if self.absent == "zero":
            return None
        return weight * lists.per_query(np.minimum, normalised(lists, self.norm))
