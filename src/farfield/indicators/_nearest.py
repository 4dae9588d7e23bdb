"""The nearest queries of B: those of A's queries, and those of B's own."""

from __future__ import annotations

import numpy as np

from farfield.indicators.base import Floats, Ints, Vectors
from farfield.similarity.vectors import top_k

__all__ = ["nearest", "nearest_own"]


def nearest(queries: Vectors, items: Vectors, k: int) -> Floats:
    """The similarities of each query's ``k`` nearest items, the nearest first."""
    return top_k(queries, items, min(k, len(items)))[1].astype(np.float64)


def nearest_own(items: Vectors, rows: Ints, k: int) -> Floats:
    """The same for some of the items, each without itself."""
    k = min(k, len(items) - 1)
    found, values = top_k(np.ascontiguousarray(items[rows]), items, k + 1)
    itself = found == rows[:, None]
    # An item that has copies may not be among its own nearest: then the last one goes.
    itself[~itself.any(axis=1), -1] = True
    others: Floats = values[~itself].reshape(len(rows), k).astype(np.float64)
    return others
