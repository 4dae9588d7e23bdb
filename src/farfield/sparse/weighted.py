"""Queries whose terms have weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Weighted"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weighted:
    """Queries one after the other: numbers of terms, ascending within a query, and their weights.

    The terms of query ``i`` are ``starts[i]`` to ``starts[i + 1]``.
    """

    starts: Ints
    terms: Ints
    weights: Floats

    @classmethod
    def of(cls, query: Ints, term: Ints, weight: Floats, queries: int) -> Weighted:
        """Bring rows of (query, term, weight) in order; weights of the same term are added."""
        order = np.lexsort((term, query))
        query, term, weight = query[order], term[order], weight[order]
        new = np.ones(len(query), dtype=np.bool_)
        new[1:] = (query[1:] != query[:-1]) | (term[1:] != term[:-1])
        first = np.flatnonzero(new)
        sums = np.add.reduceat(weight, first) if len(first) else weight
        starts = np.searchsorted(query[first], np.arange(queries + 1))
        return cls(starts, term[first], sums)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def query(self) -> Ints:
        """The number of the query of each term."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def largest(self) -> Floats:
        """The largest weight of each query; 0 where it has no terms."""
        found = np.zeros(len(self))
        np.maximum.at(found, self.query, self.weights)
        return found

    def totals(self) -> Floats:
        """The sum of the weights of each query."""
        found = np.zeros(len(self))
        np.add.at(found, self.query, self.weights)
        return found

    def with_weights(self, weights: Floats) -> Weighted:
        """The same terms with other weights."""
        return Weighted(self.starts, self.terms, weights)

    def part(self, first: int, last: int) -> Weighted:
        """Some of the queries, from ``first`` to before ``last``."""
        low, high = self.starts[first], self.starts[last]
        starts = self.starts[first : last + 1] - low
        return Weighted(starts, self.terms[low:high], self.weights[low:high])
