"""Queries that belong together: intervals and tests that do not count them as independent."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farfield import stats
from farfield.errors import InputError
from farfield.stats.units import Units


def interval(estimate: stats.Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


@pytest.mark.parametrize("method", stats.METHODS)
def test_clusters_of_one_query_change_nothing(method: str) -> None:
    rng = np.random.default_rng(8)
    values = rng.exponential(size=40)
    plain = stats.mean(values, method=method)
    # Labels whose own order is not that of the queries, as numbers, texts and objects.
    numbers = rng.permutation(40)
    for labels in (numbers, [f"c{i}" for i in numbers], np.array(numbers, dtype=object)):
        clustered = stats.mean(values, method=method, clusters=labels)
        assert interval(clustered) == pytest.approx(interval(plain), rel=1e-13)
        assert clustered.n == 40


@pytest.mark.parametrize("method", stats.METHODS)
def test_repeated_queries_add_nothing(method: str) -> None:
    # Every query five times over holds no more than every query once.
    values = np.random.default_rng(8).exponential(size=30)
    once = stats.mean(values, method=method)
    fivefold = stats.mean(np.tile(values, 5), method=method, clusters=list(range(30)) * 5)
    assert interval(fivefold) == pytest.approx(interval(once), rel=1e-12)
    naive = stats.mean(np.tile(values, 5), method=method)
    assert naive.high - naive.low < 0.6 * (once.high - once.low)


def test_unequal_clusters_by_hand() -> None:
    # Clusters (0, 2, 4), (1): mean 7/4. Drawing one of them twice gives 6/3 = 2 or 1/1 = 1;
    # drawing both gives 7/4. Chances 1/4, 1/4, 1/2.
    estimate = stats.mean([0, 2, 1, 4], clusters=["x", "x", "y", "x"], method="percentile")
    assert estimate.value == 1.75
    assert interval(estimate) == pytest.approx((1.0, 2.0))
    middle = stats.mean([0, 2, 1, 4], clusters=["x", "x", "y", "x"], method="percentile", level=0.4)
    assert interval(middle) == pytest.approx((1.75, 1.75))
    # Totals of deviations: 6 - 3 * 7/4 = 3/4 and 1 - 7/4 = -3/4. The error is
    # sqrt(2/1 * (9/16 + 9/16)) / 4 = 1.5 / 4 = 0.375; t(0.975, 1) = 12.7062.
    by_t = stats.mean([0, 2, 1, 4], clusters=["x", "x", "y", "x"], method="t")
    assert by_t.high - by_t.value == pytest.approx(12.7062 * 0.375, abs=1e-4)


def test_paired_difference_takes_clusters() -> None:
    a, b = np.array([0.0, 2.0, 1.0, 4.0]), np.zeros(4)
    found = stats.difference(a, b, paired=True, clusters=list("xxyx"), method="percentile")
    assert interval(found) == pytest.approx((1.0, 2.0))  # as in the test by hand above


def test_clustered_t_by_hand() -> None:
    # As in the interval above: mean 7/4, error 3/8, one degree of freedom, where
    # p = 1 - 2 atan(t) / pi.
    t = 1.75 / 0.375
    found = stats.paired_test([0, 2, 1, 4], [0] * 4, clusters=list("xxyx"))
    assert found.statistic == pytest.approx(t)
    assert found.p == pytest.approx(1 - 2 * math.atan(t) / math.pi)
    with pytest.raises(InputError, match="Wilcoxon"):
        stats.paired_test([1, 2], [0, 0], test="wilcoxon", clusters=["x", "y"])


def test_acceleration_of_unequal_clusters_is_the_jackknife() -> None:
    rng = np.random.default_rng(9)
    values, labels = rng.exponential(size=30), rng.integers(0, 8, size=30)
    left_out = np.array([values[labels != c].mean() for c in np.unique(labels)])
    moves = left_out.mean() - left_out
    expected = (moves**3).sum() / (6 * (moves**2).sum() ** 1.5)
    assert Units.of(values[None, :], labels).acceleration()[0] == pytest.approx(expected)


def test_clustered_intervals_cover() -> None:
    # 40 items of 4 queries, half of the variance between items: the naive interval is too
    # narrow by sqrt(1 + 3 / 2) and covers some 78 %.
    rng = np.random.default_rng(21)
    items = np.repeat(rng.normal(size=(40, 2000)), 4, axis=0)
    trials = items + rng.normal(size=(160, 2000))
    labels = np.repeat(np.arange(40), 4)

    def coverage(found: list[stats.Estimate]) -> float:
        return float(np.mean([e.low <= 0.0 <= e.high for e in found]))

    assert coverage(stats.means(trials, resamples=400, clusters=labels)) >= 0.92
    assert coverage(stats.means(trials, resamples=400)) <= 0.82


def test_one_cluster_has_no_interval() -> None:
    assert math.isnan(stats.mean([1.0, 2.0], clusters=["x", "x"]).low)


def test_clusters_with_equal_means_have_no_width() -> None:
    estimate = stats.mean([0.1, 0.2, 0.2, 0.1, 0.15], clusters=[1, 1, 2, 2, 3])
    assert interval(estimate) == pytest.approx((0.15, 0.15), abs=1e-15)
    assert estimate.low == estimate.high
    # The same 500 values in another order add up to another last digit.
    rng = np.random.default_rng(0)
    values = rng.random(500)
    repeated = np.concatenate([rng.permutation(values) for _ in range(4)])
    labels = np.repeat(np.arange(4), 500)
    estimate = stats.mean(repeated, clusters=labels)
    assert estimate.low == estimate.high == estimate.value
    assert stats.paired_test(repeated, np.zeros(2000), clusters=labels).statistic == math.inf
