"""Shares of a whole that are added up over queries: found of relevant documents, gained of room."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.bootstrap import Estimate, Intervals
from farfield.stats.checks import finite
from farfield.stats.units import Units, skew


def ratios(
    parts: npt.ArrayLike,
    whole: npt.ArrayLike,
    *,
    level: float = 0.95,
    method: str = "bca",
    resamples: int = 1000,
    seed: int = 0,
) -> list[Estimate]:
    """Return the sum of every column of ``parts`` over the sum of ``whole``, with its interval.

    ``parts`` has a row per query, ``whole`` a number per query. Queries are resampled, with all
    they bring to both sums; so a share of documents respects that the documents of a query belong
    together. It is not a mean of shares: a query counts for as much as its whole.

    Where ``whole`` adds up to nothing there is no share: value and interval are NaN. Resamples in
    which it does are left out. With one query there is no interval. ``method`` is ``"bca"`` or
    ``"percentile"``; the other options are those of ``mean``, and ``n`` counts the queries.
    """
    intervals = Intervals(level, method, resamples, seed)
    rows = np.ascontiguousarray(finite(parts, "parts", 2).T)
    total = finite(whole, "whole", 1)
    if method == "t":
        raise InputError("method is 't', which shares have no form of. Choose bca or percentile.")
    if rows.shape[1] != len(total):
        raise InputError(
            f"parts has {rows.shape[1]} rows and whole has {len(total)} values, where both are of "
            "the same queries. Give them in the same order."
        )
    nothing = np.full(len(rows), np.nan)
    value, low, high = nothing, nothing, nothing
    size = float(total.sum())
    if abs(size) > 1e-12 * float(np.abs(total).sum()):
        value = rows.sum(axis=1) / size
        # What a query adds to the part beyond its fair share of it; adds up to nothing.
        beyond = rows - value[:, None] * total
        if len(total) > 1:
            units = Units(centre=value, totals=beyond, sizes=total)
            with np.errstate(divide="ignore", invalid="ignore"):
                drawn = units.resampled(intervals.resamples, np.random.default_rng(intervals.seed))
            drawn = drawn[np.isfinite(drawn).all(axis=1)]
            if len(drawn):
                low, high = (value + x for x in intervals.bootstrap_bounds(drawn, skew(beyond)))
    found = zip(value.tolist(), low.tolist(), high.tolist(), strict=True)
    return [
        Estimate(value=v, low=a, high=b, n=len(total), level=float(level), method=method)
        for v, a, b in found
    ]
