"""The sparse engine: one inverted index for BM25, feedback, expansion and learned weights.

``build(corpus, invert, folder)`` makes a :class:`SparseIndex`; it keeps what documents say (counts
of terms, or weights that a model gave them), so that any :class:`Weighting` applies when it is
searched, with queries whose terms have weights (:class:`Weighted`).
"""

from __future__ import annotations

from farfield.sparse.building import build
from farfield.sparse.index import Found, SparseIndex, Vectors
from farfield.sparse.inverted import Inverted, count_terms, from_matrix
from farfield.sparse.weighted import Weighted
from farfield.sparse.weighting import VARIANTS, Okapi, Products, Weighting

__all__ = [
    "VARIANTS",
    "Found",
    "Inverted",
    "Okapi",
    "Products",
    "SparseIndex",
    "Vectors",
    "Weighted",
    "Weighting",
    "build",
    "count_terms",
    "from_matrix",
]
