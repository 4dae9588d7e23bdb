"""Groups of vectors: k-means on all of them, and the centroids that lie farthest apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.similarity.vectors import in_threads

__all__ = ["Clusters", "FarthestGroup", "farthest_group", "kmeans"]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

# Vectors that one thread takes at a time. Each such share has sums of its own, added up in order,
# so that the result does not depend on how many threads there are.
_SHARE = 32_768
# Similarities of vectors and centroids made at once: 2 MB, which the cache holds.
_BLOCK = 500_000
# The first centroids are chosen among so many vectors of each cluster, and so many at least.
_SEEDS_EACH, _SEEDS = 256, 16_384


@dataclass(frozen=True)
class Clusters:
    """Centroids, the cluster of every vector (that of the nearest centroid), and how well they fit.

    Clusters are numbered by size, the largest first. ``inertia`` is the sum of the squared
    distances; ``settled`` says whether another iteration would have changed nothing.
    """

    centroids: Floats
    labels: Labels
    inertia: float
    settled: bool

    @property
    def sizes(self) -> Ints:
        """The number of vectors in every cluster."""
        return np.bincount(self.labels, minlength=len(self.centroids))


def kmeans(
    vectors: Floats, k: int, *, seed: int, restarts: int = 1, iterations: int = 25
) -> Clusters:
    """Group all vectors around ``k`` centroids; the best of so many restarts.

    The first centroids are chosen by k-means++ (far from one another, at random) among at most 256
    vectors for each cluster and no fewer than 16,384; everything after that uses all vectors. No
    cluster is empty: one that would be gets the vector farthest from its own centroid.
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or not 1 <= k <= len(vectors):
        raise InputError(
            f"cannot make {k} clusters of vectors of shape {vectors.shape}. Expected at least 1, "
            "and no more than there are vectors (rows)."
        )
    for name, value in (("restarts", restarts), ("iterations", iterations)):
        if value < 1:
            raise InputError(f"{name} is {value}, expected 1, 2, 3 …")
    rng = np.random.default_rng(seed)
    lengths = _squared_lengths(vectors)
    best: Clusters | None = None
    for _ in range(restarts):
        found = _Lloyd(vectors, lengths, _first_centroids(vectors, k, rng)).run(iterations)
        if best is None or found.inertia < best.inertia:
            best = found
    assert best is not None
    return best


def _squared_lengths(vectors: Floats) -> Floats:
    lengths = np.empty(len(vectors), dtype=np.float32)

    def measure(starts: Iterator[int]) -> None:
        for start in starts:
            block = vectors[start : start + _SHARE]
            np.einsum("ij,ij->i", block, block, out=lengths[start : start + _SHARE])

    in_threads(measure, range(0, len(vectors), _SHARE), vectors.size)
    if not np.isfinite(lengths).all():
        bad = int(np.flatnonzero(~np.isfinite(lengths))[0])
        raise InputError(
            f"vector {bad} (counted from 0) holds NaN, infinity or numbers too large to multiply. "
            "Encode it again."
        )
    return lengths


def _first_centroids(vectors: Floats, k: int, rng: np.random.Generator) -> Floats:
    """K-means++: each by chance, likelier the farther it is; the best of a few such tries."""
    size = min(len(vectors), max(_SEEDS_EACH * k, _SEEDS))
    sample = vectors[np.sort(rng.choice(len(vectors), size, replace=False))]
    lengths = np.einsum("ij,ij->i", sample, sample)
    tries = 2 + int(np.log(k))

    def squared_distances(chosen: Ints) -> Doubles:
        products = sample[chosen] @ sample.T
        apart: Floats = lengths[chosen, None] + lengths - 2 * products
        return np.maximum(apart, 0).astype(np.float64)

    chosen = [int(rng.integers(size))]
    nearest = squared_distances(np.array(chosen))[0]
    while len(chosen) < k:
        total = np.cumsum(nearest)
        drawn = np.searchsorted(total, rng.random(tries) * total[-1], side="right")
        candidates = np.minimum(drawn, size - 1)
        after = np.minimum(squared_distances(candidates), nearest)
        winner = int(after.sum(axis=1).argmin())
        chosen.append(int(candidates[winner]))
        nearest = after[winner]
    return sample[chosen]


