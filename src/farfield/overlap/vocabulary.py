"""How far two sets of queries use the same words: weighted Jaccard similarity (MS-Shift).

The value grows with the size of the sets, for one and the same pair of populations, so numbers from
sets of different sizes cannot be compared. :func:`vocabulary_overlap` therefore draws samples of
equal size, repeats the draw, and gives the similarity of two samples of one set as a ceiling. The
indicator ``jaccard`` does the work.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from farfield.indicators.jaccard import jaccard
from farfield.similarity.vocabulary import jaccard_of_counts, words_of
from farfield.similarity.vocabulary import jaccard_of_texts as weighted_jaccard

__all__ = ["VocabularyOverlap", "vocabulary_overlap", "weighted_jaccard"]


@dataclass(frozen=True)
class VocabularyOverlap:
    """Weighted Jaccard similarity of two sets, at equal size.

    ``jaccard`` is the mean over ``draws`` of samples of ``size`` queries from each side, ``sd`` its
    standard deviation over draws; ``ceiling`` the same between two samples of one side (the mean of
    both sides); ``ratio`` the one over the other: 1 if the sets use words alike. ``whole`` is the
    value of the whole sets, which depends on their sizes.
    """

    jaccard: float
    sd: float
    ceiling: float
    ratio: float
    size: int
    draws: int
    whole: float

    def to_dict(self) -> dict[str, Any]:
        """Return all of it by name."""
        return asdict(self)


def vocabulary_overlap(
    train: pl.Series, test: pl.Series, *, size: int | None = None, draws: int = 10, seed: int = 0
) -> VocabularyOverlap:
    """Compare the words of two sets by samples of ``size`` queries (half of the smaller set)."""
    indicator = jaccard(size=size, draws=draws)
    one, other = words_of([train, test])
    found = indicator.sample(one, other, seed=seed)
    mean, top = (float(found[name].mean()) for name in ("sampled", "ceiling"))
    return VocabularyOverlap(
        jaccard=mean,
        sd=float(found["sampled"].std(ddof=1)),
        ceiling=top,
        ratio=mean / top if top else 0.0,
        size=indicator.sample_size(one, other),
        draws=draws,
        whole=jaccard_of_counts(one.counts(), other.counts()),
    )
