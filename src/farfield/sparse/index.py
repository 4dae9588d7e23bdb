"""An inverted index: its arrays, in memory or mapped from files, and what they can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.progress import counting
from farfield.sparse.scoring import best_documents
from farfield.sparse.weighted import Weighted
from farfield.sparse.weighting import Weighting

__all__ = ["Block", "Found", "Postings", "SparseIndex", "Vectors"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Queries that are searched together. What a term is worth in documents is computed once for them.
_TOGETHER = 2_048


class Postings(NamedTuple):
    """Of the terms of a block (numbers, ascending) the documents that have them, and weights."""

    terms: npt.NDArray[np.int32]
    starts: npt.NDArray[np.uint32]
    docs: npt.NDArray[np.uint16]
    weights: npt.NDArray[Any]


@dataclass(frozen=True)
class Block:
    """Documents ``first`` to before ``last``; the postings are opened when they are needed."""

    first: int
    last: int
    load: Callable[[], Postings]

    @property
    def documents(self) -> int:
        """How many there are."""
        return self.last - self.first

    @cached_property
    def postings(self) -> Postings:
        """What the documents of this block say."""
        return self.load()

    def find(self, terms: Ints) -> tuple[Ints, Ints]:
        """Places of those of the terms (ascending) that are here, and which lists they are."""
        held = self.postings.terms
        at = np.searchsorted(held, terms)
        there = np.flatnonzero(at < len(held))
        there = there[held[at[there]] == terms[there]]
        return there, at[there]

    def of_terms(self, terms: Ints) -> tuple[Ints, Ints, npt.NDArray[Any], npt.NDArray[Any]]:
        """Of these terms (ascending) those that are here, and their postings one after the other.

        Returns places in ``terms``, where the postings of each start (and, last, their number),
        documents and weights.
        """
        there, at = self.find(terms)
        held = self.postings
        low, high = held.starts[at].astype(np.int64), held.starts[at + 1].astype(np.int64)
        starts = np.zeros(len(there) + 1, dtype=np.int64)
        np.cumsum(high - low, out=starts[1:])
        slices = [slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        docs, weights = (
            np.concatenate([array[:0], *(array[part] for part in slices)])
            for array in (held.docs, held.weights)
        )
        return there, starts, docs, weights


class Found(NamedTuple):
    """The best documents of queries one after the other, ranked.

    The results of query ``i`` are ``bounds[i]`` to ``bounds[i + 1]``: numbers of documents, scores.
    """

    bounds: Ints
    docs: npt.NDArray[np.uint32]
    scores: Floats


class Vectors(NamedTuple):
    """Documents as they are stored: the terms of document ``i`` are ``starts[i]`` to
    ``starts[i + 1]``, ascending, with their weights."""

    starts: Ints
    terms: Ints
    weights: Floats


class SparseIndex:
    """Documents by term, in blocks.

    Documents are numbered in descending order of their ids (by bytes), so that of two documents
    with the same score the one with the lower number comes first, as everywhere. ``terms`` are
    sorted; ``df`` counts the documents that have a term, ``cf`` sums its weights. Ids and terms
    are given as functions that read them, and read when they are needed.

    ``statistics`` is the index that says how rare terms are and how long documents: this one,
    unless it is a :meth:`part` of another.
    """

    def __init__(
        self,
        doc_ids: Callable[[], pl.Series],
        lengths: npt.NDArray[Any],
        terms: Callable[[], pl.Series],
        df: npt.NDArray[np.int64],
        cf: Floats,
        blocks: list[Block],
    ) -> None:
        self._doc_ids, self._terms = doc_ids, terms
        self.lengths, self.df, self.cf = lengths, df, cf
        self.blocks = blocks
        self.statistics = self

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def doc_ids(self) -> pl.Series:
        """The ids of the documents, by number."""
        return self._doc_ids()

    @cached_property
    def terms(self) -> pl.Series:
        """The terms, by number."""
        return self._terms()

    @cached_property
    def mean_length(self) -> float:
        """The mean of the documents' lengths."""
        return float(np.mean(self.lengths, dtype=np.float64)) if len(self.lengths) else 0.0

    @property
    def postings(self) -> int:
        """How many pairs of document and term there are."""
        return int(self.df.sum())

    def numbers(self, terms: pl.Series) -> Ints:
        """The number of each term; -1 for one that no document has."""
        if not len(self.terms):
            return np.full(len(terms), -1, dtype=np.int64)
        at = np.asarray(self.terms.search_sorted(terms), dtype=np.int64)
        at = np.minimum(at, len(self.terms) - 1)
        return np.where((self.terms.gather(at) == terms).to_numpy(), at, -1)

    def search(self, asked: Weighted, weighting: Weighting, k: int) -> Found:
        """Return the best ``k`` documents of each query, of those that have any of its terms."""
        worth = weighting.in_queries(asked, self.statistics)
        k = min(k, len(self))
        firsts = range(0, len(worth), _TOGETHER)
        batches = [worth.part(first, min(first + _TOGETHER, len(worth))) for first in firsts]
        with counting(len(worth), "searching") as count:
            parts = [best_documents(self, batch, weighting, k, count) for batch in batches]
        counts = np.concatenate([np.zeros(1, np.int64), *(counts for counts, _, _ in parts)])
        return Found(
            np.cumsum(counts),
            np.concatenate([np.empty(0, np.uint32), *(docs for _, docs, _ in parts)]),
            np.concatenate([np.empty(0), *(scores for _, _, scores in parts)]),
        )

    def part(self, docs: Ints) -> SparseIndex:
        """Return some of the documents (numbers, ascending) with the statistics of all of them.

        So they have the scores that they have here. Every block is looked through once, when it is
        first searched.
        """
        blocks = []
        for block in self.blocks:
            low, high = np.searchsorted(docs, [block.first, block.last]).tolist()
            if low < high:
                load = partial(_postings_of, block, docs[low:high] - block.first)
                blocks.append(Block(low, high, load))
        part = SparseIndex(
            lambda: self.doc_ids.gather(docs),
            self.lengths[docs],
            lambda: self.terms,
            self.df,
            self.cf,
            blocks,
        )
        part.statistics = self.statistics
        return part

    def vectors(self, docs: npt.NDArray[Any]) -> Vectors:
        """Read documents (by number) back as vectors of terms.

        Every block that holds one of them is looked through once, whatever their number.
        """
        wanted, place = np.unique(docs.astype(np.int64), return_inverse=True)
        found = []
        for block in self.blocks:
            low, high = np.searchsorted(wanted, [block.first, block.last])
            if low < high:
                found.append(_read_back(block, wanted[low:high] - block.first, int(low)))
        if not found:
            return Vectors(np.zeros(len(docs) + 1, np.int64), np.empty(0, np.int64), np.empty(0))
        doc, term, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
        begins = np.searchsorted(doc, np.arange(len(wanted) + 1))
        sizes = np.diff(begins)[place]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.repeat(begins[place] - starts[:-1], sizes) + np.arange(starts[-1])
        return Vectors(starts, term[rows], weight[rows])


