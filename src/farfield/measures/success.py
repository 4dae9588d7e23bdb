"""Success."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from farfield.judged import JudgedRun
from farfield.measures.base import BinaryMeasure, Floats

__all__ = ["Success"]


@dataclass(frozen=True, kw_only=True)
class Success(BinaryMeasure):
    """1 if a relevant document is among the first ``cutoff`` results, otherwise 0.

    Relations: some call this Recall@k or Hit@k; R here is the share of all relevant documents.
    """

    cutoff: int = field()

    def _values(self, judged: JudgedRun) -> Floats:
        found = judged.total(self.relevant(judged) & judged.within(self.cutoff))
        return np.minimum(found, 1.0)
