"""Documents turned around: for each term the documents that have it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.analysis import Terms
from farfield.errors import InputError

__all__ = ["BLOCK", "Inverted", "count_terms", "from_matrix"]

#: The most documents of a block: their numbers within it take 16 bits.
BLOCK = 65_536


class Inverted(NamedTuple):
    """A block of documents by term.

    ``terms`` are sorted by their bytes. The postings of term ``i`` are ``starts[i]`` to
    ``starts[i + 1]``: ``docs``, numbers of documents within the block, ascending, and ``weights``,
    whole numbers (how often) or ``float32``. ``lengths`` are the sums of weights by document.
    """

    terms: pl.Series
    starts: npt.NDArray[np.uint32]
    docs: npt.NDArray[np.uint16]
    weights: npt.NDArray[Any]
    lengths: npt.NDArray[Any]


def count_terms(terms: Terms, documents: int) -> Inverted:
    """Count how often each document has each term."""
    from scipy.sparse import coo_array

    ones = np.ones(len(terms.term), dtype=np.int32)
    shape = (len(terms.terms), documents)
    # Terms come in the order of documents, so this is a counting sort and a sum of neighbours.
    counts = coo_array((ones, (terms.term, terms.text)), shape=shape).tocsr()
    most = int(counts.data.max(initial=0))
    kind = next(t for t in (np.uint8, np.uint16, np.uint32) if most <= np.iinfo(t).max)
    lengths = np.bincount(terms.text, minlength=documents).astype(np.uint32)
    return _inverted(terms.terms, counts, counts.data.astype(kind), lengths)


def from_matrix(terms: pl.Series, matrix: Any) -> Inverted:
    """Take the rows of a sparse matrix for documents and its columns for ``terms``.

    Terms that no document has are left out.
    """
    if not np.isfinite(matrix.data).all():
        raise InputError(
            "a weight of a document is infinite or not a number. Find out why the model made it."
        )
    order = terms.arg_sort().to_numpy()
    by_term = matrix.tocsc()[:, order].astype(np.float32).T.tocsr()
    by_term.eliminate_zeros()
    by_term.sum_duplicates()
    used = np.flatnonzero(np.diff(by_term.indptr))
    by_term = by_term[used]
    lengths = np.asarray(matrix.sum(axis=1)).ravel().astype(np.float32)
    return _inverted(terms.gather(order[used]), by_term, by_term.data, lengths)


def _inverted(
    terms: pl.Series, by_term: Any, weights: npt.NDArray[Any], lengths: npt.NDArray[Any]
) -> Inverted:
    return Inverted(
        terms.alias("term"),
        by_term.indptr.astype(np.uint32),
        by_term.indices.astype(np.uint16),
        weights,
        lengths,
    )