class _Lloyd:
    """Lloyd's iteration: every vector to its nearest centroid, every centroid to its vectors' mean.

    The sums of clusters are kept from one iteration to the next and changed by the vectors that
    moved, which are soon few.
    """

    def __init__(self, vectors: Floats, lengths: Floats, centroids: Floats) -> None:
        self.vectors, self.lengths, self.centroids = vectors, lengths, centroids
        count, k = len(vectors), len(centroids)
        self.share = max(_SHARE, 16 * k)
        self.labels = np.full(count, -1, dtype=np.int32)
        self.distances = np.empty(count, dtype=np.float32)  # squared, to the nearest centroid
        shares = -(-count // self.share)
        self.sums = np.zeros((shares, *centroids.shape), dtype=np.float64)

    def run(self, iterations: int) -> Clusters:
        settled = False
        for _ in range(iterations):
            moved = self._assign()
            sizes = self._sizes()
            if not moved and sizes.all():
                settled = True
                break
            sums = self.sums.sum(axis=0)
            filled = sizes > 0
            self.centroids[filled] = sums[filled] / sizes[filled, None]
            self._fill_empty(sizes)
        if not settled:
            settled = self._assign() == 0
            while not (sizes := self._sizes()).all():
                self._fill_empty(sizes)
                settled = self._assign() == 0
        return self._numbered(settled)

    def _sizes(self) -> Ints:
        return np.bincount(self.labels, minlength=len(self.centroids))

    def _assign(self) -> int:
        """Give every vector to its nearest centroid; return how many moved."""
        k = len(self.centroids)
        half = 0.5 * np.einsum("ij,ij->i", self.centroids, self.centroids)
        step = min(4096, max(64, _BLOCK // k))

        def assign(starts: Iterator[int]) -> int:
            moved = 0
            products = np.empty((step, k), dtype=np.float32)
            for start in starts:
                stop = min(start + self.share, len(self.vectors))
                for first in range(start, stop, step):
                    block = slice(first, min(first + step, stop))
                    rows = self.vectors[block]
                    near = np.matmul(rows, self.centroids.T, out=products[: len(rows)])
                    near -= half  # the largest x·c - c·c / 2 belongs to the smallest distance
                    labels = near.argmax(axis=1).astype(np.int32)
                    largest = np.take_along_axis(near, labels[:, None], axis=1)[:, 0]
                    self.distances[block] = self.lengths[block] - 2 * largest
                    moved += self._move(block, labels, self.sums[start // self.share])
            return moved

        work = self.vectors.size * k
        return sum(in_threads(assign, range(0, len(self.vectors), self.share), work))

    def _move(self, block: slice, labels: Labels, sums: Doubles) -> int:
        """Add vectors to the sums of their new clusters and take them from the old ones."""
        from scipy.sparse import csc_array

        before = self.labels[block]
        moved = np.flatnonzero(labels != before)
        if len(moved):
            signs, places = [1.0], [labels[moved]]
            if before[0] >= 0:  # the first time, all come from nowhere
                signs, places = [1.0, -1.0], [labels[moved], before[moved]]
            entries = np.tile(signs, len(moved)), np.column_stack(places).ravel()
            ends = np.arange(0, len(entries[0]) + 1, len(signs))
            changes = csc_array((*entries, ends), shape=(len(self.centroids), len(moved)))
            sums += changes @ self.vectors[block][moved].astype(np.float64)
            self.labels[block] = labels
        return len(moved)

    def _fill_empty(self, sizes: Ints) -> None:
        """Put the centroids without vectors at those vectors that are farthest from theirs."""
        empty = np.flatnonzero(sizes == 0)
        if not len(empty):
            return
        far = np.where(sizes[self.labels] > 1, self.distances, 0.0)
        chosen = np.argsort(-far, kind="stable")[: len(empty)]
        # Distances come from rounded products; what is nearer than that is the same vector.
        if (far[chosen] <= 1e-6 * self.lengths.max()).any():
            self._explain(len(self.centroids))
        self.centroids[empty] = self.vectors[chosen]

    def _explain(self, k: int) -> None:
        different = len({row.tobytes() for row in self.vectors})
        raise InputError(
            f"cannot make {k} clusters: of {len(self.vectors):,} vectors {different:,} differ, and "
            "not all of these by more than rounding. Ask for fewer clusters."
        )

    def _numbered(self, settled: bool) -> Clusters:
        order = np.argsort(-self._sizes(), kind="stable")
        number = np.empty(len(order), dtype=np.int32)
        number[order] = np.arange(len(order))
        centroids, labels = self.centroids[order], number[self.labels]

        def spread(starts: Iterator[int]) -> dict[int, float]:
            found = {}
            for start in starts:
                apart = self.vectors[start : start + 4096] - centroids[labels[start : start + 4096]]
                found[start] = float(np.einsum("ij,ij->", apart, apart, dtype=np.float64))
            return found

        parts = in_threads(spread, range(0, len(labels), 4096), self.vectors.size)
        squares = {start: value for part in parts for start, value in part.items()}
        inertia = sum(squares[start] for start in sorted(squares))
        return Clusters(centroids, labels, inertia, settled)


# -- far apart ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FarthestGroup:
    """Some centroids, the sum of their pairwise distances, and whether no group has a larger one.

    ``exact`` is false only where the search was cut short; the group is then the best one found.
    """

    members: Ints
    distance: float
    exact: bool


def farthest_group(centroids: Floats, n: int, *, limit: int = 20_000_000) -> FarthestGroup:
    """The ``n`` centroids with the largest sum of pairwise Euclidean distances.

    Branch and bound, from a group made greedily and improved by swaps. It is cut short after
    ``limit`` partial groups, which 5 of 100 never need.
    """
    points = np.asarray(centroids, dtype=np.float64)
    if points.ndim != 2 or not 1 <= n <= len(points):
        raise InputError(f"cannot choose {n} of the points of a matrix of shape {points.shape}.")
    apart = np.sqrt(np.maximum(_squared(points), 0))
    # Points far from all others first: good groups are then found early, and more is cut off.
    order = np.argsort(-apart.sum(axis=1), kind="stable")
    members, exact = _branch_and_bound(apart[np.ix_(order, order)], n, limit)
    chosen = np.sort(order[members])
    return FarthestGroup(chosen, float(apart[np.ix_(chosen, chosen)].sum() / 2), exact)


def _squared(points: Doubles) -> Doubles:
    centred = points - points.mean(axis=0)
    lengths = np.einsum("ij,ij->i", centred, centred)
    squared: Doubles = lengths[:, None] + lengths - 2 * (centred @ centred.T)
    np.fill_diagonal(squared, 0)
    return squared


def _branch_and_bound(apart: Doubles, n: int, limit: int) -> tuple[Ints, bool]:
    size = len(apart)
    best = _greedy(apart, n)
    mark = _total(apart, best) * (1 + 1e-12)
    # A point's share of the distances within any group of j + 1: at most half of its j largest.
    largest = np.cumsum(-np.sort(-apart, axis=1), axis=1) / 2
    shares = np.column_stack([np.zeros(size), largest])
    step = max(1, 1_000_000 // size)
    waiting = [np.arange(size)[:, None]] if n > 1 else []
    seen = 0
    while waiting:
        groups = waiting.pop()
        seen += len(groups)
        if seen > limit:
            return best, False
        within = apart[groups[:, :, None], groups[:, None, :]].sum(axis=(1, 2)) / 2
        gains = np.zeros((len(groups), size))
        for member in groups.T:
            gains += apart[member]
        left = n - groups.shape[1]
        gains[np.arange(size) <= groups[:, -1:]] = -np.inf  # members in ascending order
        if left == 1:
            at, last = np.unravel_index(int((within[:, None] + gains).argmax()), gains.shape)
            if within[at] + gains[at, last] > mark:
                best = np.append(groups[at], last)
                mark = _total(apart, best) * (1 + 1e-12)
            continue
        hopes = gains + shares[:, left - 1]
        others = np.partition(hopes, size - left + 1, axis=1)[:, size - left + 1 :].sum(axis=1)
        row, child = np.nonzero(hopes + (within + others)[:, None] > mark)
        grown = np.column_stack([groups[row], child])
        waiting += [grown[at : at + step] for at in range(0, len(grown), step)][::-1]
    return best, True


def _greedy(apart: Doubles, n: int) -> Ints:
    """A good group: the two farthest, then always the farthest from them, then better swaps."""
    pairs = np.where(np.eye(len(apart), dtype=bool), -1.0, apart)
    chosen = [int(member) for member in np.unravel_index(int(pairs.argmax()), pairs.shape)][:n]
    while len(chosen) < n:
        gains = apart[chosen].sum(axis=0)
        gains[chosen] = -np.inf
        chosen.append(int(gains.argmax()))
    group = np.array(chosen, dtype=np.int64)
    while True:
        gains = apart[group].sum(axis=0)
        # Row i: what is gained when member i leaves and a point comes.
        change = gains - apart[group] - gains[group][:, None]
        change[:, group] = -np.inf
        leaves, comes = np.unravel_index(int(change.argmax()), change.shape)
        if not change[leaves, comes] > 1e-12 * (1 + gains.sum()):
            return group
        group[leaves] = comes


def _total(apart: Doubles, group: Ints) -> float:
    return float(apart[np.ix_(group, group)].sum() / 2)
