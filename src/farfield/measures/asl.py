"""Atomised search length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from farfield.errors import SpecError
from farfield.judged import JudgedRun
from farfield.measures.base import Floats, Measure, ratio

__all__ = ["ASL"]


@dataclass(frozen=True, kw_only=True)
class ASL(Measure):
    """How many documents without relevance one reads before a relevant one; lower is better.

    For every relevant document, the non-relevant documents ranked above it are counted (other
    relevant ones do not count) and ``offset`` is added; the mean over the relevant documents is
    the query's value. A document that was not found counts ``bound`` (plus ``offset``), and no
    document counts more. ``offset=0`` and ``bound=100`` are those of Lupart et al. 2023;
    ``offset=1`` is that of Alex et al. 2022. ``unjudged='skip'`` passes over documents that nobody
    judged; otherwise they are taken for not relevant. A query without relevant documents gets 0.

    The offset cancels in differences but not in relative losses, so it belongs to the name.
    """

    higher_is_better: ClassVar[bool] = False
    bounded: ClassVar[bool] = False

    bound: int = 100
    offset: int = 0
    unjudged: Literal["nonrel", "skip"] = "nonrel"
    rel: int = 1

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            raise SpecError("ASL takes bound=… in place of a cutoff.")
        if self.bound < 1:
            raise SpecError(f"bound is {self.bound}, expected 1, 2, 3 …")
        if self.offset not in (0, 1):
            raise SpecError(f"offset is {self.offset}, expected 0 or 1.")

    def _view(self, judged: JudgedRun) -> JudgedRun:
        return judged.condensed if self.unjudged == "skip" else judged

    def _values(self, judged: JudgedRun) -> Floats:
        relevant = judged.relevance >= self.rel
        found = relevant & judged.within(None)
        above = np.where(found, judged.rank - judged.counted(found), self.bound)
        length = np.minimum(above, self.bound) + self.offset
        return ratio(judged.total(np.where(relevant, length, 0)), judged.total(relevant))
