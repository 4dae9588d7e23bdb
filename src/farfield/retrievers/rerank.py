"""Read again, with the query beside the document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from farfield import neural
from farfield.errors import SpecError
from farfield.neural.models import Kind
from farfield.progress import counting
from farfield.retrievers._neural import (
    Asking,
    Modelled,
    open_strings,
    ranked,
    sorted_corpus,
    write_strings,
)
from farfield.retrievers._sparse import full_text
from farfield.retrievers.base import Index, Retriever, run_of
from farfield.tables import Corpus, Queries, Run

__all__ = ["rerank"]

# Queries whose pairs are scored together: a document that several of them find is tokenised once.
_TOGETHER = 1_024


@dataclass(frozen=True, kw_only=True)
class rerank(Modelled):
    """A CrossEncoder scores the best ``depth`` documents of another retriever again.

    Documents beyond ``depth`` are not in the run, so that its recall is that of the first stage.
    Scores are the plain output of the model. The index is that of the first stage, with the texts
    of the documents; it serves every model and depth.

    Relations: dense and splade read documents beforehand, without the query.
    """

    base: Retriever
    model: str
    depth: int = 1000

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise SpecError(f"depth is {self.depth}, expected 1, 2, 3 …")

    @property
    def kind(self) -> Kind:
        """A CrossEncoder."""
        return "cross"

    @property
    def content(self) -> str:
        """What the first stage holds, and texts."""
        return f"texts and {self.base.content}"

    @property
    def inputs(self) -> dict[str, str]:
        """What goes into the index of the first stage."""
        return self.base.inputs

    def _index(self, corpus: Corpus, folder: Path | None) -> Index:
        ordered = sorted_corpus(corpus)
        texts = ordered.select("doc_id", text=full_text(ordered).str.strip_chars())
        if folder is None:
            return RerankIndex(self, self.base.index(corpus), texts)
        write_strings(folder / "texts.arrow", texts)
        return RerankIndex(self, self.base.index(corpus, folder / "first"), texts)

    def _open(self, folder: Path) -> Index:
        texts = open_strings(folder / "texts.arrow")
        return RerankIndex(self, self.base.open(folder / "first"), texts)


class RerankIndex(Index):
    """The index of the first stage and the texts of documents, in descending order of ids."""

    retriever: rerank

    def __init__(self, retriever: rerank, first: Index, texts: pl.DataFrame) -> None:
        self.retriever, self.first, self.texts = retriever, first, texts

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def sizes(self) -> dict[str, Any]:
        """Those of the first stage."""
        return self.first.sizes

    def _using(self, retriever: Retriever) -> RerankIndex:
        assert isinstance(retriever, rerank)  # it has the same content
        return RerankIndex(retriever, self.first.using(retriever.base), self.texts)

    def _search(self, queries: Queries, k: int, name: str) -> Run:
        _ = self.retriever.network  # before anything takes its time
        asking = Asking.of(queries)
        asked = Queries.trusted(queries.frame[asking.rows])
        run = self.first.search(asked, self.retriever.depth)
        self.report = self.first.report
        return self._read_again(queries, asking, asked, run, k, name)

    def _search_parts(
        self, queries: Queries, parts: Mapping[str, pl.Series], k: int
    ) -> dict[str, Run]:
        """The best ``depth`` documents of each part are scored again."""
        _ = self.retriever.network  # before anything takes its time
        asking = Asking.of(queries)
        asked = Queries.trusted(queries.frame[asking.rows])
        runs = self.first.search_parts(asked, parts, self.retriever.depth)
        self.report = self.first.report
        return {
            name: self._read_again(queries, asking, asked, run, k, name)
            for name, run in runs.items()
        }

    def _read_again(
        self, queries: Queries, asking: Asking, asked: Queries, run: Run, k: int, name: str
    ) -> Run:
        model = self.retriever.network
        query, doc = self._numbers(asked, run)
        scores = np.empty(len(query), dtype=np.float32)
        with counting(len(asking.texts), "reranking") as count:
            for first in range(0, len(asking.texts), _TOGETHER):
                low, high = np.searchsorted(query, [first, first + _TOGETHER])
                used, which = np.unique(doc[low:high], return_inverse=True)
                texts = self.texts["text"].gather(used).to_list()
                pairs = np.stack([query[low:high], which], axis=1)
                scores[low:high] = neural.score_pairs(model, asking.texts, texts, pairs)
                count(min(_TOGETHER, len(asking.texts) - first))
        best = ranked(query, doc, scores, k, len(asking.texts))
        doc_ids = self.texts["doc_id"].gather(best.docs)
        return run_of(queries, asking.spread(best.bounds), doc_ids, best.scores, name)

    def _numbers(self, asked: Queries, run: Run) -> tuple[Any, Any]:
        """Numbers of the query and of the document of each result, queries ascending."""
        found = run.frame.select(pl.col("query_id", "doc_id").cast(pl.String))
        for name, table in (("query_id", asked.frame), ("doc_id", self.texts)):
            numbers = table.select(name).with_row_index(f"number of {name}")
            found = found.join(numbers, on=name, how="left", maintain_order="left")
        query, doc = (found[f"number of {name}"].to_numpy() for name in ("query_id", "doc_id"))
        order = np.argsort(query, kind="stable")
        return query[order].astype(np.int64), doc[order].astype(np.int64)
