"""Shifts between kinds of questions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from farfield.errors import SpecError
from farfield.shifts.base import Grouped, Groups, Pool

__all__ = ["whwords"]

_LUPART = ("wha: what definition", "how: how", "who: who when where which")


@dataclass(frozen=True, kw_only=True)
class whwords(Grouped):
    """Groups of queries that hold certain words; other queries belong to none.

    ``words`` names the groups, each as ``"name: word word …"``; the default are those of MS-Shift
    (Lupart et al. 2023): wha (what, definition), how, who (who, when, where, which). ``rule``:
    ``token`` looks for whole words, as the paper says; ``substring`` for the letters anywhere, as
    the released sets do (show holds how). ``several`` says what a query with words of several
    groups belongs to: ``earliest`` to the group whose word comes first in it, ``listed`` to the
    group that comes first in ``words``, ``none`` to none of them. The paper does not say.
    """

    words: tuple[str, ...] = _LUPART
    rule: Literal["token", "substring"] = "token"
    several: Literal["earliest", "listed", "none"] = "earliest"

    def __post_init__(self) -> None:
        names = [name for name, _ in self._named_words()]
        if len(names) < 2 or len(set(names)) < len(names):
            raise SpecError(f"words names the groups {names}, expected at least two different.")

    def grouping(self, pool: Pool, seed: int) -> Groups:
        """Look for the words in every query."""
        texts = pool.queries.frame["text"].str.to_lowercase()
        named = self._named_words()
        places = np.stack([self._places(texts, words) for _, words in named])
        found = np.isfinite(places)
        of = np.argmax(found, axis=0) if self.several == "listed" else np.argmin(places, axis=0)
        of[~found.any(axis=0)] = -1
        if self.several == "none":
            of[found.sum(axis=0) > 1] = -1
        facts = {"queries with words of several groups": int((found.sum(axis=0) > 1).sum())}
        return Groups(tuple(name for name, _ in named), of.astype(np.int64), facts)

    def _places(self, texts: pl.Series, words: list[str]) -> np.ndarray:
        """Where the first of these words stands in each text; infinite where none does."""
        pattern = "|".join(re.escape(word) for word in words)
        if self.rule == "token":
            pattern = rf"\b(?:{pattern})\b"
        return texts.str.find(pattern).cast(pl.Float64).fill_null(np.inf).to_numpy()

    def _named_words(self) -> list[tuple[str, list[str]]]:
        found = []
        for text in self.words:
            name, colon, words = text.partition(":")
            if not colon or not name.strip() or not words.split():
                raise SpecError(f'words holds {text!r}, expected "name: word word …".')
            found.append((name.strip(), words.lower().split()))
        return found
