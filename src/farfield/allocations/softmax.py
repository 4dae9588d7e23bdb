"""For each source a guess which of its results is the one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from farfield.allocations._lists import sums_of_exponentials
from farfield.allocations.base import Floats, Keyed, Labels, Lists, Policy
from farfield.errors import SpecError

__all__ = ["softmax"]

_DEEPEST = 101  # the tail of a list ends here
_RANGE = 2.5  # a temperature is at most e to this times the scale of its source, or below it
_STEPS = 5  # of the coarse search to either side, and again of the fine one


@dataclass(frozen=True, kw_only=True)
class softmax(Keyed):
    """The chance that a result is the relevant one of its source.

    That is reach x exp(s / T) over the sum of exp(s / T). The sum is over the first ``depth``
    results. ``temperatures`` and ``reach`` have a number for each source and are learned from
    labels, ten or more, if they are left out: the temperature by maximum likelihood of the relevant
    results, drawn towards the scale of the source's tail; the reach as the share of queries that
    have a relevant result in the list, drawn towards one half.

    The best of the policies that learn where a query wants something from each source. Not for
    topical sources: that none of a source's results is relevant it does not see.

    Relations: lse and local are what remains of it without labels.
    """

    temperatures: tuple[float, ...] = ()
    reach: tuple[float, ...] = ()
    depth: int = 100

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise SpecError(f"depth is {self.depth}, expected 1, 2, 3 …")
        for name in ("temperatures", "reach"):
            if any(not 0 < value < np.inf for value in getattr(self, name)):
                raise SpecError(f"{name} are {list(getattr(self, name))}, expected above 0.")

    @property
    def learns(self) -> bool:
        """Whether temperatures or reach are left open."""
        return not (self.temperatures and self.reach)

    def window(self, k: int) -> int:
        """Deep enough for the sum and for the tail."""
        return max(k, self.depth, _DEEPEST)

    def fit(self, log: Lists, labels: Labels, k: int) -> Policy:
        """Learn what is left open from labelled queries."""
        if not self.learns:
            return self
        scores, hits = (x[:, :, : self.depth] for x in (labels.lists.scores, labels.hits))
        found = hits.any(axis=2) & labels.asked
        asked = labels.asked.sum(axis=0)
        reach = (found.sum(axis=0) + 1.0) / (asked + 2.0)
        if asked.any():  # of a source that was never asked nothing is known
            reach[asked == 0] = reach[asked > 0].mean()
        temperatures = [
            _temperature(scores[rows, number], hits[rows, number], scale)
            for number, (rows, scale) in enumerate(zip(found.T, log.tails, strict=True))
        ]
        return replace(
            self,
            temperatures=self.temperatures or tuple(float(f"{t:.5g}") for t in temperatures),
            reach=self.reach or tuple(float(f"{r:.5g}") for r in reach),
        )

    def keys(self, lists: Lists, k: int) -> Floats:
        """The logarithms of the chances."""
        self._check_sources(lists, self.temperatures, self.reach)
        scaled = lists.scores / np.array(self.temperatures)[:, None]
        whole = sums_of_exponentials(scaled[:, :, : self.depth])
        known = np.where(np.isfinite(whole), np.log(self.reach) - whole, 0.0)
        return np.asarray(scaled + known[:, :, None], dtype=np.float64)


def _temperature(scores: Floats, hits: Floats, scale: float) -> float:
    """The temperature that makes the relevant results of some lists most likely.

    The smallest sum of -ln p of the relevant results, plus ln^2(T / scale), first in coarse and
    then in fine steps of ln T.
    """
    # Of a list with several relevant results each counts for its part.
    weights = hits / np.maximum(hits.sum(axis=1, keepdims=True), 1)
    own = np.where(hits, scores, 0.0)
    relevant = (weights * own).sum()

    def cost(log_ratio: float) -> float:
        temperature = scale * np.exp(log_ratio)
        likely = relevant / temperature - sums_of_exponentials(scores / temperature).sum()
        return float(log_ratio**2 - likely)

    best, reach = 0.0, _RANGE
    for _ in range(2):
        tried = best + reach * np.arange(-_STEPS, _STEPS + 1) / _STEPS
        tried = tried[np.abs(tried) <= _RANGE + 1e-12]
        best = float(tried[np.argmin([cost(x) for x in tried.tolist()])])
        reach /= _STEPS
    return float(scale * np.exp(best))
