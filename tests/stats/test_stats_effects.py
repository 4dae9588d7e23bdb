"""Sizes of differences, and the smallest that would be found."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import scipy.stats

from farfield import stats
from farfield.errors import InputError


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
