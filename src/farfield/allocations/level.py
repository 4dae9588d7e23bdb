"""The dial between merging and levelling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from farfield.allocations.base import Floats, Keyed, Labels, Lists, Policy
from farfield.allocations.lse import lse
from farfield.errors import SpecError

__all__ = ["level"]

_WEIGHTS = 11  # that are tried, from 0 to 1


@dataclass(frozen=True, kw_only=True)
class level(Keyed):
    """A result's score less a part of its source's level for the query: 0 merges, 1 levels.

    ``weight`` is the part, learned from labels if it is left out: the one with the best recall,
    then the best average precision; of equals the middle one. ``of`` is the level: the mean of the
    first k (``mean``, as in local) or the soft maximum (``lse``).

    Relations: merge and local are its ends. Of the policies that learn, the one that does no great
    harm with few labels, whether sources overlap or are topical.
    """

    weight: float | None = None
    of: Literal["mean", "lse"] = "mean"

    def __post_init__(self) -> None:
        if self.weight is not None and not -np.inf < self.weight < np.inf:
            raise SpecError(f"weight is {self.weight}, expected a number like 0.5.")

    @property
    def learns(self) -> bool:
        """Whether the weight is left open."""
        return self.weight is None

    def window(self, k: int) -> int:
        """As deep as the level goes."""
        return lse().window(k) if self.of == "lse" else k

    def fit(self, log: Lists, labels: Labels, k: int) -> Policy:
        """Choose the weight on labelled queries."""
        if not self.learns:
            return self
        found = []
        tried = [replace(self, weight=part / (_WEIGHTS - 1)) for part in range(_WEIGHTS)]
        for policy in tried:
            picks = policy.pick(labels.lists, k)
            found.append((labels.recall(picks).sum(), labels.precision(picks).sum()))
        totals = np.round(found, 9).tolist()
        best = [at for at, total in enumerate(totals) if total == max(totals)]
        return tried[best[len(best) // 2]]

    def keys(self, lists: Lists, k: int) -> Floats:
        """The scores above a part of the level of their list."""
        return lists.scores - float(self.weight or 0.0) * self._levels(lists, k)[:, :, None]

    def _levels(self, lists: Lists, k: int) -> Floats:
        if self.of == "mean":
            return lists.mean_of_top(k)
        return lists.soft_mean_of_top(2 * k, lse().times * float(lists.tails.mean()))
