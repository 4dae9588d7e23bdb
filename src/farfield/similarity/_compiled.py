"""The loops over posting lists, compiled. Imported only for jobs large enough to pay for it.

Training queries are taken in tiles so small that their counters stay in the first-level cache; the
best of each test query are carried from tile to tile.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["top_jaccard", "top_products"]

# Rows in a tile: 16-bit counters and 32-bit sums of so many take 32 and 64 kilobytes.
_TILE = 16_384

Best = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


def top_jaccard(grams: Any, gram_train: Any, found: Any, word_train: Any, k: int) -> Best:
    """The best of every row by the larger Jaccard similarity of two kinds of sets."""
    best, value = _empty(grams.shape[0], k)
    own = [*_starts(grams), *_starts(found)]
    sizes = [np.diff(m.indptr).astype(np.int32) for m in (gram_train, word_train)]
    for first in range(0, gram_train.shape[0], _TILE):
        tile = slice(first, first + _TILE)
        _jaccard(  # type: ignore[call-arg]
            *own,
            *_postings(gram_train[tile])[:2],
            *_postings(word_train[tile])[:2],
            *(size[tile] for size in sizes),
            first,
            best,
            value,
        )
    return best, value


def top_products(asked: Any, weighted: Any, k: int) -> Best:
    """The best of every row by the inner product with the rows of ``weighted``."""
    best, value = _empty(asked.shape[0], k)
    own = [*_starts(asked), asked.data.astype(np.float32)]
    for first in range(0, weighted.shape[0], _TILE):
        part = weighted[first : first + _TILE]
        _products(*own, *_postings(part), part.shape[0], first, best, value)  # type: ignore[call-arg]
    return best, value


def _empty(tests: int, k: int) -> Best:
    return np.full((tests, k), -1, dtype=np.int64), np.zeros((tests, k), dtype=np.float64)


def _starts(matrix: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32)


def _postings(matrix: Any) -> tuple[npt.NDArray[Any], ...]:
    """For each column, the rows that have it, and their values."""
    turned = matrix.T.tocsr()
    return (
        turned.indptr.astype(np.int64),
        turned.indices.astype(np.uint32),  # unsigned: no check for indices from the end
        turned.data.astype(np.float32),
    )


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


@numba.njit(cache=True)
def _count(start, index, p_start, p_row, q, counts):  # type: ignore[no-untyped-def]
    """Count, for every row of the tile, what it shares with the query."""
    counts[:] = 0
    for i in range(start[q], start[q + 1]):
        for j in range(p_start[index[i]], p_start[index[i] + 1]):
            counts[p_row[j]] += 1


@numba.njit(parallel=True, cache=True)
def _jaccard(  # type: ignore[no-untyped-def]
    g_start,
    g_index,
    w_start,
    w_index,
    gp_start,
    gp_row,
    wp_start,
    wp_row,
    g_size,
    w_size,
    first,
    best,
    value,
):
    for q in numba.prange(len(g_start) - 1):
        grams = np.empty(len(g_size), dtype=np.uint16)
        words = np.empty(len(g_size), dtype=np.uint16)
        _count(g_start, g_index, gp_start, gp_row, q, grams)
        _count(w_start, w_index, wp_start, wp_row, q, words)
        own_grams, own_words = g_start[q + 1] - g_start[q], w_start[q + 1] - w_start[q]
        least = value[q, -1]
        for row in range(len(g_size)):
            # s / (a + b - s) > least, without dividing, and a little generous for rounding.
            enough = least - 1e-9
            if grams[row] * (1.0 + enough) <= enough * (own_grams + g_size[row]) and words[row] * (
                1.0 + enough
            ) <= enough * (own_words + w_size[row]):
                continue
            shared = int(grams[row])
            if shared == 0:  # without a common 3-gram there is no common word either
                continue
            score = shared / (own_grams + g_size[row] - shared)
            shared = int(words[row])
            if shared > 0:
                score = max(score, shared / (own_words + w_size[row] - shared))
            _insert(best[q], value[q], first + row, score)
            least = value[q, -1]


@numba.njit(parallel=True, cache=True)
def _products(  # type: ignore[no-untyped-def]
    start, index, weight, p_start, p_row, p_weight, trains, first, best, value
):
    for q in numba.prange(len(start) - 1):
        sums = np.zeros(trains, dtype=np.float32)
        for i in range(start[q], start[q + 1]):
            for j in range(p_start[index[i]], p_start[index[i] + 1]):
                sums[p_row[j]] += weight[i] * p_weight[j]
        for row in range(trains):
            if sums[row] > value[q, -1]:
                _insert(best[q], value[q], first + row, sums[row])
