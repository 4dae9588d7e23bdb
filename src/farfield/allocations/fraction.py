"""The same share of the budget for a source whatever the query."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from farfield.allocations.base import Floats, Labels, Lists, Policy, Split
from farfield.errors import SpecError

__all__ = ["fraction"]

_EVEN = 1e-9  # what a slot off the even split costs: it breaks ties and nothing else


@dataclass(frozen=True, kw_only=True)
class fraction(Split):
    """A fixed share of the slots for each source, the same for all queries (per-task allocation).

    ``shares`` are divided by their sum and become slots by the largest remainder. With two sources
    one number will do: ``fraction(0.3)`` gives the first 0.3 and the second the rest. Left out,
    they are learned from labels: of all ways to share out k slots the one with the best recall,
    found exactly for any number of sources, and of equals the one nearest to an equal split.

    Relations: equal needs no labels, and shares chosen by few labels seldom beat it.
    """

    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        given = self.shares
        if any(not 0 <= share < np.inf for share in given) or (given and not any(self._all)):
            raise SpecError(f"shares are {list(given)}, expected at least 0 and one above.")
        if len(given) == 1 and given[0] > 1:
            raise SpecError(f"the share is {given[0]}, expected 0 to 1; the rest is the second's.")

    @property
    def learns(self) -> bool:
        """Whether the shares are left open."""
        return not self.shares

    @property
    def _all(self) -> tuple[float, ...]:
        return (self.shares[0], 1.0 - self.shares[0]) if len(self.shares) == 1 else self.shares

    def fit(self, log: Lists, labels: Labels, k: int) -> Policy:
        """Choose the slots that have the best recall on labelled queries."""
        if not self.learns:
            return self
        sources = len(labels.lists.runs)
        found = labels.hits[:, :, :k] / np.maximum(labels.relevant, 1)[:, None, None]
        gains = np.zeros((sources, k + 1))
        gains[:, 1 : found.shape[2] + 1] = found.sum(axis=0)
        gains = np.cumsum(gains, axis=1) - _EVEN * (np.arange(k + 1) - k / sources) ** 2
        best = replace(self, shares=tuple(slots / k for slots in _best_slots(gains)))
        even = replace(self, shares=(1.0,) * sources)
        # What a source that runs dry leaves to the others is not in the gains.
        ours, theirs = (labels.recall(way.pick(labels.lists, k)).sum() for way in (best, even))
        return best if ours > theirs + _EVEN else even

    def parts(self, lists: Lists, k: int) -> Floats:
        """The shares, for all queries the same."""
        self._check_sources(lists, self._all)
        return np.array(self._all)


def _best_slots(gains: Floats) -> list[int]:
    """Share out slots so that the gains add up to most: (sources, slots + 1) -> slots of each.

    The recall of a fixed split is a sum over sources. So the best of so many slots for the first
    few sources is made of the best of fewer slots for one source less: O(sources x slots^2), no
    grid.
    """
    slots = np.arange(gains.shape[1])
    best, choices = gains[0], []
    for own in gains[1:]:
        spent = slots[:, None]
        totals = np.where(slots <= spent, best[spent - slots] + own, -np.inf)
        choices.append(totals.argmax(axis=1))
        best = totals.max(axis=1)
    left, found = int(slots[-1]), []
    for choice in reversed(choices):
        found.append(int(choice[left]))
        left -= found[-1]
    return [left, *reversed(found)]
