"""Every number here is either worked out in view, or compared with an independent oracle."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import tracemalloc
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from farfield import stats
from farfield.errors import InputError, TableError

quick = settings(max_examples=40, deadline=None)
# Eighths are exact in floating point: what is equal on paper is equal here.
eighths = st.integers(-800, 800).map(lambda i: i / 8)
samples = st.lists(eighths, min_size=2, max_size=25)


def interval(estimate: stats.Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


# --- mean, means -------------------------------------------------------------------------------


def test_t_interval_by_hand() -> None:
    # mean 3; squares 4+1+0+1+4 = 10, variance 10/4 = 2.5, error sqrt(2.5/5) = 0.70711;
    # t(0.975, 4) = 2.77645, so the margin is 1.96324.
    estimate = stats.mean([1, 2, 3, 4, 5], method="t")
    assert estimate.value == 3.0
    assert interval(estimate) == pytest.approx((3 - 1.963243, 3 + 1.963243), abs=1e-6)
    assert (estimate.n, estimate.level, estimate.method) == (5, 0.95, "t")


def test_percentile_interval_by_hand() -> None:
    # Resampling (0, 1) gives the mean 0, 1/2 or 1 with chances 1/4, 1/2, 1/4. Tails of 2.5 %
    # end in 0 and 1; tails of 30 % both end in the middle.
    assert interval(stats.mean([0, 1], method="percentile")) == (0.0, 1.0)
    assert interval(stats.mean([0, 1], method="percentile", level=0.4)) == (0.5, 0.5)


def test_bca_bounds_by_hand() -> None:
    # 101 resampled deviations -40, -39, ..., 60: 40 below 0, one at 0, so the share is 40.5/101.
    drawn = np.arange(-40.0, 61.0)
    normal = NormalDist()
    bias = normal.inv_cdf(40.5 / 101)
    acceleration, z = 0.05, normal.inv_cdf(0.9)
    low_share, high_share = (
        normal.cdf(bias + (bias + s) / (1 - acceleration * (bias + s))) for s in (-z, z)
    )
    # The share q of the values -40..60 lies at -40 + 100 q.
    low, high = stats._bootstrap_bounds(
        np.random.default_rng(0).permutation(drawn)[:, None], np.array([acceleration]), 0.8, "bca"
    )
    assert low[0] == pytest.approx(-40 + 100 * low_share)
    assert high[0] == pytest.approx(-40 + 100 * high_share)
    assert abs(low_share - 0.1) > 0.02  # the correction did something


def test_acceleration_by_hand() -> None:
    # Mean 2, deviations -2, -1, 3. Leaving one out moves the mean by half of that, so
    # a = sum(d^3) / (6 sum(d^2)^1.5) = (-8 - 1 + 27) / (6 * 14^1.5).
    units = stats._units(np.array([[0.0, 1.0, 5.0]]), None)
    assert units.acceleration()[0] == pytest.approx(18 / (6 * 14**1.5))


def test_bca_past_the_pole_ends_at_the_outermost_resample() -> None:
    drawn = np.arange(-5.0, 6.0)[:, None]
    low, high = stats._bootstrap_bounds(drawn, np.array([0.9]), 0.95, "bca")
    assert high[0] == 5.0
    assert -5.0 <= low[0] < 0.0


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_bootstrap_agrees_with_scipy(method: str) -> None:
    values = np.random.default_rng(5).lognormal(sigma=1.2, size=30)
    error = values.std(ddof=1) / math.sqrt(30)
    oracle = scipy.stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=40_000,
        method=method,
        random_state=np.random.default_rng(1),
    ).confidence_interval
    ours = stats.mean(values, method=method, resamples=40_000)
    # The bounds of 40,000 draws waver by up to 0.04 standard errors (BCa reaches further out).
    assert interval(ours) == pytest.approx(tuple(oracle), abs=0.15 * error)
    # The two methods are further apart than that, so neither passes for the other.
    other = stats.mean(values, method={"bca": "percentile", "percentile": "bca"}[method])
    assert abs(other.high - ours.high) > 0.3 * error


@pytest.mark.parametrize(("method", "least"), [("bca", 0.925), ("percentile", 0.91)])
def test_intervals_cover_the_mean_of_a_skewed_population(method: str, least: float) -> None:
    # Exponential, true mean 1, 60 queries. The bootstrap falls a little short of 95 % on skewed
    # values, the plain one by more; 3,000 trials know the coverage to within 0.4 points.
    trials = np.random.default_rng(11).exponential(size=(60, 3000))
    found = stats.means(trials, method=method, resamples=600)
    covered = np.mean([e.low <= 1.0 <= e.high for e in found])
    assert least <= covered <= 0.96


def test_bca_misses_more_evenly_than_percentile() -> None:
    # On a population with a long right tail, intervals tend to end too low. BCa is there to
    # mend that.
    trials = np.random.default_rng(12).exponential(size=(60, 3000))
    too_low = {
        method: np.mean([e.high < 1.0 for e in stats.means(trials, method=method, resamples=600)])
        for method in ("bca", "percentile")
    }
    assert too_low["bca"] < too_low["percentile"] - 0.005


def test_t_intervals_of_normal_values_cover_exactly() -> None:
    trials = np.random.default_rng(13).normal(size=(7, 8000))
    covered = np.mean([e.low <= 0.0 <= e.high for e in stats.means(trials, method="t")])
    assert covered == pytest.approx(0.95, abs=0.008)


@pytest.mark.parametrize("method", stats.METHODS)
def test_constant_values_have_no_width(method: str) -> None:
    estimate = stats.mean([0.1] * 10, method=method)
    assert (estimate.value, estimate.low, estimate.high) == (0.1, 0.1, 0.1)
    beside = stats.means([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]], method=method)
    assert (beside[0].low, beside[0].high) == (0.1, 0.1)
    assert beside[1].low < beside[1].value < beside[1].high


@pytest.mark.parametrize("method", stats.METHODS)
def test_one_value_has_no_interval(method: str) -> None:
    estimate = stats.mean([0.5], method=method)
    assert estimate.value == 0.5
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


def test_one_resample_does_not_break_the_correction() -> None:
    estimate = stats.mean([1.0, 2.0, 9.0], resamples=1)
    assert math.isfinite(estimate.low)
    assert estimate.low == estimate.high


@pytest.mark.parametrize("method", stats.METHODS)
def test_columns_share_their_resamples(method: str) -> None:
    matrix = np.random.default_rng(2).random((50, 5))
    together = stats.means(matrix, method=method, seed=4)
    for i, estimate in enumerate(together):
        alone = stats.mean(matrix[:, i], method=method, seed=4)
        assert estimate.value == alone.value
        assert interval(estimate) == pytest.approx(interval(alone), rel=1e-12)


def test_seeds_decide_the_numbers() -> None:
    values = np.random.default_rng(3).random(30)
    assert stats.mean(values, seed=1) == stats.mean(values, seed=1)
    assert stats.mean(values, seed=1) != stats.mean(values, seed=2)


def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).random(30)
    whole = interval(stats.mean(values))
    monkeypatch.setattr(stats, "_BLOCK_CELLS", 70)
    assert interval(stats.mean(values)) == pytest.approx(whole, rel=1e-12)


def test_a_million_queries_need_bounded_memory() -> None:
    values = np.random.default_rng(3).random(1_000_000)
    tracemalloc.start()
    try:
        estimate = stats.mean(values, resamples=12)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One resample takes 8 MB of draws and 8 MB of counts; all twelve together take 192.
    assert peak < 64e6
    assert estimate.low < estimate.value < estimate.high


def test_values_are_not_changed() -> None:
    values, other = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 1.0])
    for array in (values, other):
        array.flags.writeable = False
    for test in stats.PAIRED_TESTS:
        stats.paired_test(values, other, test=test)
    for test in stats.TWO_SAMPLE_TESTS:
        stats.two_sample_test(values, other, test=test)
    stats.difference(values, other, paired=False)
    stats.effect_size(values, other)
    stats.adjust(values / 4)
    stats.rank_intervals(np.column_stack([values, other]))
    assert values.tolist() == [1.0, 2.0, 4.0]


def test_results_are_frozen() -> None:
    estimate = stats.mean([1.0, 2.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        stats.RankInterval(1, 1, 2)  # type: ignore[misc]


@quick
@given(
    samples,
    st.sampled_from([0.01, 0.5, 3.0, 100.0, -2.0]),
    eighths,
    st.sampled_from(stats.METHODS),
)
def test_intervals_move_with_the_values(
    values: list[float], scale: float, shift: float, method: str
) -> None:
    plain = stats.mean(values, method=method, resamples=100)
    moved = stats.mean(scale * np.array(values) + shift, method=method, resamples=100)
    assert plain.low <= plain.high
    expected = sorted(scale * bound + shift for bound in interval(plain))
    size = abs(scale) * max(map(abs, values)) + abs(shift) + 1e-9
    assert moved.value == pytest.approx(scale * plain.value + shift, abs=1e-9 * size)
    assert interval(moved) == pytest.approx(tuple(expected), abs=1e-9 * size)


@quick
@given(samples, st.sampled_from(stats.METHODS))
def test_higher_levels_are_wider(values: list[float], method: str) -> None:
    assume(len(set(values)) > 1)
    narrow = stats.mean(values, method=method, level=0.5, resamples=200)
    wide = stats.mean(values, method=method, level=0.99, resamples=200)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high
    assert wide.low < wide.high


# --- clusters ----------------------------------------------------------------------------------


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


def test_acceleration_of_unequal_clusters_is_the_jackknife() -> None:
    rng = np.random.default_rng(9)
    values, labels = rng.exponential(size=30), rng.integers(0, 8, size=30)
    left_out = np.array([values[labels != c].mean() for c in np.unique(labels)])
    moves = left_out.mean() - left_out
    expected = (moves**3).sum() / (6 * (moves**2).sum() ** 1.5)
    assert stats._units(values[None, :], labels).acceleration()[0] == pytest.approx(expected)


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


# --- difference --------------------------------------------------------------------------------


def test_paired_difference_is_the_mean_of_differences() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.random(20), rng.random(20)
    found = stats.difference(a, b, paired=True)
    direct = stats.mean(a - b)
    assert (found.value, found.low, found.high) == pytest.approx(
        (direct.value, direct.low, direct.high)
    )
    assert found.n == 20


@pytest.mark.parametrize("method", stats.METHODS)
def test_rounding_is_no_width(method: str) -> None:
    # 0.1 each on paper; in floating point they differ in the 13th digit.
    a, b = [1000.3, 1000.5, 1000.4], [1000.2, 1000.4, 1000.3]
    assert len(set(np.subtract(a, b))) > 1
    found = stats.difference(a, b, paired=True, method=method)
    assert found.low == found.high == found.value == pytest.approx(0.1)


def test_paired_difference_takes_clusters() -> None:
    a, b = np.array([0.0, 2.0, 1.0, 4.0]), np.zeros(4)
    found = stats.difference(a, b, paired=True, clusters=list("xxyx"), method="percentile")
    assert interval(found) == pytest.approx((1.0, 2.0))  # as in the test by hand above


def test_unpaired_t_difference_by_hand() -> None:
    # Means 2 and 5, variances 1 and 20/3: error^2 = 1/3 + (20/3)/4 = 2, and
    # df = 2^2 / ((1/3)^2 / 2 + (5/3)^2 / 3) = 4 / (1/18 + 25/27) = 216/53.
    found = stats.difference([1, 2, 3], [2, 4, 6, 8], paired=False, method="t")
    margin = scipy.stats.t.ppf(0.975, 216 / 53) * math.sqrt(2)
    assert found.value == -3.0
    assert interval(found) == pytest.approx((-3 - margin, -3 + margin))
    assert found.n == 7


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_unpaired_bootstrap_agrees_with_scipy(method: str) -> None:
    rng = np.random.default_rng(7)
    # The larger side has the longer tail, and yet moves the difference less.
    a, b = rng.lognormal(sigma=1.2, size=15), 3 * rng.lognormal(sigma=1.2, size=150)
    error = math.sqrt(a.var(ddof=1) / 15 + b.var(ddof=1) / 150)
    oracle = scipy.stats.bootstrap(
        (a, b),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=40_000,
        method=method,
        random_state=np.random.default_rng(1),
    ).confidence_interval
    ours = stats.difference(a, b, paired=False, method=method, resamples=40_000)
    assert interval(ours) == pytest.approx(tuple(oracle), abs=0.15 * error)
    turned = stats.difference(b, a, paired=False, method=method, resamples=40_000)
    assert interval(turned) == pytest.approx((-ours.high, -ours.low), abs=0.15 * error)


def test_unpaired_difference_at_the_edges() -> None:
    flat = stats.difference([1, 1], [3, 3, 3], paired=False)
    assert (flat.value, flat.low, flat.high) == (-2.0, -2.0, -2.0)
    assert math.isnan(stats.difference([1], [3, 4], paired=False).low)
    half = stats.difference([1, 1], [3, 4, 5], paired=False)
    assert half.low < -3.0 < half.high
    with pytest.raises(InputError, match="unpaired samples"):
        stats.difference([1, 2], [3, 4], paired=False, clusters=["x", "y"])


# --- paired tests ------------------------------------------------------------------------------


def test_paired_t_by_hand() -> None:
    # Differences 1, 2, 3: mean 2, deviation 1, t = 2 / (1 / sqrt 3) = 3.4641. With two degrees
    # of freedom p = 1 - t / sqrt(t^2 + 2) = 1 - 3.4641 / sqrt(14) = 0.0742.
    found = stats.paired_test([2, 4, 6], [1, 2, 3])
    assert found.statistic == pytest.approx(math.sqrt(12))
    assert found.p == pytest.approx(1 - math.sqrt(12 / 14))
    assert (found.method, found.n) == ("t", 3)


@pytest.mark.parametrize("n", [2, 10, 500])
def test_paired_t_agrees_with_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random(n), rng.random(n)
    oracle = scipy.stats.ttest_rel(a, b)
    found = stats.paired_test(a, b)
    assert (found.statistic, found.p) == pytest.approx((oracle.statistic, oracle.pvalue))


@pytest.mark.parametrize("n", [1, 5, 20, 200])
def test_wilcoxon_agrees_with_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random(n), rng.random(n)
    oracle = scipy.stats.wilcoxon(a, b)
    found = stats.paired_test(a, b, test="wilcoxon")
    assert (found.statistic, found.p) == pytest.approx((oracle.statistic, oracle.pvalue))


@pytest.mark.parametrize("n", [6, 13, 14, 60])
def test_wilcoxon_with_ties_agrees_with_scipy(n: int) -> None:
    differences = np.random.default_rng(n).integers(-2, 5, size=n)
    differences[differences == 0] = 1
    oracle = scipy.stats.wilcoxon(differences)
    found = stats.paired_test(differences, np.zeros(n), test="wilcoxon")
    assert (found.statistic, found.p) == pytest.approx((oracle.statistic, oracle.pvalue))


def test_wilcoxon_by_hand() -> None:
    # Differences 0, 1, 2, -3, 4: the zero is dropped, ranks 1 + 2 + 4 = 7 against 3. Of the 16
    # sign patterns those with a rank sum <= 3 are {}, {1}, {2}, {3}, {1, 2}: 5. p = 2 * 5 / 16.
    found = stats.paired_test([5, 1, 2, 0, 4], [5, 0, 0, 3, 0], test="wilcoxon")
    assert found.statistic == 3.0
    assert found.p == pytest.approx(10 / 16)
    assert found.n == 5


def test_wilcoxon_ranks_ties_despite_rounding() -> None:
    # On paper 0.1 each way; in floating point 0.3 - 0.2 < 0.1 < 0.8 - 0.7.
    found = stats.paired_test([0.3, 0.8, 0.1], [0.2, 0.7, 0.2], test="wilcoxon")
    exact = stats.paired_test([3, 8, 1], [2, 7, 2], test="wilcoxon")
    assert (found.statistic, found.p) == (exact.statistic, exact.p)
    assert found.statistic == 2.0  # three ranks of 2 each


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        # Sums of the flips +-1 +-2 +-3: 6, 4, 2, 0 and their opposites. At least 6: two of eight.
        ([1, 2, 3], 2 / 8),
        # +-1 +-1 +-3, observed 3: 5, 3, 3, 1 and opposites. At least 3: six of eight.
        ([1, -1, 3], 6 / 8),
        # Observed 0: all are at least as extreme, also when 0 is not quite 0.
        ([0.1, 0.2, -0.3], 1.0),
        # +-0.1 four times, observed 0.2. Only the six flips that cancel out are smaller.
        ([0.1, 0.1, 0.1, -0.1], 10 / 16),
    ],
)
def test_randomisation_by_enumeration(differences: list[float], p: float) -> None:
    found = stats.paired_test(differences, np.zeros(len(differences)), test="randomisation")
    assert found.p == p
    assert found.statistic == pytest.approx(np.mean(differences))
    assert found.n == len(differences)


def test_randomisation_flips_no_zeros() -> None:
    # Three signs to flip, and so eight flips, which eight resamples enumerate.
    found = stats.paired_test([1, 0, 2, 0, 0, 3], [0] * 6, test="randomisation", resamples=8)
    assert found.p == 2 / 8


def test_randomisation_draws_what_it_cannot_enumerate() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random(12) + 0.15, rng.random(12)
    exact = stats.paired_test(a, b, test="randomisation", resamples=4096)
    drawn = stats.paired_test(a, b, test="randomisation", resamples=4095)
    assert (exact.p * 4096) % 2 == 0  # every flip has its mirror image
    assert drawn.p != exact.p
    assert drawn.p == pytest.approx(exact.p, abs=4 * math.sqrt(exact.p / 4096))
    oracle = scipy.stats.permutation_test(
        (a - b,),
        lambda d, axis: np.abs(d.mean(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert exact.p == pytest.approx(oracle.pvalue)


def test_randomisation_is_never_certain() -> None:
    a = np.arange(1.0, 41.0)
    found = stats.paired_test(a, np.zeros(40), test="randomisation", resamples=99)
    assert found.p == 1 / 100


def test_randomisation_flips_whole_clusters() -> None:
    # Cluster sums 1 + 2 = 3, 3 and -1: flips give 7, 5, 1, 1 and opposites; observed 5.
    differences, labels = [1, 2, 3, -1], ["x", "x", "y", "z"]
    found = stats.paired_test(differences, [0] * 4, test="randomisation", clusters=labels)
    assert found.p == 4 / 8
    # Cluster x cancels on paper, and is then no sign to flip: four flips, all enumerated.
    found = stats.paired_test(
        [0.1, 0.2, -0.3, 1, 1],
        [0] * 5,
        test="randomisation",
        clusters=list("xxxyz"),
        resamples=4,
    )
    assert found.p == 2 / 4


def test_clustered_t_by_hand() -> None:
    # As in the interval above: mean 7/4, error 3/8, one degree of freedom, where
    # p = 1 - 2 atan(t) / pi.
    t = 1.75 / 0.375
    found = stats.paired_test([0, 2, 1, 4], [0] * 4, clusters=list("xxyx"))
    assert found.statistic == pytest.approx(t)
    assert found.p == pytest.approx(1 - 2 * math.atan(t) / math.pi)
    with pytest.raises(InputError, match="Wilcoxon"):
        stats.paired_test([1, 2], [0, 0], test="wilcoxon", clusters=["x", "y"])


@pytest.mark.parametrize("test", stats.PAIRED_TESTS)
def test_no_difference_is_no_evidence(test: str) -> None:
    assert stats.paired_test([0.5, 0.2, 0.7], [0.5, 0.2, 0.7], test=test).p == 1.0
    # Rounding is no difference either.
    assert stats.paired_test([0.1 + 0.2] * 30, [0.3] * 30, test=test).p == 1.0
    assert stats.paired_test([0.0] * 3, [0.0] * 3, test=test).p == 1.0


def test_t_of_a_difference_that_never_varies() -> None:
    found = stats.paired_test([0.3, 0.4, 0.5], [0.2, 0.3, 0.4])
    assert (found.statistic, found.p) == (math.inf, 0.0)
    assert stats.paired_test([1, 2], [2, 3]).statistic == -math.inf


@pytest.mark.parametrize("test", stats.PAIRED_TESTS)
def test_one_pair_is_no_evidence(test: str) -> None:
    assert stats.paired_test([1.0], [0.0], test=test).p == 1.0


@pytest.mark.parametrize("test", stats.PAIRED_TESTS)
def test_p_values_are_uniform_when_nothing_differs(test: str) -> None:
    rng = np.random.default_rng(31)
    p = [
        stats.paired_test(rng.normal(size=12), rng.normal(size=12), test=test, resamples=300).p
        for _ in range(300)
    ]
    assert np.mean(np.array(p) <= 0.2) == pytest.approx(0.2, abs=0.07)


@quick
@given(
    st.lists(st.tuples(eighths, eighths), min_size=1, max_size=12),
    eighths,
    st.sampled_from(stats.PAIRED_TESTS),
)
def test_only_differences_count(pairs: list[tuple[float, float]], shift: float, test: str) -> None:
    a, b = np.array(pairs).T
    plain = stats.paired_test(a, b, test=test, resamples=200)
    shifted = stats.paired_test(a + shift, b + shift, test=test, resamples=200)
    turned = stats.paired_test(b, a, test=test, resamples=200)
    assert 0.0 <= plain.p <= 1.0
    assert shifted.p == pytest.approx(plain.p, abs=1e-12)
    assert turned.p == pytest.approx(plain.p, abs=1e-12)


# --- two samples -------------------------------------------------------------------------------


def test_welch_by_hand() -> None:
    # Worked out in test_unpaired_t_difference_by_hand: t = -3 / sqrt 2, df = 216/53.
    found = stats.two_sample_test([1, 2, 3], [2, 4, 6, 8])
    assert found.statistic == pytest.approx(-3 / math.sqrt(2))
    assert found.p == pytest.approx(2 * scipy.stats.t.cdf(-3 / math.sqrt(2), 216 / 53))
    assert (found.method, found.n) == ("welch", 7)


def test_welch_agrees_with_scipy() -> None:
    rng = np.random.default_rng(14)
    a, b = rng.random(30), 3 * rng.random(12)
    oracle = scipy.stats.ttest_ind(a, b, equal_var=False)
    found = stats.two_sample_test(a, b)
    assert (found.statistic, found.p) == pytest.approx((oracle.statistic, oracle.pvalue))


def test_welch_at_the_edges() -> None:
    assert stats.two_sample_test([1, 1], [1, 1, 1]).p == 1.0
    assert stats.two_sample_test([0.1 + 0.2] * 2, [0.3] * 3).p == 1.0
    assert stats.two_sample_test([1, 1], [2, 2, 2]).statistic == -math.inf
    alone = stats.two_sample_test([1], [2, 3])
    assert math.isnan(alone.statistic)
    assert alone.p == 1.0


def test_permutation_by_enumeration() -> None:
    # Six ways to deal 1, 2 | 3, 4: differences -2, -1, 0, 0, 1, 2. At least 2: two of six.
    found = stats.two_sample_test([1, 2], [3, 4], test="permutation")
    assert (found.statistic, found.p, found.n) == (-2.0, 2 / 6, 4)
    # 0 | 0.1, 0.2, 0.3: the lone value differs from the mean of the rest by -0.2, -1/15, 1/15
    # and 0.2. The two ends tie on paper.
    for a, b in (([0.0], [0.1, 0.2, 0.3]), ([0.1, 0.2, 0.3], [0.0])):
        assert stats.two_sample_test(a, b, test="permutation").p == 2 / 4


def test_permutation_agrees_with_scipy() -> None:
    rng = np.random.default_rng(15)
    a, b = rng.random(5) + 0.3, rng.random(7)
    oracle = scipy.stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)),
        alternative="greater",
        n_resamples=np.inf,
    )
    exact = stats.two_sample_test(a, b, test="permutation")  # 792 deals
    assert exact.p == pytest.approx(oracle.pvalue)
    drawn = stats.two_sample_test(a, b, test="permutation", resamples=791)
    assert drawn.p != exact.p
    assert drawn.p == pytest.approx(exact.p, abs=4 * math.sqrt(exact.p / 791))
    assert drawn.p * 792 == pytest.approx(round(drawn.p * 792))


# --- adjust ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # 0.005 * 4, 0.01 * 3, 0.03 * 2, and 0.04 * 1 raised to the one before it.
        ("holm", [0.03, 0.06, 0.06, 0.02]),
        ("bonferroni", [0.04, 0.16, 0.12, 0.02]),
        # 0.005 * 4/1 = 0.02, 0.01 * 4/2 = 0.02, 0.03 * 4/3 = 0.04, 0.04 * 4/4.
        ("bh", [0.02, 0.04, 0.04, 0.02]),
        ("none", [0.01, 0.04, 0.03, 0.005]),
    ],
)
def test_adjust_by_hand(method: str, expected: list[float]) -> None:
    found = stats.adjust([0.01, 0.04, 0.03, 0.005], method)
    assert found.tolist() == pytest.approx(expected)


def test_benjamini_hochberg_lowers_to_the_one_after() -> None:
    # 0.03 * 3/1 = 0.09, 0.031 * 3/2 = 0.0465, 0.032: all come down to 0.032.
    assert stats.adjust([0.03, 0.032, 0.031], "bh").tolist() == pytest.approx([0.032] * 3)


p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@quick
@given(p_lists, st.sampled_from(stats.CORRECTIONS))
def test_adjusted_values_keep_their_order(p: list[float], method: str) -> None:
    found = stats.adjust(p, method)
    assert (found >= np.array(p)).all()
    assert (found <= 1.0).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0.0).all()


@quick
@given(p_lists)
def test_benjamini_hochberg_agrees_with_scipy(p: list[float]) -> None:
    assert stats.adjust(p, "bh") == pytest.approx(scipy.stats.false_discovery_control(p))


def test_no_p_values_give_none() -> None:
    assert stats.adjust([]).shape == (0,)


# --- sizes -------------------------------------------------------------------------------------


def test_effect_sizes_by_hand() -> None:
    # Differences 1, 2, 3: mean 2 over deviation 1.
    assert stats.effect_size([2, 4, 6], [1, 2, 3]) == pytest.approx(2.0)
    # Means 2 and 4, pooled deviation 1, four degrees of freedom:
    # -2 * gamma(2) / (sqrt(2) * gamma(1.5)) = -2 * 0.797885.
    found = stats.effect_size([1, 2, 3], [3, 4, 5], paired=False)
    assert found == pytest.approx(-2 / (math.sqrt(2) * math.gamma(1.5)))
    assert found == pytest.approx(-1.595769, abs=1e-6)


def test_effect_sizes_at_the_edges() -> None:
    assert stats.effect_size([0.5, 0.7], [0.5, 0.7]) == 0.0
    assert stats.effect_size([0.3, 0.4, 0.5], [0.2, 0.3, 0.4]) == math.inf
    assert stats.effect_size([1, 2], [2, 3]) == -math.inf
    assert math.isnan(stats.effect_size([1], [2]))
    assert stats.effect_size([0.1 + 0.2] * 2, [0.3] * 2, paired=False) == 0.0
    assert stats.effect_size([1, 1], [2, 2], paired=False) == -math.inf
    assert math.isnan(stats.effect_size([1, 2], [2], paired=False))


@pytest.mark.parametrize(("n", "power"), [(4, 0.8), (10, 0.8), (10, 0.5), (200, 0.9)])
def test_detectable_difference_is_detected(n: int, power: float) -> None:
    smallest = stats.detectable_difference(sd=2.0, n=n, power=power)
    trials = np.random.default_rng(n).normal(smallest, 2.0, size=(20_000, n))
    found = scipy.stats.ttest_1samp(trials, 0.0, axis=1).pvalue <= 0.05
    assert found.mean() == pytest.approx(power, abs=0.011)


def test_detectable_difference_approaches_the_normal_one() -> None:
    normal = NormalDist()
    expected = (normal.inv_cdf(0.975) + normal.inv_cdf(0.8)) * 3 / math.sqrt(1_000_000)
    assert stats.detectable_difference(sd=3, n=1_000_000) == pytest.approx(expected, rel=1e-5)
    # With ten queries the normal answer is too small by a tenth.
    assert stats.detectable_difference(sd=1, n=10) > 1.1 * 2.8016 / math.sqrt(10)


def test_detectable_difference_of_differences() -> None:
    differences = np.random.default_rng(0).normal(size=25)
    found = stats.detectable_difference(differences, power=0.9, alpha=0.01)
    sd = float(differences.std(ddof=1))
    assert found == pytest.approx(stats.detectable_difference(sd=sd, n=25, power=0.9, alpha=0.01))
    assert found > stats.detectable_difference(differences)
    assert stats.detectable_difference([0.2, 0.2]) == 0.0
    assert math.isnan(stats.detectable_difference([0.2]))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({}, "sd is None and n is None"),
        ({"sd": 1.0}, "n is None"),
        ({"differences": [1, 2], "n": 3}, "together with sd or n"),
        ({"sd": -1.0, "n": 3}, "sd is -1.0"),
        ({"sd": math.nan, "n": 3}, "sd is nan"),
        ({"sd": 1.0, "n": 1}, "at least 2"),
        ({"sd": 1.0, "n": 9, "power": 0.05}, "power above alpha"),
        ({"sd": 1.0, "n": 9, "alpha": 0.0}, "alpha is 0.0"),
    ],
)
def test_detectable_difference_refuses(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stats.detectable_difference(**kwargs)  # type: ignore[arg-type]


# --- ranks -------------------------------------------------------------------------------------


def ranks(found: list[stats.RankInterval]) -> list[tuple[int, int, int]]:
    return [(r.rank, r.low, r.high) for r in found]


def test_clear_ranks_have_no_width() -> None:
    matrix = np.random.default_rng(0).random((50, 1)) + np.array([[2.0, 9.0, 5.0]])
    assert ranks(stats.rank_intervals(matrix)) == [(3, 3, 3), (1, 1, 1), (2, 2, 2)]
    turned = stats.rank_intervals(matrix, higher_is_better=False)
    assert ranks(turned) == [(1, 1, 1), (3, 3, 3), (2, 2, 2)]


def test_equal_systems_span_both_ranks() -> None:
    values = np.random.default_rng(0).random(50)
    matrix = np.column_stack([values, values + 1.0, values])
    assert ranks(stats.rank_intervals(matrix)) == [(2, 2, 3), (1, 1, 1), (2, 2, 3)]


def test_systems_that_differ_by_rounding_are_equal() -> None:
    matrix = np.array([[0.1 + 0.2, 0.3]] * 10)
    assert matrix[0, 0] > matrix[0, 1]
    assert ranks(stats.rank_intervals(matrix)) == [(1, 1, 2), (1, 1, 2)]


def test_rank_intervals_by_hand() -> None:
    # The first system leads by 3 on one query and trails by 1 on the other. Resamples give a
    # lead of 6, 2 or -2 with chances 1/4, 1/2, 1/4: it comes second on a quarter of them,
    # which tails of 20 % see and tails of 30 % do not.
    matrix = [[3.0, 0.0], [0.0, 1.0]]
    assert ranks(stats.rank_intervals(matrix, level=0.6)) == [(1, 1, 2), (2, 1, 2)]
    assert ranks(stats.rank_intervals(matrix, level=0.4)) == [(1, 1, 1), (2, 2, 2)]


def test_similar_systems_span_several_ranks() -> None:
    matrix = np.random.default_rng(1).random((40, 6))
    matrix[:, 5] -= 0.9
    found = stats.rank_intervals(matrix)
    assert sorted(r.rank for r in found) == [1, 2, 3, 4, 5, 6]
    assert all(r.low <= r.rank <= r.high for r in found)
    assert all(r.low < r.high <= 5 for r in found[:5])
    assert ranks(found)[5] == (6, 6, 6)
    narrower = stats.rank_intervals(matrix, level=0.5)
    assert sum(r.high - r.low for r in narrower) < sum(r.high - r.low for r in found)


def test_rank_intervals_hold_the_observed_rank() -> None:
    # At this level the interval is all but the median of the resamples, from which the observed
    # rank of one of many equal systems strays.
    matrix = np.random.default_rng(2).random((30, 25))
    assert all(r.low <= r.rank <= r.high for r in stats.rank_intervals(matrix, level=0.01))


def test_ranks_of_one_query_or_cluster_are_open() -> None:
    assert ranks(stats.rank_intervals([[0.1, 0.9, 0.5]])) == [(3, 1, 3), (1, 1, 3), (2, 1, 3)]
    found = stats.rank_intervals([[0.1, 0.9], [0.1, 0.9]], clusters=["x", "x"])
    assert ranks(found) == [(2, 1, 2), (1, 1, 2)]


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kwargs", "message"),
    [
        ([], {}, "values is empty"),
        ([0.5, math.nan], {}, r"values\[1\] is nan.*finite"),
        ([0.5, math.inf], {}, r"values\[1\] is inf"),
        ([0.5, None], {}, r"values\[1\] is nan"),
        (["high", "low"], {}, "cannot be read as numbers"),
        ([[0.5, 0.6]], {}, r"2 dimension.*means\(\)"),
        ([1, 2], {"level": 95}, "level is 95.*0.95"),
        ([1, 2], {"level": 1.0}, "level is 1.0"),
        ([1, 2], {"level": math.nan}, "level is nan"),
        ([1, 2], {"resamples": 0}, "resamples is 0"),
        ([1, 2], {"resamples": 10.5}, "resamples is 10.5"),
        ([1, 2], {"seed": -1}, "seed is -1"),
        ([1, 2], {"method": "percentil"}, "Did you mean 'percentile'"),
        ([1, 2], {"clusters": ["x"]}, "each of the 2 values"),
        ([1, 2], {"clusters": ["x", None]}, r"clusters\[1\] is missing"),
        ([1, 2], {"clusters": [math.nan, 1.0]}, r"clusters\[0\] is missing"),
    ],
)
def test_mean_refuses(values: object, kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stats.mean(values, **kwargs)  # type: ignore[arg-type]


def test_other_functions_refuse() -> None:
    with pytest.raises(InputError, match=r"matrix has 1 dimension.*use mean\(\)"):
        stats.means([1.0, 2.0])
    with pytest.raises(InputError, match=r"matrix\[1, 0\] is nan"):
        stats.means([[1.0, 2.0], [math.nan, 3.0]])
    with pytest.raises(InputError, match="a has 2 values and b has 3"):
        stats.paired_test([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="Did you mean 'wilcoxon'"):
        stats.paired_test([1, 2], [1, 2], test="wilcoxen")
    with pytest.raises(InputError, match="Did you mean 'permutation'"):
        stats.two_sample_test([1, 2], [1, 2], test="permutations")
    with pytest.raises(InputError, match="b is empty"):
        stats.two_sample_test([1, 2], [])
    with pytest.raises(InputError, match="Did you mean 'holm'"):
        stats.adjust([0.1], "holmes")
    with pytest.raises(InputError, match=r"p_values\[1\] is nan"):
        stats.adjust([0.1, math.nan])
    with pytest.raises(InputError, match=r"p_values\[0\] is 1.5"):
        stats.adjust([1.5, 0.1])
    with pytest.raises(InputError, match="level is 2"):
        stats.rank_intervals([[1.0, 2.0]], level=2)


# --- tables ------------------------------------------------------------------------------------


def rows(*records: tuple[str, str, str, float | None]) -> pl.DataFrame:
    return pl.DataFrame(records, schema=["query_id", "system", "measure", "value"], orient="row")


def long(values: dict[tuple[str, str], list[float]]) -> pl.DataFrame:
    return rows(
        *(
            (f"q{i}", system, measure, value)
            for (system, measure), column in values.items()
            for i, value in enumerate(column)
        )
    )


SMALL = long(
    {
        ("dense", "nDCG@10"): [2.0, 4.0, 6.0],
        ("bm25", "nDCG@10"): [1.0, 2.0, 3.0],
        ("dense", "latency"): [1.0, 5.0, 3.0],
        ("bm25", "latency"): [2.0, 5.0 + 1e-10, 5.0],
        ("hybrid", "nDCG@10"): [1.0, 2.0, 3.0],
        ("hybrid", "latency"): [3.0, 6.0, 6.0],
    }
)


def test_summarise_by_hand() -> None:
    found = stats.summarise(SMALL, method="t")
    assert found.columns == ["system", "measure", "mean", "low", "high", "n"]
    assert found.select("system", "measure").rows() == [
        ("dense", "nDCG@10"),
        ("dense", "latency"),
        ("bm25", "nDCG@10"),
        ("bm25", "latency"),
        ("hybrid", "nDCG@10"),
        ("hybrid", "latency"),
    ]
    assert found["mean"].to_list() == pytest.approx([4.0, 3.0, 2.0, 4.0, 2.0, 5.0])
    assert found["n"].to_list() == [3] * 6
    # 1, 2, 3: deviation 1, error 1/sqrt 3, t(0.975, 2) = 4.302653.
    assert found.row(2)[3:5] == pytest.approx(
        (2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / math.sqrt(3)), abs=1e-6
    )


def test_summarise_passes_its_options_on() -> None:
    values = np.random.default_rng(0).exponential(size=9)  # q0 to q8 sort as they are
    table = long({("a", "m"): values.tolist()})
    options = {"level": 0.8, "method": "percentile", "resamples": 50, "seed": 3}
    labels = [0, 0, 1, 1, 2, 2, 3, 3, 3]
    direct = stats.mean(values, clusters=labels, **options)  # type: ignore[arg-type]
    clusters = {f"q{i}": label for i, label in enumerate(labels)}
    found = stats.summarise(table, clusters=clusters, **options)  # type: ignore[arg-type]
    assert found.row(0) == ("a", "m", direct.value, direct.low, direct.high, 9)
    assert found.row(0) != stats.summarise(table, **options).row(0)  # type: ignore[arg-type]


def test_the_order_of_the_rows_changes_no_number() -> None:
    rng = np.random.default_rng(0)
    table = long({(s, m): rng.random(20).tolist() for s in "abc" for m in ("x", "y")})
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    key = ["system", "measure"]
    assert_frame_equal(stats.summarise(table).sort(key), stats.summarise(shuffled).sort(key))
    assert_frame_equal(
        stats.contrasts(table, "b", test="randomisation").sort(key),
        stats.contrasts(shuffled, "b", test="randomisation").sort(key),
    )
    first_seen = shuffled["system"].unique(maintain_order=True).to_list()
    assert first_seen != ["a", "b", "c"]
    assert stats.summarise(shuffled)["system"].unique(maintain_order=True).to_list() == first_seen


def test_summarise_takes_systems_with_unequal_queries() -> None:
    table = rows(
        ("q1", "a", "m", 1.0),
        ("q2", "a", "m", 3.0),
        ("q2", "b", "m", 5.0),
        ("q3", "b", "m", 7.0),
        ("q4", "b", "m", 9.0),
        ("q4", "b", "only", 0.5),
    )
    found = stats.summarise(table)
    assert found.select("system", "measure", "mean", "n").rows() == [
        ("a", "m", 2.0, 2),
        ("b", "m", 7.0, 3),
        ("b", "only", 0.5, 1),
    ]
    expected = stats.mean([5.0, 7.0, 9.0])
    assert found.row(1)[3:5] == pytest.approx((expected.low, expected.high))
    assert math.isnan(found.row(2)[3])


def test_tables_of_the_project_and_other_types_are_taken() -> None:
    expected = stats.summarise(SMALL)
    assert_frame_equal(stats.summarise(SimpleNamespace(frame=SMALL)), expected)
    coded = SMALL.with_columns(
        pl.col("query_id").cast(pl.Categorical), pl.col("system").cast(pl.Categorical)
    )
    assert_frame_equal(stats.summarise(coded), expected)
    whole = SMALL.filter(pl.col("measure") == "nDCG@10").with_columns(
        pl.col("value").cast(pl.Int32)
    )
    assert stats.summarise(whole)["mean"].to_list() == [4.0, 2.0, 2.0]
    hits = SMALL.with_columns(pl.col("value") > 2.0)
    assert stats.summarise(hits)["mean"].to_list() == pytest.approx(
        [2 / 3, 2 / 3, 1 / 3, 2 / 3, 1 / 3, 1.0]
    )


def test_contrasts_by_hand() -> None:
    found = stats.contrasts(SMALL, "bm25", method="t", lower_is_better=["latency"])
    assert found.columns == [
        *("system", "measure", "difference", "low", "high", "p", "p_adjusted"),
        *("effect_size", "wins", "ties", "losses", "detectable", "n"),
    ]
    by_cell = {(r["system"], r["measure"]): r for r in found.iter_rows(named=True)}
    assert list(by_cell) == [
        ("dense", "nDCG@10"),
        ("dense", "latency"),
        ("hybrid", "nDCG@10"),
        ("hybrid", "latency"),
    ]

    # dense - bm25 in nDCG: 1, 2, 3, worked out in test_paired_t_by_hand.
    gain = by_cell["dense", "nDCG@10"]
    assert gain["difference"] == 2.0
    assert gain["p"] == pytest.approx(1 - math.sqrt(12 / 14))
    assert gain["effect_size"] == pytest.approx(2.0)
    assert gain["high"] - 2.0 == pytest.approx(4.302653 / math.sqrt(3), abs=1e-6)
    assert (gain["wins"], gain["ties"], gain["losses"], gain["n"]) == (3, 0, 0, 3)
    assert gain["detectable"] == pytest.approx(stats.detectable_difference([1, 2, 3]))

    # In latency: -1, -1e-10 (a tie), -2. Lower is better, so two wins; the sign stays.
    faster = by_cell["dense", "latency"]
    assert faster["difference"] == pytest.approx(-1.0)
    assert (faster["wins"], faster["ties"], faster["losses"]) == (2, 1, 0)

    # hybrid ties in nDCG everywhere, and its latency is 1 worse everywhere.
    same, slower = by_cell["hybrid", "nDCG@10"], by_cell["hybrid", "latency"]
    assert (same["difference"], same["low"], same["high"], same["p"]) == (0.0, 0.0, 0.0, 1.0)
    assert (same["effect_size"], same["detectable"], same["ties"]) == (0.0, 0.0, 3)
    assert (slower["wins"], slower["losses"]) == (0, 3)

    # The family is the whole table.
    assert found["p_adjusted"].to_list() == stats.adjust(found["p"].to_numpy()).tolist()
    unturned = stats.contrasts(SMALL, "bm25", method="t")
    assert unturned.filter(system="dense", measure="latency")["losses"].item() == 2


@pytest.mark.parametrize(
    ("test", "clustered"),
    [
        ("t", False),
        ("wilcoxon", False),
        ("randomisation", False),
        ("t", True),
        ("randomisation", True),
    ],
)
def test_contrasts_agree_with_the_single_functions(test: str, clustered: bool) -> None:
    rng = np.random.default_rng(5)
    names = [f"q{i:02}" for i in range(30)]
    columns = {(s, m): rng.random(30) for s in ("a", "b", "c") for m in ("x", "y")}
    table = rows(
        *((q, s, m, v) for (s, m), vs in columns.items() for q, v in zip(names, vs, strict=True))
    )
    labels = [i // 3 for i in range(30)] if clustered else None
    found = stats.contrasts(
        table,
        "a",
        test=test,
        correction="bh",
        level=0.9,
        resamples=300,
        test_resamples=500,
        seed=9,
        clusters=dict(zip(names, labels, strict=True)) if labels else None,
    )
    for row in found.iter_rows(named=True):
        ours, base = columns[row["system"], row["measure"]], columns["a", row["measure"]]
        gap = stats.difference(
            ours, base, paired=True, level=0.9, resamples=300, seed=9, clusters=labels
        )
        assert (row["difference"], row["low"], row["high"]) == pytest.approx(
            (gap.value, gap.low, gap.high)
        )
        single = stats.paired_test(ours, base, test=test, resamples=500, seed=9, clusters=labels)
        assert row["p"] == pytest.approx(single.p)
        assert row["effect_size"] == pytest.approx(stats.effect_size(ours, base))
    if not clustered:
        detectable = stats.detectable_difference(columns["c", "y"] - columns["a", "y"], alpha=0.1)
        assert found["detectable"][-1] == pytest.approx(detectable)
    assert found["p_adjusted"].to_list() == stats.adjust(found["p"].to_numpy(), "bh").tolist()


def test_contrasts_of_measures_with_queries_of_their_own() -> None:
    table = long(
        {
            ("a", "m"): [1.0, 2.0, 4.0],
            ("b", "m"): [2.0, 4.0, 7.0],
            ("a", "rare"): [1.0, 2.0],
            ("b", "rare"): [2.0, 5.0],
        }
    )
    found = stats.contrasts(table, "a")
    assert found.select("difference", "n").rows() == [(2.0, 3), (2.0, 2)]


def test_contrasts_on_one_query_say_nothing() -> None:
    row = stats.contrasts(long({("a", "m"): [1.0], ("b", "m"): [2.0]}), "a").row(0, named=True)
    assert (row["difference"], row["p"], row["p_adjusted"]) == (1.0, 1.0, 1.0)
    assert all(math.isnan(row[name]) for name in ("low", "high", "effect_size", "detectable"))


def test_contrasts_name_the_missing_query() -> None:
    table = long({("a", "m"): [1.0, 2.0, 4.0], ("b", "m"): [2.0, 4.0]})
    with pytest.raises(InputError, match="'b' has no 'm' for query 'q2', which 'a' has; 1 query"):
        stats.contrasts(table, "a")
    with pytest.raises(InputError, match="'b' has no 'm' for query 'q2', which 'a' has"):
        stats.contrasts(table, "b")
    lone = long({("a", "m"): [1.0, 2.0], ("b", "m"): [2.0, 4.0], ("b", "x"): [0.0, 0.0]})
    with pytest.raises(InputError, match="'a' has no 'x' for query 'q0'"):
        stats.contrasts(lone, "a")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"baseline": "BM52"}, "Did you mean 'bm25'"),
        ({"test": "sign"}, "Choose one of t, wilcoxon, randomisation"),
        ({"correction": "hulm"}, "Did you mean 'holm'"),
        ({"lower_is_better": "latency"}, "collection of names"),
        ({"power": 0.05}, "power above 0.05"),
        ({"test_resamples": 0}, "test_resamples is 0"),
        ({"clusters": {"q0": 1}}, "no label for query 'q1'"),
    ],
)
def test_contrasts_refuse(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stats.contrasts(SMALL, **{"baseline": "bm25", **kwargs})  # type: ignore[arg-type]


def test_contrasts_need_another_system() -> None:
    with pytest.raises(InputError, match="no system but the baseline"):
        stats.contrasts(long({("a", "m"): [1.0]}), "a")


def test_tables_that_break_the_rules_are_refused() -> None:
    with pytest.raises(TableError, match=r"second value for query 'q1'.*first in row 0") as caught:
        stats.summarise(rows(("q1", "a", "m", 1.0), ("q2", "a", "m", 1.0), ("q1", "a", "m", 2.0)))
    assert (caught.value.row, caught.value.first_row) == (2, 0)
    for bad in (math.nan, None, math.inf):
        with pytest.raises(TableError, match="row 1: the value of query 'q2', system 'a'"):
            stats.summarise(rows(("q1", "a", "m", 1.0), ("q2", "a", "m", bad)))
    with pytest.raises(TableError, match=r"no column 'query_id'.*Did you mean 'queryid'"):
        stats.summarise(SMALL.rename({"query_id": "queryid"}))
    with pytest.raises(TableError, match="no rows"):
        stats.summarise(SMALL.clear())
    with pytest.raises(TableError, match="holds String"):
        stats.summarise(SMALL.with_columns(pl.col("value").cast(pl.String)))
    with pytest.raises(TableError, match="row 1: system is missing"):
        stats.summarise(
            SMALL.with_columns(system=pl.when(pl.col("query_id") != "q1").then("system"))
        )
    with pytest.raises(InputError, match="LazyFrame, where a polars DataFrame"):
        stats.summarise(SMALL.lazy())  # type: ignore[arg-type]


def test_means_need_no_heavy_import() -> None:
    code = (
        "import sys, farfield.stats as s; s.mean([1.0, 2.0, 4.0]); "
        "heavy = {'scipy', 'polars'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
