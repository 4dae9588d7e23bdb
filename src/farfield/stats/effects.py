"""How large a difference is, and how large it must be to be found."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.checks import Floats, pair, share, whole
from farfield.stats.units import Units, gap, ratio, sample, subtract


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
        rows, scale = subtract(*pair(a, b))
        return float(d_z(Units.of(rows, scale=scale))[0])
    first, second = sample(a, "a"), sample(b, "b")
    df = first.n + second.n - 2
    if df < 2:
        return math.nan
    squares = float(np.square(first.totals).sum() + np.square(second.totals).sum())
    correction = math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)
    return float(ratio(correction * gap(first, second), math.sqrt(squares / df)))


def d_z(units: Units) -> Floats:
    """Return the mean over the standard deviation between queries (``units`` are queries)."""
    return ratio(units.centre, units.standard_error * math.sqrt(units.n))


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
    share("alpha", alpha)
    if share("power", power) <= alpha:
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
        return float(detectable(sample(differences, "differences"), power, alpha)[0])
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
    count = whole("n", n, 2)
    return _noncentrality(count - 1, power, alpha) * (sd / math.sqrt(count))


def detectable(units: Units, power: float, alpha: float) -> Floats:
    """Return the smallest true means that a t test of these units would find."""
    if units.count == 1:
        return units.standard_error
    return _noncentrality(units.count - 1, power, alpha) * units.standard_error


@lru_cache(maxsize=256)
def _noncentrality(df: int, power: float, alpha: float) -> float:
    """Return how many standard errors the mean must be from 0 for that power."""
    from scipy.special import nctdtr, stdtrit

    critical = float(stdtrit(df, 1.0 - alpha / 2.0))

    def found(shift: float) -> float:
        return 1.0 - float(nctdtr(df, shift, critical) - nctdtr(df, shift, -critical))

    low, high = 0.0, 1.0
    while found(high) < power:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if found(middle) < power else (low, middle)
    return high
