"""Shares of a whole: ratios of sums, with intervals over queries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield import stats
from farfield.errors import InputError


def test_a_share_is_a_ratio_of_sums_and_no_mean_of_shares():
    # Query 1: 1 of 1 found; query 2: 1 of 9. Together 2 of 10, not the mean of 1 and 1/9.
    (share,) = stats.ratios([[1.0], [1.0]], [1.0, 9.0])
    assert share.value == pytest.approx(0.2)
    assert (share.n, share.level, share.method) == (2, 0.95, "bca")
    assert share.low <= 0.2 <= share.high


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_equal_to_the_mean_of_clusters(method):
    # Documents that belong to queries, found (1) or not (0): the mean over all documents, with
    # queries as clusters, is the ratio of what was found to what there is.
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9, 40)
    query = np.repeat(np.arange(40), sizes)
    found = (rng.random(len(query)) < rng.random(40)[query]).astype(float)
    clustered = stats.mean(found, clusters=query, method="percentile", resamples=500, seed=3)
    parts = np.bincount(query, weights=found)[:, None]
    (share,) = stats.ratios(parts, sizes, method="percentile", resamples=500, seed=3)
    assert share.value == pytest.approx(clustered.value)
    assert share.low == pytest.approx(clustered.low)
    assert share.high == pytest.approx(clustered.high)
    # With its correction the interval stays close to the plain one, and holds the value.
    (other,) = stats.ratios(parts, sizes, method=method, resamples=500, seed=3)
    assert other.low == pytest.approx(share.low, abs=0.05)
    assert other.low <= other.value <= other.high


def test_the_interval_covers_the_true_share_about_as_often_as_it_says():
    rng = np.random.default_rng(11)
    covered = 0
    for trial in range(200):
        whole = rng.integers(1, 30, 60).astype(float)
        part = whole * rng.beta(2, 3, 60)  # on average 2/5 of the whole, whatever its size
        (share,) = stats.ratios(part[:, None], whole, resamples=400, seed=trial)
        covered += share.low <= 0.4 <= share.high
    assert 0.88 <= covered / 200 <= 0.99


def test_columns_share_the_whole_and_add_up():
    rng = np.random.default_rng(1)
    parts = rng.random((20, 3))
    shares = stats.ratios(parts, parts.sum(axis=1), seed=2)
    assert sum(share.value for share in shares) == pytest.approx(1.0)
    (same,) = stats.ratios(parts[:, :1], parts.sum(axis=1), seed=2)
    assert same == shares[0]


def test_where_nothing_can_be_shared_out():
    (nothing,) = stats.ratios([[1.0], [2.0]], [0.0, 0.0])
    assert all(math.isnan(x) for x in (nothing.value, nothing.low, nothing.high))
    (cancelled,) = stats.ratios([[1.0], [2.0]], [0.1 + 0.2, -0.3])
    assert math.isnan(cancelled.value)
    (single,) = stats.ratios([[1.0]], [4.0])
    assert single.value == 0.25
    assert math.isnan(single.low)
    # One query has everything: resamples without it say nothing, the others all say the same.
    (rare,) = stats.ratios([[1.0], [0.0], [0.0]], [2.0, 0.0, 0.0])
    assert (rare.value, rare.low, rare.high) == (0.5, 0.5, 0.5)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), min_size=2, max_size=30),
    st.floats(0.01, 100),
)
def test_the_unit_of_measurement_does_not_matter(rows, scale):
    whole = np.array([size for _, size in rows])
    parts = (np.array([share for share, _ in rows]) * whole)[:, None]
    (share,) = stats.ratios(parts, whole, resamples=50)
    (scaled,) = stats.ratios(parts * scale, whole * scale, resamples=50)
    assert scaled.value == pytest.approx(share.value)
    assert 0 <= share.value <= 1
    assert share.low <= share.high


def test_bad_input():
    with pytest.raises(InputError, match="parts has 2 rows and whole has 3 values"):
        stats.ratios([[1.0], [1.0]], [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="which shares have no form of"):
        stats.ratios([[1.0]], [1.0], method="t")
    with pytest.raises(InputError, match="where a finite number is expected"):
        stats.ratios([[math.nan]], [1.0])
