"""Shifts between the values of a column."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from farfield.errors import InputError, SpecError, did_you_mean
from farfield.shifts.base import Grouped, Groups, Pool

__all__ = ["attribute"]


@dataclass(frozen=True, kw_only=True)
class attribute(Grouped):
    """Groups of queries that have the same value in a column.

    ``values`` takes only these values, ``largest`` only the so many largest groups; all other
    queries, and those without a value, belong to no group.
    """

    column: str
    values: tuple[str, ...] = ()
    largest: int | None = None

    def __post_init__(self) -> None:
        if self.largest is not None and self.largest < 2:
            raise SpecError(f"largest is {self.largest}, expected 2, 3, 4 …")
        if self.values and self.largest is not None:
            raise SpecError("values and largest both choose groups. Give one of them.")

    def grouping(self, pool: Pool, seed: int) -> Groups:
        """Take the values of the column."""
        labels = pool.column(self.column)
        texts = labels.cast(pl.String)
        there = (
            texts.drop_nulls()
            .value_counts(name="n")
            .sort(["n", self.column], descending=[True, False])
        )
        if self.values:
            known = set(there[self.column])
            for value in self.values:
                if value not in known:
                    raise InputError(
                        f"{self}: no query has {value!r} in the column {self.column!r}."
                        f"{did_you_mean(value, known)}"
                    )
            kept = list(self.values)
        else:
            kept = there[self.column].head(self.largest or len(there)).to_list()
        chosen = texts.is_in(kept).fill_null(value=False)
        return Groups.named(pl.select(pl.when(chosen).then(labels)).to_series())
