"""Labels dealt anew: the null distribution of any statistic of two samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["deals", "p_value"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_CELLS = 8_000_000  # of one block of deals


def deals(
    labels: Bools, count: int, seed: int, groups: npt.NDArray[np.int64] | None = None
) -> Iterator[Bools]:
    """Yield blocks of columns: first the labels as they are, then ``count`` deals of them.

    With ``groups`` labels are dealt within each group only, so that its counts stay.
    """
    rng = np.random.default_rng(seed)
    members = [np.arange(len(labels))]
    if groups is not None:
        members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    step = max(1, _CELLS // len(labels))
    for start in range(0, count + 1, step):
        block = np.repeat(labels[:, None], min(step, count + 1 - start), axis=1)
        first = 1 if start == 0 else 0
        for rows in members:
            block[rows, first:] = rng.permuted(block[rows, first:], axis=0)
        yield block


def p_value(values: Floats) -> float:
    """How often a deal gives as much as the labels themselves (the first value) do, or more."""
    # What differs by rounding only is as much.
    return float(np.count_nonzero(values >= values[0] - 1e-12) / len(values))
