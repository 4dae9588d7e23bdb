"""Tests and corrections, beside small cases worked out by hand and beside scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import stats

quick = settings(max_examples=40)
# Eighths are exact in floating point: what is equal on paper is equal here.
eighths = st.integers(-800, 800).map(lambda i: i / 8)


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
