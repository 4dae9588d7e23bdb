"""Settings chosen on some queries and valued on others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.measures import Measure

__all__ = ["Chosen", "check_folds", "choose"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Chosen(NamedTuple):
    """The setting that is best on all queries, and on all but those of each fold."""

    best: int
    fold: Ints  # of each query
    choices: tuple[int, ...]


def check_folds(folds: int, queries: int) -> None:
    """Refuse a number of folds that so many judged queries cannot be dealt into."""
    if not 2 <= folds <= queries:
        raise InputError(
            f"folds is {folds} for {queries} judged queries, expected 2 to {queries}. Give "
            "folds=2 or more, and judge more queries than folds."
        )


def choose(values: Floats, measure: Measure, folds: int, seed: int) -> Chosen:
    """Deal queries (rows) into folds, and choose settings (columns) without each of them."""
    fold = np.empty(len(values), dtype=np.int64)
    fold[np.random.default_rng(seed).permutation(len(values))] = np.arange(len(values)) % folds
    choices = tuple(_best(values[fold != each], measure) for each in range(folds))
    return Chosen(_best(values, measure), fold, choices)


def _best(values: Floats, measure: Measure) -> int:
    """The setting with the best total; of equal ones the first."""
    totals = values.sum(axis=0) * (1 if measure.higher_is_better else -1)
    return int(np.argmax(totals >= totals.max() - 1e-9 * len(values)))
