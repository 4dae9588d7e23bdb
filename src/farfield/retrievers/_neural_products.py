"""The best documents by inner products of stored vectors, exact to the last digit.

What is found in single precision is scored again in double precision, pair by pair. As the products
of stored (half precision) vectors are nearly exact there, a score depends on nothing but the two
vectors: copies of a document tie, and a shorter list is the beginning of a longer one. So that no
document is missed, more than ``k`` are looked at, until rounding cannot explain that one is left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from farfield import neural
from farfield.progress import counting
from farfield.retrievers._neural import Floats, Ints, Ranked, ranked

__all__ = ["Rows", "best_products", "rescored", "unit"]

Matrix = npt.NDArray[Any]

# Queries that are searched together, and values that are held when they are scored again.
_TOGETHER, _VALUES = 8_192, 1 << 26
_ROUNDING = 2.0**-24  # single precision, relative


class Rows:
    """The rows of several matrices, all of which but the last have the same number of them."""

    def __init__(self, pieces: list[Matrix]) -> None:
        self._pieces, self._size = pieces, max(1, len(pieces[0]))
        self.dimensions = int(pieces[0].shape[1])

    def __len__(self) -> int:
        return sum(len(piece) for piece in self._pieces)

    @property
    def sizes(self) -> dict[str, int]:
        """Dimensions."""
        return {"dimensions": self.dimensions}

    def pieces(self, *, units: bool) -> Iterator[Matrix]:
        """Yield the matrices, as they are or with rows of length 1."""
        for piece in self._pieces:
            yield unit(piece) if units else piece

    def take(self, rows: Ints) -> Matrix:
        """Return these rows."""
        found = np.empty((len(rows), self.dimensions), dtype=self._pieces[0].dtype)
        piece = rows // self._size
        for number in np.unique(piece):
            here = np.flatnonzero(piece == number)
            found[here] = self._pieces[number][rows[here] - number * self._size]
        return found

    def part(self, rows: Ints) -> Rows:
        """Return these rows, as they are held."""
        return Rows([self.take(rows)])

    @cached_property
    def longest(self) -> float:
        """The length of the longest row."""
        most = 0.0
        for piece in self._pieces:
            wide = piece.astype(np.float32)
            most = max(most, float(np.einsum("rd,rd->r", wide, wide).max(initial=0.0)))
        return float(np.sqrt(most))


def unit(vectors: Matrix) -> npt.NDArray[np.float32]:
    """Rows of length 1; what has no length stays as it is."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("rd,rd->r", wide, wide))[:, None]
    np.divide(wide, lengths, out=wide, where=lengths > 0)
    found: npt.NDArray[np.float32] = wide.astype(np.float32)
    return found


def best_products(
    asked: npt.NDArray[np.float32], rows: Rows, owner: Ints, k: int, *, units: bool = False
) -> Ranked:
    """The best ``k`` documents of each query; a document is as good as the best of its rows.

    ``owner`` says of which document a row is. ``units``: lengths do not count (cosine).
    """
    longest = 1.0 if units else rows.longest
    lengths = np.sqrt(np.einsum("qd,qd->q", asked, asked, dtype=np.float64))
    margin = 2.0 * rows.dimensions * _ROUNDING * lengths * longest
    parts: list[tuple[Ints, Ints, Floats]] = []
    with counting(len(asked), "searching") as count:
        for first in range(0, len(asked), _TOGETHER):
            open_ = np.arange(first, min(first + _TOGETHER, len(asked)))
            wanted = min(len(rows), k + max(16, k // 8))
            while len(open_):
                scores, found = neural.search(asked[open_], rows.pieces(units=units), wanted)
                settled = _settled(scores, owner[found], k, margin[open_])
                settled |= wanted == len(rows)
                parts.append(_scored(asked, rows, owner, open_[settled], found[settled], k, units))
                count(int(settled.sum()))
                open_, wanted = open_[~settled], min(len(rows), 4 * wanted)
    return _joined(parts, len(asked))


def rescored(
    asked: npt.NDArray[np.float32],
    rows: Rows,
    owner: Ints,
    candidates: Callable[[slice], Ints],
    k: int,
    *,
    units: bool = False,
) -> Ranked:
    """The best ``k`` documents of each query among candidates: rows, or -1 where there are few."""
    parts = []
    with counting(len(asked), "searching") as count:
        for first in range(0, len(asked), _TOGETHER):
            numbers = np.arange(first, min(first + _TOGETHER, len(asked)))
            found = candidates(slice(first, first + len(numbers)))
            parts.append(_scored(asked, rows, owner, numbers, found, k, units))
            count(len(numbers))
    return _joined(parts, len(asked))


def _settled(
    scores: npt.NDArray[np.float32], docs: Ints, k: int, margin: Floats
) -> npt.NDArray[np.bool_]:
    """Of which queries are the best ``k`` documents certainly among those found?"""
    order = np.argsort(docs, axis=1, kind="stable")  # the best row of each document comes first
    by_doc = np.take_along_axis(docs, order, axis=1)
    new = np.ones(docs.shape, dtype=np.bool_)
    new[:, 1:] = by_doc[:, 1:] != by_doc[:, :-1]
    best = np.zeros(docs.shape, dtype=np.bool_)
    np.put_along_axis(best, order, new, axis=1)
    seen = np.cumsum(best, axis=1)
    enough = seen[:, -1] >= k
    at = np.argmax(seen >= k, axis=1)
    lowest = scores[np.arange(len(scores)), at].astype(np.float64)
    settled: npt.NDArray[np.bool_] = enough & (scores[:, -1] < lowest - margin)
    return settled


def _scored(
    asked: npt.NDArray[np.float32],
    rows: Rows,
    owner: Ints,
    numbers: Ints,
    found: Ints,
    k: int,
    units: bool,
) -> tuple[Ints, Ints, Floats]:
    """(query, document, score) of the best ``k`` documents, from rows that were found."""
    step = max(1, _VALUES // max(1, found.shape[1] * rows.dimensions))
    parts = []
    for first in range(0, len(numbers), step):
        some, here = numbers[first : first + step], found[first : first + step]
        query, place = np.nonzero(here >= 0)
        row = here[query, place]
        different, which = np.unique(row, return_inverse=True)
        held = rows.take(different)
        bounds = np.searchsorted(query, np.arange(len(some) + 1))
        products = np.empty(len(row))
        for at, number in enumerate(some):  # one by one: what a query needs fits into the cache
            own = slice(bounds[at], bounds[at + 1])
            vectors = held[which[own]]
            wide = (unit(vectors) if units else vectors).astype(np.float64)
            products[own] = np.einsum("rd,d->r", wide, asked[number].astype(np.float64))
        best = ranked(query, owner[row], products, k, len(some))
        of_query = np.repeat(some, np.diff(best.bounds))
        parts.append((of_query, best.docs, best.scores))
    empty = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    query, doc, score = (np.concatenate(column) for column in zip(empty, *parts, strict=True))
    return query, doc, score


def _joined(parts: list[tuple[Ints, Ints, Floats]], queries: int) -> Ranked:
    """All results in the order of the queries."""
    if not parts:
        return Ranked(np.zeros(queries + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
    query, doc, score = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(query, kind="stable")
    query = query[order]
    return Ranked(np.searchsorted(query, np.arange(queries + 1)), doc[order], score[order])
