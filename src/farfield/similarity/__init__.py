"""How alike queries are: normal forms, nearest training queries by letters, words or vectors.

``nearest(test, train)`` gives for every test query its most similar training queries. All methods
are exact: every pair is compared, whatever it takes.
"""

from __future__ import annotations

from farfield.similarity.nearest import METHODS, nearest, nearest_by_vectors
from farfield.similarity.terms import normal_form, rarity, words

__all__ = ["METHODS", "nearest", "nearest_by_vectors", "normal_form", "rarity", "words"]
