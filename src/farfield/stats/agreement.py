"""Do two things go together: rankings on two sets of queries, values on the same queries?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.checks import Floats, Integers, finite, share, whole
from farfield.stats.significance import Test
from farfield.stats.units import ROUNDING, Units, blocks, ratio


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How far two sets of queries put the same systems in the same order.

    ``tau`` is Kendall's tau-b: 1 for the same order, -1 for the reverse; NaN where a set puts all
    systems level, or there is only one. ``expected`` is what noise alone would leave of it: the
    mean tau of resamples, were the systems worth the same on both sets. ``p`` is that of a test
    whether the differences between systems are the same on both.
    """

    tau: float
    low: float
    high: float
    expected: float
    p: float
    level: float


def agreement(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Compare the order of systems, by their means, on two sets of different queries.

    ``a`` and ``b`` have a row per query and a column per system. For the interval the queries of
    each set are resampled on their own. Resampling adds noise to both orders and lowers tau, so
    the interval reaches further down than up; it holds the observed tau always.

    A tau below 1 alone says little, for with few queries two sets of the same kind order the
    systems differently too: compare it with ``expected``. The test deals the queries out to two
    sets of these sizes anew, as often as there are resamples; its statistic is the variance
    between systems of ``mean(a) - mean(b)``, which is 0 where all systems drop alike.
    """
    tail = (1.0 - share("level", level)) / 2.0
    whole("resamples", resamples, 1)
    whole("seed", seed, 0)
    first, second = finite(a, "a", 2), finite(b, "b", 2)
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"a has {first.shape[1]} columns and b has {second.shape[1]}, where the same systems "
            "are expected in both. Give them in the same order."
        )
    pooled = np.concatenate([first, second])
    margin = ROUNDING * float(np.abs(pooled).max())
    one, two = (Units.of(np.ascontiguousarray(side.T)) for side in (first, second))
    tau = float(_taus(one.centre[None, :], two.centre[None, :], margin)[0])
    rng = np.random.default_rng(seed)
    low = high = expected = math.nan
    if min(one.count, two.count) > 1:
        noise = [side.resampled(resamples, rng) for side in (one, two)]
        low, high = _bounds(_taus(one.centre + noise[0], two.centre + noise[1], margin), tau, tail)
        same = pooled.mean(axis=0)
        alike = _taus(same + noise[0], same + noise[1], margin)
        known = alike[~np.isnan(alike)]
        expected = float(known.mean()) if len(known) else math.nan
    p = _interaction(pooled, len(first), resamples, rng)
    return Agreement(tau=tau, low=low, high=high, expected=expected, p=p, level=float(level))


def _taus(a: Floats, b: Floats, margin: float) -> Floats:
    """Return Kendall's tau-b of each row of ``a`` with the same row of ``b``."""
    i, j = np.triu_indices(a.shape[1], k=1)
    signs = []
    for means in (a, b):
        gaps = means[:, i] - means[:, j]
        signs.append(np.where(np.abs(gaps) <= margin, 0.0, np.sign(gaps)))
    one, two = signs
    spread = np.sqrt(np.abs(one).sum(axis=1) * np.abs(two).sum(axis=1))
    taus = np.full(len(a), np.nan)
    np.divide((one * two).sum(axis=1), spread, out=taus, where=spread > 0.0)
    return taus


def _bounds(drawn: Floats, observed: float, tail: float) -> tuple[float, float]:
    known = drawn[~np.isnan(drawn)]
    if math.isnan(observed) or not len(known):
        return math.nan, math.nan
    low, high = np.quantile(known, [tail, 1.0 - tail])
    return min(observed, float(low)), max(observed, float(high))


def _interaction(pooled: Floats, size: int, deals: int, rng: np.random.Generator) -> float:
    """Test whether the first ``size`` rows and the others differ in how the columns compare."""
    n, columns = pooled.shape
    if columns == 1:
        return math.nan
    # What is common to all systems on a query is no difference between them.
    centred = pooled - pooled.mean(axis=1, keepdims=True)
    centred -= centred.mean(axis=0)

    def variance(sums: Floats) -> Floats:
        squares: Floats = np.square(sums * (1.0 / size + 1.0 / (n - size))).sum(axis=1)
        return squares

    observed = float(variance(centred[:size].sum(axis=0)[None, :])[0])
    least = observed - ROUNDING * float(np.square(centred).sum())
    extreme = 0
    for start, stop in blocks(deals, n):
        order = rng.permuted(np.broadcast_to(np.arange(n), (stop - start, n)), axis=1)
        chosen = np.zeros(order.shape)
        np.put_along_axis(chosen, order[:, :size], 1.0, axis=1)
        extreme += int(np.count_nonzero(variance(chosen @ centred) >= least))
    return (extreme + 1) / (deals + 1)


def correlation_tests(
    a: npt.ArrayLike, b: npt.ArrayLike, *, resamples: int = 10_000, seed: int = 0
) -> list[Test]:
    """Test, for each column, whether ``a`` and ``b`` are larger on the same queries. Two-sided.

    ``a`` and ``b`` have a row per query. The statistic is Pearson's correlation of a column of
    ``a`` with the same column of ``b``; the values of ``a`` are dealt out to the queries anew. When
    there are no more than ``resamples`` orders of the queries, all are tried and p is exact; else
    it is (1 + deals at least as far from 0) / (1 + resamples). All columns share the deals. A
    column that never varies has no correlation: the statistic is 0, and p is 1.
    """
    whole("resamples", resamples, 1)
    whole("seed", seed, 0)
    first, second = finite(a, "a", 2), finite(b, "b", 2)
    if first.shape != second.shape:
        raise InputError(
            f"a has shape {first.shape} and b {second.shape}, where the same queries and columns "
            "are expected. Give both with a row per query, in the same order."
        )
    one, two = (_standard(np.ascontiguousarray(x.T)) for x in (first, second))
    n = one.shape[1]
    observed = (one * two).sum(axis=1)
    extreme = np.zeros(len(one), dtype=np.intp)
    exact = n < 20 and math.factorial(n) <= resamples
    for order in _orders(n, resamples, seed, exact):
        for at, (row, other) in enumerate(zip(one, two, strict=True)):
            dealt = np.abs(row[order] @ other)
            extreme[at] += np.count_nonzero(dealt >= abs(observed[at]) - ROUNDING)
    p = extreme / math.factorial(n) if exact else (extreme + 1) / (resamples + 1)
    return [
        Test(statistic=statistic, p=share_of, method="permutation", n=n)
        for statistic, share_of in zip(observed.tolist(), p.tolist(), strict=True)
    ]


def _orders(n: int, resamples: int, seed: int, exact: bool) -> Iterator[Integers]:
    """Yield orders of n queries in blocks: all of them, or so many drawn at random."""
    if exact:
        yield np.array(list(permutations(range(n))), dtype=np.intp)
        return
    rng = np.random.default_rng(seed)
    for start, stop in blocks(resamples, n):
        yield rng.permuted(np.broadcast_to(np.arange(n), (stop - start, n)), axis=1)


def _standard(rows: Floats) -> Floats:
    """Return each row without its mean and of length 1; a row that never varies becomes zeros."""
    centred = Units.of(rows).totals
    return ratio(centred, np.linalg.norm(centred, axis=1, keepdims=True))
