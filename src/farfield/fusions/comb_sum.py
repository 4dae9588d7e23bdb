"""CombSUM."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.fusions.base import Floats, Fusion, Lists
from farfield.fusions.interpolate import Norm, normalised

__all__ = ["comb_sum"]


@dataclass(frozen=True, kw_only=True)
class comb_sum(Fusion):
    """Sum of the normalised scores over the lists that have the document (Fox and Shaw 1994).

    Relations: comb_mnz also multiplies by the number of lists; interpolate has weights that share
    one whole.
    """

    norm: Norm = "minmax"

    def _points(self, lists: Lists, number: int, k: int | None) -> Floats:
        return self._weight(number) * normalised(lists, self.norm)
