"""What retrievers over the sparse engine share, so that they can be put around one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from farfield.retrievers.base import UNFINISHED, Index, Retriever, numbers_of, run_of
from farfield.sparse import Inverted, SparseIndex, Weighted, Weighting, build
from farfield.sparse.building import open_index
from farfield.tables import Corpus, Queries, Run

__all__ = ["Around", "Searcher", "SparseRetriever", "full_text"]


@dataclass(frozen=True, kw_only=True)
class SparseRetriever(Retriever):
    """Documents and queries are sets of weighted terms; the score is a sum over shared terms.

    A member says what the terms of documents are (:meth:`invert`), those of queries (:meth:`ask`)
    and what they are worth (:meth:`weighting`).
    """

    def check(self, corpus: Corpus) -> None:
        """Raise, or warn, if these documents are not what the retriever expects."""

    def invert(self, documents: pl.DataFrame) -> Inverted:
        """Turn some documents into posting lists."""
        raise NotImplementedError(f"{type(self).__name__} defines no invert")

    def ask(self, queries: Queries, index: SparseIndex) -> Weighted:
        """Turn queries into weighted terms."""
        raise NotImplementedError(f"{type(self).__name__} defines no ask")

    def weighting(self) -> Weighting:
        """What terms are worth."""
        raise NotImplementedError(f"{type(self).__name__} defines no weighting")

    def _index(self, corpus: Corpus, folder: Path | None) -> Searcher:
        self.check(corpus)
        scratch = None if folder is None else folder / UNFINISHED
        return Searcher(self, build(corpus, self.invert, folder, scratch))

    def _open(self, folder: Path) -> Searcher:
        return Searcher(self, open_index(folder))


@dataclass(frozen=True, kw_only=True)
class Around(SparseRetriever):
    """A retriever around another: everything is as there, but for what it changes."""

    base: SparseRetriever

    @property
    def content(self) -> str:
        """What the index of the other holds."""
        return self.base.content

    @property
    def inputs(self) -> dict[str, str]:
        """What goes into the index of the other."""
        return self.base.inputs

    def check(self, corpus: Corpus) -> None:
        """As the other does."""
        self.base.check(corpus)

    def invert(self, documents: pl.DataFrame) -> Inverted:
        """As the other does."""
        return self.base.invert(documents)

    def ask(self, queries: Queries, index: SparseIndex) -> Weighted:
        """As the other does."""
        return self.base.ask(queries, index)

    def weighting(self) -> Weighting:
        """As the other does."""
        return self.base.weighting()


class Searcher(Index):
    """A sparse index with a retriever that knows how to ask it; ``engine`` is the index itself."""

    retriever: SparseRetriever

    def __init__(self, retriever: SparseRetriever, engine: SparseIndex) -> None:
        self.retriever, self.engine = retriever, engine

    def __len__(self) -> int:
        return len(self.engine)

    @property
    def sizes(self) -> dict[str, Any]:
        """Documents, different terms, pairs of both, and the mean length."""
        engine = self.engine
        return {
            "documents": len(engine),
            "terms": len(engine.df),
            "postings": engine.postings,
            "mean_length": engine.mean_length,
        }

    def _using(self, retriever: Retriever) -> Searcher:
        assert isinstance(retriever, SparseRetriever)  # it has the same content
        return Searcher(retriever, self.engine)

    def _search(self, queries: Queries, k: int, name: str) -> Run:
        return self._answer(self.engine, queries, self._ask(queries), k, name)

    def _search_parts(
        self, queries: Queries, parts: Mapping[str, pl.Series], k: int
    ) -> dict[str, Run]:
        asked = self._ask(queries)
        found = {}
        for name, ids in parts.items():
            part = self.engine.part(numbers_of(self.engine.doc_ids, ids))
            found[name] = self._answer(part, queries, asked, k, name)
        return found

    def _ask(self, queries: Queries) -> Weighted:
        return self.retriever.ask(queries, self.engine)

    def _answer(
        self, engine: SparseIndex, queries: Queries, asked: Weighted, k: int, name: str
    ) -> Run:
        found = engine.search(asked, self.retriever.weighting(), k)
        return run_of(queries, found.bounds, engine.doc_ids.gather(found.docs), found.scores, name)


def full_text(documents: pl.DataFrame) -> pl.Series:
    """The title, where there is one, and the text."""
    if "title" not in documents.columns:
        return documents["text"]
    title = pl.col("title").cast(pl.String)
    return documents.select(
        pl.concat_str(title, "text", separator=" ", ignore_nulls=True)
    ).to_series()
