"""As many of each source as of any other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farfield.allocations._picks import choose
from farfield.allocations.base import Labels, Lists, Picks, Policy

__all__ = ["equal"]


@dataclass(frozen=True, kw_only=True)
class equal(Policy):
    """As many results of each source as of any other, shown by score.

    Slots that are left over go to the best scores among the next result of each source, and those
    of a source that runs dry to the others in the same way.

    Relations: interleave takes the same results and shows the first of each source first.
    """

    def _pick(self, lists: Lists, k: int, labels: Labels | None) -> Picks:
        rounds = np.broadcast_to(np.arange(lists.depth), lists.scores.shape)
        return choose(lists, k, lists.scores, rounds, shown=lists.scores)
