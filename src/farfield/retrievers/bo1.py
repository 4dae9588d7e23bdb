"""Bo1: expansion by divergence from randomness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farfield.retrievers._feedback import Feedback, Floats, Seen, leading
from farfield.retrievers._sparse import SparseRetriever
from farfield.sparse import Weighted

__all__ = ["bo1"]


@dataclass(frozen=True, kw_only=True)
class bo1(Feedback):
    """Query expansion by the Bose-Einstein model Bo1 (Amati 2003), as Terrier does it.

    With x the occurrences of a term in the feedback documents and l = (its occurrences in all
    documents) / (number of documents),

        w = x log2((1 + l) / l) + log2(1 + l)

    Terms that only one of the feedback documents has do not count, unless the query has them. The
    ``terms`` with the largest w (at least as many as the query has) get the weight

        q / (largest q) + w / n,   n = m log2((1 + f) / f) + log2(1 + f),   f = m / documents

    with m the occurrences x of the term with the largest w. Then all are divided by the largest.
    Terrier's defaults: 3 documents, 10 terms.

    Relations: rm3 weighs documents by their scores, and mixes in a share that can be set. In Chen
    et al. (2022), who tuned both, Bo1 was better on all five collections.
    """

    base: SparseRetriever

    @property
    def depth(self) -> int:
        """How many documents are looked at."""
        return 3 if self.docs is None else self.docs

    def expand(self, asked: Weighted, seen: Seen) -> Weighted:
        """The query with the terms that the feedback documents have more often than chance."""
        queries, documents = len(asked), float(len(seen.index))
        ones = np.ones(len(seen.count))
        total = Weighted.of(seen.query, seen.term, seen.count, queries)  # x
        having = Weighted.of(seen.query, seen.term, ones, queries).weights
        share = seen.index.cf[total.terms] / documents
        w = _bose_einstein(total.weights, share)

        of_query = np.bincount(seen.of_query, minlength=queries)
        lonely = (having < 2) & (of_query[total.query] >= 2) & ~_holds(asked, total)
        w[lonely] = 0.0
        most = np.zeros(queries)
        first = leading(total.query, w, total.terms, 1)
        most[total.query[first]] = total.weights[first]
        norm = _bose_einstein(most, most / documents)

        limit = np.maximum(10 if self.terms is None else self.terms, np.diff(asked.starts))
        kept = leading(total.query, w, total.terms, limit) & (w > 0)
        largest = asked.largest()[asked.query]
        both = Weighted.of(
            np.concatenate((asked.query, total.query[kept])),
            np.concatenate((asked.terms, total.terms[kept])),
            np.concatenate((asked.weights / largest, w[kept] / norm[total.query[kept]])),
            queries,
        )
        return both.with_weights(both.weights / both.largest()[both.query])


def _bose_einstein(x: Floats, share: Floats) -> Floats:
    """x log2((1 + share) / share) + log2(1 + share); 0 where there is nothing."""
    some = share > 0
    found = np.zeros(len(x))
    found[some] = x[some] * np.log2((1.0 + share[some]) / share[some])
    return found + np.log2(1.0 + share)


def _holds(asked: Weighted, total: Weighted) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the terms has the query already?"""
    width = int(max(asked.terms.max(initial=0), total.terms.max(initial=0))) + 1
    return np.isin(total.query * width + total.terms, asked.query * width + asked.terms)
