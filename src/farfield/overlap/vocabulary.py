"""How far two sets of queries use the same words: weighted Jaccard similarity (MS-Shift).

The value grows with the size of the sets, for one and the same pair of populations, so numbers from
sets of different sizes cannot be compared. :func:`vocabulary_overlap` therefore draws samples of
equal size, repeats the draw, and gives the similarity of two samples of one set as a ceiling.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from farfield.errors import InputError

__all__ = ["VocabularyOverlap", "vocabulary_overlap", "weighted_jaccard"]


def weighted_jaccard(one: pl.Series, other: pl.Series) -> float:
    """Sum of the smaller over the sum of the larger relative word frequencies.

    Words are what stands between blanks, in lower case, as in the code of Lupart et al. 2023: no
    stop words are left out, nothing is stemmed, punctuation stays.
    """
    shares = [_shares(texts) for texts in (one, other)]
    both = shares[0].join(shares[1], on="word", how="inner", suffix="_other")
    common = float(both.select(pl.min_horizontal("share", "share_other")).sum().item() or 0.0)
    # Both sides sum to 1, so the larger ones sum to 2 less what is common.
    return common / (2.0 - common)


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
    largest = min(len(train), len(test)) // 2
    size = largest if size is None else size
    if not 1 <= size <= largest:
        raise InputError(
            f"samples of {size:,} queries were asked for. Two of them must fit into the smaller "
            f"set: expected 1 to {largest:,}."
        )
    rng = np.random.default_rng(seed)
    found, ceiling = [], []
    for _ in range(draws):
        pairs = [_two_samples(texts, size, rng) for texts in (train, test)]
        found.append(weighted_jaccard(pairs[0][0], pairs[1][0]))
        ceiling.append(np.mean([weighted_jaccard(*pair) for pair in pairs]))
    mean, top = float(np.mean(found)), float(np.mean(ceiling))
    return VocabularyOverlap(
        jaccard=mean,
        sd=float(np.std(found, ddof=1)) if draws > 1 else 0.0,
        ceiling=top,
        ratio=mean / top if top else 0.0,
        size=size,
        draws=draws,
        whole=weighted_jaccard(train, test),
    )


def _two_samples(
    texts: pl.Series, size: int, rng: np.random.Generator
) -> tuple[pl.Series, pl.Series]:
    """Two samples without a common member."""
    rows = rng.choice(len(texts), 2 * size, replace=False)
    return texts.gather(rows[:size]), texts.gather(rows[size:])


def _shares(texts: pl.Series) -> pl.DataFrame:
    words = texts.str.to_lowercase().str.extract_all(r"\S+").explode().drop_nulls()
    counts = words.alias("word").value_counts()
    return counts.select("word", (pl.col("count") / pl.col("count").sum()).alias("share"))
