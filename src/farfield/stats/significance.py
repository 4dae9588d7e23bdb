"""Tests of differences, and corrections for making many of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, islice
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.checks import Floats, Integers, choice, finite, pair, whole
from farfield.stats.units import ROUNDING, Units, blocks, gap, ratio, subtract, welch

PAIRED_TESTS = ("t", "wilcoxon", "randomisation")
"""The tests of ``paired_test`` and ``contrasts``; the first is the default."""
TWO_SAMPLE_TESTS = ("welch", "permutation")
"""The tests of ``two_sample_test``; the first is the default."""
CORRECTIONS = ("holm", "bonferroni", "bh", "none")
"""The corrections of ``adjust``; the first is the default."""

# So few differences have all their signed ranks enumerated, 8,192 at most.
_FEW = 13


@dataclass(frozen=True, kw_only=True, slots=True)
class Test:
    """The outcome of a two-sided test: its statistic, its p-value, its name and ``n`` values."""

    # Keeps pytest from collecting the class in a test module that imports it.
    __test__: ClassVar[bool] = False

    statistic: float
    p: float
    method: str
    n: int


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
    choice("test", test, PAIRED_TESTS)
    whole("resamples", resamples, 1)
    whole("seed", seed, 0)
    rows, scale = subtract(*pair(a, b))
    units = Units.of(rows, clusters, scale)
    statistic, p = paired_tests(rows, scale, units, test, resamples, seed)
    return Test(statistic=float(statistic[0]), p=float(p[0]), method=test, n=units.n)


def paired_tests(
    rows: Floats, scale: Floats, units: Units, test: str, resamples: int, seed: int
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
        outcomes = np.array([_wilcoxon(*row) for row in zip(rows, scale, strict=True)])
        return outcomes[:, 0], outcomes[:, 1]
    sums = rows
    if units.sizes is not None:
        sums = units.totals + units.centre[:, None] * units.sizes
        # What cancels within a cluster on paper leaves rounding behind.
        sums[np.abs(sums) <= ROUNDING * scale[:, None] * units.sizes] = 0.0
    return units.centre, _sign_flips(sums, resamples, seed)


def _t_test(value: Floats, error: Floats, df: float) -> tuple[Floats, Floats]:
    if df == 0:
        return np.full(len(value), np.nan), np.ones(len(value))
    from scipy.special import stdtr

    statistic = ratio(value, error)
    return statistic, np.asarray(2.0 * stdtr(df, -np.abs(statistic)))


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
        patterns = 2 ** len(kept)
        if patterns > resamples:
            drawn.append(i)
            continue
        extreme = 0
        for start, stop in blocks(patterns, len(kept)):
            stays = (np.arange(start, stop)[:, None] >> np.arange(len(kept))) & 1
            extreme += int(_extreme(stays, kept[None, :])[0])
        result[i] = extreme / patterns
    if drawn:
        rng = np.random.default_rng(seed)
        rows = sums[drawn]
        units = rows.shape[1]
        extremes = np.zeros(len(rows), dtype=np.intp)
        for start, stop in blocks(resamples, units):
            octets = rng.integers(0, 256, size=(stop - start, -(-units // 8)), dtype=np.uint8)
            extremes += _extreme(np.unpackbits(octets, axis=1, count=units), rows)
        result[drawn] = (extremes + 1) / (resamples + 1)
    return result


def _extreme(stays: npt.NDArray[np.integer], rows: Floats) -> Integers:
    """Count, for each row, the flips whose sum is at least as far from 0 as the observed one."""
    observed = rows.sum(axis=1)
    # The same sum in another order differs in the last digits, and must count as equal.
    margin = ROUNDING * np.abs(rows).sum(axis=1)
    flipped = np.abs(2.0 * (stays.astype(np.float64) @ rows.T) - observed)
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
    choice("test", test, TWO_SAMPLE_TESTS)
    whole("resamples", resamples, 1)
    whole("seed", seed, 0)
    values = finite(a, "a", 1), finite(b, "b", 1)
    first, second = (Units.of(side[None, :]) for side in values)
    if test == "permutation":
        statistic = float(first.centre[0] - second.centre[0])
        p = _permutations(*values, resamples, seed)
    else:
        error, df = welch(first, second)
        outcome = _t_test(np.array([gap(first, second)]), error, float(df[0]))
        statistic, p = (float(x[0]) for x in outcome)
    return Test(statistic=statistic, p=p, method=test, n=first.n + second.n)


def _permutations(a: Floats, b: Floats, resamples: int, seed: int) -> float:
    # The smaller side decides the other, and is cheaper to add up.
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    pooled = np.concatenate([small, large])
    pooled = pooled - pooled.mean()
    chosen, n = len(small), len(pooled)
    total = float(pooled.sum())

    def distance(dealt: Floats) -> Floats:
        sums = dealt.sum(axis=1)
        result: Floats = np.abs(sums / chosen - (total - sums) / (n - chosen))
        return result

    margin = ROUNDING * float(np.abs(pooled).sum()) / chosen
    least = float(distance(pooled[None, :chosen])[0]) - margin
    deals = math.comb(n, chosen)
    extreme = 0
    if deals <= resamples:
        every = combinations(pooled.tolist(), chosen)
        for start, stop in blocks(deals, chosen):
            dealt = np.array(list(islice(every, stop - start)))
            extreme += int(np.count_nonzero(distance(dealt) >= least))
        return extreme / deals
    rng = np.random.default_rng(seed)
    for start, stop in blocks(resamples, n):
        dealt = rng.permuted(np.broadcast_to(pooled, (stop - start, n)), axis=1)
        extreme += int(np.count_nonzero(distance(dealt[:, :chosen]) >= least))
    return (extreme + 1) / (resamples + 1)


def adjust(p_values: npt.ArrayLike, method: str = "holm") -> Floats:
    """Return the p-values corrected for being many, in the order given.

    ``"holm"`` (the default) and ``"bonferroni"`` bound the chance of a single false discovery
    in the family, and Holm is never worse; ``"bh"`` (Benjamini and Hochberg) bounds the share
    of false discoveries; ``"none"`` returns the p-values as they are. No p-values give none.
    """
    choice("method", method, CORRECTIONS)
    if np.size(p_values) == 0:
        return np.empty(0)
    p = finite(p_values, "p_values", 1)
    outside = (p < 0.0) | (p > 1.0)
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(
            f"p_values[{at}] is {p[at]}, where a number between 0 and 1 is expected. "
            "Give p-values, not statistics."
        )
    m = len(p)
    if method == "none":
        return p.copy()
    if method == "bonferroni":
        return np.minimum(p * m, 1.0)
    order = np.argsort(p, kind="stable")
    if method == "holm":
        steps = np.maximum.accumulate(p[order] * np.arange(m, 0, -1))
    else:
        steps = np.minimum.accumulate((p[order] * (m / np.arange(1, m + 1)))[::-1])[::-1]
    result = np.empty(m)
    result[order] = np.minimum(steps, 1.0)
    return result
