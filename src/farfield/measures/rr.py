"""Reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farfield.judged import JudgedRun
from farfield.measures.base import BinaryMeasure, Floats

__all__ = ["RR"]


@dataclass(frozen=True, kw_only=True)
class RR(BinaryMeasure):
    """One divided by the rank of the first document of relevance ``rel`` or more; 0 without one.

    Its mean is known as MRR. For the official MS MARCO value use ``RR@10`` with ``ties="file"``,
    which takes the documents in the order of the file.
    """

    aliases: ClassVar[tuple[str, ...]] = ("MRR",)

    def _values(self, judged: JudgedRun) -> Floats:
        found = self.relevant(judged) & judged.within(self.cutoff)
        values = np.zeros(len(judged.query_ids))
        # Rows are sorted by rank within queries, so the first of each query is the best.
        query, first = np.unique(judged.query[found], return_index=True)
        values[query] = 1.0 / judged.rank[found][first]
        return values
