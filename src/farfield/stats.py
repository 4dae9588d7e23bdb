"""Means, intervals, tests and corrections: the only place in farfield that averages.

A mean over queries is a guess about queries nobody has seen, so nothing here returns a mean
without the means to say how sure it is. Three layers:

- one row of values per thing measured: ``mean``, ``means``, ``difference``, ``rank_intervals``;
- tests and what goes with them: ``paired_test``, ``two_sample_test``, ``adjust``,
  ``effect_size``, ``detectable_difference``;
- tables of per-query values: ``summarise``, ``contrasts``.

Two conventions hold throughout.

*Seeds.* Whatever draws random numbers takes a ``seed``; the same input and seed give the same
numbers on the same release of numpy. Resamples are drawn once and shared by all columns, so
systems are compared on the same draws.

*Clusters.* When several queries belong to one item (rewrites of one question, turns of one
conversation) they are not independent, and an interval that pretends they are is too narrow.
``clusters`` takes one label per query; whole clusters are then drawn, and the mean is the ratio
of their sums. The mean itself does not change.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, islice
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError, TableError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "CORRECTIONS",
    "METHODS",
    "PAIRED_TESTS",
    "TWO_SAMPLE_TESTS",
    "Estimate",
    "HasFrame",
    "RankInterval",
    "Test",
    "adjust",
    "contrasts",
    "detectable_difference",
    "difference",
    "effect_size",
    "mean",
    "means",
    "paired_test",
    "rank_intervals",
    "summarise",
    "two_sample_test",
]

METHODS = ("bca", "percentile", "t")
"""How an interval is made; the first is the default."""
PAIRED_TESTS = ("t", "wilcoxon", "randomisation")
"""The tests of ``paired_test`` and ``contrasts``; the first is the default."""
TWO_SAMPLE_TESTS = ("welch", "permutation")
"""The tests of ``two_sample_test``; the first is the default."""
CORRECTIONS = ("holm", "bonferroni", "bh", "none")
"""The corrections of ``adjust``; the first is the default."""

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.intp]

# Cells of one block of resamples: two megabytes of indices stay near the core, and take half the
# time that all resamples at once would; with more queries than this a block is one resample.
_BLOCK_CELLS = 2**18
# Differences this small, relative to the values they are between, are rounding and not results.
_ROUNDING = 1e-12
# So few differences have all their signed ranks enumerated, 8,192 at most.
_FEW = 13
# Two per-query values closer than this are a tie when wins are counted.
_TIE = 1e-9
_EPSILON = float(np.finfo(np.float64).eps)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Test:
    """The outcome of a two-sided test: its statistic, its p-value, its name and ``n`` values."""

    # Keeps pytest from collecting the class in a test module that imports it.
    __test__: ClassVar[bool] = False

    statistic: float
    p: float
    method: str
    n: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RankInterval:
    """The rank of a system, 1 for the best, with the ranks that resampling makes plausible."""

    rank: int
    low: int
    high: int


class HasFrame(Protocol):
    """A table that holds its rows in ``frame``."""

    @property
    def frame(self) -> pl.DataFrame:
        """The rows: query_id, system, measure, value."""
        ...


# --- Input -------------------------------------------------------------------------------------


def _finite(values: npt.ArrayLike, name: str, ndim: int) -> Floats:
    """Return ``values`` as finite numbers of the right shape, or say what is wrong with them."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} cannot be read as numbers ({error}). Give one number per query."
        ) from None
    if array.ndim != ndim:
        hint = (
            "Give one number per query; for several columns use means()."
            if ndim == 1
            else "Give one row per query and one column per system; for one column use mean()."
        )
        raise InputError(f"{name} has {array.ndim} dimension(s), where {ndim} is expected. {hint}")
    if array.size == 0:
        raise InputError(
            f"{name} is empty, and a mean of nothing does not exist. Give at least one value."
        )
    finite = np.isfinite(array)
    if not finite.all():
        place = np.unravel_index(int(np.argmin(finite)), array.shape)
        at = ", ".join(str(int(i)) for i in place)
        raise InputError(
            f"{name}[{at}] is {array[place]}, where a finite number is expected. Score the query "
            "or leave it out of every system; a missing value is never averaged over."
        )
    return array


def _pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Floats]:
    first, second = _finite(a, "a", 1), _finite(b, "b", 1)
    if len(first) != len(second):
        raise InputError(
            f"a has {len(first)} values and b has {len(second)}, where pairs are expected. Give "
            "both in the same order of the same queries, or compare them as unpaired samples."
        )
    return first, second


