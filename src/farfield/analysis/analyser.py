"""An analyser: which words a text has, without stop words, reduced to their stems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.analysis.stopwords import LISTS
from farfield.analysis.words import TOKENISERS, split
from farfield.errors import SpecError, did_you_mean

__all__ = ["Analyser", "Terms", "stemmers"]

Codes = npt.NDArray[np.int32]

# Stemmers of English, for which 's says whose.
_ENGLISH = ("porter", "english")


class Terms(NamedTuple):
    """The terms of texts in order: which text, which term (a number into ``terms``, sorted)."""

    text: Codes
    term: Codes
    terms: pl.Series

    def listed(self, texts: int) -> list[list[str]]:
        """Return the terms of each of so many texts, as strings."""
        found: list[list[str]] = [[] for _ in range(texts)]
        for text, term in zip(self.text.tolist(), self.terms.gather(self.term), strict=True):
            found[text].append(term)
        return found


@dataclass(frozen=True)
class Analyser:
    """A tokeniser, a list of stop words and a stemmer, by their names.

    The default is what Lucene does with English: standard tokeniser, 's cut off, 33 stop words,
    Porter's stemmer.
    """

    tokeniser: str = "standard"
    stopwords: str = "lucene"
    stemmer: str = "porter"

    def __post_init__(self) -> None:
        _check("tokeniser", self.tokeniser, TOKENISERS)
        _check("stopwords", self.stopwords, LISTS)
        if self.stemmer != "none":  # the list of stemmers is a module to load
            _check("stemmer", self.stemmer, stemmers())

    def analyse(self, texts: pl.Series) -> Terms:
        """Return all terms of the texts."""
        words = split(texts, self.tokeniser)
        stems = pl.Series("term", self._stems(words.words), dtype=pl.String)
        terms = stems.drop_nulls().unique().sort()
        # Of each word the number of its term, or -1.
        numbers = stems.to_frame().join(
            terms.to_frame().with_row_index("number"),
            on="term",
            how="left",
            maintain_order="left",
        )["number"]
        number = numbers.cast(pl.Int32).fill_null(-1).to_numpy()
        term = number[words.word] if len(number) else words.word
        kept = term >= 0
        if kept.all():
            return Terms(words.text, term, terms)
        return Terms(words.text[kept], term[kept], terms)

    def _stems(self, words: list[str]) -> list[str | None]:
        """The stem of each word; of a stop word, none."""
        if self.stemmer in _ENGLISH and self.tokeniser == "standard":
            words = [word[:-2] if word.endswith("'s") else word for word in words]
        stop = LISTS[self.stopwords]
        kept: list[str | None] = [None if word in stop else word for word in words]
        if self.stemmer == "none":
            return kept
        import Stemmer  # type: ignore[import-not-found]  # it has no types

        stems = Stemmer.Stemmer(self.stemmer, 0).stemWords(words)
        return [word and (stem or word) for word, stem in zip(kept, stems, strict=True)]


def stemmers() -> tuple[str, ...]:
    """Names of the stemmers: Porter's and those of Snowball, by language; and none."""
    import Stemmer

    return ("none", *sorted(Stemmer.algorithms()))


def _check(what: str, name: str, known: object) -> None:
    names = list(known)  # type: ignore[call-overload]
    if name not in names:
        raise SpecError(
            f"{what} is {name!r}.{did_you_mean(name, names)} Expected one of {', '.join(names)}."
        )
