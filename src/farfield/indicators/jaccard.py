"""Words in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farfield.errors import InputError
from farfield.indicators.base import Indicator, Reading, Sides
from farfield.similarity.vocabulary import (
    Floats,
    Ints,
    Words,
    jaccard_of_counts,
    standard_error,
    words_of,
)

__all__ = ["jaccard"]


@dataclass(frozen=True, kw_only=True)
class jaccard(Indicator):
    """Weighted Jaccard similarity of the words: 1 if both sets use them alike, 0 if none is shared.

    The sum of the smaller over the sum of the larger relative frequencies, of words in lower case
    between blanks (Lupart et al. 2023, with whose released queries it agrees); ``stop`` leaves out
    stop words, ``stem`` stems. The value grows with the size of the sets, for one and the same pair
    of populations, so values of sets of different sizes cannot be compared. Beside it therefore:
    ``same``, the value if the very same queries were dealt out to two sets of these sizes at
    random, with ``p`` of that test (so many ``permutations``); ``sampled``, the mean over ``draws``
    of ``size`` queries from each side (half of the smaller set); its ``ceiling``, two such samples
    of one side; and ``ratio``, the one over the other, which is what to compare across pairs.

    Relations: r and neighbours see words that mean the same, as far as the encoder does.
    """

    needs_vectors: ClassVar[bool] = False

    stem: bool = False
    stop: bool = False
    size: int | None = None
    draws: int = 20
    permutations: int = 200

    def __post_init__(self) -> None:
        self._at_least(1, "size", "permutations")
        self._at_least(2, "draws")

    def compare(self, sides: Sides) -> Reading:
        """Compare the words of A with those of B."""
        a, b = words_of([sides.a.texts, sides.b.texts], stem=self.stem, stop=self.stop)
        for name, words in (("A", a), ("B", b)):
            if not len(words.codes):
                what = "no words besides stop words" if self.stop else "no words"
                raise InputError(f"{name}'s {len(words):,} queries hold {what}.")
        value = jaccard_of_counts(a.counts(), b.counts())
        low, high = sides.around(value, standard_error(a, b))
        dealt = self._dealt(a, b, sides.seed)
        found = self.sample(a, b, seed=sides.seed)
        details: dict[str, float] = {}
        for name, draws in found.items():
            centre = float(draws.mean())
            if name == "ratio":  # of the means, which a draw with an odd ceiling hardly moves
                centre = details["sampled"] / details["ceiling"] if details["ceiling"] else 0.0
            # Halves drawn without replacement vary as whole samples of the population do.
            edges = sides.around(centre, float(draws.std(ddof=1)))
            bounds = np.clip(edges, 0.0, None if name == "ratio" else 1.0)
            details |= {name: centre, f"{name}_low": bounds[0], f"{name}_high": bounds[1]}
        return Reading(
            value=value,
            low=max(low, 0.0),
            high=min(high, 1.0),
            same=float(dealt.mean()),
            p=float((1 + np.count_nonzero(dealt <= value + 1e-12)) / (1 + len(dealt))),
            details={
                **{name: float(part) for name, part in details.items()},
                "size": self.sample_size(a, b),
                "draws": self.draws,
                "words_a": int(np.count_nonzero(a.counts())),
                "words_b": int(np.count_nonzero(b.counts())),
            },
        )

    def explain(self, reading: Reading) -> str:
        """Say what samples of equal size share."""
        found = reading.details
        return (
            "words in common, 0 to 1, which grows with the size of the sets. Samples of "
            f"{found['size']:,} share {found['sampled']:.4f}, two of one set "
            f"{found['ceiling']:.4f}: ratio {found['ratio']:.4f} "
            f"[{found['ratio_low']:.4f}, {found['ratio_high']:.4f}]."
        )

    def sample_size(self, a: Words, b: Words) -> int:
        """How many queries are drawn from each side: two samples must fit into the smaller set."""
        largest = min(len(a), len(b)) // 2
        size = largest if self.size is None else self.size
        if not 1 <= size <= largest:
            raise InputError(
                f"samples of {size:,} queries were asked for. Two of them must fit into the "
                f"smaller set: expected 1 to {largest:,}."
            )
        return size

    def sample(self, a: Words, b: Words, *, seed: int) -> dict[str, Floats]:
        """Draw samples of equal size: what they share, the ceiling, and the ratio, by draw."""
        size = self.sample_size(a, b)
        rng = np.random.default_rng(seed)
        between, ceiling = np.empty(self.draws), np.empty(self.draws)
        for draw in range(self.draws):
            pairs = []
            for words in (a, b):
                rows = rng.choice(len(words), 2 * size, replace=False)
                pairs.append((words.counts(rows[:size]), words.counts(rows[size:])))
            between[draw] = jaccard_of_counts(pairs[0][0], pairs[1][0])
            ceiling[draw] = np.mean([jaccard_of_counts(*pair) for pair in pairs])
        ratio = np.divide(between, ceiling, out=np.zeros_like(between), where=ceiling > 0)
        return {"sampled": between, "ceiling": ceiling, "ratio": ratio}

    def _dealt(self, a: Words, b: Words, seed: int) -> Floats:
        """The values if all queries were dealt out to two sets of these sizes at random."""
        both = Words(
            np.concatenate([a.codes, b.codes]), np.concatenate([a.lengths, b.lengths]), a.kinds
        )
        total, fewer = both.counts(), min(len(a), len(b))
        rng = np.random.default_rng(seed)
        dealt = np.empty(self.permutations)
        for turn in range(self.permutations):
            rows: Ints = rng.choice(len(both), fewer, replace=False)
            counts = both.counts(rows)
            dealt[turn] = jaccard_of_counts(counts, total - counts)
        return dealt