def _share(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise InputError(
            f"{name} is {value!r}, where a number strictly between 0 and 1 is expected. "
            "Write 95 % as 0.95."
        )
    return float(value)


def _whole(name: str, value: int, least: int) -> int:
    """Return a whole number no smaller than ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(
            f"{name} is {value!r}, where a whole number of at least {least} is expected. "
            f"Give {name}={least} or more."
        )
    return number


def _choice(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise InputError(
            f"{name} is {value!r}, which names nothing known. Choose one of "
            f"{', '.join(known)}.{did_you_mean(str(value), known)}"
        )
    return value


def _options(level: float, method: str, resamples: int, seed: int) -> None:
    _share("level", level)
    _choice("method", method, METHODS)
    _whole("resamples", resamples, 1)
    _whole("seed", seed, 0)


def _cluster_codes(clusters: npt.ArrayLike, n: int) -> Integers:
    """Number the clusters in the order in which they first appear.

    That order, and not the order of the labels, decides which cluster a draw stands for, so that
    clusters of one query each give the very interval that no clusters give.
    """
    labels: npt.NDArray[Any] = np.asarray(clusters)
    if labels.shape != (n,):
        raise InputError(
            f"clusters has shape {labels.shape}, where one label for each of the {n} values is "
            "expected. Give the label of every query, in the order of the values."
        )
    # Of all labels only NaN differs from itself.
    missing = np.flatnonzero((labels == np.array(None)) | np.not_equal(labels, labels))
    if len(missing):
        raise InputError(
            f"clusters[{missing[0]}] is missing, where a label is expected. Give a query that "
            "belongs to no cluster a label of its own."
        )
    if labels.dtype == object:
        known: dict[Any, int] = {}
        return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.intp)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), dtype=np.intp)
    numbers[np.argsort(first)] = np.arange(len(first))
    return numbers[inverse]


# --- Resampling --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Units:
    """What is drawn: queries or clusters of them, for k columns that share the same queries.

    Everything is held as deviations from the mean. An interval of ``x + 1000`` is then that of
    ``x`` moved, without the digits that summing around 1000 would cost.
    """

    centre: Floats  # (k,) the means
    totals: Floats  # (k, units) the sum, per unit, of the deviations from the mean
    sizes: Floats | None  # (units,) queries per unit; None when each is one query
    n: int  # queries
    flat: Bools  # (k,) the totals are all zero, but for rounding

    @property
    def count(self) -> int:
        return int(self.totals.shape[1])

    @property
    def standard_error(self) -> Floats:
        """The standard error of each mean; NaN for a single unit."""
        if self.count == 1:
            return np.full(len(self.centre), np.nan)
        squares = np.square(self.totals).sum(axis=1)
        error: Floats = np.sqrt(squares * self.count / (self.count - 1)) / self.n
        error[self.flat] = 0.0
        return error

    def resampled(self, resamples: int, rng: np.random.Generator) -> Floats:
        """Return (resamples, k) deviations of the resampled means from the observed ones.

        A resample is a row of counts, how often each unit was drawn, so that one product with
        the totals serves every column. Most of the time goes into the random numbers.
        """
        units = self.count
        result = np.empty((resamples, len(self.centre)))
        for start, stop in _blocks(resamples, units):
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
        sizes = 1.0 if self.sizes is None else self.sizes
        # Leaving out a unit moves the mean by -total / (queries that remain).
        moves = self.totals / (self.n - sizes)
        return _skew(moves - moves.mean(axis=1, keepdims=True))


def _blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    step = max(1, _BLOCK_CELLS // columns)
    return ((start, min(start + step, rows)) for start in range(0, rows, step))


def _skew(moves: Floats) -> Floats:
    """Return sum(u^3) / (6 sum(u^2)^1.5) of each row, 0 for a row of zeros."""
    # Cubes of small numbers underflow; the ratio does not depend on the scale.
    scale = np.abs(moves).max(axis=1, keepdims=True)
    unit = np.divide(moves, scale, out=np.zeros_like(moves), where=scale > 0)
    squares = np.square(unit).sum(axis=1)
    cubes = (unit * unit * unit).sum(axis=1)
    result: Floats = np.zeros(len(moves))
    np.divide(cubes, 6.0 * squares * np.sqrt(squares), out=result, where=squares > 0)
    return result


def _units(rows: Floats, clusters: npt.ArrayLike | None, scale: Floats | None = None) -> _Units:
    """Prepare (k, n) values for resampling; ``scale`` is the size of the numbers behind them."""
    n = rows.shape[1]
    lowest, highest = rows.min(axis=1), rows.max(axis=1)
    # The mean of ten times 0.1 is 0.1, which plain summation misses by a digit.
    centre = np.clip(rows.mean(axis=1), lowest, highest)
    totals = rows - centre[:, None]
    if scale is None:
        scale = np.maximum(np.abs(lowest), np.abs(highest))
    noise = 8 * _EPSILON * scale
    sizes = None
    if clusters is not None:
        codes = _cluster_codes(clusters, n)
        sizes = np.bincount(codes).astype(np.float64)
        totals = np.array([np.bincount(codes, weights=row) for row in totals])
        noise = noise * sizes.max()
    flat = np.abs(totals).max(axis=1) <= noise
    return _Units(centre=centre, totals=totals, sizes=sizes, n=n, flat=flat)


def _quantiles(ordered: Floats, shares: Floats) -> Floats:
    """Return one quantile of each sorted column, each at its own share (linear in between)."""
    place = shares * (len(ordered) - 1)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, len(ordered) - 1)
    columns = np.arange(ordered.shape[1])
    lower, upper = ordered[below, columns], ordered[above, columns]
    result: Floats = lower + (place - below) * (upper - lower)
    return result


def _bootstrap_bounds(
    drawn: Floats, acceleration: Floats, level: float, method: str
) -> tuple[Floats, Floats]:
    """Return the bounds, relative to the estimate, from (resamples, k) resampled deviations."""
    resamples, k = drawn.shape
    tail = (1.0 - level) / 2.0
    ordered = np.sort(drawn, axis=0)
    if method == "percentile":
        return _quantiles(ordered, np.full(k, tail)), _quantiles(ordered, np.full(k, 1.0 - tail))
    # A resampled mean that equals the observed one is neither below nor above it: half each.
    # Equal on paper is not equal in floating point, hence the margin.
    margin = 1e-9 * (ordered[-1] - ordered[0])
    below = np.count_nonzero(drawn < -margin, axis=0)
    not_above = np.count_nonzero(drawn <= margin, axis=0)
    share = (below + not_above) / (2.0 * resamples)
    # With few resamples all may fall on one side; the correction stays finite.
    share = np.clip(share, 0.5 / resamples, 1.0 - 0.5 / resamples)
    # Importing scipy for these few numbers takes longer than all the resamples.
    normal = NormalDist()
    bias = np.array([normal.inv_cdf(x) for x in share.tolist()])

    def bound(z: float) -> Floats:
        shifted = bias + z
        room = 1.0 - acceleration * shifted
        # Past the pole of the correction the bound is the outermost resample.
        inside = room > 0.0
        moved = bias + shifted / np.where(inside, room, 1.0)
        moved = np.where(inside, moved, np.copysign(np.inf, shifted))
        return _quantiles(ordered, np.array([normal.cdf(x) for x in moved.tolist()]))

    z = -normal.inv_cdf(tail)
    return bound(-z), bound(z)


def _t_margin(error: Floats, df: float | Floats, level: float) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(df, 0.5 + level / 2.0) * error, dtype=np.float64)


def _intervals(
    units: _Units, *, level: float, method: str, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the lower and the upper bounds of the k means."""
    if units.count == 1:
        nothing = np.full(len(units.centre), np.nan)
        return nothing, nothing
    if method == "t":
        margin = _t_margin(units.standard_error, units.count - 1, level)
        low, high = -margin, margin
    else:
        drawn = units.resampled(resamples, np.random.default_rng(seed))
        low, high = _bootstrap_bounds(drawn, units.acceleration(), level, method)
        low[units.flat] = high[units.flat] = 0.0
    return units.centre + low, units.centre + high


# --- Means -------------------------------------------------------------------------------------


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
    _options(level, method, resamples, seed)
    rows = _finite(values, "values", 1)[None, :]
    return _estimates(rows, level, method, resamples, seed, clusters)[0]


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
    _options(level, method, resamples, seed)
    rows = np.ascontiguousarray(_finite(matrix, "matrix", 2).T)
    return _estimates(rows, level, method, resamples, seed, clusters)


def _estimates(
    rows: Floats,
    level: float,
    method: str,
    resamples: int,
    seed: int,
    clusters: npt.ArrayLike | None,
    scale: Floats | None = None,
) -> list[Estimate]:
    units = _units(rows, clusters, scale)
    low, high = _intervals(units, level=level, method=method, resamples=resamples, seed=seed)
    bounds = zip(units.centre.tolist(), low.tolist(), high.tolist(), strict=True)
    return [
        Estimate(value=v, low=lo, high=hi, n=units.n, level=float(level), method=method)
        for v, lo, hi in bounds
    ]


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
    _options(level, method, resamples, seed)
    if paired:
        rows, scale = _differences(*_pair(a, b))
        return _estimates(rows, level, method, resamples, seed, clusters, scale)[0]
    if clusters is not None:
        raise InputError(
            "clusters were given for unpaired samples, where they have no meaning yet. Leave them "
            "out, or compare the same queries with paired=True."
        )
    sides = [_units(_finite(x, name, 1)[None, :], None) for x, name in ((a, "a"), (b, "b"))]
    value = float(sides[0].centre[0] - sides[1].centre[0])
    low, high = _unpaired_bounds(sides[0], sides[1], level, method, resamples, seed)
    return Estimate(
        value=value,
        low=value + low,
        high=value + high,
        n=sides[0].n + sides[1].n,
        level=float(level),
        method=method,
    )


def _unpaired_bounds(
    a: _Units, b: _Units, level: float, method: str, resamples: int, seed: int
) -> tuple[float, float]:
    if min(a.n, b.n) == 1:
        return math.nan, math.nan
    if a.flat[0] and b.flat[0]:
        return 0.0, 0.0
    if method == "t":
        error, df = _welch(a, b)
        margin = float(_t_margin(np.array([error]), df, level)[0])
        return -margin, margin
    rng = np.random.default_rng(seed)
    drawn = a.resampled(resamples, rng) - b.resampled(resamples, rng)
    # Every value moves the difference by its share of its own side.
    moves = np.concatenate([a.totals[0] / a.n, -b.totals[0] / b.n])
    low, high = _bootstrap_bounds(drawn, _skew(moves[None, :]), level, method)
    return float(low[0]), float(high[0])


def _welch(a: _Units, b: _Units) -> tuple[float, float]:
    """Return the standard error of the difference, and its degrees of freedom (1 if it is 0)."""
    first, second = (float(side.standard_error[0]) ** 2 for side in (a, b))
    error = math.sqrt(first + second)
    if error == 0.0:
        return 0.0, 1.0
    # As shares of the whole, so that small variances do not underflow when squared.
    first, second = first / (first + second), second / (first + second)
    return error, 1.0 / (first**2 / (a.n - 1) + second**2 / (b.n - 1))


def rank_intervals(
    matrix: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    higher_is_better: bool = True,
    clusters: npt.ArrayLike | None = None,
) -> list[RankInterval]:
    """Return the rank of every system, a column of ``matrix``, by its mean over the queries.

    The queries are resampled, and the systems ranked anew on each resample. Systems that tie
    share the better rank as their ``rank``; in the interval a tie counts for all the ranks it
    spans, so two systems with equal values get ``1, low=1, high=2`` each. The interval holds the
    observed rank always: the luckiest of many equal systems may come first on the data and on
    few resamples. With one query (or one cluster) nothing is known, and all ranks are plausible.
    """
    _options(level, METHODS[0], resamples, seed)
    rows = np.ascontiguousarray(_finite(matrix, "matrix", 2).T)
    units = _units(rows if higher_is_better else -rows, clusters)
    systems = len(units.centre)
    margin = _ROUNDING * float(np.abs(rows).max())
    best, worst = _rank_spans(units.centre[None, :], margin)
    if units.count == 1:
        low, high = np.ones(systems), np.full(systems, systems)
    else:
        drawn = units.centre + units.resampled(resamples, np.random.default_rng(seed))
        tail = (1.0 - level) / 2.0
        drawn_best, drawn_worst = _rank_spans(drawn, margin)
        low = np.quantile(drawn_best, tail, axis=0, method="lower")
        high = np.quantile(drawn_worst, 1.0 - tail, axis=0, method="higher")
    return [
        RankInterval(
            rank=int(best[0, i]),
            low=int(min(low[i], best[0, i])),
            high=int(max(high[i], worst[0, i])),
        )
        for i in range(systems)
    ]


def _rank_spans(values: Floats, margin: float) -> tuple[Integers, Integers]:
    """Return the best and the worst rank of each column within each row; they differ by ties."""
    best = np.empty(values.shape, dtype=np.intp)
    worst = np.empty(values.shape, dtype=np.intp)
    for i in range(values.shape[1]):
        own = values[:, i : i + 1]
        best[:, i] = 1 + np.count_nonzero(values > own + margin, axis=1)
        worst[:, i] = np.count_nonzero(values >= own - margin, axis=1)
    return best, worst


# --- Tests -------------------------------------------------------------------------------------


def paired_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    test: str = "t",
    resamples: int = 10_000,
    seed: int = 0,
    clusters: npt.ArrayLike | None = None,
) -> Test:
    """Test whether ``a`` and ``b``, values of the same queries, differ. Two-sided.

    Args:
        a: one finite number per query.
        b: as many, in the same order.
        test: ``"t"`` (the default; the statistic is t), ``"wilcoxon"`` (signed ranks, zero
            differences dropped; the statistic is the smaller rank sum) or ``"randomisation"``
            (the signs of the differences are flipped; the statistic is the mean difference).
        resamples: how many flips the randomisation test draws. When all flips of the differences
            that are not zero are no more than this, they are enumerated and p is exact; else p
            is (1 + flips at least as extreme) / (1 + resamples), and never 0.
        seed: the seed of the flips.
        clusters: one label per query. The t test then uses the standard error between clusters,
            and the randomisation test flips whole clusters; the Wilcoxon test has no such form.

    When all differences are zero, p is 1. When they are all equal and not zero, the t test
    answers t = inf and p = 0 even for two queries: with so few, ask for the randomisation test.
    One pair (or cluster) makes no t test: the statistic is NaN, and p is 1.
    """
    _choice("test", test, PAIRED_TESTS)
    _whole("resamples", resamples, 1)
    _whole("seed", seed, 0)
    rows, scale = _differences(*_pair(a, b))
    units = _units(rows, clusters, scale)
    statistic, p = _paired(rows, scale, units, test, resamples, seed)
    return Test(statistic=float(statistic[0]), p=float(p[0]), method=test, n=units.n)


