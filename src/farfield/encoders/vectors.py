"""Vectors that another program made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.encoders.base import Encoder
from farfield.errors import InputError
from farfield.io.files import load
from farfield.io.records import read_parquet
from farfield.tables import Queries

__all__ = ["vectors"]


@dataclass(frozen=True, kw_only=True)
class vectors(Encoder):
    """Vectors from a parquet file with the columns query_id and vector (a list of numbers)."""

    file: str

    def _encode(self, sets: list[Queries]) -> list[npt.NDArray[np.floating]]:
        frame = read_parquet(load(self.file))
        if not {"query_id", "vector"} <= set(frame.columns):
            raise InputError(
                f"{self.file}: found columns {', '.join(frame.columns)}; expected query_id and "
                "vector (a list of numbers, equally long in every row)."
            )
        frame = frame.select(pl.col("query_id").cast(pl.String), "vector")
        widths = frame["vector"].list.len().unique()
        if len(widths) != 1 or frame["vector"].null_count():
            raise InputError(f"{self.file}: the vectors differ in length ({widths.to_list()}).")
        return [self._look_up(frame, queries) for queries in sets]

    def _look_up(self, frame: pl.DataFrame, queries: Queries) -> npt.NDArray[np.floating]:
        found = queries.frame.select("query_id").join(
            frame, on="query_id", how="left", maintain_order="left"
        )
        missing = found.filter(pl.col("vector").is_null())
        if len(missing):
            raise InputError(
                f"{self.file} has no vector for query {missing['query_id'][0]!r} "
                f"({len(missing):,} queries lack one). Encode them, or leave them out."
            )
        return np.stack(found["vector"].to_list()).astype(np.float32)
