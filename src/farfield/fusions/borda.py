"""Borda count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farfield.fusions.base import Floats, Fusion, Lists

__all__ = ["borda"]


@dataclass(frozen=True, kw_only=True)
class borda(Fusion):
    """Points by rank: a list of n documents gives n to its first, 1 to its last, 0 to others.

    Weights multiply the points. Relations: rrf rewards the top of a list far more.
    """

    def _points(self, lists: Lists, weight: float) -> Floats:
        return weight * (lists.lengths[lists.query] - lists.rank + 1).astype(np.float64)
