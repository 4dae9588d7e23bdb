"""Shifts between documents rather than queries."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.encoders import Encoder, default
from farfield.errors import InputError, SpecError, did_you_mean
from farfield.shifts._clusters import clustered
from farfield.shifts.base import Dealt, Fold, Grouped, Groups, Pool, counted
from farfield.tables import Queries

__all__ = ["documents"]


@dataclass(frozen=True, kw_only=True)
class documents(Grouped):
    """Groups of documents; in each fold the answers of the far queries are of a group unseen.

    The group of a document is its value in the column ``by`` of the corpus, or else its cluster:
    k-means makes ``clusters`` of all relevant documents. A fold trains on the queries that have no
    relevant document in the group left out; test queries are far if all their relevant documents
    are in it, near if none is. Test queries with some inside and some outside are left out.
    """

    by: str | None = None
    clusters: int = 5
    encoder: Encoder = field(default_factory=default)

    def __post_init__(self) -> None:
        if self.clusters < 2:
            raise SpecError(f"clusters is {self.clusters}, expected 2, 3, 4 …")

    def deal_pool(self, pool: Pool, seed: int = 0) -> Dealt:
        """Leave out one group of documents after the other."""
        names, group_of = self._document_groups(pool, seed)
        pairs = pool.relevant.join(group_of, on="doc_id", how="inner")
        holds = np.zeros((len(pool), len(names)), dtype=np.int64)
        np.add.at(holds, (pairs["row"].to_numpy(), pairs["group"].to_numpy()), 1)
        every = holds.sum(axis=1)
        # What a query is mostly about, for pictures; folds look at all of its documents.
        groups = Groups(names, np.where(every > 0, holds.argmax(axis=1), -1))
        folds = [_fold(pool, name, holds[:, number], every) for number, name in enumerate(names)]
        return self._finished(pool, groups, folds, seed)

    def _document_groups(self, pool: Pool, seed: int) -> tuple[tuple[str, ...], pl.DataFrame]:
        """The names of the groups, and a frame of doc_id, group (its number)."""
        wanted = pool.relevant.select("doc_id").unique()
        corpus = pool.collection.corpus.frame
        found = corpus.join(wanted, on="doc_id", how="semi").sort("doc_id")
        if self.by is None:
            parts = [pl.col(name) for name in ("title", "text") if name in found.columns]
            texts = found.select(
                pl.col("doc_id").alias("query_id"),
                pl.concat_str(parts, separator=" ", ignore_nulls=True).alias("text"),
            )
            (vectors,) = self.encoder.encode(Queries.trusted(texts))
            labels = clustered(vectors, self.clusters, seed)[0].labels.astype(np.int64)
            names = tuple(str(number) for number in range(self.clusters))
            return names, found.select("doc_id").with_columns(pl.Series("group", labels))
        known = corpus.columns[2:]
        if self.by not in known or corpus[self.by].dtype.is_nested():
            raise InputError(
                f"{self}: the documents of {pool.collection.name} have no column {self.by!r} of "
                f"single values.{did_you_mean(self.by, known)} They have "
                f"{', '.join(known) or 'none but a text'}."
            )
        groups = Groups.named(found[self.by])
        frame = found.select("doc_id").with_columns(pl.Series("group", groups.of))
        return groups.names, frame.filter(pl.col("group") >= 0)


def _fold(
    pool: Pool, name: str, inside: npt.NDArray[np.int64], every: npt.NDArray[np.int64]
) -> Fold:
    none, some, whole = every == 0, (inside > 0) & (inside < every), (inside == every) & (every > 0)
    outside = (inside == 0) & ~none
    return Fold(
        name,
        train=np.flatnonzero(outside & ~pool.is_test),
        near=np.flatnonzero(outside & pool.is_test),
        far=np.flatnonzero(whole & pool.is_test),
        dropped=counted(
            {
                "no relevant document in any group": int(none.sum()),
                "training queries with a relevant document in the group left out": int(
                    ((some | whole) & ~pool.is_test).sum()
                ),
                "test queries with relevant documents on both sides": int(
                    (some & pool.is_test).sum()
                ),
            }
        ),
    )
