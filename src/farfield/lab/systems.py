"""Simple systems to evaluate and compare before any retriever is at hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.lab.making import Lab

__all__ = ["runs"]

Floats = npt.NDArray[np.float64]
Scorer = Callable[[int, int], Floats]
"""Scores all passages for a slice of the test queries."""

_DEPTH = 100
_CELLS = 4_000_000  # scores held at a time
_K1, _B = 0.9, 0.4
_NEIGHBOURS = 10
_WORD = re.compile(r"\w+")


def runs(lab: Lab, *, seed: int = 0) -> dict[str, pl.DataFrame]:
    """Return four runs of the test queries: query_id, doc_id, score; at most 100 deep.

    lexical: BM25 (k1=0.9, b=0.4) over titles and texts, words as they are, no stemming
    lexical-titles: the same over titles alone
    memory: recalls the ten training queries most like the query, by the cosine of TF-IDF
        vectors, and puts what was judged for them before the ranking of ``lexical``
    random: passages drawn at random, the floor for any system
    """
    tests = lab.queries.filter(pl.col("split") == "test")
    known = lab.queries.filter(pl.col("split") == "train")
    docs, titles = lab.corpus["doc_id"], lab.corpus["title"]
    vocabulary: dict[str, int] = {}
    counts = {
        name: _counts(texts, vocabulary)
        for name, texts in {
            "texts": titles + " " + lab.corpus["text"],
            "titles": titles,
            "known": known["text"],
            "tests": tests["text"],
        }.items()
    }
    for matrix in counts.values():
        matrix.resize(matrix.shape[0], len(vocabulary))
    lexical = _bm25(counts["texts"], counts["tests"])
    systems: dict[str, Scorer] = {
        "lexical": lexical,
        "lexical-titles": _bm25(counts["titles"], counts["tests"]),
        "memory": _memory(
            counts["known"], counts["tests"], _judged(lab.qrels["train"], known, docs), lexical
        ),
        "random": _random(np.random.default_rng(seed), len(docs)),
    }
    return {name: _run(scorer, tests["query_id"], docs) for name, scorer in systems.items()}


def _counts(texts: pl.Series, vocabulary: dict[str, int]) -> Any:
    """Return how often each word occurs in each text; new words join the vocabulary."""
    from scipy import sparse

    columns: list[int] = []
    ends = [0]
    for text in texts:
        columns += [vocabulary.setdefault(word, len(vocabulary)) for word in _words(text)]
        ends.append(len(columns))
    matrix = sparse.csr_array(
        (np.ones(len(columns)), np.array(columns, np.int64), np.array(ends)),
        shape=(len(texts), len(vocabulary)),
    )
    matrix.sum_duplicates()
    return matrix


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _bm25(docs: Any, queries: Any) -> Scorer:
    length = docs.sum(axis=1)
    norm = _K1 * (1 - _B + _B * length / length.mean())
    weights = docs.copy()
    weights.data = docs.data / (docs.data + np.repeat(norm, np.diff(docs.indptr)))
    found = np.bincount(docs.indices, minlength=docs.shape[1])
    weights.data *= np.log1p((docs.shape[0] - found + 0.5) / (found + 0.5))[docs.indices]
    transposed = weights.T.tocsr()
    return lambda start, stop: (queries[start:stop] @ transposed).toarray()


def _memory(known: Any, queries: Any, judged: Any, lexical: Scorer) -> Scorer:
    found = np.bincount(known.indices, minlength=known.shape[1])
    idf = np.log((1 + known.shape[0]) / (1 + found)) + 1
    transposed = _unit(known, idf).T.tocsr()
    vectors = _unit(queries, idf)
    neighbours = min(_NEIGHBOURS, known.shape[0])

    def score(start: int, stop: int) -> Floats:
        alike = (vectors[start:stop] @ transposed).toarray()
        # The power lets one very similar query outweigh many vaguely similar ones.
        alike = np.where(alike >= np.partition(alike, -neighbours)[:, -neighbours, None], alike, 0)
        rest = lexical(start, stop)
        rest /= np.maximum(rest.max(axis=1, keepdims=True), 1e-9)
        total: Floats = alike**3 @ judged + 0.25 * rest
        return total

    return score


def _unit(matrix: Any, idf: Floats) -> Any:
    weighted = matrix.copy()
    weighted.data = weighted.data * idf[weighted.indices]
    length = np.sqrt((weighted**2).sum(axis=1))
    weighted.data /= np.repeat(np.maximum(length, 1e-9), np.diff(weighted.indptr))
    return weighted


def _judged(qrels: pl.DataFrame, known: pl.DataFrame, docs: pl.Series) -> Any:
    from scipy import sparse

    rows = qrels["query_id"].cast(pl.Enum(known["query_id"])).to_physical().to_numpy()
    columns = qrels["doc_id"].cast(pl.Enum(docs)).to_physical().to_numpy()
    return sparse.csr_array(
        (qrels["relevance"].to_numpy().astype(float), (rows, columns)),
        shape=(len(known), len(docs)),
    )


def _random(rng: np.random.Generator, docs: int) -> Scorer:
    return lambda start, stop: rng.random((stop - start, docs))


def _run(scorer: Scorer, query_ids: pl.Series, doc_ids: pl.Series) -> pl.DataFrame:
    depth = min(_DEPTH, len(doc_ids))
    step = max(1, _CELLS // len(doc_ids))
    parts = []
    for start in range(0, len(query_ids), step):
        scores = scorer(start, min(start + step, len(query_ids)))
        best = np.sort(np.argpartition(-scores, depth - 1, axis=1)[:, :depth], axis=1)
        found = np.take_along_axis(scores, best, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        best, found = np.take_along_axis(best, order, 1), np.take_along_axis(found, order, 1)
        kept = found.ravel() > 0  # a passage without any word of the query is not a result
        query = np.repeat(np.arange(start, start + len(best)), depth)
        parts.append(
            pl.DataFrame(
                {
                    "query_id": query_ids[query[kept]],
                    "doc_id": doc_ids[best.ravel()[kept]],
                    "score": found.ravel()[kept],
                }
            )
        )
    return pl.concat(parts)
