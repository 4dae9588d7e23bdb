"""Agreement of two rankings of systems, differences of many columns, correlation by dealing out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

from farfield import stats
from farfield.errors import InputError


def noisy(means: list[float], n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(means, 0.05, size=(n, len(means)))


def test_tau_by_hand():
    # Means 3, 2, 1 against 3, 1, 2: of three pairs two agree and one does not.
    found = stats.agreement([[3, 2, 1], [3, 2, 1]], [[3, 1, 2], [3, 1, 2]])
    assert found.tau == pytest.approx((2 - 1) / 3)
    assert (found.low, found.high) == pytest.approx((1 / 3, 1 / 3))  # nothing varies
    # Level on one side: a tie counts for neither.
    found = stats.agreement([[3, 2, 2]], [[3, 1, 2]])
    assert found.tau == pytest.approx(2 / math.sqrt(2 * 3))


@given(seed=st.integers(0, 10_000), systems=st.integers(2, 8))
@settings(max_examples=25)
def test_tau_is_that_of_scipy(seed, systems):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 4, (5, systems)), rng.integers(0, 4, (7, systems))
    found = stats.agreement(a, b, resamples=20)
    theirs = oracle.kendalltau(a.mean(axis=0).round(9), b.mean(axis=0).round(9)).statistic
    assert found.tau == pytest.approx(theirs, nan_ok=True)
    assert math.isnan(found.tau) or found.low <= found.tau <= found.high


def test_the_same_systems_on_two_random_sets_agree_as_much_as_noise_lets_them():
    means = [0.5, 0.51, 0.52, 0.53, 0.54]
    found = stats.agreement(noisy(means, 40, 1), noisy(means, 60, 2))
    assert found.p > 0.05
    assert found.tau < 1.0
    assert found.expected == pytest.approx(found.tau, abs=0.4)


def test_a_reversed_order_is_found():
    means = [0.3, 0.4, 0.5, 0.6]
    found = stats.agreement(noisy(means, 40, 1), noisy(means[::-1], 40, 2))
    assert found.tau == -1.0
    assert found.high < 0
    assert found.p == pytest.approx(1 / 1001)  # no deal comes near
    assert abs(found.expected) < 0.5  # on average over both sets all systems are worth the same


def test_a_drop_that_all_share_is_no_difference_between_systems():
    means = np.array([0.3, 0.4, 0.5])
    found = stats.agreement(noisy(means + 0.5, 40, 1), noisy(means, 40, 1))
    assert found.tau == found.expected == 1.0
    assert found.p == 1.0


def test_p_of_two_systems_is_that_of_a_permutation_test_of_their_differences():
    a, b = noisy([0.5, 0.52], 6, 3), noisy([0.5, 0.45], 5, 4)
    found = stats.agreement(a, b, resamples=20_000)
    theirs = oracle.permutation_test(
        (a[:, 0] - a[:, 1], b[:, 0] - b[:, 1]),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        n_resamples=np.inf,
    )
    assert found.p == pytest.approx(theirs.pvalue, abs=0.01)


def test_p_is_uniform_where_nothing_differs():
    rng = np.random.default_rng(0)
    p = [
        stats.agreement(rng.random((15, 4)), rng.random((25, 4)), resamples=199, seed=i).p
        for i in range(300)
    ]
    assert oracle.kstest(p, "uniform").pvalue > 0.001


def test_agreement_without_a_spread():
    one = stats.agreement([[1, 2]], [[1, 2], [1, 3]])
    assert one.tau == 1.0
    assert math.isnan(one.low)
    assert math.isnan(one.expected)  # one query says nothing about its spread
    level = stats.agreement([[1, 1], [2, 2]], [[1, 2], [1, 3]])
    assert math.isnan(level.tau)
    single = stats.agreement([[1], [2]], [[1], [3]])
    assert math.isnan(single.tau)
    assert math.isnan(single.p)
    same = stats.agreement(np.ones((4, 3)), np.ones((5, 3)))
    assert same.p == 1.0


def test_agreement_is_reproducible_and_refuses_other_systems():
    a, b = noisy([0.1, 0.12, 0.2], 10, 0), noisy([0.1, 0.12, 0.2], 10, 1)
    assert stats.agreement(a, b, seed=3) == stats.agreement(a, b, seed=3)
    with pytest.raises(InputError, match="a has 3 columns and b has 2"):
        stats.agreement(a, b[:, :2])


@pytest.mark.parametrize("method", stats.METHODS)
def test_differences_are_those_of_each_column(method):
    a, b = noisy([0.5, 0.9], 30, 0), noisy([0.4, 0.9], 20, 1)
    found = stats.differences(a, b, method=method, seed=5)
    for at, estimate in enumerate(found):
        alone = stats.difference(a[:, at], b[:, at], paired=False, method=method, seed=5)
        assert estimate.value == pytest.approx(alone.value)
        assert (estimate.low, estimate.high) == pytest.approx((alone.low, alone.high))
        assert estimate.n == 50


def test_differences_need_the_same_columns():
    with pytest.raises(InputError, match="a has 2 columns and b has 1"):
        stats.differences(np.ones((3, 2)), np.ones((3, 1)))
    (lone,) = stats.differences([[1.0]], [[0.5], [0.7]])
    assert lone.value == pytest.approx(0.4)
    assert math.isnan(lone.low)


def test_welch_on_columns_without_spread():
    level, varied = stats.differences(
        [[1.0, 1.0], [1.0, 2.0]], [[0.5, 1.0], [0.5, 3.0]], method="t"
    )
    assert (level.low, level.high) == (0.5, 0.5)
    theirs = oracle.ttest_ind([1.0, 2.0], [1.0, 3.0], equal_var=False).confidence_interval()
    assert (varied.low, varied.high) == pytest.approx((theirs.low, theirs.high))


def test_all_orders_of_three_queries_by_hand():
    # Values 1, 2, 4 against 1, 2, 3. Products of the six orders with the centred 1, 2, 3, that is
    # last minus first: 3, 2, 1, -1, -2, -3. Two of the six are as far from 0 as 3.
    (found,) = stats.correlation_tests([[1], [2], [4]], [[1], [2], [3]])
    assert found.p == pytest.approx(2 / 6)
    assert found.statistic == pytest.approx(np.corrcoef([1, 2, 4], [1, 2, 3])[0, 1])


def test_correlations_are_those_of_scipy():
    rng = np.random.default_rng(0)
    a = rng.random((60, 3))
    b = np.stack([a[:, 0] + rng.random(60), rng.random(60), -a[:, 2] + 0.1 * rng.random(60)], 1)
    for at, found in enumerate(stats.correlation_tests(a, b, seed=1)):
        theirs = oracle.pearsonr(a[:, at], b[:, at])
        assert found.statistic == pytest.approx(theirs.statistic)
        assert found.p == pytest.approx(theirs.pvalue, abs=0.02)


def test_a_column_that_never_varies_correlates_with_nothing():
    (found,) = stats.correlation_tests(np.full((30, 1), 0.1), np.random.rand(30, 1))
    assert (found.statistic, found.p) == (0.0, 1.0)


def test_correlation_needs_the_same_queries():
    with pytest.raises(InputError, match="the same queries and columns"):
        stats.correlation_tests(np.ones((3, 1)), np.ones((4, 1)))
