"""Recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farfield.judged import JudgedRun
from farfield.measures.base import BinaryMeasure, Floats, ratio

__all__ = ["R"]


@dataclass(frozen=True, kw_only=True)
class R(BinaryMeasure):
    """The share of the relevant documents (relevance ``rel`` or more) that was found.

    Relations: Success asks whether any was found, P how many of the results are relevant.
    """

    aliases: ClassVar[tuple[str, ...]] = ("Recall",)

    def _values(self, judged: JudgedRun) -> Floats:
        relevant = self.relevant(judged)
        found = relevant & judged.within(self.cutoff)
        return ratio(judged.total(found), judged.total(relevant))
