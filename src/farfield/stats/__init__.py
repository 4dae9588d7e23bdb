"""Means, intervals, tests and corrections: the only place in farfield that averages.

A mean over queries is a guess about queries nobody has seen, so nothing here returns a mean
without the means to say how sure it is. Three layers:

- one row of values per thing measured: ``mean``, ``means``, ``difference``, ``differences``,
  ``ratios``, ``rank_intervals``, ``agreement``;
- tests and what goes with them: ``paired_test``, ``two_sample_test``, ``correlation_tests``,
  ``adjust``, ``effect_size``, ``detectable_difference``;
- tables of per-query values: ``summarise``, ``contrasts``.

Two conventions hold throughout.

*Seeds.* Whatever draws random numbers takes a ``seed``; the same input and seed give the same
numbers on the same release of numpy. Resamples are drawn once and shared by all columns, so
systems are compared on the same draws.

*Clusters.* When several queries belong to one item (rewrites of one question, turns of one
conversation) they are not independent, and an interval that pretends they are is too narrow.
``clusters`` takes one label per query; whole clusters are then drawn, and the mean is the ratio
of their sums. The mean itself does not change.

Inside, imports go one way: ``frames`` uses ``pivot``, ``significance``, ``effects`` and
``bootstrap``; the last three, ``ratios``, ``ranks`` and ``agreement`` use ``units``, and all use
``checks``. scipy and polars are imported where they are used, so that a mean needs neither.
"""

from __future__ import annotations

from farfield.stats.agreement import Agreement, agreement, correlation_tests
from farfield.stats.association import (
    RANK_CORRELATIONS,
    compare_rank_correlations,
    rank_correlations,
)
from farfield.stats.bootstrap import METHODS, Estimate, difference, differences, mean, means
from farfield.stats.change import (
    Change,
    ChangeDifference,
    change_difference,
    relative_change,
)
from farfield.stats.effects import detectable_difference, effect_size
from farfield.stats.frames import contrasts, summarise
from farfield.stats.pivot import HasFrame
from farfield.stats.ranks import RankInterval, rank_intervals
from farfield.stats.ratios import ratios
from farfield.stats.significance import (
    CORRECTIONS,
    PAIRED_TESTS,
    TWO_SAMPLE_TESTS,
    Test,
    adjust,
    paired_test,
    two_sample_test,
)

__all__ = [
    "CORRECTIONS",
    "METHODS",
    "PAIRED_TESTS",
    "RANK_CORRELATIONS",
    "TWO_SAMPLE_TESTS",
    "Agreement",
    "Change",
    "ChangeDifference",
    "Estimate",
    "HasFrame",
    "RankInterval",
    "Test",
    "adjust",
    "agreement",
    "change_difference",
    "compare_rank_correlations",
    "contrasts",
    "correlation_tests",
    "detectable_difference",
    "difference",
    "differences",
    "effect_size",
    "mean",
    "means",
    "paired_test",
    "rank_correlations",
    "rank_intervals",
    "ratios",
    "relative_change",
    "summarise",
    "two_sample_test",
]