def _postings_of(block: Block, docs: Ints) -> Postings:
    """The postings of some documents of a block, which are numbered anew."""
    held = block.postings
    number = np.full(block.documents, -1, dtype=np.int32)
    number[docs] = np.arange(len(docs))
    of_posting = number[held.docs]
    kept = of_posting >= 0
    starts = np.concatenate(([0], np.cumsum(kept)))[held.starts]
    there = np.flatnonzero(np.diff(starts))  # terms that any of them has
    return Postings(
        held.terms[there],
        starts[np.append(there, len(starts) - 1)].astype(np.uint32),
        of_posting[kept].astype(np.uint16),
        held.weights[kept],
    )


def _read_back(block: Block, docs: Ints, number_from: int) -> tuple[Ints, Ints, Floats]:
    """(number, term, weight) of all terms of some documents of a block, in this order."""
    held = block.postings
    number = np.full(block.documents, -1, dtype=np.int32)
    number[docs] = np.arange(number_from, number_from + len(docs))
    of_posting = number[held.docs]
    rows = np.flatnonzero(of_posting >= 0)
    doc = of_posting[rows].astype(np.int64)
    term = held.terms[np.searchsorted(held.starts, rows, side="right") - 1].astype(np.int64)
    order = np.argsort(doc, kind="stable")  # terms ascend already
    return doc[order], term[order], held.weights[rows][order].astype(np.float64)
