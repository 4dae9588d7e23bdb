"""The share of results that somebody judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farfield.judged import JudgedRun
from farfield.measures.base import Floats, Measure, ratio

__all__ = ["Judged"]


@dataclass(frozen=True, kw_only=True)
class Judged(Measure):
    """The share of the first ``cutoff`` results that has a judgement, of whatever relevance.

    A shorter result list is divided by its own length. A low value warns that the other measures
    take many unjudged documents for not relevant.
    """

    def _values(self, judged: JudgedRun) -> Floats:
        length = judged.retrieved.astype(np.float64)
        if self.cutoff is not None:
            length = np.minimum(length, self.cutoff)
        return ratio(judged.total(judged.within(self.cutoff)), length)
