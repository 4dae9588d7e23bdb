"""Relevant passages of test queries that are relevant in training as well."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from farfield.tables import Qrels

__all__ = ["shared_labels"]


def shared_labels(
    train: Qrels, test: Qrels, relevances: Iterable[int] | None = None, *, train_relevance: int = 1
) -> pl.DataFrame:
    """Count, for every test query, its relevant passages that are relevant in training.

    Columns: relevance (the least that counts on the test side; by default each positive grade that
    occurs), query_id, relevant, shared. Every judged test query has a row for each relevance, also
    where nothing is relevant. On the training side ``train_relevance`` or more counts.
    """
    grades = test.frame["relevance"]
    levels = sorted(
        set(relevances) if relevances is not None else {g for g in grades.unique() if g > 0},
        reverse=True,
    )
    seen = train.relevant(train_relevance).frame["doc_id"].unique().to_frame()
    known = test.frame.join(
        seen.with_columns(seen=pl.lit(value=True)), on="doc_id", how="left"
    ).with_columns(pl.col("seen").fill_null(value=False))
    tables = []
    for level in levels:
        counts = known.group_by("query_id").agg(
            (pl.col("relevance") >= level).sum().alias("relevant"),
            ((pl.col("relevance") >= level) & pl.col("seen")).sum().alias("shared"),
        )
        tables.append(counts.sort("query_id").select(pl.lit(level).alias("relevance"), pl.all()))
    return pl.concat(tables) if tables else pl.DataFrame(schema=_SCHEMA)


_SCHEMA = {
    "relevance": pl.Int64,
    "query_id": pl.String,
    "relevant": pl.UInt32,
    "shared": pl.UInt32,
}
