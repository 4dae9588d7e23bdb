"""Normalised discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from farfield.judged import JudgedRun
from farfield.measures.base import Floats, Measure, ratio

__all__ = ["nDCG"]


@dataclass(frozen=True, kw_only=True)
class nDCG(Measure):
    """The gain of the documents found, each divided by log2(rank + 1), over the best possible.

    ``dcg='log2'`` takes the relevance itself as gain (trec_eval), ``'exp-log2'`` takes
    2**relevance - 1 (Burges et al. 2005). A relevance below 0 gains nothing.
    ``judged_only=True`` first removes documents that nobody judged.

    Reference: Järvelin and Kekäläinen 2002. Relations: RR when there is one relevant document,
    R when order does not matter.
    """

    aliases: ClassVar[tuple[str, ...]] = ("NDCG",)

    dcg: Literal["log2", "exp-log2"] = "log2"
    judged_only: bool = False

    def _view(self, judged: JudgedRun) -> JudgedRun:
        return judged.condensed if self.judged_only else judged

    def _values(self, judged: JudgedRun) -> Floats:
        gain = np.maximum(judged.relevance, 0).astype(np.float64)
        if self.dcg == "exp-log2":
            gain = np.exp2(gain) - 1
        # The ideal ranking has each query's documents by descending gain.
        best_first = np.lexsort((-gain, judged.query))
        first = np.searchsorted(judged.query, judged.query)
        ideal_rank = np.arange(1, len(gain) + 1) - first
        ideal = self._discounted(judged, gain[best_first], ideal_rank)
        return ratio(self._discounted(judged, gain, judged.rank), ideal)

    def _discounted(self, judged: JudgedRun, gain: Floats, rank: np.ndarray) -> Floats:
        last = np.iinfo(np.int64).max - 1 if self.cutoff is None else self.cutoff
        seen = rank <= last
        discounted = np.zeros(len(gain))
        discounted[seen] = gain[seen] / np.log2(rank[seen] + 1.0)
        return judged.total(discounted)
