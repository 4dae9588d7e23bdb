"""Words of texts in integer codes, and how alike two sets use them: weighted Jaccard similarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.analysis import STOP_WORDS

__all__ = ["Words", "jaccard_of_counts", "jaccard_of_texts", "standard_error", "words_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Words:
    """The words of some texts, one text after the other: codes from 0 to ``kinds`` - 1."""

    codes: Ints
    lengths: Ints  # words of each text
    kinds: int

    def __len__(self) -> int:
        return len(self.lengths)

    def counts(self, rows: Ints | None = None) -> Floats:
        """How often each word occurs, in all texts or in those of these rows."""
        codes = self.codes if rows is None else self.codes[self._places(rows)]
        return np.bincount(codes, minlength=self.kinds).astype(np.float64)

    def sums(self, of: Floats) -> Floats:
        """The sum over each text's words of a number that every word has."""
        text = np.repeat(np.arange(len(self)), self.lengths)
        found = np.bincount(text, weights=of[self.codes], minlength=len(self))
        return found.astype(np.float64, copy=False)

    def _places(self, rows: Ints) -> Ints:
        lengths = self.lengths[rows]
        starts = (np.cumsum(self.lengths) - self.lengths)[rows]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def words_of(groups: Sequence[pl.Series], *, stem: bool = False, stop: bool = False) -> list[Words]:
    """Read the words of several sets of texts, in one code.

    Words are what stands between blanks, in lower case, as in the code of Lupart et al. 2023:
    punctuation stays, nothing is left out. ``stop`` leaves out stop words and ``stem`` stems; for
    either, punctuation at the ends of words goes first, since it would hide most of them.
    """
    lists = [texts.str.to_lowercase().str.extract_all(r"\S+") for texts in groups]
    lengths = [found.list.len().to_numpy().astype(np.int64) for found in lists]
    every = pl.concat([found.explode() for found in lists]).drop_nulls()
    kinds = every.unique(maintain_order=True).to_frame("word").with_row_index("code")
    tokens = every.to_frame("word").join(kinds, on="word", how="left", maintain_order="left")
    codes = tokens["code"].to_numpy().astype(np.int64)
    count = len(kinds)
    text = np.repeat(np.arange(sum(map(len, groups))), np.concatenate(lengths))
    if stem or stop:
        new, count = _reduced(kinds["word"], stem=stem, stop=stop)
        codes = new[codes]
        text, codes = text[codes >= 0], codes[codes >= 0]
    left = np.bincount(text, minlength=sum(map(len, groups)))
    ends = np.cumsum([len(texts) for texts in groups])[:-1]
    places = np.concatenate([[0], np.cumsum(left)])
    found = []
    for part in np.split(np.arange(len(left)), ends):
        low, high = (places[part[0]], places[part[-1] + 1]) if len(part) else (0, 0)
        found.append(Words(codes[low:high], left[part], count))
    return found


def _reduced(words: pl.Series, *, stem: bool, stop: bool) -> tuple[Ints, int]:
    """The new code of each word (-1: left out), and how many there are."""
    plain = words.str.replace_all(r"^[^\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+$", "").to_list()
    kept = [word if word and not (stop and word in STOP_WORDS) else "" for word in plain]
    if stem:
        from Stemmer import Stemmer  # type: ignore[import-not-found]  # it has no types

        kept = Stemmer("english").stemWords(kept)
    known: dict[str, int] = {}
    codes = [known.setdefault(word, len(known)) if word else -1 for word in kept]
    return np.array(codes, dtype=np.int64), len(known)


def jaccard_of_texts(one: pl.Series, other: pl.Series) -> float:
    """Weighted Jaccard similarity of the words of two sets of texts."""
    both = words_of([one, other])
    return jaccard_of_counts(*(words.counts() for words in both))


def jaccard_of_counts(one: Floats, other: Floats) -> float:
    """Sum of the smaller over the sum of the larger shares that each word has on either side."""
    totals = one.sum(), other.sum()
    if min(totals) == 0:
        return 0.0
    common = float(np.minimum(one / totals[0], other / totals[1]).sum())
    # Both sides sum to 1, so the larger ones sum to 2 less what is common.
    return common / (2.0 - common)


def standard_error(one: Words, other: Words) -> float:
    """The standard error of the weighted Jaccard similarity of two samples of texts.

    By linearisation: a word moves what is common through the side on which it is rarer, and a text
    moves it through its words. No bootstrap: sets drawn with replacement have fewer different words
    than the sets they are drawn from, which pulls their similarity down by several standard errors.
    """
    shares = [words.counts() for words in (one, other)]
    shares = [counts / counts.sum() for counts in shares]
    common = float(np.minimum(*shares).sum())
    rarer = np.where(shares[0] == shares[1], 0.5, shares[0] < shares[1])
    variance = 0.0
    for words, share, slope in zip((one, other), shares, (rarer, 1.0 - rarer), strict=True):
        moves = words.sums(slope) - words.lengths * float(slope @ share)
        variance += float(np.var(moves / words.lengths.mean(), ddof=1)) / len(words)
    return float(2.0 / (2.0 - common) ** 2 * np.sqrt(variance))
