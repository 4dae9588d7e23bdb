"""How much a term says about a document: weighting models, applied when an index is searched.

The score of a document is the sum over the query's terms of what the term is worth in the query
times what it is worth in the document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from farfield.sparse.weighted import Weighted

if TYPE_CHECKING:
    from farfield.sparse.index import SparseIndex

__all__ = ["VARIANTS", "Okapi", "Products", "Weighting"]

Floats = npt.NDArray[np.float64]

VARIANTS = ("lucene", "atire", "terrier")


class Weighting:
    """What terms are worth: stored weights times the query's, unless a model says otherwise."""

    #: Is what terms are worth in documents just what is stored?
    as_stored: ClassVar[bool] = False

    def in_queries(self, asked: Weighted, index: SparseIndex) -> Weighted:
        """What the terms of queries are worth, with all that does not depend on the document."""
        return asked

    def in_documents(
        self,
        weights: npt.NDArray[Any],
        docs: npt.NDArray[Any],
        lengths: npt.NDArray[Any],
        index: SparseIndex,
    ) -> Floats:
        """What terms are worth in documents, from their stored weights (or counts).

        ``docs`` says for each weight which of some documents it is of; ``lengths`` are theirs.
        """
        return weights.astype(np.float64)


class Products(Weighting):
    """Inner products of stored weights and the query's, for models that learn their weights."""

    as_stored = True


@dataclass(frozen=True)
class Okapi(Weighting):
    """Okapi BM25 in the variants of engines.

    With tf the count of the term in the document, K = k1 (1 - b + b length / mean length), N
    documents of which df have the term, and q its weight in the query:

    ``lucene``   q ln(1 + (N - df + 0.5) / (df + 0.5)) tf / (tf + K)
    ``atire``    q ln(N / df) (k1 + 1) tf / (tf + K)
    ``terrier``  q' log2((N - df + 0.5) / (df + 0.5)) (k1 + 1) tf / (tf + K), which is negative for
                 terms that more than half of the documents have; q' = (k3 + 1) r / (k3 + r) with
                 r = q / the largest q of the query

    ``k3`` of 8 is Terrier's. In the other variants it is not used unless it is given; then
    q' = (k3 + 1) q / (k3 + q), which dampens terms that a long query repeats.
    """

    k1: float = 0.9
    b: float = 0.4
    variant: str = "lucene"
    k3: float | None = None

    def in_queries(self, asked: Weighted, index: SparseIndex) -> Weighted:
        """Weights times rarity."""
        q, k3 = asked.weights, self.k3
        if self.variant == "terrier":
            k3 = 8.0 if k3 is None else k3
            most = asked.largest()[asked.query]
            q = np.divide(q, most, out=np.zeros_like(q), where=most > 0)
        if k3 is not None:
            q = (k3 + 1.0) * q / (k3 + q)
        df, documents = index.df[asked.terms].astype(np.float64), float(len(index))
        if self.variant == "lucene":
            rarity = np.log(1.0 + (documents - df + 0.5) / (df + 0.5))
        elif self.variant == "atire":
            rarity = np.log(documents / df) * (self.k1 + 1.0)
        else:
            rarity = np.log2((documents - df + 0.5) / (df + 0.5)) * (self.k1 + 1.0)
        return asked.with_weights(q * rarity)

    def in_documents(
        self,
        weights: npt.NDArray[Any],
        docs: npt.NDArray[Any],
        lengths: npt.NDArray[Any],
        index: SparseIndex,
    ) -> Floats:
        """Counts with diminishing returns, tf / (tf + K)."""
        scale = self.b / index.mean_length if index.mean_length > 0 else 0.0
        dampening = self.k1 * (1.0 - self.b + scale * lengths)
        sums: Floats = dampening[docs]
        sums += weights
        # A count is at least 1, so the sum is not 0.
        found: Floats = np.divide(weights, sums, out=sums)
        return found
