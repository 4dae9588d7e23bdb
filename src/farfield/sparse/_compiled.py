"""The loop that adds up posting lists, compiled. Imported only for jobs that can pay for it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from farfield.sparse.scoring import SAMPLE as _SAMPLE
from farfield.sparse.scoring import Best, Worth

__all__ = ["add"]

# Documents that are looked at together.
_GROUP = 16


def add(worth: Worth, best: Best, queries: tuple[int, int]) -> None:
    """Add up a block for some queries; other threads may do so for others at the same time."""
    # A few more than there are documents, so that they can be looked at in groups.
    sums = np.zeros(worth.documents + _GROUP)
    seen = np.zeros(0 if worth.positive else len(sums), dtype=np.uint8)
    scratch = np.empty(max(best.scores.shape[1], len(sums)))
    # Arrays that are mapped from files cannot be written to, which makes another type of them.
    fixed = worth._replace(docs=_read_only(worth.docs), values=_read_only(worth.values))
    _add(*fixed, *best, *queries, sums, seen, scratch)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@numba.njit(nogil=True, cache=True)
def _add(  # type: ignore[no-untyped-def]
    first,
    documents,
    starts,
    place,
    weight,
    begins,
    docs,
    values,
    positive,
    wanted,
    counts,
    least,
    best_docs,
    best_scores,
    low,
    high,
    sums,
    seen,
    scratch,
):
    for query in range(low, high):
        if starts[query] == starts[query + 1]:
            continue
        for at in range(starts[query], starts[query + 1]):
            one = weight[at]
            for j in range(begins[place[at]], begins[place[at] + 1]):
                sums[docs[j]] += one * values[j]
            if not positive:
                for j in range(begins[place[at]], begins[place[at] + 1]):
                    seen[docs[j]] = 1
        if positive and counts[query] == 0:
            least[query] = _guess(sums, documents, wanted, scratch)
        counts[query], least[query] = _take(
            sums,
            seen,
            positive,
            first,
            documents,
            best_docs[query],
            best_scores[query],
            counts[query],
            least[query],
            wanted,
            scratch,
        )
        sums[:] = 0.0
        seen[:] = 0


@numba.njit(nogil=True, cache=True)
def _guess(sums, documents, wanted, scratch):  # type: ignore[no-untyped-def]
    """Guess a score above which there are enough documents; minus infinity, if it fails."""
    some = (documents + _SAMPLE - 1) // _SAMPLE
    rank = wanted // _SAMPLE * 4 // 3 + 8
    if some < 4 * rank:
        return -np.inf
    for i in range(some):
        scratch[i] = sums[i * _SAMPLE]
    guess = _between(scratch, some, rank, rank + rank // 8, 0.0)
    return guess if _above(sums, len(sums), guess) >= wanted else -np.inf


@numba.njit(nogil=True, cache=True)
def _take(  # type: ignore[no-untyped-def]
    sums, seen, positive, first, documents, docs, scores, count, least, wanted, scratch
):
    """Take in what is above ``least``; return how many there are now, and what is least then."""
    enough = max(least, 0.0) if positive else least
    for group in range(0, documents, _GROUP):
        # Most groups hold nothing; counting, without a branch, is done for several at once.
        above = 0
        for doc in range(group, group + _GROUP):
            above += sums[doc] > enough
        if above == 0:
            continue
        if count + _GROUP > len(scores):
            count, least = _choose(docs[:count], scores[:count], wanted, scratch)
            enough = least
        for doc in range(group, group + _GROUP):
            scores[count] = sums[doc]
            docs[count] = first + doc
            count += sums[doc] > enough and (positive or seen[doc] == 1)
    if count > 2 * wanted:  # a higher bar for the next block is worth it
        count, least = _choose(docs[:count], scores[:count], wanted, scratch)
    return count, least


@numba.njit(nogil=True, cache=True)
def _choose(docs, scores, wanted, scratch):  # type: ignore[no-untyped-def]
    """Keep the best, as many as are wanted or a few more.

    Return how many they are, and a score that all others, also those to come, have to be above.
    """
    size, most = len(scores), wanted + wanted // 4
    least = _between(scores, size, wanted, most, scores.min())
    if wanted <= _above(scores, size, least) <= most:
        kept = 0
        for i in range(size):  # without a branch
            score = scores[i]
            scores[kept], docs[kept] = score, docs[i]
            kept += score > least
        return kept, least
    # Many are equal: of those with the least score that is kept, the first stay.
    scratch[:size] = scores
    least = _kth_largest(scratch, size, wanted)
    level = wanted - _above(scores, size, least)
    kept = 0
    for i in range(size):
        if scores[i] > least or (scores[i] == least and level > 0):
            level -= scores[i] == least
            scores[kept], docs[kept] = scores[i], docs[i]
            kept += 1
    return kept, least


@numba.njit(nogil=True, cache=True)
def _between(values, size, fewest, most, low):  # type: ignore[no-untyped-def]
    """A number, from ``low``, above which there are ``fewest`` to ``most`` values, if there is one.

    Counting without a branch is so fast that halving the interval beats partial sorting.
    """
    high = values[:size].max()
    for _ in range(50):
        middle = 0.5 * (low + high)
        above = _above(values, size, middle)
        if above < fewest:
            high = middle
        elif above > most:
            low = middle
        else:
            return middle
    return low


@numba.njit(nogil=True, cache=True)
def _above(values, size, least):  # type: ignore[no-untyped-def]
    """How many of the first ``size`` values are above ``least``?"""
    above = 0
    for i in range(size):
        above += values[i] > least
    return above


@numba.njit(nogil=True, cache=True)
def _kth_largest(values, size, k):  # type: ignore[no-untyped-def]
    """The k-th largest of the first ``size`` values, which change places."""
    low, high = 0, size - 1
    while low < high:
        # The middle of three is a good guess, also for values that are in order.
        a, b, c = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return values[k - 1]
