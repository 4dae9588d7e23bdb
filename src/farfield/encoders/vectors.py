"""Vectors that another program made."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.encoders.base import Encoder
from farfield.errors import FileError, InputError
from farfield.io.files import Content, load
from farfield.io.records import read_parquet
from farfield.tables import Queries

__all__ = ["vectors"]

Matrix = npt.NDArray[np.floating]

_NUMPY = b"\x93NUMPY"


@dataclass(frozen=True, kw_only=True)
class vectors(Encoder):
    """Vectors from a file: numpy's (.npy) with a file of ids, or parquet.

    ``ids`` names a text file with the id of a query in each line, in the order of the rows; without
    it, it is the .npy file's name with .txt in place of .npy. A parquet file has the columns
    query_id and vector (a list of numbers). Other queries may be in the file too.
    """

    file: str
    ids: str | None = None

    def _encode(self, sets: list[Queries]) -> list[Matrix]:
        content = load(self.file)
        if content.data[: len(_NUMPY)] == _NUMPY:
            matrix = _read_numpy(content)
            where = self.ids or str(Path(self.file).with_suffix(".txt"))
            ids = self._read_ids(where, len(matrix))
        elif self.ids is not None:
            raise InputError(
                f"{self}: {self.file} is no .npy file, and ids belong to one. A parquet file has "
                "its ids in the column query_id."
            )
        else:
            ids, matrix = _read_columns(content)
        held = pl.DataFrame({"query_id": ids, "row": np.arange(len(ids))})
        if held["query_id"].is_duplicated().any():
            twice = held.filter(pl.col("query_id").is_duplicated())["query_id"][0]
            raise InputError(f"{self}: there are two vectors of query {twice!r}. Keep one of them.")
        return [self._look_up(held, matrix, queries) for queries in sets]

    def _read_ids(self, where: str, rows: int) -> pl.Series:
        try:
            lines = load(where).text().splitlines()
        except FileError as error:
            raise FileError(
                self.file,
                f"whose vectors are these? {error} Write the ids of the queries, one in a line and "
                "in the order of the rows, to a text file and name it: ids='…'.",
            ) from error
        if len(lines) != rows:
            raise FileError(
                where,
                f"found {len(lines):,} lines, and {self.file} has {rows:,} rows. Expected the id "
                "of one query in each line, in the order of the rows.",
            )
        return pl.Series(lines, dtype=pl.String)

    def _look_up(self, held: pl.DataFrame, matrix: Matrix, queries: Queries) -> Matrix:
        found = queries.frame.select("query_id").join(
            held, on="query_id", how="left", maintain_order="left"
        )
        missing = found.filter(pl.col("row").is_null())
        if len(missing):
            raise InputError(
                f"{self.file} has no vector for query {missing['query_id'][0]!r} "
                f"({len(missing):,} queries lack one). Encode them, or leave them out."
            )
        return np.asarray(matrix[found["row"].to_numpy()])


def _read_numpy(content: Content) -> Matrix:
    # A plain file is mapped: only the rows that are asked for are read.
    source: Any = content.path if content.plain else io.BytesIO(content.data)
    try:
        matrix = np.load(source, mmap_mode="r" if content.plain else None, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise content.error(f"this .npy file cannot be read ({error}). Write it again.") from error
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise content.error(
            f"found {matrix.dtype} of shape {matrix.shape}; expected a matrix of floating-point "
            "numbers with a row for each query."
        )
    return matrix  # type: ignore[no-any-return]


def _read_columns(content: Content) -> tuple[pl.Series, Matrix]:
    frame = read_parquet(content)
    if not {"query_id", "vector"} <= set(frame.columns):
        raise content.error(
            f"found columns {', '.join(frame.columns)}; expected query_id and vector (a list of "
            "numbers, equally long in every row)."
        )
    try:
        rows = frame["vector"].cast(pl.List(pl.Float32))
    except pl.exceptions.PolarsError:
        raise content.error(
            f"the column vector holds {frame['vector'].dtype}; expected lists of numbers."
        ) from None
    widths = rows.list.len().unique().to_list()
    if len(widths) > 1 or None in widths or 0 in widths:
        raise content.error(
            f"the vectors differ in length ({', '.join(sorted(map(str, widths)))}). Expected lists "
            "of numbers, equally long in every row."
        )
    matrix = rows.explode().to_numpy().reshape(len(rows), -1 if len(rows) else 0)
    return frame["query_id"].cast(pl.String), matrix
