"""Search several sources with one retriever: a run for each of them."""

from __future__ import annotations

from typing import Literal, get_args

import polars as pl

from farfield import retrievers
from farfield.collection import Collection
from farfield.errors import InputError, did_you_mean
from farfield.retrievers import Retriever
from farfield.tables import Corpus, Queries, Run

__all__ = ["Statistics", "label_documents", "search_sources", "sources_of"]

#: Whose words are counted: of all sources together, or of each source by itself.
Statistics = Literal["pooled", "own"]


def search_sources(
    collection: Collection | Corpus,
    queries: Queries,
    retriever: str | Retriever,
    *,
    column: str = "source",
    depth: int = 100,
    statistics: Statistics = "pooled",
) -> dict[str, Run]:
    """Return the best ``depth`` documents of each query in each source, sources sorted by name.

    ``column`` says of which source a document is (:func:`sources_of`). With
    ``statistics="pooled"`` all documents are in one index and have the scores that they have there,
    so that scores of different sources can be compared: in BM25 the rarity of words and the mean
    length are those of all. With ``"own"`` every source is indexed as if it were alone. A model
    that reads each text by itself (dense, splade, colbert) gives the same either way. A query that
    finds nothing in a source is not in its run.
    """
    known = get_args(Statistics)
    if statistics not in known:
        raise InputError(
            f"statistics={statistics!r} is not known.{did_you_mean(statistics, known)} Use "
            "'pooled' (of all sources together) or 'own' (of each by itself)."
        )
    member = retrievers.parse(retriever)
    parts = sources_of(collection, column)
    if statistics == "pooled":
        corpus = Corpus.trusted(pl.concat(documents.frame for documents in parts.values()))
        ids = {source: documents.frame["doc_id"] for source, documents in parts.items()}
        return member.index(corpus).search_parts(queries, ids, depth)
    return {
        source: member.index(documents).search(queries, depth, name=source)
        for source, documents in parts.items()
    }


def sources_of(collection: Collection | Corpus, column: str = "source") -> dict[str, Corpus]:
    """Divide documents by source, sorted by name; there must be two sources or more.

    ``column`` is one of the documents. Where only the queries have it, a document is of the source
    of the queries that it is relevant to.
    """
    frame = label_documents(collection, column)
    strange = frame.filter(pl.col(column).is_null())
    if len(strange):
        raise InputError(
            f"document {strange['doc_id'][0]!r} has no {column}, or more than one "
            f"({len(strange):,} of {len(frame):,} documents). Every document must be of one source:"
            f" farfield multi-source COLLECTION --by {column} -o FOLDER leaves the others out."
        )
    if frame[column].n_unique() < 2:
        raise InputError(
            f"all {len(frame):,} documents are of one {column}; expected two sources or more."
        )
    parts = frame.partition_by(column, as_dict=True)
    return {name: Corpus.trusted(parts[name,]) for name in sorted(str(n) for (n,) in parts)}


def label_documents(collection: Collection | Corpus, column: str) -> pl.DataFrame:
    """Documents with their source as text; null, where there is none or more than one."""
    corpus = collection.corpus if isinstance(collection, Collection) else collection
    if column in corpus.frame.columns:
        return corpus.frame.with_columns(pl.col(column).cast(pl.String))
    asked = collection.queries.frame if isinstance(collection, Collection) else pl.DataFrame()
    if not isinstance(collection, Collection) or column not in asked.columns:
        known = sorted({*corpus.frame.columns, *asked.columns} - {"doc_id", "query_id", "text"})
        raise InputError(
            f"neither documents nor queries have a column {column!r}."
            f"{did_you_mean(column, known)} They have {', '.join(known) or 'ids and texts only'}; "
            "name the column that says of which source a document is."
        )
    relevant = pl.concat(qrels.relevant().frame for qrels in collection.qrels.values())
    told = relevant.join(asked.select("query_id", pl.col(column).cast(pl.String)), on="query_id")
    only = pl.when(pl.col(column).n_unique() == 1).then(pl.col(column).first())
    sources = told.group_by("doc_id").agg(only.alias(column))
    return corpus.frame.join(sources, on="doc_id", how="left", maintain_order="left")
