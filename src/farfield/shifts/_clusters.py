"""k-means, with as many fresh starts as its cost allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from farfield.similarity.clusters import Clusters, kmeans

__all__ = ["clustered"]

# Vectors times starts: one start for a million, ten for a hundred thousand and fewer.
_WORK, _MOST = 1_000_000, 10


def clustered(
    vectors: npt.NDArray[np.float32], k: int, seed: int
) -> tuple[Clusters, dict[str, Any]]:
    """Group vectors around ``k`` centroids, and say how it was done.

    A single start often ends with one group divided and two others joined; the best of several
    seldom does.
    """
    restarts = max(1, min(_MOST, _WORK // max(1, len(vectors))))
    found = kmeans(vectors, k, seed=seed, restarts=restarts)
    return found, {"starts of k-means": restarts, "sum of squares within": float(found.inertia)}
