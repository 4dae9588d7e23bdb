"""The most similar training queries of every test query.

By letters and words (``ngram``): the larger of two Jaccard similarities, of the sets of character
3-grams and of words. By BM25 (``bm25``), as the paper's annotators were given candidates. Or by the
cosine of vectors that an encoder makes. Every pair is compared. Small jobs do so with sparse
products; large ones with a compiled loop over posting lists, which gives the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import InputError, did_you_mean
from farfield.similarity.terms import gram_sets, rarity, word_counts
from farfield.similarity.vectors import top_k
from farfield.tables import Queries

__all__ = ["METHODS", "nearest", "nearest_by_vectors"]

METHODS = ("ngram", "bm25")

Best = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]

# From here on compiling pays: pairs of a test and a training query.
_MANY_PAIRS = 50_000_000
# Numbers in one dense block of similarities.
_BLOCK = 16_000_000


def nearest(test: Queries, train: Queries, *, k: int = 10, method: str = "ngram") -> pl.DataFrame:
    """Return the ``k`` most similar training queries of every test query, best first.

    Columns: query_id, train_id, similarity, rank. ``ngram`` similarities lie between 0 and 1; BM25
    scores have no upper end. Training queries with nothing in common are not listed. Equals are
    ordered by their id.
    """
    if method not in METHODS:
        raise InputError(
            f"no method is called {method!r}.{did_you_mean(method, METHODS)} "
            f"Known: {', '.join(METHODS)}."
        )
    if k < 1:
        raise InputError(f"k is {k}, expected 1, 2, 3 …")
    train_frame = train.frame.sort("query_id")
    find = _by_ngrams if method == "ngram" else _by_bm25
    best = find(test.frame["text"], train_frame["text"], min(k, len(train_frame)))
    return _listed(test.frame["query_id"], train_frame["query_id"], best)


def nearest_by_vectors(
    test_ids: pl.Series,
    test: npt.NDArray[np.float32],
    train_ids: pl.Series,
    train: npt.NDArray[np.float32],
    *,
    k: int = 10,
) -> pl.DataFrame:
    """The same by the inner product of vectors (the cosine, if they have length 1)."""
    order = train_ids.arg_sort().to_numpy()  # equals by their id
    if (order[1:] < order[:-1]).any():
        train_ids, train = train_ids.gather(order), train[order]
    rows, scores = top_k(test, train, k)
    best = (rows, scores.astype(np.float64))
    return _listed(test_ids, train_ids, best, positive=False)


def _listed(
    test_ids: pl.Series, train_ids: pl.Series, best: Best, *, positive: bool = True
) -> pl.DataFrame:
    rows, scores = best
    k = rows.shape[1]
    frame = pl.DataFrame(
        {
            "query_id": test_ids.gather(np.repeat(np.arange(len(test_ids)), k)),
            "train_id": train_ids.gather(np.maximum(rows, 0).ravel()),
            "similarity": scores.ravel(),
            "rank": np.tile(np.arange(1, k + 1), len(test_ids)),
        }
    )
    return frame.filter(pl.Series((scores > 0).ravel() if positive else (rows >= 0).ravel()))


# -- letters and words --------------------------------------------------------------------------


def _by_ngrams(test: pl.Series, train: pl.Series, k: int) -> Best:
    grams, gram_train = gram_sets(test, train)
    (found, word_train), _ = word_counts(test, train)
    found.data[:], word_train.data[:] = 1.0, 1.0
    if len(test) * len(train) > _MANY_PAIRS:
        from farfield.similarity._compiled import top_jaccard

        return top_jaccard(grams, gram_train, found, word_train, k)
    sizes = [
        (np.diff(a.indptr), np.diff(b.indptr))
        for a, b in ((grams, gram_train), (found, word_train))
    ]

    def similarity(rows: slice) -> npt.NDArray[np.float64]:
        parts = [
            _jaccard((a[rows] @ b.T).toarray(), one[rows], other)
            for (a, b), (one, other) in zip(
                ((grams, gram_train), (found, word_train)), sizes, strict=True
            )
        ]
        return np.maximum(*parts)

    return _top(similarity, len(test), len(train), k)


def _jaccard(
    shared: npt.NDArray[np.float32], one: npt.NDArray[Any], other: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    together = one[:, None] + other[None, :] - shared
    found = np.zeros(shared.shape)
    np.divide(shared, together, out=found, where=together > 0)
    return found


# -- BM25 ---------------------------------------------------------------------------------------


def _by_bm25(test: pl.Series, train: pl.Series, k: int, k1: float = 0.9, b: float = 0.4) -> Best:
    (asked, held), _ = word_counts(test, train)
    lengths = np.asarray(held.sum(axis=1)).ravel()
    norm = k1 * (1 - b + b * lengths / max(lengths.mean(), 1e-9))
    weighted = held.copy()
    tf = held.data
    weighted.data = (tf / (tf + np.repeat(norm, np.diff(held.indptr)))).astype(np.float32)
    weighted.data *= rarity(held)[held.indices].astype(np.float32)
    if len(test) * len(train) > _MANY_PAIRS:
        from farfield.similarity._compiled import top_products

        return top_products(asked, weighted, k)
    return _top(lambda rows: (asked[rows] @ weighted.T).toarray(), len(test), len(train), k)


# -- the best of a block ------------------------------------------------------------------------


def _top(similarity: Any, tests: int, trains: int, k: int) -> Best:
    """The best ``k`` of every row, block by block; equals in order of their column."""
    rows = np.empty((tests, k), dtype=np.int64)
    scores = np.empty((tests, k), dtype=np.float64)
    step = max(1, _BLOCK // max(trains, 1))
    for start in range(0, tests, step):
        part = slice(start, min(start + step, tests))
        block = np.asarray(similarity(part), dtype=np.float64)
        order = np.argsort(-block, axis=1, kind="stable")[:, :k]
        rows[part] = order
        scores[part] = np.take_along_axis(block, order, axis=1)
    return rows, scores
