"""The loops over posting lists, compiled. Imported only for jobs large enough to pay for it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["top_jaccard", "top_products"]


def top_jaccard(
    grams: Any, gram_train: Any, found: Any, word_train: Any, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The best of every row by the larger Jaccard similarity of two kinds of sets."""
    arguments: list[npt.NDArray[Any]] = []
    for a, b in ((grams, gram_train), (found, word_train)):
        postings = b.T.tocsr()
        arguments += [
            a.indptr.astype(np.int64),
            a.indices.astype(np.int64),
            postings.indptr.astype(np.int64),
            postings.indices.astype(np.int32),
            np.diff(b.indptr).astype(np.int32),
        ]
    found: Any = _jaccard(*arguments, k)  # type: ignore[call-arg]
    return found[0], found[1]


def top_products(
    asked: Any, weighted: Any, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The best of every row by the inner product with the rows of ``weighted``."""
    postings = weighted.T.tocsr()
    best, value = _products(
        asked.indptr.astype(np.int64),
        asked.indices.astype(np.int64),
        asked.data.astype(np.float32),
        postings.indptr.astype(np.int64),
        postings.indices.astype(np.int32),
        postings.data.astype(np.float32),
        weighted.shape[0],
        k,
    )
    return best, value


@numba.njit(cache=True)
def _insert(best, value, row, score):  # type: ignore[no-untyped-def]
    """Put a row into the sorted list if it belongs there; earlier rows win among equals."""
    at = len(value) - 1
    if score <= value[at]:
        return
    while at > 0 and value[at - 1] < score:
        value[at] = value[at - 1]
        best[at] = best[at - 1]
        at -= 1
    value[at] = score
    best[at] = row


@numba.njit(parallel=True, cache=True)
def _jaccard(  # type: ignore[no-untyped-def]
    g_start, g_index, gp_start, gp_row, g_size, w_start, w_index, wp_start, wp_row, w_size, k
):
    tests, trains = len(g_start) - 1, len(g_size)
    best = np.full((tests, k), -1, dtype=np.int64)
    value = np.zeros((tests, k), dtype=np.float64)
    for q in numba.prange(tests):
        grams = np.zeros(trains, dtype=np.uint16)
        words = np.zeros(trains, dtype=np.uint16)
        for i in range(g_start[q], g_start[q + 1]):
            for j in range(gp_start[g_index[i]], gp_start[g_index[i] + 1]):
                grams[gp_row[j]] += 1
        for i in range(w_start[q], w_start[q + 1]):
            for j in range(wp_start[w_index[i]], wp_start[w_index[i] + 1]):
                words[wp_row[j]] += 1
        own_grams, own_words = g_start[q + 1] - g_start[q], w_start[q + 1] - w_start[q]
        for row in range(trains):
            shared = int(grams[row])
            if shared == 0:  # without a common 3-gram there is no common word either
                continue
            score = shared / (own_grams + g_size[row] - shared)
            shared = int(words[row])
            if shared > 0:
                score = max(score, shared / (own_words + w_size[row] - shared))
            _insert(best[q], value[q], row, score)
    return best, value


@numba.njit(parallel=True, cache=True)
def _products(start, index, weight, p_start, p_row, p_weight, trains, k):  # type: ignore[no-untyped-def]
    tests = len(start) - 1
    best = np.full((tests, k), -1, dtype=np.int64)
    value = np.zeros((tests, k), dtype=np.float64)
    for q in numba.prange(tests):
        sums = np.zeros(trains, dtype=np.float32)
        for i in range(start[q], start[q + 1]):
            for j in range(p_start[index[i]], p_start[index[i] + 1]):
                sums[p_row[j]] += weight[i] * p_weight[j]
        for row in range(trains):
            if sums[row] > 0:
                _insert(best[q], value[q], row, sums[row])
    return best, value
