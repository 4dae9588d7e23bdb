"""CombSUM."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.fusions._norms import Norm, normalised
from farfield.fusions.base import Floats, Fusion, Lists

__all__ = ["comb_sum"]


@dataclass(frozen=True, kw_only=True)
class comb_sum(Fusion):
    """Sum of the normalised scores over the lists that have the document (Fox and Shaw 1994).

    For ``norm`` see interpolate; weights multiply the scores.

    Relations: comb_mnz also multiplies by the number of lists; interpolate has weights that share
    one whole, and may give absent documents the lowest score.
    """

    norm: Norm = "minmax"

    def _points(self, lists: Lists, weight: float) -> Floats:
        return weight * normalised(lists, self.norm)
