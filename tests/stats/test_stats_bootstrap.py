"""Means and differences: every number is worked out in view, or compared with an oracle."""

from __future__ import annotations

import math
import tracemalloc
from statistics import NormalDist

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from farfield import stats
from farfield.errors import InputError
from farfield.stats import units
from farfield.stats.bootstrap import Intervals
from farfield.stats.units import Units

quick = settings(max_examples=40)
# Eighths are exact in floating point: what is equal on paper is equal here.
eighths = st.integers(-800, 800).map(lambda i: i / 8)
samples = st.lists(eighths, min_size=2, max_size=25)


def interval(estimate: stats.Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


def bca(level: float) -> Intervals:
    return Intervals(level, "bca", resamples=1000, seed=0)


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
    shuffled = np.random.default_rng(0).permutation(drawn)[:, None]
    low, high = bca(level=0.8).bootstrap_bounds(shuffled, np.array([acceleration]))
    assert low[0] == pytest.approx(-40 + 100 * low_share)
    assert high[0] == pytest.approx(-40 + 100 * high_share)
    assert abs(low_share - 0.1) > 0.02  # the correction did something


def test_acceleration_by_hand() -> None:
    # Mean 2, deviations -2, -1, 3. Leaving one out moves the mean by half of that, so
    # a = sum(d^3) / (6 sum(d^2)^1.5) = (-8 - 1 + 27) / (6 * 14^1.5).
    units = Units.of(np.array([[0.0, 1.0, 5.0]]))
    assert units.acceleration()[0] == pytest.approx(18 / (6 * 14**1.5))


def test_bca_past_the_pole_ends_at_the_outermost_resample() -> None:
    drawn = np.arange(-5.0, 6.0)[:, None]
    low, high = bca(level=0.95).bootstrap_bounds(drawn, np.array([0.9]))
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
    monkeypatch.setattr(units, "BLOCK_CELLS", 70)
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