def _differences(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return (k, n) differences, rounding errors as zeros, and the (k,) size of the numbers."""
    first, second = np.atleast_2d(a), np.atleast_2d(b)
    size = np.maximum(np.abs(first), np.abs(second))
    rows = first - second
    # 0.1 + 0.2 and 0.3 are the same score: neither a win, nor a rank, nor a sign to flip.
    rows[np.abs(rows) <= _ROUNDING * size] = 0.0
    return rows, size.max(axis=1)


def _paired(
    rows: Floats, scale: Floats, units: _Units, test: str, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the statistics and the p-values of k rows of differences."""
    if test == "t":
        return _t_test(units.centre, units.standard_error, units.count - 1)
    if test == "wilcoxon":
        if units.sizes is not None:
            raise InputError(
                "clusters were given for the Wilcoxon test, which has no form that respects "
                "them. Choose test='t' or test='randomisation', or leave the clusters out."
            )
        outcomes = [_wilcoxon(row, size) for row, size in zip(rows, scale, strict=True)]
        return np.array([o[0] for o in outcomes]), np.array([o[1] for o in outcomes])
    sums = rows
    if units.sizes is not None:
        sums = units.totals + units.centre[:, None] * units.sizes
        # What cancels within a cluster on paper leaves rounding behind.
        sums[np.abs(sums) <= _ROUNDING * scale[:, None] * units.sizes] = 0.0
    return units.centre, _sign_flips(sums, resamples, seed)


def _t_test(value: Floats, error: Floats, df: float) -> tuple[Floats, Floats]:
    from scipy.special import stdtr

    if df <= 0:
        return np.full(len(value), np.nan), np.ones(len(value))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where((value == 0.0) & (error == 0.0), 0.0, value / error)
    return statistic, np.asarray(2.0 * stdtr(df, -np.abs(statistic)), dtype=np.float64)


def _wilcoxon(row: Floats, scale: float) -> tuple[float, float]:
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last digit, and must share a rank.
    rounded = np.round(row / scale, 12) if scale > 0 else row
    kept = rounded[rounded != 0.0]
    if len(kept) == 0:
        return 0.0, 1.0
    from scipy import stats

    if len(kept) <= _FEW:
        # Exact with ties and without: the signs of the ranks are flipped. scipy comes to the same
        # p, by a general permutation test that takes a third of a second.
        ranks = np.copysign(stats.rankdata(np.abs(kept)), kept)
        smaller = min(float(ranks[ranks > 0].sum()), float(-ranks[ranks < 0].sum()))
        return smaller, float(_sign_flips(ranks[None, :], 2**_FEW, 0)[0])
    outcome = stats.wilcoxon(kept)
    return float(outcome.statistic), float(outcome.pvalue)


def _sign_flips(sums: Floats, resamples: int, seed: int) -> Floats:
    """Return the randomisation p-value of each of k rows of differences (or cluster sums).

    Adding up the terms whose sign stays, T, gives the flipped sum 2 T - sum; the signs are drawn
    once for all rows.
    """
    result = np.empty(len(sums))
    drawn = []
    for i, row in enumerate(sums):
        kept = row[row != 0.0]
        if len(kept) < 63 and 2 ** len(kept) <= resamples:
            patterns = 2 ** len(kept)
            powers = np.arange(len(kept))
            extreme = 0
            for start, stop in _blocks(patterns, max(1, len(kept))):
                stays = (np.arange(start, stop)[:, None] >> powers) & 1
                extreme += int(_extreme(stays.astype(np.float64), kept[None, :])[0])
            result[i] = extreme / patterns
        else:
            drawn.append(i)
    if drawn:
        rng = np.random.default_rng(seed)
        rows = sums[drawn]
        units = rows.shape[1]
        extremes = np.zeros(len(rows), dtype=np.intp)
        for start, stop in _blocks(resamples, units):
            octets = rng.integers(0, 256, size=(stop - start, -(-units // 8)), dtype=np.uint8)
            bits = np.unpackbits(octets, axis=1, count=units)
            extremes += _extreme(bits.astype(np.float64), rows)
        result[drawn] = (extremes + 1) / (resamples + 1)
    return result


def _extreme(stays: Floats, rows: Floats) -> Integers:
    """Count, for each row, the flips whose sum is at least as far from 0 as the observed one."""
    observed = rows.sum(axis=1)
    # The same sum in another order differs in the last digits, and must count as equal.
    margin = _ROUNDING * np.abs(rows).sum(axis=1)
    flipped = np.abs(2.0 * (stays @ rows.T) - observed)
    counts: Integers = np.count_nonzero(flipped >= np.abs(observed) - margin, axis=0)
    return counts


def two_sample_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    test: str = "welch",
    resamples: int = 10_000,
    seed: int = 0,
) -> Test:
    """Test whether two independent samples, say two sets of queries, differ in mean. Two-sided.

    Args:
        a: one finite number per query of the first sample.
        b: likewise of the second; the lengths may differ.
        test: ``"welch"`` (t with unequal variances; the default) or ``"permutation"`` (the
            values are dealt out anew; the statistic is ``mean(a) - mean(b)``).
        resamples: how many deals the permutation test draws. When there are no more than this
            they are enumerated, and p is exact; else p is (1 + deals at least as extreme) /
            (1 + resamples).
        seed: the seed of the deals.

    ``n`` counts all values. With a single value on a side there is no Welch test: the statistic
    is NaN, and p is 1.
    """
    _choice("test", test, TWO_SAMPLE_TESTS)
    _whole("resamples", resamples, 1)
    _whole("seed", seed, 0)
    first, second = _finite(a, "a", 1), _finite(b, "b", 1)
    n = len(first) + len(second)
    sides = _units(first[None, :], None), _units(second[None, :], None)
    value = sides[0].centre - sides[1].centre
    if test == "permutation":
        p = _permutations(first, second, resamples, seed)
        return Test(statistic=float(value[0]), p=p, method=test, n=n)
    if min(len(first), len(second)) == 1:
        return Test(statistic=math.nan, p=1.0, method=test, n=n)
    error, df = _welch(*sides)
    size = max(float(np.abs(first).max()), float(np.abs(second).max()))
    value = np.where(np.abs(value) <= _ROUNDING * size, 0.0, value) if error == 0.0 else value
    statistic, p_value = _t_test(value, np.array([error]), df)
    return Test(statistic=float(statistic[0]), p=float(p_value[0]), method=test, n=n)


def _permutations(a: Floats, b: Floats, resamples: int, seed: int) -> float:
    # The smaller side decides the other, and is cheaper to add up.
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    pooled = np.concatenate([small, large])
    pooled = pooled - pooled.mean()
    chosen, n = len(small), len(pooled)
    total = float(pooled.sum())

    def gap(sums: Floats) -> Floats:
        return np.abs(sums / chosen - (total - sums) / (n - chosen))

    margin = _ROUNDING * float(np.abs(pooled).sum()) / chosen
    least = float(gap(pooled[:chosen].sum(keepdims=True))[0]) - margin
    deals = math.comb(n, chosen)
    extreme = 0
    if deals <= resamples:
        every = combinations(range(n), chosen)
        for start, stop in _blocks(deals, chosen):
            some = chain.from_iterable(islice(every, stop - start))
            picked = np.fromiter(some, dtype=np.intp, count=(stop - start) * chosen)
            sums = pooled[picked.reshape(-1, chosen)].sum(axis=1)
            extreme += int(np.count_nonzero(gap(sums) >= least))
        return extreme / deals
    rng = np.random.default_rng(seed)
    for start, stop in _blocks(resamples, n):
        dealt = rng.permuted(np.broadcast_to(pooled, (stop - start, n)), axis=1)
        extreme += int(np.count_nonzero(gap(dealt[:, :chosen].sum(axis=1)) >= least))
    return (extreme + 1) / (resamples + 1)


def adjust(p_values: npt.ArrayLike, method: str = "holm") -> Floats:
    """Return the p-values corrected for being many, in the order given.

    ``"holm"`` (the default) and ``"bonferroni"`` bound the chance of a single false discovery
    in the family, and Holm is never worse; ``"bh"`` (Benjamini and Hochberg) bounds the share
    of false discoveries; ``"none"`` returns the p-values as they are. No p-values give none.
    """
    _choice("method", method, CORRECTIONS)
    if np.size(np.asarray(p_values)) == 0:
        return np.empty(0)
    p = _finite(p_values, "p_values", 1).copy()
    outside = (p < 0.0) | (p > 1.0)
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(
            f"p_values[{at}] is {p[at]}, where a number between 0 and 1 is expected. "
            "Give p-values, not statistics."
        )
    m = len(p)
    if method == "none":
        return p
    if method == "bonferroni":
        return np.minimum(p * m, 1.0)
    order = np.argsort(p, kind="stable")
    ascending = p[order]
    if method == "holm":
        steps = np.maximum.accumulate(ascending * np.arange(m, 0, -1))
    else:
        steps = np.minimum.accumulate((ascending * (m / np.arange(1, m + 1)))[::-1])[::-1]
    result = np.empty(m)
    result[order] = np.minimum(steps, 1.0)
    return result


# --- Sizes -------------------------------------------------------------------------------------


def effect_size(a: npt.ArrayLike, b: npt.ArrayLike, *, paired: bool = True) -> float:
    """Return how large the difference of ``a`` and ``b`` is, in standard deviations.

    Paired: Cohen's d_z, the mean difference over the standard deviation of the differences.
    Unpaired: Hedges' g, the difference of the means over the pooled standard deviation, with
    the exact correction for small samples.

    The sign is that of ``mean(a) - mean(b)``. No difference at all is 0; a difference that never
    varies is infinite, with its sign. NaN when the spread is unknown: one pair, or fewer than
    four unpaired values (the correction needs two degrees of freedom).
    """
    if paired:
        rows, scale = _differences(*_pair(a, b))
        return float(_d_z(_units(rows, None, scale))[0])
    first, second = (_units(_finite(x, name, 1)[None, :], None) for x, name in ((a, "a"), (b, "b")))
    df = first.n + second.n - 2
    if df < 2:
        return math.nan
    value = float(first.centre[0] - second.centre[0])
    if first.flat[0] and second.flat[0]:
        size = max(abs(float(first.centre[0])), abs(float(second.centre[0])))
        return 0.0 if abs(value) <= _ROUNDING * size else math.copysign(math.inf, value)
    squares = float(np.square(first.totals).sum() + np.square(second.totals).sum())
    correction = math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)
    return correction * value / math.sqrt(squares / df)


def _d_z(units: _Units) -> Floats:
    """Return the mean over the standard deviation between queries (``units`` are queries)."""
    if units.n == 1:
        return np.full(len(units.centre), np.nan)
    deviation = units.standard_error * math.sqrt(units.n)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = units.centre / deviation
    return np.where((units.centre == 0.0) & (deviation == 0.0), 0.0, ratio)


def detectable_difference(
    differences: npt.ArrayLike | None = None,
    *,
    sd: float | None = None,
    n: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> float:
    """Return the smallest true mean difference that a two-sided paired t test would find.

    Give the per-query ``differences``, or their standard deviation ``sd`` and number ``n`` when
    planning a collection. "Find" means p <= ``alpha`` with probability ``power``; the answer
    comes from the noncentral t distribution, and holds for few queries too. Differences that
    never vary give 0, and a single difference NaN.

    A difference smaller than this that is not significant says nothing: the queries were too
    few to tell.
    """
    _share("alpha", alpha)
    if _share("power", power) <= alpha:
        raise InputError(
            f"power is {power!r} and alpha {alpha!r}, where power above alpha is expected: a test "
            "finds that much where there is nothing to find. Ask for a power such as 0.8."
        )
    if differences is not None:
        if sd is not None or n is not None:
            raise InputError(
                "differences were given together with sd or n, where one or the other is "
                "expected. Leave out sd and n; both follow from the differences."
            )
        units = _units(_finite(differences, "differences", 1)[None, :], None)
        if units.n == 1:
            return math.nan
        error, count = float(units.standard_error[0]), units.n
    else:
        if sd is None or n is None:
            raise InputError(
                f"sd is {sd!r} and n is {n!r}, and no differences were given. Give the "
                "differences, or else both sd and n."
            )
        if not (math.isfinite(sd) and sd >= 0.0):
            raise InputError(
                f"sd is {sd!r}, where a finite number of at least 0 is expected. Give the "
                "standard deviation of the per-query differences."
            )
        count = _whole("n", n, 2)
        error = sd / math.sqrt(count)
    return _noncentrality(count - 1, power, alpha) * error


@lru_cache(maxsize=256)
def _noncentrality(df: int, power: float, alpha: float) -> float:
    """Return how many standard errors the mean must be from 0 for that power."""
    from scipy.special import nctdtr, stdtrit

    critical = float(stdtrit(df, 1.0 - alpha / 2.0))

    def found(shift: float) -> float:
        missed = nctdtr(df, shift, critical) - nctdtr(df, shift, -critical)
        return 1.0 - float(missed)

    low, high = 0.0, 1.0
    while found(high) < power:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if found(middle) < power else (low, middle)
    return high


# --- Tables ------------------------------------------------------------------------------------

_COLUMNS = ("query_id", "system", "measure", "value")
_TABLE = "per-query table"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pivot:
    """A per-query table as one array; systems and measures as they appear, queries sorted.

    Sorting the queries makes every number independent of the order of the rows.
    """

    systems: list[str]
    measures: list[str]
    queries: npt.NDArray[np.object_]
    values: Floats  # (systems, measures, queries), 0 where there is none
    present: Bools  # the same shape


def _frame(per_query: pl.DataFrame | HasFrame) -> pl.DataFrame:
    import polars as pl

    frame = per_query if isinstance(per_query, pl.DataFrame) else getattr(per_query, "frame", None)
    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"the per-query values are a {type(per_query).__name__}, where a polars DataFrame or "
            "a table of farfield is expected. Collect a LazyFrame first."
        )
    for column in _COLUMNS:
        if column not in frame.columns:
            raise TableError(
                f"there is no column {column!r} among {', '.join(frame.columns) or 'none'}; "
                f"{', '.join(_COLUMNS)} are expected. Rename the columns."
                f"{did_you_mean(column, frame.columns)}",
                table=_TABLE,
            )
    if frame.height == 0:
        raise TableError(
            "there are no rows, and a mean of nothing does not exist. Give at least one row.",
            table=_TABLE,
        )
    return frame


def _pivot(per_query: pl.DataFrame | HasFrame) -> _Pivot:
    frame = _frame(per_query)
    values = _values(frame)
    systems, system_codes = _codes(frame, "system", ordered=False)
    measures, measure_codes = _codes(frame, "measure", ordered=False)
    queries, query_codes = _codes(frame, "query_id", ordered=True)
    shape = len(systems), len(measures), len(queries)
    cells = np.ravel_multi_index((system_codes, measure_codes, query_codes), shape)
    table, present = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    table.ravel()[cells] = values
    present.ravel()[cells] = True
    if np.count_nonzero(present) != len(cells):
        seen: dict[int, int] = {}
        for row, cell in enumerate(cells.tolist()):
            first = seen.setdefault(cell, row)
            if first != row:
                raise TableError(
                    f"a second value for {_cell(frame, row)}, where one is expected. Remove one "
                    "of the two rows.",
                    row=row,
                    first_row=first,
                    table=_TABLE,
                )
    return _Pivot(
        systems=systems.tolist(),
        measures=measures.tolist(),
        queries=queries,
        values=table,
        present=present,
    )


def _values(frame: pl.DataFrame) -> Floats:
    import polars as pl

    column = frame.get_column("value")
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise TableError(
            f"the column 'value' holds {column.dtype}, where numbers are expected. Cast it.",
            table=_TABLE,
        )
    values: Floats = column.cast(pl.Float64).fill_null(math.nan).to_numpy()
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise TableError(
            f"the value of {_cell(frame, row)} is {column[row]}, where a finite number is "
            "expected. Score the query or leave it out of every system.",
            row=row,
            table=_TABLE,
        )
    return values


def _cell(frame: pl.DataFrame, row: int) -> str:
    query, system, measure = (frame.get_column(name)[row] for name in _COLUMNS[:3])
    return f"query {query!r}, system {system!r}, measure {measure!r}"


def _codes(
    frame: pl.DataFrame, name: str, *, ordered: bool
) -> tuple[npt.NDArray[np.object_], Integers]:
    """Return the distinct labels of a column, and the number of the label of every row."""
    import polars as pl

    column = frame.get_column(name).cast(pl.String)
    if column.null_count():
        raise TableError(
            f"{name} is missing, where a name is expected. Name it or remove the row.",
            row=column.is_null().arg_max(),
            table=_TABLE,
        )
    labels = column.unique().sort() if ordered else column.unique(maintain_order=True)
    # An Enum is a dictionary encoding in an order of our choosing.
    codes = column.cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.intp)
    return np.array(labels.to_list(), dtype=object), codes


def _query_labels(
    clusters: Mapping[str, object] | None, queries: Iterable[str]
) -> npt.NDArray[np.object_] | None:
    if clusters is None:
        return None
    names = list(queries)
    labels = np.empty(len(names), dtype=object)
    for i, query in enumerate(names):
        if query not in clusters:
            raise InputError(
                f"clusters has no label for query {query!r}, where one for every query is "
                "expected. Give a query that belongs to no cluster a label of its own."
            )
        labels[i] = clusters[query]
    return labels


def _by_queries(masks: Mapping[tuple[int, int], Bools]) -> list[list[tuple[int, int]]]:
    """Group cells that have the very same queries; each group shares its resamples."""
    groups: dict[bytes, list[tuple[int, int]]] = {}
    for cell, mask in masks.items():
        groups.setdefault(np.packbits(mask).tobytes(), []).append(cell)
    return list(groups.values())


def summarise(
    per_query: pl.DataFrame | HasFrame,
    *,
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    seed: int = 0,
    clusters: Mapping[str, object] | None = None,
) -> pl.DataFrame:
    """Return the mean of every system and measure: system, measure, mean, low, high, n.

    Args:
        per_query: a table of query_id, system, measure and value, one row each.
        level: the confidence of the intervals.
        method: as in ``mean``.
        resamples: as in ``mean``.
        seed: as in ``mean``.
        clusters: the label of every query, by its query_id.

    Systems, and within them measures, keep the order of their first appearance. Each mean is
    over the queries its own system has; those with the same queries share their resamples. The
    order of the rows changes no number.
    """
    import polars as pl

    _options(level, method, resamples, seed)
    table = _pivot(per_query)
    cells = [
        (s, m)
        for s in range(len(table.systems))
        for m in range(len(table.measures))
        if table.present[s, m].any()
    ]
    found: dict[tuple[int, int], tuple[float, float, float, int]] = {}
    for group in _by_queries({cell: table.present[cell] for cell in cells}):
        mask = table.present[group[0]]
        units = _units(
            np.array([table.values[cell][mask] for cell in group]),
            _query_labels(clusters, table.queries[mask]),
        )
        low, high = _intervals(units, level=level, method=method, resamples=resamples, seed=seed)
        for i, cell in enumerate(group):
            found[cell] = float(units.centre[i]), float(low[i]), float(high[i]), units.n
    return pl.DataFrame(
        [(table.systems[s], table.measures[m], *found[s, m]) for s, m in cells],
        schema={
            "system": pl.String,
            "measure": pl.String,
            "mean": pl.Float64,
            "low": pl.Float64,
            "high": pl.Float64,
            "n": pl.Int64,
        },
        orient="row",
    )


def contrasts(
    per_query: pl.DataFrame | HasFrame,
    baseline: str,
    *,
    test: str = "t",
    correction: str = "holm",
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    test_resamples: int = 10_000,
    seed: int = 0,
    power: float = 0.8,
    clusters: Mapping[str, object] | None = None,
    lower_is_better: Collection[str] = (),
) -> pl.DataFrame:
    """Compare every other system with ``baseline``, measure by measure, on the same queries.

    Args:
        per_query: a table of query_id, system, measure and value, one row each.
        baseline: the system to compare with.
        test: as in ``paired_test``.
        correction: as in ``adjust``; the family is all rows of the result.
        level: the confidence of the intervals; ``1 - level`` is the alpha of ``detectable``.
        method: how the intervals are made, as in ``mean``.
        resamples: how many resamples the intervals draw.
        test_resamples: how many flips the randomisation test draws.
        seed: the seed of both.
        power: the power of ``detectable``.
        clusters: the label of every query, by its query_id.
        lower_is_better: the measures of which a smaller value is a win.

    The columns: system, measure; difference, the mean of system - baseline, with low and high;
    p and p_adjusted; effect_size (d_z); wins, ties and losses of the system, in queries;
    detectable, the smallest true difference this test would find before any correction (see
    ``detectable_difference``); n, the queries. Signs of differences are never turned, whichever
    way a measure points. The order is that of ``summarise``.
    """
    import polars as pl

    _options(level, method, resamples, seed)
    _choice("test", test, PAIRED_TESTS)
    _choice("correction", correction, CORRECTIONS)
    _whole("test_resamples", test_resamples, 1)
    alpha = 1.0 - level
    if _share("power", power) <= alpha:
        raise InputError(
            f"power is {power!r} at level {level!r}, where power above {alpha:.3g} is expected. "
            "Ask for a power such as 0.8."
        )
    if isinstance(lower_is_better, str):
        raise InputError(
            f"lower_is_better is the text {lower_is_better!r}, where a collection of names is "
            f"expected. Write [{lower_is_better!r}]."
        )
    table = _pivot(per_query)
    base = _baseline(table, baseline)
    others = [s for s in range(len(table.systems)) if s != base]
    cells = [(s, m) for s in others for m in range(len(table.measures))]
    for cell in cells:
        _same_queries(table, base, *cell)

    found: dict[tuple[int, int], dict[str, float | int]] = {}
    for group in _by_queries({cell: table.present[cell] for cell in cells}):
        mask = table.present[group[0]]
        rows, scale = _differences(
            np.array([table.values[s, m][mask] for s, m in group]),
            np.array([table.values[base, m][mask] for _, m in group]),
        )
        units = _units(rows, _query_labels(clusters, table.queries[mask]), scale)
        low, high = _intervals(units, level=level, method=method, resamples=resamples, seed=seed)
        _, p = _paired(rows, scale, units, test, test_resamples, seed)
        effect = _d_z(units if clusters is None else _units(rows, None, scale))
        detectable = units.standard_error
        if units.count > 1:
            detectable = detectable * _noncentrality(units.count - 1, power, alpha)
        for i, (s, m) in enumerate(group):
            better = -rows[i] if table.measures[m] in lower_is_better else rows[i]
            wins = int(np.count_nonzero(better > _TIE))
            losses = int(np.count_nonzero(better < -_TIE))
            found[s, m] = {
                "difference": float(units.centre[i]),
                "low": float(low[i]),
                "high": float(high[i]),
                "p": float(p[i]),
                "effect_size": float(effect[i]),
                "wins": wins,
                "ties": units.n - wins - losses,
                "losses": losses,
                "detectable": float(detectable[i]),
                "n": units.n,
            }
    adjusted = adjust([found[cell]["p"] for cell in cells], correction)
    whole = {"wins", "ties", "losses", "n"}
    numbers = (
        *("difference", "low", "high", "p", "p_adjusted", "effect_size"),
        *("wins", "ties", "losses", "detectable", "n"),
    )
    for cell, p_adjusted in zip(cells, adjusted.tolist(), strict=True):
        found[cell]["p_adjusted"] = p_adjusted
    return pl.DataFrame(
        {
            "system": pl.Series([table.systems[s] for s, _ in cells], dtype=pl.String),
            "measure": pl.Series([table.measures[m] for _, m in cells], dtype=pl.String),
            **{
                name: pl.Series(
                    [found[cell][name] for cell in cells],
                    dtype=pl.Int64 if name in whole else pl.Float64,
                )
                for name in numbers
            },
        }
    )


def _baseline(table: _Pivot, baseline: str) -> int:
    if baseline not in table.systems:
        raise InputError(
            f"the baseline {baseline!r} is not among the systems {', '.join(table.systems)}. Name "
            f"one of them.{did_you_mean(baseline, table.systems)}"
        )
    if len(table.systems) == 1:
        raise InputError(
            f"the table holds no system but the baseline {baseline!r}, and nothing to compare it "
            "with. Add the rows of another system."
        )
    return table.systems.index(baseline)


def _same_queries(table: _Pivot, base: int, system: int, measure: int) -> None:
    own, reference = table.present[system, measure], table.present[base, measure]
    unequal = own != reference
    if not unequal.any():
        return
    at = int(np.argmax(unequal))
    has, lacks = (base, system) if reference[at] else (system, base)
    raise InputError(
        f"system {table.systems[lacks]!r} has no {table.measures[measure]!r} for query "
        f"{table.queries[at]!r}, which {table.systems[has]!r} has; {int(unequal.sum())} "
        f"query(ies) differ. Systems are compared on the same queries: score the missing ones "
        "(an empty ranking scores 0), or leave them out of both."
    )
