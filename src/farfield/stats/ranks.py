"""The ranks of systems, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.stats.checks import Floats, Integers, finite, share, whole
from farfield.stats.units import ROUNDING, Units


@dataclass(frozen=True, kw_only=True, slots=True)
class RankInterval:
    """The rank of a system, 1 for the best, with the ranks that resampling makes plausible."""

    rank: int
    low: int
    high: int


def rank_intervals(
    matrix: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    higher_is_better: bool = True,
    clusters: npt.ArrayLike | None = None,
) -> list[RankInterval]:
    """Return the rank of every system, a column of ``matrix``, by its mean over the queries.

    The queries are resampled, and the systems ranked anew on each resample. Systems that tie
    share the better rank as their ``rank``; in the interval a tie counts for all the ranks it
    spans, so two systems with equal values get ``1, low=1, high=2`` each. The interval holds the
    observed rank always: the luckiest of many equal systems may come first on the data and on
    few resamples. With one query (or one cluster) nothing is known, and all ranks are plausible.
    """
    tail = (1.0 - share("level", level)) / 2.0
    whole("resamples", resamples, 1)
    whole("seed", seed, 0)
    rows = np.ascontiguousarray(finite(matrix, "matrix", 2).T)
    units = Units.of(rows if higher_is_better else -rows, clusters)
    margin = ROUNDING * float(np.abs(rows).max())
    (best,), (worst,) = _spans(units.centre[None, :], margin)
    if units.count == 1:
        low, high = np.ones_like(best), np.full_like(worst, len(rows))
    else:
        drawn = units.resampled(resamples, np.random.default_rng(seed))
        drawn_best, drawn_worst = _spans(units.centre + drawn, margin)
        low = np.minimum(best, np.quantile(drawn_best, tail, axis=0, method="lower"))
        high = np.maximum(worst, np.quantile(drawn_worst, 1.0 - tail, axis=0, method="higher"))
    return [
        RankInterval(rank=rank, low=int(lowest), high=int(highest))
        for rank, lowest, highest in zip(best.tolist(), low, high, strict=True)
    ]


def _spans(values: Floats, margin: float) -> tuple[Integers, Integers]:
    """Return the best and the worst rank of each column within each row; they differ by ties."""
    best = np.empty(values.shape, dtype=np.intp)
    worst = np.empty(values.shape, dtype=np.intp)
    for i, own in enumerate(values.T[:, :, None]):
        best[:, i] = 1 + np.count_nonzero(values > own + margin, axis=1)
        worst[:, i] = np.count_nonzero(values >= own - margin, axis=1)
    return best, worst
