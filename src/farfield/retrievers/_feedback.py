"""Pseudo-relevance feedback: the best documents of a query tell which terms to add to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import SpecError
from farfield.retrievers._sparse import Around
from farfield.sparse import SparseIndex, Weighted
from farfield.tables import Queries

__all__ = ["Feedback", "Seen", "leading"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Queries that are expanded together: the terms of all their documents are held at once.
_TOGETHER = 512


@dataclass(frozen=True)
class Seen:
    """The feedback documents of some queries, term by term.

    Row by row: which query, which of its documents (a number over all), which term, how often it
    has it. ``scores`` and ``lengths`` are those of documents, ``of_query`` says whose they are.
    """

    index: SparseIndex
    query: Ints
    document: Ints
    term: Ints
    count: Floats
    of_query: Ints
    scores: Floats
    lengths: Floats

    def keep(self, rows: npt.NDArray[np.bool_]) -> Seen:
        """The same documents with some of their terms only."""
        kept = (self.query[rows], self.document[rows], self.term[rows], self.count[rows])
        return Seen(self.index, *kept, self.of_query, self.scores, self.lengths)


@dataclass(frozen=True, kw_only=True)
class Feedback(Around):
    """Search, look at the best documents, search again with more terms.

    ``docs`` of the best documents are looked at and ``terms`` terms taken from them. A member says
    what becomes of the query (:meth:`expand`).
    """

    docs: int | None = None
    terms: int | None = None

    def __post_init__(self) -> None:
        for name in ("docs", "terms"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} is {value}, expected 1, 2, 3 …")

    @property
    def depth(self) -> int:
        """How many documents are looked at."""
        raise NotImplementedError(f"{type(self).__name__} defines no depth")

    def expand(self, asked: Weighted, seen: Seen) -> Weighted:
        """The query with more terms and other weights."""
        raise NotImplementedError(f"{type(self).__name__} defines no expand")

    def choices(self) -> dict[str, tuple[int, ...]]:
        """The grid of Chen et al.: 5 to 50 documents, 5 to 60 terms."""
        return {"docs": tuple(range(5, 51, 5)), "terms": tuple(range(5, 61, 5))}

    def ask(self, queries: Queries, index: SparseIndex) -> Weighted:
        """Expand the queries by what the other retriever finds."""
        asked = self.base.ask(queries, index)
        found = index.search(asked, self.base.weighting(), self.depth)
        parts: list[tuple[Ints, Ints, Floats]] = []
        for first in range(0, len(asked), _TOGETHER):
            last = min(first + _TOGETHER, len(asked))
            low, high = found.bounds[first], found.bounds[last]
            of_query = np.repeat(np.arange(last - first), np.diff(found.bounds[first : last + 1]))
            docs, scores = found.docs[low:high], found.scores[low:high]
            more = self.expand(asked.part(first, last), _look(index, docs, scores, of_query))
            parts.append((more.query + first, more.terms, more.weights))
        if not parts:
            return asked
        query, term, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        some = weight != 0  # a term without weight would find documents that score nothing
        return Weighted.of(query[some], term[some], weight[some], len(asked))


def _look(index: SparseIndex, docs: npt.NDArray[np.uint32], scores: Floats, of_query: Ints) -> Seen:
    vectors = index.vectors(docs)
    document = np.repeat(np.arange(len(docs)), np.diff(vectors.starts))
    return Seen(
        index,
        of_query[document],
        document,
        vectors.terms,
        vectors.weights,
        of_query,
        scores,
        index.lengths[docs.astype(np.int64)].astype(np.float64),
    )


def leading(group: Ints, value: Floats, term: Ints, number: Ints | int) -> npt.NDArray[np.bool_]:
    """Which rows are among the ``number`` largest of their group? Equals go by term.

    ``number`` is one for all, or one for each group.
    """
    order = np.lexsort((term, -value, group))
    sorted_group = group[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_group, sorted_group)
    limit = number if isinstance(number, int) else number[sorted_group]
    chosen = np.zeros(len(order), dtype=np.bool_)
    chosen[order[rank < limit]] = True
    return chosen


def terms_of(index: SparseIndex, numbers: Ints) -> tuple[pl.Series, Ints]:
    """The different terms among these numbers as strings, and which of them each is."""
    different, which = np.unique(numbers, return_inverse=True)
    return index.terms.gather(different), which
