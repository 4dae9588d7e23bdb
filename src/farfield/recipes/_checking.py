"""How good a model is on the queries that were held out: nDCG@10 over a pool of documents.

All documents are in the pool if they are few; of many, those that are relevant and a random sample.
The numbers choose between checkpoints of one training, and are no estimate of anything else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import measures, neural
from farfield.judged import Judgements, judge
from farfield.neural.models import kind_of
from farfield.tables import Qrels, Run
from farfield.training.examples import Examples

__all__ = ["MEASURE", "Checking"]

MEASURE = "nDCG@10"

_POOL = 20_000
_DEPTH = 10

Ints = npt.NDArray[np.int64]


class Checking:
    """Queries that were held out, and documents to find for them."""

    def __init__(self, held_out: Examples | None, seed: int, candidates: Ints | None = None):
        """``candidates`` (a row of documents for each query; -1: none) are reranked."""
        if held_out is None:
            return
        self.examples, self._candidates = held_out, candidates
        count = len(held_out.documents)
        self.pool = np.arange(count)
        if count > _POOL:
            drawn = np.random.default_rng([seed, 4]).choice(count, _POOL, replace=False)
            self.pool = np.union1d(drawn, held_out.relevant)
        self._judgements = Judgements.of(Qrels.trusted(held_out.qrels))
        self._measure = measures.parse(MEASURE)

    def __call__(self, model: Any, *, held: Any = None) -> float | None:
        """Return the mean of the measure; ``held`` are vectors of the pool that are known."""
        if not hasattr(self, "examples"):
            return None
        kind = kind_of(model)
        if kind == "cross":
            return self._value(*self._reranked(model))
        texts = [self.examples.documents[row] for row in self.pool]
        queries = self.examples.queries
        if kind == "dense":
            asked = neural.encode(model, queries, task="query")
            held = neural.encode(model, texts, task="document") if held is None else held
            cosine = model.similarity_fn_name != "dot"
            return self.of_vectors(asked, held, cosine=cosine, device=str(model.device))
        if kind == "multi":
            scores, rows = neural.search_multi(
                neural.encode_multi(model, queries, task="query"),
                neural.encode_multi(model, texts, task="document"),
                _DEPTH,
                device=str(model.device),
            )
        else:
            scores, rows = _sparse_products(model, queries, texts)
        return self._value(scores, self.pool[rows])

    def of_vectors(
        self, asked: npt.NDArray[Any], held: npt.NDArray[Any], *, cosine: bool, device: str
    ) -> float:
        """Return the mean of the measure, from vectors of the queries and of the pool."""
        if cosine:
            asked, held = _unit(asked), _unit(held)
        scores, rows = neural.search(asked, held, _DEPTH, device=device)
        return self._value(scores, self.pool[rows])

    def _reranked(self, model: Any) -> tuple[Any, Ints]:
        assert self._candidates is not None
        query, place = np.nonzero(self._candidates >= 0)
        pairs = np.stack([query, self._candidates[query, place]], axis=1)
        found = neural.score_pairs(model, self.examples.queries, self.examples.documents, pairs)
        scores = np.full(self._candidates.shape, -np.inf, dtype=np.float32)
        scores[query, place] = found
        return scores, self._candidates

    def _value(self, scores: npt.NDArray[np.float32], rows: Ints) -> float:
        counts = np.isfinite(scores).sum(1)
        held = np.isfinite(scores)
        frame = pl.DataFrame(
            {
                "query_id": self.examples.query_ids.gather(
                    np.repeat(np.arange(len(scores)), counts)
                ),
                "doc_id": self.examples.doc_ids.gather(rows[held]),
                "score": scores[held].astype(np.float64),
            }
        )
        judged = judge(self._judgements, Run(frame, name="check"))
        return float(self._measure.values(judged).mean())


def _unit(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: npt.NDArray[np.float32] = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return found


def _sparse_products(
    model: Any, queries: list[str], texts: list[str]
) -> tuple[npt.NDArray[np.float32], Ints]:
    from scipy.sparse import csr_array

    def matrix(made: Any) -> Any:
        width = model.get_embedding_dimension()
        return csr_array((made.weights, made.indices, made.starts), shape=(len(made), width))

    asked = matrix(neural.encode_sparse(model, queries, task="query"))
    held = matrix(neural.encode_sparse(model, texts, task="document"))
    table = (asked @ held.T).toarray().astype(np.float32)
    depth = min(_DEPTH, table.shape[1])
    rows = np.argpartition(-table, depth - 1, axis=1)[:, :depth]
    return np.take_along_axis(table, rows, axis=1), rows.astype(np.int64)
