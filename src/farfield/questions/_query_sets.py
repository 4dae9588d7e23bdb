"""Sets of queries from whatever one has: tables, files, folders, their splits, several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from farfield.collection import Collection
from farfield.errors import InputError
from farfield.io import name_of, read_collection, read_queries
from farfield.io.files import PathLike
from farfield.tables import Queries

__all__ = ["Given", "QuerySet", "query_set"]

#: One set of queries, in any of its forms.
Given = Queries | Collection | PathLike


@dataclass(frozen=True, eq=False)
class QuerySet:
    """Queries from one source or several, one after the other, nothing merged."""

    name: str
    parts: tuple[tuple[str, Queries], ...]

    def __len__(self) -> int:
        return sum(len(queries) for _, queries in self.parts)

    @cached_property
    def texts(self) -> pl.Series:
        """The texts of all parts."""
        return pl.concat([queries.frame["text"] for _, queries in self.parts])

    @cached_property
    def keys(self) -> pl.DataFrame:
        """Where each query comes from: query_id, system (the name of its part)."""
        return pl.concat(
            queries.frame.select("query_id", pl.lit(name).alias("system"))
            for name, queries in self.parts
        )


def query_set(
    given: Given | Sequence[Given], otherwise: str, taken: Sequence[str] = ()
) -> QuerySet:
    """Read a set of queries.

    A BEIR folder may name a split, ``folder:train``: the queries that are judged there. Several
    sources are taken together. A set without a name is called ``otherwise``; names in ``taken`` are
    not given again.
    """
    several = isinstance(given, Sequence) and not isinstance(given, str)
    sources: Sequence[Given] = given if several else [given]  # type: ignore[list-item,assignment]
    if not sources:
        raise InputError(f"{otherwise} names no queries. Give a file, a folder or a table.")
    used, parts = list(taken), []
    for source in sources:
        name, queries = _read(source, otherwise)
        number = 2
        while name in used:
            name, number = f"{name.removesuffix(f' ({number - 1})')} ({number})", number + 1
        used.append(name)
        parts.append((name, queries))
    name = " + ".join(name for name, _ in parts) if len(parts) <= 3 else ""
    return QuerySet(name or f"{parts[0][0]} and {len(parts) - 1} more", tuple(parts))


def _read(source: Given, otherwise: str) -> tuple[str, Queries]:
    if isinstance(source, Queries):
        return otherwise, source
    if isinstance(source, Collection):
        return source.name, source.queries
    text = str(source)
    folder, colon, split = text.rpartition(":")
    if colon and not Path(text).exists() and Path(folder).is_dir():
        return f"{Path(folder).resolve().name}:{split}", read_collection(folder).queries_of(split)
    return name_of(text) if not text.startswith("ir:") else text, read_queries(source)
