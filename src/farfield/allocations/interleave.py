"""The first of each source, then the second of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farfield.allocations._picks import choose
from farfield.allocations.base import Labels, Lists, Picks, Policy

__all__ = ["interleave"]


@dataclass(frozen=True, kw_only=True)
class interleave(Policy):
    """The first result of each source, then the second of each, the best score of a round first.

    Relations: takes what equal takes, so it has the same recall; where sources differ in size its
    order is the better list.
    """

    def _pick(self, lists: Lists, k: int, labels: Labels | None) -> Picks:
        rounds = np.broadcast_to(np.arange(lists.depth), lists.scores.shape)
        return choose(lists, k, lists.scores, rounds)
