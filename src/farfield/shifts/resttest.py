"""ReSTTest: resample training and test queries together (Zhan et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from farfield.encoders import Encoder, default
from farfield.errors import SpecError
from farfield.shifts._clusters import clustered
from farfield.shifts.base import Grouped, Groups, Pool

__all__ = ["resttest"]


@dataclass(frozen=True, kw_only=True)
class resttest(Grouped):
    """Buckets of similar queries, by k-means over training and test queries together.

    Every test query is far in one fold and near in all others. Buckets are numbered from the
    largest on. Relations: topics leaves out what lies between the groups, so they are farther
    apart; restrain keeps the test set and is for small ones.
    """

    buckets: int = 5
    encoder: Encoder = field(default_factory=default)

    def __post_init__(self) -> None:
        if self.buckets < 2:
            raise SpecError(f"buckets is {self.buckets}, expected 2, 3, 4 …")

    def grouping(self, pool: Pool, seed: int) -> Groups:
        """Cluster the vectors of all queries."""
        (vectors,) = self.encoder.encode(pool.queries)
        found, facts = clustered(vectors, self.buckets, seed)
        names = tuple(str(number) for number in range(self.buckets))
        return Groups(names, found.labels.astype(np.int64), facts)
