"""Ranks of systems, with the ranks that resampling makes plausible."""

from __future__ import annotations

import numpy as np

from farfield import stats


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
