"""CombMNZ."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.fusions.base import Floats, Pool
from farfield.fusions.comb_sum import comb_sum

__all__ = ["comb_mnz"]


@dataclass(frozen=True, kw_only=True)
class comb_mnz(comb_sum):
    """CombSUM times the number of lists that have the document (Fox and Shaw 1994).

    Relations: comb_sum rewards a document for each list only by its score there.
    """

    def _total(self, points: Floats, pool: Pool) -> Floats:
        return points * pool.count
