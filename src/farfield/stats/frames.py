"""Tables of per-query values: a mean, or a comparison, for every system and measure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from farfield.errors import InputError
from farfield.stats.bootstrap import Intervals
from farfield.stats.checks import choice, share, whole
from farfield.stats.effects import d_z, detectable
from farfield.stats.pivot import HasFrame, pivot
from farfield.stats.significance import CORRECTIONS, PAIRED_TESTS, adjust, paired_tests
from farfield.stats.units import Units, subtract

if TYPE_CHECKING:
    import polars as pl

# Two per-query values closer than this are a tie when wins are counted.
_TIE = 1e-9


def summarise(
    per_query: pl.DataFrame | HasFrame,
    *,
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    seed: int = 0,
    clusters: Mapping[str, object] | None = None,
) -> pl.DataFrame:
    """Return the mean of every system and measure: system, measure, mean, low, high, n.

    ``per_query`` is a table of query_id, system, measure and value, one row each; ``clusters``
    holds the label of every query, by its query_id. The other options are those of ``mean``.

    Systems, and within them measures, keep the order of their first appearance. Each mean is
    over the queries its own system has; those with the same queries share their resamples. The
    order of the rows changes no number.
    """
    intervals = Intervals(level, method, resamples, seed)
    table = pivot(per_query)
    parts = []
    for cells, queries in table.groups():
        rows = table.values[cells].compress(queries, axis=1)
        units = Units.of(rows, table.labels(clusters, queries))
        low, high = intervals.of(units)
        n = np.full(len(rows), units.n)
        parts.append((cells, {"mean": units.centre, "low": low, "high": high, "n": n}))
    return table.named(parts)


def contrasts(
    per_query: pl.DataFrame | HasFrame,
    baseline: str,
    *,
    test: str = "t",
    correction: str = "holm",
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    test_resamples: int = 10_000,
    seed: int = 0,
    power: float = 0.8,
    clusters: Mapping[str, object] | None = None,
    lower_is_better: Collection[str] = (),
) -> pl.DataFrame:
    """Compare every other system with ``baseline``, measure by measure, on the same queries.

    Args:
        per_query: a table of query_id, system, measure and value, one row each.
        baseline: the system to compare with.
        test: as in ``paired_test``.
        correction: as in ``adjust``; the family is all rows of the result.
        level: the confidence of the intervals; ``1 - level`` is the alpha of ``detectable``.
        method: how the intervals are made, as in ``mean``.
        resamples: how many resamples the intervals draw.
        test_resamples: how many flips the randomisation test draws.
        seed: the seed of both.
        power: the power of ``detectable``.
        clusters: the label of every query, by its query_id.
        lower_is_better: the measures of which a smaller value is a win.

    The columns: system, measure; difference, the mean of system - baseline, with low and high;
    p and p_adjusted; effect_size (d_z); wins, ties and losses of the system, in queries;
    detectable, the smallest true difference this test would find before any correction (see
    ``detectable_difference``); n, the queries. Signs of differences are never turned, whichever
    way a measure points. The order is that of ``summarise``.
    """
    import polars as pl

    intervals = Intervals(level, method, resamples, seed)
    choice("test", test, PAIRED_TESTS)
    choice("correction", correction, CORRECTIONS)
    whole("test_resamples", test_resamples, 1)
    alpha = 1.0 - level
    if share("power", power) <= alpha:
        raise InputError(
            f"power is {power!r} at level {level!r}, where power above {alpha:.3g} is expected. "
            "Ask for a power such as 0.8."
        )
    if isinstance(lower_is_better, str):
        raise InputError(
            f"lower_is_better is the text {lower_is_better!r}, where a collection of names is "
            f"expected. Write [{lower_is_better!r}]."
        )
    table = pivot(per_query)
    base = table.baseline(baseline)
    parts = []
    for (system, measure), queries in table.groups(without=base):
        own, theirs = table.values[system, measure], table.values[base, measure]
        rows, scale = subtract(*(x.compress(queries, axis=1) for x in (own, theirs)))
        units = Units.of(rows, table.labels(clusters, queries), scale)
        low, high = intervals.of(units)
        _, p = paired_tests(rows, scale, units, test, test_resamples, seed)
        turned = np.array([table.measures[m] in lower_is_better for m in measure])
        gains = np.where(turned[:, None], -rows, rows)
        wins = np.count_nonzero(gains > _TIE, axis=1)
        losses = np.count_nonzero(gains < -_TIE, axis=1)
        columns = {
            "difference": units.centre,
            "low": low,
            "high": high,
            "p": p,
            "effect_size": d_z(units if clusters is None else Units.of(rows, scale=scale)),
            "wins": wins,
            "ties": units.n - wins - losses,
            "losses": losses,
            "detectable": detectable(units, power, alpha),
            "n": np.full(len(rows), units.n),
        }
        parts.append(((system, measure), columns))
    found = table.named(parts)
    adjusted = pl.Series("p_adjusted", adjust(found["p"].to_numpy(), correction))
    return found.insert_column(found.get_column_index("p") + 1, adjusted)
