"""Average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farfield.judged import JudgedRun
from farfield.measures.base import BinaryMeasure, Floats, ratio

__all__ = ["AP"]


@dataclass(frozen=True, kw_only=True)
class AP(BinaryMeasure):
    """The precision at the rank of each relevant document, averaged over all relevant documents.

    Relevant documents that were not found (or not within the cutoff) count as 0. Its mean is known
    as MAP.
    """

    aliases: ClassVar[tuple[str, ...]] = ("MAP",)

    def _values(self, judged: JudgedRun) -> Floats:
        relevant = self.relevant(judged)
        found = relevant & judged.within(self.cutoff)
        precision = np.where(found, judged.counted(found) / judged.rank, 0.0)
        return ratio(judged.total(precision), judged.total(relevant))
