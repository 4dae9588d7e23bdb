"""Maximum mean discrepancy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farfield.errors import SpecError
from farfield.indicators._dealing import deals, p_value
from farfield.indicators.base import Floats, Indicator, Reading, Sides

__all__ = ["mmd"]

_BLOCK = 500  # rows of the kernel matrix at a time
_PILOT = 1000  # vectors of which the median distance is taken


@dataclass(frozen=True, kw_only=True)
class mmd(Indicator):
    """Squared maximum mean discrepancy of the vectors: 0 if both sets are of one distribution.

    Unbiased (Gretton et al. 2012), so it may be below 0, with the kernel exp(-distance² / (2
    ``bandwidth``²)); by default the bandwidth is the median distance within a sample of both sets.
    ``p`` is of a permutation test (``permutations``). At most ``size`` queries of each side are
    drawn; the kernel matrix is made block by block.

    Relations: classifier asks the same question and has a value that is easier to read; mmd sees
    differences that no straight line through the vectors shows.
    """

    higher_is_nearer: ClassVar[bool] = False

    size: int = 2000
    permutations: int = 1000
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        self._at_least(2, "size")
        self._at_least(1, "permutations")
        if self.bandwidth is not None and not 0.0 < self.bandwidth < np.inf:
            raise SpecError(f"bandwidth is {self.bandwidth}, expected a distance above 0.")

    def compare(self, sides: Sides) -> Reading:
        """Compare the distributions of A's and B's vectors."""
        rows = sides.rows(self.size)
        drawn = [v[i].astype(np.float64) for v, i in zip(sides.vectors(self), rows, strict=True)]
        both = np.concatenate(drawn)
        labels = np.arange(len(both)) < len(drawn[0])
        rng = np.random.default_rng(sides.seed)
        bandwidth = self.bandwidth or _median_distance(both, rng)
        # The kernel's sums over A and over all, for every query; and over A x A for every deal.
        to_all, to_a = np.empty(len(both)), np.empty(len(both))
        values = []
        for number, block in enumerate(deals(labels, self.permutations, sides.seed)):
            chosen = block.astype(np.float64)
            inside = np.zeros(block.shape[1])
            for at in range(0, len(both), _BLOCK):
                part = slice(at, at + _BLOCK)
                kernel = _kernel(both[part], both, bandwidth)
                sums = kernel @ chosen
                inside += np.einsum("ij,ij->j", chosen[part], sums)
                if number == 0:
                    to_all[part], to_a[part] = kernel.sum(axis=1), sums[:, 0]
            values.append(_unbiased(inside, to_all @ chosen, float(to_all.sum()), labels))
        dealt = np.concatenate(values)
        value = float(dealt[0])
        # A part that every query has by itself, and one of pairs, which deals show.
        error = np.sqrt(_own_variance(to_a, to_all, labels) + dealt[1:].var())
        low, high = sides.around(value, float(error))
        return Reading(
            value=value,
            low=low,
            high=high,
            same=0.0,
            p=p_value(dealt),
            details={
                "bandwidth": float(bandwidth),
                "queries": len(drawn[0]),
                "own_queries": len(drawn[1]),
                "permutations": self.permutations,
            },
        )

    def explain(self, reading: Reading) -> str:
        """Say what it compares, and how much of it."""
        sizes = [reading.details[name] for name in ("queries", "own_queries")]
        return (
            "discrepancy between the distributions of the vectors, 0 if there is none "
            f"({sizes[0]:,} and {sizes[1]:,} queries)."
        )


def _kernel(some: Floats, every: Floats, bandwidth: float) -> Floats:
    kernel = _squared_distances(some, every)
    kernel *= -0.5 / bandwidth**2
    return np.exp(kernel, out=kernel)


def _squared_distances(some: Floats, every: Floats) -> Floats:
    squares = [np.einsum("ij,ij->i", x, x) for x in (some, every)]
    distances: Floats = squares[0][:, None] + squares[1][None, :] - 2.0 * (some @ every.T)
    return np.maximum(distances, 0.0, out=distances)


def _median_distance(vectors: Floats, rng: np.random.Generator) -> float:
    if len(vectors) > _PILOT:
        vectors = vectors[np.sort(rng.choice(len(vectors), _PILOT, replace=False))]
    distances = _squared_distances(vectors, vectors)[np.triu_indices(len(vectors), k=1)]
    median = float(np.median(distances))
    apart = distances[distances > 1e-9]
    # Where more than half of the pairs are copies the median says nothing.
    return float(np.sqrt(median if median > 1e-9 else apart.mean() if len(apart) else 1.0))


def _unbiased(inside: Floats, from_a: Floats, total: float, labels: np.ndarray) -> Floats:
    """Squared discrepancies, from sums of the kernel over A x A, A x all and all x all."""
    m, n = int(labels.sum()), int((~labels).sum())
    across = from_a - inside
    other = total - 2.0 * from_a + inside
    # A query with itself has a kernel of 1, and does not count.
    return (inside - m) / (m * (m - 1)) + (other - n) / (n * (n - 1)) - 2.0 * across / (m * n)


def _own_variance(to_a: Floats, to_all: Floats, labels: np.ndarray) -> float:
    """The variance that comes from how much nearer each query is to its own side."""
    m, n = int(labels.sum()), int((~labels).sum())
    gap = to_a / m - (to_all - to_a) / n
    return float(4.0 * (gap[labels].var(ddof=1) / m + gap[~labels].var(ddof=1) / n))
