"""What is resampled: queries or whole clusters of them, as deviations from their mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.stats.checks import Floats, cluster_codes, finite

# Cells of one block of resamples: two megabytes of indices stay near the core, and take half the
# time that all resamples at once would; with more queries than this a block is one resample.
BLOCK_CELLS = 2**18
# Differences this small, relative to the values they are between, are rounding and not results.
ROUNDING = 1e-12
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """What is drawn: queries or clusters of them, for k columns that share the same queries.

    Everything is held as deviations from the mean. An interval of ``x + 1000`` is then that of
    ``x`` moved, without the digits that summing around 1000 would cost.
    """

    centre: Floats  # (k,) the means
    totals: Floats  # (k, units) the sum, per unit, of the deviations from the mean
    sizes: Floats | None  # (units,) queries per unit; None when each is one query

    @classmethod
    def of(
        cls, rows: Floats, clusters: npt.ArrayLike | None = None, scale: Floats | None = None
    ) -> Units:
        """Prepare (k, n) values; ``scale`` is the size of the numbers they were made from."""
        lowest, highest = rows.min(axis=1), rows.max(axis=1)
        # The mean of ten times 0.1 is 0.1, which plain summation misses by a digit.
        centre = np.clip(rows.mean(axis=1), lowest, highest)
        totals = rows - centre[:, None]
        if scale is None:
            scale = np.maximum(np.abs(lowest), np.abs(highest))
        noise = 8 * _EPSILON * scale
        sizes = None
        if clusters is not None:
            codes = cluster_codes(clusters, rows.shape[1])
            sizes = np.bincount(codes).astype(np.float64)
            totals = np.array([np.bincount(codes, weights=row) for row in totals])
            noise = noise * sizes.max()
        # Values that are all equal on paper have no spread, whatever rounding makes of them.
        totals[np.abs(totals).max(axis=1) <= noise] = 0.0
        return cls(centre=centre, totals=totals, sizes=sizes)

    @property
    def count(self) -> int:
        """How many units there are to draw."""
        return int(self.totals.shape[1])

    @property
    def n(self) -> int:
        """How many queries they hold."""
        return self.count if self.sizes is None else int(self.sizes.sum())

    @property
    def standard_error(self) -> Floats:
        """The standard error of each mean; NaN for a single unit."""
        if self.count == 1:
            return np.full(len(self.centre), np.nan)
        squares = np.square(self.totals).sum(axis=1)
        error: Floats = np.sqrt(squares * self.count / (self.count - 1)) / self.n
        return error

    def resampled(self, resamples: int, rng: np.random.Generator) -> Floats:
        """Return (resamples, k) deviations of the resampled means from the observed ones.

        A resample is a row of counts, how often each unit was drawn, so that one product with
        the totals serves every column. Most of the time goes into the random numbers.
        """
        units = self.count
        result = np.empty((resamples, len(self.centre)))
        for start, stop in blocks(resamples, units):
            drawn = rng.integers(0, units, size=(stop - start, units))
            counts = np.empty(drawn.shape)
            # Counted row by row: one bincount of the whole block has to shift the indices first,
            # and loses more by that than by the loop.
            for i, row in enumerate(drawn):
                counts[i] = np.bincount(row, minlength=units)
            divisor = units if self.sizes is None else (counts @ self.sizes)[:, None]
            result[start:stop] = (counts @ self.totals.T) / divisor
        return result

    def acceleration(self) -> Floats:
        """Return the acceleration of BCa, from the jackknife in closed form."""
        # Leaving out a unit moves the mean by -total / (queries that remain).
        moves = self.totals / (self.n - (1.0 if self.sizes is None else self.sizes))
        return skew(moves - moves.mean(axis=1, keepdims=True))


def sample(values: npt.ArrayLike, name: str, clusters: npt.ArrayLike | None = None) -> Units:
    """Return the units of a single column, checked."""
    return Units.of(finite(values, name, 1)[None, :], clusters)


def blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Cut so many rows into pieces (start, stop) of bounded size."""
    step = max(1, BLOCK_CELLS // max(1, columns))
    return ((start, min(start + step, rows)) for start in range(0, rows, step))


def skew(moves: Floats) -> Floats:
    """Return sum(u^3) / (6 sum(u^2)^1.5) of each row, 0 for a row of zeros."""
    # Cubes of small numbers underflow; the ratio does not depend on the scale.
    scale = np.abs(moves).max(axis=1, keepdims=True)
    unit = np.divide(moves, scale, out=np.zeros_like(moves), where=scale > 0)
    squares = np.square(unit).sum(axis=1)
    return ratio((unit * unit * unit).sum(axis=1), 6.0 * squares * np.sqrt(squares))


def ratio(value: npt.ArrayLike, spread: npt.ArrayLike) -> Floats:
    """Return value / spread: infinite where nothing spreads, but 0 where nothing differs either."""
    above, below = np.asarray(value, dtype=np.float64), np.asarray(spread, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0.0) & (below == 0.0), 0.0, above / below)


def subtract(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return (k, n) differences, rounding errors as zeros, and the (k,) size of the numbers."""
    first, second = np.atleast_2d(a), np.atleast_2d(b)
    size = np.maximum(np.abs(first), np.abs(second))
    rows = first - second
    # 0.1 + 0.2 and 0.3 are the same score: neither a win, nor a rank, nor a sign to flip.
    rows[np.abs(rows) <= ROUNDING * size] = 0.0
    return rows, size.max(axis=1)


def gap(a: Units, b: Units) -> float:
    """Return the difference of two means; 0 when neither side varies and only rounding differs."""
    first, second = float(a.centre[0]), float(b.centre[0])
    still = not (a.totals.any() or b.totals.any())
    same = abs(first - second) <= ROUNDING * max(abs(first), abs(second))
    return 0.0 if still and same else first - second


def welch(a: Units, b: Units) -> tuple[Floats, Floats]:
    """Return the standard errors of k differences of means, and their degrees of freedom.

    With a single value on a side they are NaN and 0.
    """
    if min(a.n, b.n) == 1:
        return np.full(len(a.centre), np.nan), np.zeros(len(a.centre))
    first, second = a.standard_error**2, b.standard_error**2
    error = np.sqrt(first + second)
    # As shares of the whole, so that small variances do not underflow when squared.
    whole = np.where(error > 0.0, first + second, 1.0)
    sums = (first / whole) ** 2 / (a.n - 1) + (second / whole) ** 2 / (b.n - 1)
    return error, np.divide(1.0, sums, out=np.ones_like(sums), where=error > 0.0)
