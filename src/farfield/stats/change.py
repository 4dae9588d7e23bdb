"""Relative change from one condition to another: far against near, out against in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.stats.bootstrap import Estimate
from farfield.stats.checks import Floats, finite, share, whole
from farfield.stats.significance import paired_test


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The means of two conditions, and ``relative``: the second over the first, less 1."""

    before: Estimate
    after: Estimate
    relative: Estimate
    #: Both means in every resample.
    draws: tuple[Floats, Floats] = field(repr=False, compare=False)
    #: How much each query moves the relative change, where queries are paired and count alike.
    influence: Floats | None = field(repr=False, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeDifference:
    """How the changes of two systems differ: both means, and the relative changes, with a test."""

    before: Estimate
    after: Estimate
    relative: Estimate
    p: float


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
    share("level", level)
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
    changes = _relative(resampled)
    value = means[1] / means[0] - 1.0 if means[0] else math.nan
    enough = min(len(one), len(two)) > 1
    n = len(one) if paired else len(one) + len(two)

    def estimate(value: float, draws: Floats) -> Estimate:
        return _estimate(value, draws if enough else draws[:0], n, level)

    influence = None
    if paired and groups is None and means[0]:
        influence = (two.mean(axis=1) - (value + 1.0) * one.mean(axis=1)) / means[0]
    return Change(
        before=estimate(means[0], resampled[0]),
        after=estimate(means[1], resampled[1]),
        relative=estimate(value, changes),
        draws=resampled,
        influence=influence,
    )


def change_difference(one: Change, two: Change) -> ChangeDifference:
    """Return how the changes of two systems differ, on the same queries and in the same resamples.

    Both are of :func:`relative_change` with the same options, paired and without groups. p is of a
    t test of the difference of the relative changes, linear in the values of a query (the delta
    method); it knows of queries, not of seeds.
    """
    influences = [change.influence for change in (one, two) if change.influence is not None]
    sizes = {len(influence) for influence in influences}
    if len(influences) < 2 or len(sizes) > 1 or len(one.draws[0]) != len(two.draws[0]):
        raise InputError(
            "the two changes are not of the same queries, paired and without groups, with as many "
            "resamples. Compute both with the same options."
        )
    n, level = one.relative.n, one.relative.level

    def difference(name: str, draws: list[Floats]) -> Estimate:
        values = [getattr(change, name).value for change in (one, two)]
        return _estimate(
            values[0] - values[1], draws[0] - draws[1] if n > 1 else draws[0][:0], n, level
        )

    relative = difference("relative", [_relative(change.draws) for change in (one, two)])
    moved = influences[0] - influences[1] + relative.value
    return ChangeDifference(
        before=difference("before", [one.draws[0], two.draws[0]]),
        after=difference("after", [one.draws[1], two.draws[1]]),
        relative=relative,
        p=paired_test(moved, np.zeros(n)).p,
    )


def _relative(draws: tuple[Floats, Floats]) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = draws[1] / draws[0] - 1.0
    return found


def _estimate(value: float, draws: Floats, n: int, level: float) -> Estimate:
    low = high = math.nan
    known = draws[np.isfinite(draws)]
    if len(known) and not math.isnan(value):
        tail = (1.0 - level) / 2.0
        low, high = (float(x) for x in np.quantile(known, [tail, 1.0 - tail]))
    return Estimate(value=value, low=low, high=high, n=n, level=float(level), method="percentile")


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
