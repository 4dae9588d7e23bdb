"""Means and differences of means, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.checks import Floats, choice, finite, pair, share, whole
from farfield.stats.units import Units, sample, skew, subtract, welch

METHODS = ("bca", "percentile", "t")
"""How an interval is made; the first is the default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A mean, or a difference of means, with its interval.

    ``low`` and ``high`` bound the interval of confidence ``level``; they are NaN when there is
    only one value (or one cluster), since one value says nothing about its own spread. ``n`` is
    the number of values, and ``method`` names how the interval was made.
    """

    value: float
    low: float
    high: float
    n: int
    level: float
    method: str


def mean(
    values: npt.ArrayLike,
    *,
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    seed: int = 0,
    clusters: npt.ArrayLike | None = None,
) -> Estimate:
    """Return the mean of ``values`` with its interval.

    Args:
        values: one finite number per query.
        level: the confidence of the interval.
        method: ``"bca"`` (bootstrap, corrected for bias and skewness; the default),
            ``"percentile"`` (the plain bootstrap) or ``"t"`` (Student's t).
        resamples: how many resamples the bootstrap draws.
        seed: the seed of the resamples.
        clusters: one label per value; whole clusters are resampled.

    Values that are all equal give ``low == high == value``; a single value, or a single cluster,
    gives an interval of NaN. No bootstrap can see what the sample does not hold: below some 20
    queries every method's interval is too narrow for a skewed measure.
    """
    intervals = Intervals(level, method, resamples, seed)
    return intervals.estimates(sample(values, "values", clusters))[0]


def means(
    matrix: npt.ArrayLike,
    *,
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    seed: int = 0,
    clusters: npt.ArrayLike | None = None,
) -> list[Estimate]:
    """Return the mean of every column of ``matrix`` (queries x columns) with its interval.

    All columns share the same resamples. The options are those of ``mean``.
    """
    intervals = Intervals(level, method, resamples, seed)
    rows = np.ascontiguousarray(finite(matrix, "matrix", 2).T)
    return intervals.estimates(Units.of(rows, clusters))


def difference(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    paired: bool,
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    seed: int = 0,
    clusters: npt.ArrayLike | None = None,
) -> Estimate:
    """Return ``mean(a) - mean(b)`` with its interval.

    With ``paired`` the two are values of the same queries in the same order, and the interval is
    that of the mean difference. Without it they are two independent samples: both are resampled,
    each on its own, and ``"t"`` is Welch's. ``n`` counts the pairs, or else all values.
    ``clusters`` applies to pairs only. The other options are those of ``mean``.
    """
    intervals = Intervals(level, method, resamples, seed)
    if paired:
        rows, scale = subtract(*pair(a, b))
        return intervals.estimates(Units.of(rows, clusters, scale))[0]
    if clusters is not None:
        raise InputError(
            "clusters were given for unpaired samples, where they have no meaning yet. Leave them "
            "out, or compare the same queries with paired=True."
        )
    return intervals.unpaired(sample(a, "a"), sample(b, "b"))[0]


def differences(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    seed: int = 0,
) -> list[Estimate]:
    """Return ``mean(a) - mean(b)`` of every column, for two sets of different queries.

    ``a`` and ``b`` have a row per query and the same columns; each set is resampled on its own,
    and all columns share the resamples. The options are those of ``mean``. Where both have the same
    queries, ``means(a - b)`` is what is wanted.
    """
    intervals = Intervals(level, method, resamples, seed)
    sides = [np.ascontiguousarray(finite(x, name, 2).T) for x, name in ((a, "a"), (b, "b"))]
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"a has {len(sides[0])} columns and b has {len(sides[1])}, where the same columns are "
            "expected. Give the same systems in the same order."
        )
    return intervals.unpaired(*(Units.of(rows) for rows in sides))


@dataclass(frozen=True, slots=True)
class Intervals:
    """How intervals are made: the options that all of them take, checked, and what they do."""

    level: float
    method: str
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        share("level", self.level)
        choice("method", self.method, METHODS)
        whole("resamples", self.resamples, 1)
        whole("seed", self.seed, 0)

    def estimates(self, units: Units) -> list[Estimate]:
        """Return the k means with their intervals."""
        rows = zip(units.centre.tolist(), *(x.tolist() for x in self.of(units)), strict=True)
        return [self._estimate(value, low, high, units.n) for value, low, high in rows]

    def of(self, units: Units) -> tuple[Floats, Floats]:
        """Return the lower and the upper bounds of the k means."""
        if units.count == 1:
            nothing = np.full(len(units.centre), np.nan)
            return nothing, nothing
        if self.method == "t":
            low, high = self._t_bounds(units.standard_error, units.count - 1)
        else:
            drawn = units.resampled(self.resamples, np.random.default_rng(self.seed))
            low, high = self.bootstrap_bounds(drawn, units.acceleration())
        return units.centre + low, units.centre + high

    def unpaired(self, a: Units, b: Units) -> list[Estimate]:
        """Return the differences of the k means of two independent samples, with intervals."""
        if min(a.n, b.n) == 1:
            low = high = np.full(len(a.centre), np.nan)
        elif self.method == "t":
            low, high = self._t_bounds(*welch(a, b))
        else:
            rng = np.random.default_rng(self.seed)
            drawn = a.resampled(self.resamples, rng) - b.resampled(self.resamples, rng)
            # Every value moves the difference by its share of its own side.
            moves = np.concatenate([a.totals / a.n, -b.totals / b.n], axis=1)
            low, high = self.bootstrap_bounds(drawn, skew(moves))
        value = a.centre - b.centre
        rows = zip(value.tolist(), (value + low).tolist(), (value + high).tolist(), strict=True)
        return [self._estimate(*row, a.n + b.n) for row in rows]

    def _estimate(self, value: float, low: float, high: float, n: int) -> Estimate:
        level = float(self.level)
        return Estimate(value=value, low=low, high=high, n=n, level=level, method=self.method)

    def _t_bounds(self, error: Floats, df: Floats | float) -> tuple[Floats, Floats]:
        from scipy.special import stdtrit

        margin: Floats = stdtrit(df, 0.5 + self.level / 2.0) * error
        return -margin, margin

    def bootstrap_bounds(self, drawn: Floats, acceleration: Floats) -> tuple[Floats, Floats]:
        """Return the bounds, relative to the estimate, from (resamples, k) drawn deviations."""
        tail = (1.0 - self.level) / 2.0
        ordered = np.sort(drawn, axis=0)
        if self.method == "percentile":
            return _quantiles(ordered, tail), _quantiles(ordered, 1.0 - tail)
        # A resampled mean that equals the observed one is neither below nor above it: half each.
        # Equal on paper is not equal in floating point, hence the margin.
        resamples = len(drawn)
        margin = 1e-9 * (ordered[-1] - ordered[0])
        below = np.count_nonzero(drawn < -margin, axis=0)
        not_above = np.count_nonzero(drawn <= margin, axis=0)
        below_share = (below + not_above) / (2.0 * resamples)
        # With few resamples all may fall on one side; the correction stays finite.
        below_share = np.clip(below_share, 0.5 / resamples, 1.0 - 0.5 / resamples)
        # Importing scipy for these few numbers takes longer than all the resamples.
        normal = NormalDist()
        bias = np.array([normal.inv_cdf(x) for x in below_share.tolist()])

        def bound(z: float) -> Floats:
            shifted = bias + z
            # Past the pole of the correction the bound is the outermost resample.
            room = np.maximum(1.0 - acceleration * shifted, 1e-300)
            moved = bias + shifted / room
            return _quantiles(ordered, np.array([normal.cdf(x) for x in moved.tolist()]))

        z = -normal.inv_cdf(tail)
        return bound(-z), bound(z)


def _quantiles(ordered: Floats, shares: Floats | float) -> Floats:
    """Return one quantile of each sorted column, at its own share or at a common one."""
    place = np.asarray(shares) * (len(ordered) - 1)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, len(ordered) - 1)
    columns = np.arange(ordered.shape[1])
    lower, upper = ordered[below, columns], ordered[above, columns]
    result: Floats = lower + (place - below) * (upper - lower)
    return result
