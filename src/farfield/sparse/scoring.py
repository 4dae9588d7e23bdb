"""The best documents of queries: scores are summed term by term, block by block.

In every block the postings of all terms that any query asks for are turned into what they are
worth, once. Each query then adds up its terms in an array of the block's documents, small enough
for the cache, and keeps those above the least of its best so far. Scores are sums of 64-bit
numbers in the order of terms, so they do not depend on blocks, threads or the way they are added
up: large jobs do so in a compiled loop, small ones, which could not pay for compiling, in numpy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from farfield.sparse.weighted import Weighted

if TYPE_CHECKING:
    from farfield.sparse.index import Block, SparseIndex
    from farfield.sparse.weighting import Weighting

__all__ = ["Best", "Worth", "best_documents"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Postings to add up from which the compiled loop pays; ten times as many, if it has yet to be
# compiled, which takes some seconds once.
MANY = 50_000_000
# Queries that a thread takes at a time: a share of all for each, so that none waits long.
_SHARES = 4
# Of so many documents one is looked at to guess how high the best score.
SAMPLE = 16
# Room for candidates, as many times what is asked for.
_ROOM = 4


class Worth(NamedTuple):
    """A block for some queries: what they ask for, and what it is worth.

    The terms of query ``i`` are ``starts[i]`` to ``starts[i + 1]`` of ``place`` (which list of
    postings) and ``weight``; list ``j`` is ``begins[j]`` to ``begins[j + 1]`` of ``docs`` and
    ``values``. ``positive``: no product is 0 or less.
    """

    first: int
    documents: int
    starts: Ints
    place: Ints
    weight: Floats
    begins: Ints
    docs: npt.NDArray[np.uint16] | Ints
    values: npt.NDArray[Any]
    positive: bool


class Best(NamedTuple):
    """The best documents of each query so far, in the order of their numbers, and some more.

    There is room for several times as many as are asked for. Only when it is full, the best are
    chosen. Nothing comes in that is not above ``least``: enough others are.
    """

    wanted: int
    counts: Ints
    least: Floats
    docs: npt.NDArray[np.uint32]
    scores: Floats

    @classmethod
    def none(cls, queries: int, wanted: int) -> Best:
        """Nothing was found yet."""
        room = (queries, _ROOM * wanted + 64)
        least = np.full(queries, -np.inf)
        return cls(
            wanted, np.zeros(queries, np.int64), least, np.empty(room, np.uint32), np.empty(room)
        )


def best_documents(
    index: SparseIndex,
    asked: Weighted,
    weighting: Weighting,
    k: int,
    count: Callable[[float], None],
) -> tuple[Ints, npt.NDArray[np.uint32], Floats]:
    """For each query how many documents are found, and all of them, ranked, with their scores.

    ``count`` is told how many more queries are done.
    """
    best = Best.none(len(asked), k)
    add = _adder(index, asked)
    terms, place = np.unique(asked.terms, return_inverse=True)
    cores = os.cpu_count() or 1
    step = max(8, -(-len(asked) // (_SHARES * cores)))
    shares = [(at, min(at + step, len(asked))) for at in range(0, len(asked), step)]
    compiled = add is not _add
    prepare = partial(_worth, index, asked, terms, place, weighting, compiled)
    with ThreadPoolExecutor(cores) as threads:
        waiting = threads.submit(prepare, index.blocks[0])
        for number in range(len(index.blocks)):
            worth = waiting.result()
            if number + 1 < len(index.blocks):  # while this block is added up
                waiting = threads.submit(prepare, index.blocks[number + 1])
            for _ in threads.map(partial(add, worth, best), shares):
                pass
            count(len(asked) / len(index.blocks))
        ranked = list(threads.map(partial(_ranked, best), shares))
    docs, scores = (np.concatenate([part[i] for part in ranked]) for i in (0, 1))
    return np.minimum(best.counts, k), docs, scores


def _adder(index: SparseIndex, asked: Weighted) -> Callable[[Worth, Best, tuple[int, int]], None]:
    """What adds up: the compiled loop for many postings, numpy for few."""
    postings = int(index.df[asked.terms].sum())
    if postings < MANY or (postings < 10 * MANY and not _is_compiled()):
        return _add
    from farfield.sparse._compiled import add

    return add


def _is_compiled() -> bool:
    """Was the loop compiled before? The result of it is then kept beside the module."""
    return any(Path(__file__).with_name("__pycache__").glob("_compiled._add-*.nbi"))


def _worth(
    index: SparseIndex,
    asked: Weighted,
    terms: Ints,
    place: Ints,
    weighting: Weighting,
    compiled: bool,
    block: Block,
) -> Worth:
    """What a block has for the terms that queries ask for."""
    if compiled and weighting.as_stored:  # nothing to work out, so nothing to copy
        there, number = block.find(terms)
        starting, docs, values = block.postings[1:]
        begins = starting.astype(np.int64)
    else:
        there, begins, docs, weights = block.of_terms(terms)
        number = np.arange(len(there))
        lengths = index.lengths[block.first : block.last]
        values = weighting.in_documents(weights, docs, lengths, index.statistics)
        if not compiled:
            docs = docs.astype(np.int64)  # numpy takes such places without another copy
    # Of each term the list that it is here, and -1 if there is none: it is left out of the queries.
    lists = np.full(len(terms), -1, dtype=np.int64)
    lists[there] = number
    listed = lists[place]
    kept = listed >= 0
    starts = np.concatenate(([0], np.cumsum(kept)))[asked.starts]
    weight = asked.weights[kept]
    positive = bool((weight > 0).all() and values.min(initial=1.0) > 0)
    return Worth(
        block.first,
        block.documents,
        starts,
        listed[kept],
        weight,
        begins,
        docs,
        values,
        positive,
    )


def _add(worth: Worth, best: Best, queries: tuple[int, int]) -> None:
    """Add up a block for some queries, in numpy."""
    sums = np.zeros(worth.documents)
    seen = np.zeros(0 if worth.positive else worth.documents, dtype=np.bool_)
    starts = worth.starts[queries[0] : queries[1] + 1].tolist()
    lists = worth.place[starts[0] : starts[-1]]
    low, high = worth.begins[lists].tolist(), worth.begins[lists + 1].tolist()
    for query, start, end in zip(range(*queries), starts[:-1], starts[1:], strict=True):
        if start == end:
            continue
        for at in range(start, end):
            postings = slice(low[at - starts[0]], high[at - starts[0]])
            docs = worth.docs[postings]
            np.add.at(sums, docs, worth.values[postings] * worth.weight[at])
            if not worth.positive:
                seen[docs] = True
        if worth.positive:
            if not best.counts[query]:
                best.least[query] = _guess(sums, best.wanted)
            new = np.flatnonzero(sums > max(best.least[query], 0.0))
        else:
            new = np.flatnonzero(seen & (sums > best.least[query]))
            seen[:] = False
        if len(new):
            _take(best, query, new + worth.first, sums[new])
        sums[:] = 0.0


def _guess(sums: Floats, wanted: int) -> float:
    """Guess a score above which there are enough documents, so that others need no look.

    Every 16th document tells. If too few are above the guess, there is none (minus infinity).
    """
    some = sums[::SAMPLE]
    rank = wanted // SAMPLE * 4 // 3 + 8
    if len(some) < 4 * rank:
        return -np.inf
    guess = _kth_largest(some, rank)
    return guess if np.count_nonzero(sums > guess) >= wanted else -np.inf


def _take(best: Best, query: int, docs: Ints, scores: Floats) -> None:
    """Take in documents; if there is no more room, keep only as many as are wanted."""
    count = int(best.counts[query])
    if count + len(docs) > best.docs.shape[1]:
        docs = np.concatenate((best.docs[query, :count], docs))
        scores = np.concatenate((best.scores[query, :count], scores))
        chosen = _leading(scores, best.wanted)
        docs, scores, count = docs[chosen], scores[chosen], 0
        best.least[query] = scores.min()
    best.docs[query, count : count + len(docs)] = docs
    best.scores[query, count : count + len(docs)] = scores
    best.counts[query] = count + len(docs)


def _leading(scores: Floats, k: int) -> Ints:
    """Places of the ``k`` largest, ascending; of equals the first."""
    places = np.arange(len(scores))
    if len(scores) > 4 * k:  # the best of some of them rule out most of the others
        places = np.flatnonzero(scores >= _kth_largest(scores[: 2 * k], k))
        scores = scores[places]
    least = _kth_largest(scores, k)
    chosen = scores > least
    level = np.flatnonzero(scores == least)
    chosen[level[: k - np.count_nonzero(chosen)]] = True
    return places[chosen]


def _kth_largest(scores: Floats, k: int) -> float:
    at = len(scores) - k
    return float(np.partition(scores, at)[at])


def _ranked(best: Best, queries: tuple[int, int]) -> tuple[npt.NDArray[np.uint32], Floats]:
    """The results of some queries, ranked; equals keep the order of their numbers."""
    k = best.wanted
    docs = np.zeros((queries[1] - queries[0], k), dtype=np.uint32)
    scores = np.full(docs.shape, -np.inf)
    for row, query in enumerate(range(*queries)):
        count = int(best.counts[query])
        found = best.scores[query, :count]
        chosen = _leading(found, k) if count > k else slice(count)
        docs[row, : min(count, k)] = best.docs[query, :count][chosen]
        scores[row, : min(count, k)] = found[chosen]
    order = np.argsort(-scores, axis=1, kind="stable")
    there = np.arange(k) < best.counts[slice(*queries), None]
    docs, scores = (np.take_along_axis(array, order, axis=1) for array in (docs, scores))
    return docs[there], scores[there]
