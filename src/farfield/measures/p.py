"""Precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from farfield.judged import JudgedRun
from farfield.measures.base import BinaryMeasure, Floats

__all__ = ["P"]


@dataclass(frozen=True, kw_only=True)
class P(BinaryMeasure):
    """The share of the first ``cutoff`` results that is relevant.

    A shorter result list is divided by the cutoff all the same, as trec_eval does.
    """

    aliases: ClassVar[tuple[str, ...]] = ("Precision",)

    cutoff: int = field()

    def _values(self, judged: JudgedRun) -> Floats:
        return judged.total(self.relevant(judged) & judged.within(self.cutoff)) / self.cutoff
