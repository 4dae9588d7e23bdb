"""The training queries worth looking at for each test query, with the evidence."""

from __future__ import annotations

import polars as pl

from farfield.encoders import Encoder
from farfield.similarity import nearest, nearest_by_vectors, normal_form
from farfield.tables import Qrels, Queries

__all__ = ["candidates", "evidence"]


def candidates(
    test: Queries, train: Queries, *, k: int = 10, encoder: Encoder | None = None
) -> pl.DataFrame:
    """The ``k`` nearest training queries by n-grams, by BM25 and, with an encoder, by vectors.

    Columns: query_id, train_id, ngram, bm25, cosine (null where a method did not list the pair),
    exact (the same normal form).
    """
    found = {
        "ngram": nearest(test, train, k=k, method="ngram"),
        "bm25": nearest(test, train, k=k, method="bm25"),
    }
    if encoder is not None:
        of_test, of_train = encoder.encode(test, train)
        found["cosine"] = nearest_by_vectors(
            test.frame["query_id"], of_test, train.frame["query_id"], of_train, k=k
        )
    else:
        found["cosine"] = found["ngram"].clear()
    pairs = pl.concat([t.select("query_id", "train_id") for t in found.values()]).unique()
    for name, table in found.items():
        scores = table.select("query_id", "train_id", pl.col("similarity").alias(name))
        pairs = pairs.join(scores, on=["query_id", "train_id"], how="left")
    texts = [_texts(queries, name) for queries, name in ((test, "query_id"), (train, "train_id"))]
    pairs = pairs.join(texts[0], on="query_id").join(texts[1], on="train_id", suffix="_train")
    exact = (pl.col("normal") == pl.col("normal_train")) & (pl.col("normal") != "")
    return (
        pairs.with_columns(exact=exact)
        .sort(
            "query_id",
            "exact",
            pl.col("ngram").fill_null(0.0),
            pl.col("bm25").fill_null(0.0),
            "train_id",
            descending=[False, True, True, True, False],
        )
        .select("query_id", "train_id", "ngram", "bm25", "cosine", "exact")
    )


def evidence(
    pairs: pl.DataFrame,
    test: Queries,
    train: Queries,
    *,
    test_qrels: Qrels | None = None,
    train_qrels: Qrels | None = None,
) -> pl.DataFrame:
    """Add what a reader needs to judge a pair: both texts, shared words and shared passages."""
    own, other = (
        q.frame.select(name, "text") for q, name in ((test, "query_id"), (train, "query_id"))
    )
    shown = pairs.join(own, on="query_id", how="left", maintain_order="left")
    shown = shown.join(
        other.rename({"query_id": "train_id", "text": "train_text"}),
        on="train_id",
        how="left",
        maintain_order="left",
    )
    words = [normal_form(shown[name]).str.split(" ") for name in ("text", "train_text")]
    shared = words[0].list.unique(maintain_order=True).list.set_intersection(words[1])
    shown = shown.with_columns(shared_terms=shared.list.sort().list.join(" "))
    if test_qrels is None or train_qrels is None:
        return shown.with_columns(shared_passages=pl.lit(None, dtype=pl.String))
    docs = [
        q.relevant().frame.group_by("query_id").agg(pl.col("doc_id").sort())
        for q in (test_qrels, train_qrels)
    ]
    shown = shown.join(docs[0], on="query_id", how="left", maintain_order="left")
    shown = shown.join(
        docs[1].rename({"query_id": "train_id"}),
        on="train_id",
        how="left",
        maintain_order="left",
        suffix="_train",
    )
    common = pl.col("doc_id").list.set_intersection("doc_id_train").list.sort().list.join(" ")
    return shown.with_columns(shared_passages=common.fill_null("")).drop("doc_id", "doc_id_train")


def _texts(queries: Queries, name: str) -> pl.DataFrame:
    frame = queries.frame
    return pl.DataFrame({name: frame["query_id"], "normal": normal_form(frame["text"])})
