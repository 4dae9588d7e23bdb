"""A shift from the past to the future."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from farfield.errors import InputError
from farfield.shifts.base import Dealt, Fold, Pool, Shift, counted

__all__ = ["time"]

_ISO = r"^\d{4}(-\d{2}(-\d{2}([T ].*)?)?)?$"


@dataclass(frozen=True, kw_only=True)
class time(Shift):
    """Train on what came before the ``cut``; test queries before it are near, later ones are far.

    ``column`` holds dates (2021-06-30, also as far as 2021 or 2021-06), times, or numbers. Without
    a ``cut`` it is the median. Training queries from the cut on, and queries without a date, are
    left out.
    """

    column: str
    cut: str | None = None

    def deal_pool(self, pool: Pool, seed: int = 0) -> Dealt:
        """Deal out the queries by their dates."""
        values = _comparable(pool.column(self.column), self.column)
        dated = values.is_not_null().to_numpy()
        if self.cut is None:
            if not dated.any():
                raise InputError(f"{self}: no query has a value in the column {self.column!r}.")
            cut = values.drop_nulls().sort()[int(dated.sum()) // 2]
        else:
            cut = self._cut(values)
        before = (values < cut).fill_null(value=False).to_numpy()
        after = dated & ~before
        fold = Fold(
            f"from {cut}",
            train=np.flatnonzero(before & ~pool.is_test),
            near=np.flatnonzero(before & pool.is_test),
            far=np.flatnonzero(after & pool.is_test),
            dropped=counted(
                {
                    "without a date": int((~dated).sum()),
                    "training queries from the cut on": int((after & ~pool.is_test).sum()),
                }
            ),
        )
        if not len(fold.train) or not len(fold.far):
            raise InputError(
                f"{self}: with the cut {cut!r} there are {len(fold.train):,} training queries "
                f"before it and {len(fold.far):,} test queries from it on; expected some of both. "
                f"The values go from {values.min()!r} to {values.max()!r}."
            )
        return Dealt(self, pool, (fold,), seed, facts={"cut": str(cut)})

    def _cut(self, values: pl.Series) -> object:
        if values.dtype == pl.Float64:
            try:
                return float(str(self.cut))
            except ValueError:
                raise InputError(
                    f"{self}: the column {self.column!r} holds numbers, and the cut {self.cut!r} "
                    "is none."
                ) from None
        _comparable(pl.Series([self.cut], dtype=pl.String), "cut")
        return self.cut


def _comparable(values: pl.Series, name: str) -> pl.Series:
    """Numbers as such, dates as texts that sort like dates."""
    if values.dtype.is_numeric():
        return values.cast(pl.Float64)
    texts = values.cast(pl.String)
    texts = texts.set(texts == "", None)
    bad = texts.drop_nulls().filter(~texts.drop_nulls().str.contains(_ISO))
    if len(bad):
        raise InputError(
            f"{name} holds {bad[0]!r}, expected numbers or dates like 2021-06-30 ({len(bad):,} "
            "values are neither)."
        )
    return texts
