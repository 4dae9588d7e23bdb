"""BM25."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from farfield.analysis import Analyser
from farfield.errors import SpecError
from farfield.retrievers._sparse import SparseRetriever, full_text
from farfield.sparse import Inverted, Okapi, SparseIndex, Weighted, Weighting, count_terms
from farfield.tables import Queries

__all__ = ["bm25"]


@dataclass(frozen=True, kw_only=True)
class bm25(SparseRetriever):
    """Okapi BM25 over title and text, in the variants of Lucene, ATIRE and Terrier.

    ``variant`` chooses the formula: ``lucene`` (as bm25s and Anserini), ``atire`` or ``terrier``,
    whose rarity may be negative and which dampens repeated terms of a query by ``k3`` (8 there;
    Terrier's own k1 and b are 1.2 and 0.75). In the other variants ``k3`` works if it is given.

    ``tokeniser``: standard, words or blanks; ``stopwords``: lucene, questions or none;
    ``stemmer``: porter, a language of Snowball (english, german …) or none. One index serves every
    k1, b, k3 and variant.

    Relations: rm3 and bo1 add terms of the best documents to the query, expand adds texts to the
    documents.
    """

    k1: float = 0.9
    b: float = 0.4
    variant: Literal["lucene", "atire", "terrier"] = "lucene"
    k3: float | None = None
    tokeniser: str = "standard"
    stopwords: str = "lucene"
    stemmer: str = "porter"

    def __post_init__(self) -> None:
        if not 0 <= self.k1 < np.inf:
            raise SpecError(f"k1 is {self.k1}, expected a number from 0.")
        if not 0 <= self.b <= 1:
            raise SpecError(f"b is {self.b}, expected a number from 0 to 1.")
        if self.k3 is not None and not 0 <= self.k3 < np.inf:
            raise SpecError(f"k3 is {self.k3}, expected a number from 0.")
        self._analyser()

    @property
    def content(self) -> str:
        """Counts of terms, as the analyser makes them."""
        return f"counts({self.tokeniser}, {self.stopwords}, {self.stemmer})"

    def choices(self) -> dict[str, tuple[float, ...]]:
        """Values of k1 and b worth trying."""
        return {"k1": (0.5, 0.7, 0.9, 1.2, 1.5, 2.0, 3.0), "b": (0.1, 0.25, 0.4, 0.55, 0.75, 0.9)}

    def invert(self, documents: pl.DataFrame) -> Inverted:
        """Count the terms of title and text."""
        return count_terms(self._analyser().analyse(full_text(documents)), len(documents))

    def ask(self, queries: Queries, index: SparseIndex) -> Weighted:
        """Count the terms of the queries."""
        found = self._analyser().analyse(queries.frame["text"])
        number = index.numbers(found.terms)[found.term]
        known = number >= 0
        query = found.text[known].astype(np.int64)
        return Weighted.of(query, number[known], np.ones(len(query)), len(queries))

    def weighting(self) -> Weighting:
        """BM25 as it is set."""
        return Okapi(self.k1, self.b, self.variant, self.k3)

    def _analyser(self) -> Analyser:
        return Analyser(self.tokeniser, self.stopwords, self.stemmer)
