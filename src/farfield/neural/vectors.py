"""What encoding gives, where a text has as many values as it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "Ints",
    "Matrix",
    "SparseVectors",
    "TokenVectors",
    "in_order",
    "ragged_rows",
    "starts_of",
]

Matrix = npt.NDArray[np.floating]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SparseVectors:
    """A few weighted dimensions of a text: those of text i stand at ``starts[i]:starts[i + 1]``."""

    indices: npt.NDArray[np.int32]  # ascending within a text
    weights: Matrix
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def nonzeros(self) -> Ints:
        """How many dimensions every text has."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class TokenVectors:
    """A vector for every token: those of text i are the rows ``starts[i]:starts[i + 1]``."""

    vectors: Matrix
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ints:
        """How many vectors every text has."""
        return np.diff(self.starts)


def starts_of(counts: npt.NDArray[Any]) -> Ints:
    """Return where runs of these lengths start, and at last where they end."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def ragged_rows(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers of all rows in runs of ``counts`` rows from ``starts`` on."""
    shift = np.asarray(starts) - starts_of(counts)[:-1]
    return np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(shift, counts)


def in_order(
    texts: Ints, counts: Ints, arrays: Sequence[npt.NDArray[Any]]
) -> tuple[Ints, list[npt.NDArray[Any]]]:
    """Put runs of values, which came for these texts, into the order of the texts' numbers."""
    order = np.argsort(texts, kind="stable")
    rows = ragged_rows(starts_of(counts)[:-1][order], counts[order])
    return starts_of(counts[order]), [array[rows] for array in arrays]
