"""Do two scores put the same systems in the same order? Rank correlations over systems."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.bootstrap import Estimate
from farfield.stats.checks import Floats, choice, finite, share, whole
from farfield.stats.significance import Test
from farfield.stats.units import ROUNDING

RANK_CORRELATIONS = ("spearman", "kendall")
"""What ``rank_correlations`` can compute: Spearman's rho, or Kendall's tau-b."""


def rank_correlations(
    predictors: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    kind: str = "spearman",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Estimate]:
    """Return the rank correlation of every column of ``predictors`` with ``target``.

    There is a row per system. For the interval systems are resampled with all their scores; it is
    the plain bootstrap's, widened to hold the value where ties among repeated systems pull it
    away. A column that never varies has no correlation: NaN. With fewer than four systems there is
    no interval.
    """
    columns, goal = _checked(predictors, target)
    tail = (1.0 - share("level", level)) / 2.0
    measure = _measure(kind)
    n = len(goal)
    once = np.ones((1, n))
    weights = _draws(n, whole("resamples", resamples, 1), whole("seed", seed, 0))
    found = []
    for column in columns:
        value = float(measure(column, goal, once)[0])
        low = high = math.nan
        if n >= 4 and not math.isnan(value):
            drawn = measure(column, goal, weights)
            low, high = np.nanquantile(drawn, [tail, 1.0 - tail])
            low, high = min(float(low), value), max(float(high), value)
        found.append(
            Estimate(value=value, low=low, high=high, n=n, level=float(level), method=kind)
        )
    return found


def compare_rank_correlations(
    one: npt.ArrayLike,
    other: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    kind: str = "spearman",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[Estimate, Test]:
    """Return how much better ``one`` goes with ``target`` than ``other`` does, and a test of it.

    The interval resamples systems. The test is a randomisation test: if the two were equally good
    it would not matter which of a system's two ranks is called which, so they are exchanged at
    random. Two-sided.
    """
    columns, goal = _checked(np.column_stack([np.asarray(one), np.asarray(other)]), target)
    tail = (1.0 - share("level", level)) / 2.0
    measure = _measure(kind)
    n, draws = len(goal), whole("resamples", resamples, 1)
    once = np.ones((1, n))

    def gap(a: Floats, b: Floats, weights: Floats) -> Floats:
        return measure(a, goal, weights) - measure(b, goal, weights)

    value = float(gap(columns[0], columns[1], once)[0])
    low = high = p = math.nan
    if n >= 4 and not math.isnan(value):
        drawn = gap(columns[0], columns[1], _draws(n, draws, seed))
        low, high = np.nanquantile(drawn, [tail, 1.0 - tail])
        low, high = min(float(low), value), max(float(high), value)
        ranks = [_ranks(column) for column in columns]
        rng = np.random.default_rng(seed)
        extreme = 0
        for _ in range(draws):
            swap = rng.random(n) < 0.5
            a, b = np.where(swap, ranks[1], ranks[0]), np.where(swap, ranks[0], ranks[1])
            extreme += abs(float(gap(a, b, once)[0])) >= abs(value) - ROUNDING
        p = (extreme + 1) / (draws + 1)
    estimate = Estimate(value=value, low=low, high=high, n=n, level=float(level), method=kind)
    return estimate, Test(statistic=value, p=p, method="randomisation", n=n)


def _checked(predictors: npt.ArrayLike, target: npt.ArrayLike) -> tuple[Floats, Floats]:
    columns = np.ascontiguousarray(finite(predictors, "predictors", 2).T)
    goal = finite(target, "target", 1)
    if columns.shape[1] != len(goal):
        raise InputError(
            f"predictors has {columns.shape[1]} rows and target {len(goal)} values, where both are "
            "of the same systems. Give them in the same order."
        )
    return columns, goal


def _measure(kind: str) -> Callable[[Floats, Floats, Floats], Floats]:
    choice("kind", kind, RANK_CORRELATIONS)
    return _spearman if kind == "spearman" else _kendall


def _draws(n: int, resamples: int, seed: int) -> Floats:
    """How often each of n systems is drawn, for every resample."""
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), resamples).astype(float)


def _ranks(values: Floats) -> Floats:
    """Ranks from 1, equals sharing theirs."""
    return _order(values) @ np.ones(len(values)) + 0.5


def _order(values: Floats) -> Floats:
    """1 where the column's value is below the row's, one half where they are equal."""
    below = values[None, :] < values[:, None]
    found: Floats = below + 0.5 * (values[None, :] == values[:, None])
    return found


def _spearman(a: Floats, b: Floats, weights: Floats) -> Floats:
    """The correlation of ranks, for every row of weights (how often a system counts)."""
    # A rank among repeated systems: how many are below, and half of those that are equal.
    one, two = (weights @ _order(values).T for values in (a, b))
    total = weights.sum(axis=1, keepdims=True)
    one -= (weights * one).sum(axis=1, keepdims=True) / total
    two -= (weights * two).sum(axis=1, keepdims=True) / total
    spread = np.sqrt((weights * one**2).sum(axis=1) * (weights * two**2).sum(axis=1))
    return _over((weights * one * two).sum(axis=1), spread)


def _kendall(a: Floats, b: Floats, weights: Floats) -> Floats:
    """Tau-b for every row of weights; all pairs of systems at once, as a quadratic form."""
    one, two = (np.sign(values[:, None] - values[None, :]) for values in (a, b))

    def pairs(form: Floats) -> Floats:
        total: Floats = ((weights @ form) * weights).sum(axis=1)
        return total

    return _over(pairs(one * two), np.sqrt(pairs(np.abs(one)) * pairs(np.abs(two))))


def _over(value: Floats, spread: Floats) -> Floats:
    found = np.full(len(value), np.nan)
    np.divide(value, spread, out=found, where=spread > 1e-12)
    return found
