"""Topics that lie far apart (MS-Shift, Lupart et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from farfield.encoders import Encoder, default
from farfield.errors import InputError, SpecError
from farfield.shifts._clusters import clustered
from farfield.shifts.base import Grouped, Groups, Pool

__all__ = ["topics"]

Ints = npt.NDArray[np.int64]

# The groups of the paper: 125,000 of 398,792 queries, 25,000 each.
_SIZE, _SHARE = 25_000, 0.31


@dataclass(frozen=True, kw_only=True)
class topics(Grouped):
    """Groups of similar queries with a gap between them.

    k-means makes ``clusters``; of them the ``groups`` whose centroids have the largest sum of
    pairwise distances are chosen; each grows by the clusters nearest to it, the nearest of all
    first, until it has about ``size`` queries of both sides (25,000, or in small collections as
    many as make up 31 % of all queries together, the share of the paper). All other queries belong
    to no group. A cluster joins if that brings the group nearer to its size.
    """

    clusters: int = 100
    groups: int = 5
    size: int | None = None
    encoder: Encoder = field(default_factory=default)

    def __post_init__(self) -> None:
        if not 2 <= self.groups <= self.clusters:
            raise SpecError(
                f"groups is {self.groups} and clusters {self.clusters}, expected at least 2 groups "
                "and no fewer clusters."
            )
        if self.size is not None and self.size < 1:
            raise SpecError(f"size is {self.size}, expected 1, 2, 3 …")

    def grouping(self, pool: Pool, seed: int) -> Groups:
        """Cluster the vectors of all queries, choose distant clusters, and let them grow."""
        from farfield.similarity.clusters import farthest_group

        size = self._size(pool)
        (vectors,) = self.encoder.encode(pool.queries)
        found, facts = clustered(vectors, self.clusters, seed)
        chosen = farthest_group(found.centroids, self.groups)
        sizes = np.bincount(found.labels, minlength=self.clusters)
        group_of = _grown(found.centroids, np.sort(chosen.members), sizes, size)
        joined = np.bincount(group_of[group_of >= 0], minlength=self.groups)
        facts |= {
            "asked size": size,
            "clusters in each group": joined.tolist(),
            "sum of distances between their first centroids": float(chosen.distance),
            "that is the largest possible": bool(chosen.exact),
        }
        names = tuple(str(number) for number in range(self.groups))
        return Groups(names, group_of[found.labels], facts)

    def _size(self, pool: Pool) -> int:
        fitting = len(pool) // self.groups
        if self.size is None:
            return min(_SIZE, max(1, int(_SHARE * fitting)))
        if self.size > fitting:
            raise InputError(
                f"{self}: {self.groups} groups of {self.size:,} queries were asked for, and "
                f"{pool.collection.name} has {len(pool):,}. Expected at most {fitting:,} each."
            )
        return self.size


def _grown(centroids: npt.NDArray[np.float32], first: Ints, sizes: Ints, size: int) -> Ints:
    """Which group each cluster joins (-1: none)."""
    points = centroids.astype(np.float64)
    away = np.linalg.norm(points[first][:, None] - points[None], axis=2)
    group_of = np.full(len(points), -1, dtype=np.int64)
    group_of[first] = np.arange(len(first))
    have = sizes[first].astype(np.int64)
    away[:, first] = np.inf
    while np.isfinite(away).any():
        group, cluster = np.unravel_index(np.argmin(away), away.shape)
        if abs(have[group] + sizes[cluster] - size) < abs(have[group] - size):
            group_of[cluster] = group
            have[group] += sizes[cluster]
            away[:, cluster] = np.inf
        else:
            away[group] = np.inf  # the group is full
    return group_of
