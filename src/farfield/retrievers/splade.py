"""Learned weights of words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
import polars as pl

from farfield import neural
from farfield.neural import SparseVectors
from farfield.neural.encoding import CHUNK, joined
from farfield.neural.models import Kind
from farfield.retrievers._neural import Asking, Modelled, sorted_corpus
from farfield.retrievers._sparse import Searcher, SparseRetriever, full_text
from farfield.retrievers.base import UNFINISHED, Manifest
from farfield.sparse import Inverted, Products, SparseIndex, Weighted, Weighting, build, from_matrix
from farfield.sparse.building import open_index
from farfield.tables import Corpus, Queries

__all__ = ["splade"]

_ROW = "number of the encoded text"  # a column that rides along while the index is built
_ONE_AT_A_TIME = Lock()  # blocks are made by several threads; a model uses all cores by itself


@dataclass(frozen=True, kw_only=True)
class splade(Modelled, SparseRetriever):
    """A SparseEncoder weighs the words of its vocabulary; scores are inner products of weights.

    For SPLADE (Formal et al. 2021) and its kin. The weights go into the same index that bm25 uses.
    How many dimensions documents and queries have on average is in the index's sizes and in the
    report of a search: without them no two such models can be compared.

    Relations: bm25 counts the words that are there; dense has no words.
    """

    model: str

    @property
    def kind(self) -> Kind:
        """A SparseEncoder."""
        return "sparse"

    @property
    def content(self) -> str:
        """Weights that this model gives."""
        return f"weights({self.model!r})"

    @cached_property
    def network(self) -> Any:
        """The model itself; one text goes through it, as only then it knows its dimensions."""
        model = neural.load(self.model, self.kind)
        neural.encode_sparse(model, ["a"])
        return model

    @cached_property
    def terms(self) -> pl.Series:
        """The names of all dimensions: words of the vocabulary, where they name them."""
        number = int(self.network.get_embedding_dimension())
        tokenizer = self.network.tokenizer
        names = [str(at) for at in range(number)]
        if len(tokenizer) >= number:
            words = tokenizer.convert_ids_to_tokens(list(range(number)))
            names = words if len(set(words)) == number and None not in words else names
        return pl.Series("term", names, dtype=pl.String)

    def invert(self, documents: pl.DataFrame) -> Inverted:
        """Weigh the words of title and text."""
        texts = full_text(documents).str.strip_chars()
        with _ONE_AT_A_TIME:
            vectors = neural.encode_sparse(self.network, texts.to_list(), task="document")
        return self._inverted(vectors, texts)

    def ask(self, queries: Queries, index: SparseIndex) -> Weighted:
        """Weigh the words of the queries."""
        return self.weighted(Asking.of(queries), index)[0]

    def weighted(self, asking: Asking, index: SparseIndex) -> tuple[Weighted, float]:
        """Weigh the words of the queries, and say how many dimensions each has on average."""
        found = neural.encode_sparse(self.network, asking.texts, task="query")
        number = index.numbers(self.terms)[found.indices]
        query = np.repeat(asking.rows, found.nonzeros)
        known = number >= 0
        weights = found.weights[known].astype(np.float64)
        asked = Weighted.of(query[known], number[known], weights, asking.total)
        return asked, len(found.indices) / max(1, len(found))

    def weighting(self) -> Weighting:
        """Inner products."""
        return Products()

    def _index(self, corpus: Corpus, folder: Path | None) -> Searcher:
        ordered = sorted_corpus(corpus)
        texts = full_text(ordered).str.strip_chars()
        scratch = None if folder is None else folder / UNFINISHED
        if scratch is None:
            size = len(texts)
            shards = [neural.encode_sparse(self.network, texts.to_list(), task="document")]
        else:  # weighing takes longest, so that is what must go on after a stop
            size = CHUNK
            into = scratch / "weights"
            given = {"task": "document", "dtype": np.float32}
            stored = neural.encode_to(into, self.network, texts, **given)  # type: ignore[arg-type]
            shards = cast(list[SparseVectors], list(stored.shards()))

        def invert(documents: pl.DataFrame) -> Inverted:
            first, count = int(documents[_ROW][0]), len(documents)
            vectors = _part(shards, size, first, first + count)
            return self._inverted(vectors, texts.slice(first, count))

        numbered = Corpus.trusted(ordered.with_row_index(_ROW))
        engine = build(numbered, invert, folder, scratch)
        return SpladeSearcher(self, engine, self.network_fingerprint)

    def _open(self, folder: Path) -> Searcher:
        made_by = Manifest.read(folder).inputs[self.model]
        return SpladeSearcher(self, open_index(folder), made_by)

    def _inverted(self, vectors: SparseVectors, texts: pl.Series) -> Inverted:
        from scipy.sparse import csr_array

        # What has no text has no words, whatever a model makes of the marks around it.
        there = np.repeat((texts != "").to_numpy(), vectors.nonzeros)
        weights = np.where(there, vectors.weights, np.float32(0))
        shape = len(texts), len(self.terms)
        matrix = csr_array((weights, vectors.indices, vectors.starts), shape)
        return from_matrix(self.terms, matrix)


def _part(shards: list[SparseVectors], size: int, first: int, last: int) -> SparseVectors:
    """Texts ``first`` to before ``last``, from shards of so many texts."""
    low, high = first // size, -(-last // size)
    some = cast(SparseVectors, joined(shards[low:high]))
    starts = some.starts[first - low * size : last - low * size + 1]
    rows = slice(int(starts[0]), int(starts[-1]))
    return SparseVectors(some.indices[rows], some.weights[rows], starts - starts[0])


class SpladeSearcher(Searcher):
    """A sparse index that counts the dimensions of documents and queries."""

    retriever: splade

    def __init__(self, retriever: splade, engine: SparseIndex, fingerprint: str) -> None:
        super().__init__(retriever, engine)
        self.fingerprint = fingerprint

    @property
    def sizes(self) -> dict[str, Any]:
        """Documents, different dimensions, pairs of both, and dimensions of a document."""
        engine = self.engine
        return {
            "documents": len(engine),
            "terms": len(engine.df),
            "postings": engine.postings,
            "mean_nonzeros": engine.postings / len(engine),
        }

    def _ask(self, queries: Queries) -> Weighted:
        self.retriever.check_model(self.fingerprint)
        asked, nonzeros = self.retriever.weighted(Asking.of(queries), self.engine)
        self.report = {
            "nonzeros_of_documents": self.sizes["mean_nonzeros"],
            "nonzeros_of_queries": nonzeros,
        }
        return asked
