"""Data without the leaks, and what the test queries that remain can still show."""

from __future__ import annotations

import polars as pl

from farfield import stats
from farfield.tables import Qrels, Queries

__all__ = ["leaked_test", "leaking_train", "power_statement", "without"]


def leaked_test(
    pairs: pl.DataFrame | None,
    labels: pl.DataFrame | None,
    *,
    threshold: float,
    min_shared: int = 1,
) -> pl.Series:
    """Ids of test queries that were seen: a near-duplicate, or ``min_shared`` shared passages."""
    found = []
    if pairs is not None:
        near = pl.col("exact") | (pl.col("ngram").fill_null(0.0) >= threshold)
        found.append(pairs.filter(near)["query_id"])
    if labels is not None and len(labels):
        lowest = pl.col("relevance") == pl.col("relevance").min()
        found.append(labels.filter(lowest & (pl.col("shared") >= min_shared))["query_id"])
    ids = pl.concat(found) if found else pl.Series(dtype=pl.String)
    return ids.unique().sort()


def leaking_train(
    pairs: pl.DataFrame | None, train: Qrels | None, test: Qrels | None, *, threshold: float
) -> pl.Series:
    """Ids of training queries that give something away: near-duplicates, or shared passages."""
    found = []
    if pairs is not None:
        near = pl.col("exact") | (pl.col("ngram").fill_null(0.0) >= threshold)
        found.append(pairs.filter(near)["train_id"])
    if train is not None and test is not None:
        tested = test.relevant().frame.select("doc_id").unique()
        shared = train.relevant().frame.join(tested, on="doc_id", how="semi")
        found.append(shared["query_id"])
    ids = pl.concat(found) if found else pl.Series(dtype=pl.String)
    return ids.unique().sort()


def without(table: Queries | Qrels, ids: pl.Series) -> pl.DataFrame:
    """Return the rows of a table without these queries."""
    return table.frame.join(
        ids.to_frame("query_id"), on="query_id", how="anti", maintain_order="left"
    )


def power_statement(queries: int, *, sd: float = 0.25) -> str:
    """Say how large a difference between two systems so many queries can show."""
    if queries < 2:
        return f"{queries} test queries are left: nothing can be compared on them."
    least = stats.detectable_difference(sd=sd, n=queries)
    return (
        f"{queries:,} test queries are left: a paired t test finds a true difference of "
        f"{least:.3f} or more in 4 of 5 tries, if differences between two systems vary from query "
        f"to query with a standard deviation of {sd:g}."
    )
