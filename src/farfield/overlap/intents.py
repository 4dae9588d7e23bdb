"""Does a training query ask for the same thing? A prediction from the words of both.

Words are weighted by their rarity among the pairs, so that a shared name counts more than a shared
"how long". A weighted Jaccard similarity near 1 is a duplicate, a large one similar. The paper had
people judge this; :mod:`farfield.overlap.annotation` takes their labels.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from farfield.similarity.terms import rarity, word_counts

__all__ = ["DUPLICATE", "SIMILAR", "intent_similarity"]

#: Weighted Jaccard similarities from which a pair is called duplicate and similar.
DUPLICATE, SIMILAR = 0.8, 0.4


def intent_similarity(pairs: pl.DataFrame) -> pl.DataFrame:
    """Grade pairs (text, train_text) by their words; adds intent_score and intent."""
    (own, other), _ = word_counts(pairs["text"], pairs["train_text"])
    own.data[:], other.data[:] = 1.0, 1.0
    both = own + other
    weight = rarity(both)
    shared = own.multiply(other) @ weight
    total = own @ weight + other @ weight - shared
    score = np.divide(shared, total, out=np.zeros(len(pairs)), where=total > 0)
    grade = np.where(
        score >= DUPLICATE, "duplicate", np.where(score >= SIMILAR, "similar", "dissimilar")
    )
    grade = np.where(pairs["exact"].to_numpy(), "duplicate", grade)
    return pairs.with_columns(pl.Series("intent_score", score), pl.Series("intent", grade))
