"""Scores of different systems on one scale, list by list."""

from __future__ import annotations

from typing import Literal

import numpy as np

from farfield.fusions.base import Floats, Lists

__all__ = ["Norm", "normalised"]

Norm = Literal["minmax", "z", "dbsf", "rank", "none"]


def normalised(lists: Lists, norm: Norm) -> Floats:
    """Bring the scores of each list to a common scale."""
    if norm not in lists.kept:
        lists.kept[norm] = _normalised(lists, norm)
    return lists.kept[norm]


def _normalised(lists: Lists, norm: Norm) -> Floats:
    if norm == "rank":
        return 1.0 - (lists.rank - 1.0) / lists.lengths[lists.query]
    if norm == "none":
        return lists.score
    if norm == "minmax":
        low = lists.per_query(np.minimum, lists.score)
        high = lists.per_query(np.maximum, lists.score)
        return _scaled(lists, low, high - low, equal=1.0)
    mean = lists.per_query(np.add, lists.score) / np.maximum(lists.lengths, 1)
    squares = lists.per_query(np.add, (lists.score - mean[lists.query]) ** 2)
    # dbsf estimates the deviation from a sample (n - 1), z takes the list for all there is (n).
    free = lists.lengths - 1 if norm == "dbsf" else lists.lengths
    deviation = np.sqrt(squares / np.maximum(free, 1))
    # A mean is rounded, so that equal scores seem to deviate from it by next to nothing.
    low = lists.per_query(np.minimum, lists.score)
    deviation[lists.per_query(np.maximum, lists.score) == low] = 0.0
    if norm == "z":
        return _scaled(lists, mean, deviation, equal=0.0)
    return _scaled(lists, mean - 3 * deviation, 6 * deviation, equal=0.5)


def _scaled(lists: Lists, low: Floats, width: Floats, equal: float) -> Floats:
    """(score - low) / width; ``equal`` for lists whose scores are all the same."""
    width_of = width[lists.query]
    scaled = np.full(len(lists.score), equal)
    np.divide(lists.score - low[lists.query], width_of, out=scaled, where=width_of > 0)
    return scaled
