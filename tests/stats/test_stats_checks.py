"""What is refused and with which words, what is left alone, and what is not imported."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest

from farfield import stats
from farfield.errors import InputError


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


def test_means_need_no_heavy_import() -> None:
    code = (
        "import sys, farfield.stats as s; s.mean([1.0, 2.0, 4.0]); "
        "heavy = {'scipy', 'polars'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
