"""CombMNZ."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from farfield.fusions.comb_sum import comb_sum

__all__ = ["comb_mnz"]


@dataclass(frozen=True, kw_only=True)
class comb_mnz(comb_sum):
    """CombSUM times the number of lists that have the document (Fox and Shaw 1994)."""

    def _total(self, points: pl.Expr, count: pl.Expr) -> pl.Expr:
        return points * count
