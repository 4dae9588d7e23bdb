"""Relative change from one condition to another: far against near, out against in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.bootstrap import Estimate
from farfield.stats.checks import Floats, finite, share, whole


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The means of two conditions, and ``relative``: the second over the first, less 1."""

    before: Estimate
    after: Estimate
    relative: Estimate


def relative_change(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    *,
    paired: bool = True,
    groups: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Change:
    """Return the means of ``before`` and ``after`` and their ratio less 1, with intervals.

    Both have a row per query, and a column per training seed if there are several. The ratio is
    one of means: a mean of per-query ratios is undefined where a query scores 0. With ``paired``
    the rows are of the same queries. ``groups`` gives a label per query: the means are then means
    over groups of the groups' means, so that each group counts alike (macro), and queries are
    drawn within groups. For the intervals queries are drawn anew, and so are the seeds where there
    are several: they are the plain bootstrap's. With few seeds their part of it is rough, and too
    narrow.
    """
    tail = (1.0 - share("level", level)) / 2.0
    count = whole("resamples", resamples, 1)
    one, two = (_columns(values, name) for values, name in ((before, "before"), (after, "after")))
    if one.shape[1] != two.shape[1] or (paired and one.shape != two.shape):
        raise InputError(
            f"before has shape {one.shape} and after {two.shape}, where the same "
            f"{'queries and ' if paired else ''}seeds are expected. Give both with a row per query."
        )
    if groups is not None and not paired:
        raise InputError("groups need the same queries on both sides. Leave them out, or pair.")
    start = whole("seed", seed, 0)
    weights, drawn = _weights(len(one), groups, count, (start, 0))
    other = (weights, drawn) if paired else _weights(len(two), None, count, (start, 1))
    seeds = one.shape[1]
    _, turns = _weights(seeds, None, count, (start, 2))
    means = float(weights @ one.mean(axis=1)), float(other[0] @ two.mean(axis=1))
    resampled = ((drawn @ one) * turns).sum(axis=1), ((other[1] @ two) * turns).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = resampled[1] / resampled[0] - 1.0
    value = means[1] / means[0] - 1.0 if means[0] else math.nan
    enough = min(len(one), len(two)) > 1
    n = len(one) if paired else len(one) + len(two)

    def estimate(value: float, draws: Floats) -> Estimate:
        low = high = math.nan
        known = draws[np.isfinite(draws)]
        if enough and len(known) and not math.isnan(value):
            low, high = (float(x) for x in np.quantile(known, [tail, 1.0 - tail]))
        return Estimate(
            value=value, low=low, high=high, n=n, level=float(level), method="percentile"
        )

    return Change(
        before=estimate(means[0], resampled[0]),
        after=estimate(means[1], resampled[1]),
        relative=estimate(value, changes),
    )


def _columns(values: npt.ArrayLike, name: str) -> Floats:
    matrix = np.asarray(values, dtype=np.float64)
    return finite(matrix[:, None] if matrix.ndim == 1 else matrix, name, 2)


def _weights(
    n: int, groups: npt.ArrayLike | None, resamples: int, seed: tuple[int, int]
) -> tuple[Floats, Floats]:
    """The weight of each query in the mean, and its weight in every resample."""
    labels = np.zeros(n, dtype=np.int64) if groups is None else np.asarray(groups)
    if len(labels) != n:
        raise InputError(f"there are {len(labels)} groups for {n} queries. Give one for each.")
    return _drawn(np.unique(labels, return_inverse=True)[1].tobytes(), resamples, seed)


@lru_cache(maxsize=4)  # a table asks for the same draws for every system and measure
def _drawn(groups: bytes, resamples: int, seed: tuple[int, int]) -> tuple[Floats, Floats]:
    codes = np.frombuffer(groups, dtype=np.int64)
    sizes = np.bincount(codes)
    rng = np.random.default_rng(seed)
    drawn = np.empty((resamples, len(codes)))
    for code, size in enumerate(sizes):
        rows = np.arange(resamples)[:, None] * size + rng.integers(0, size, (resamples, size))
        counts = np.bincount(rows.ravel(), minlength=resamples * size)
        drawn[:, codes == code] = counts.reshape(resamples, size) / (len(sizes) * size)
    return (1.0 / (len(sizes) * sizes))[codes], drawn
