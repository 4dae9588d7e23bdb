"""How people ask: phrases, frames and mentions, and how they combine.

A fact can be asked for in three *registers*, three ways of speaking that share few words.
A query has a phrase (what is asked), a frame (how it is asked) and a mention (of whom), each in
a register. Every entity has a register of its own:

- training queries about it take phrase, frame and mention all from that register;
- fresh test queries take the phrase from one of the other two, frame and mention from the last.

So every phrase, frame and mention is met in training, but a fresh test query neither repeats
the words of a training query about the same entity nor the combination used for another one.
That keeps fresh test queries clear of near-duplicates by construction, at every size.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from farfield.lab.topic import ASPECTS, REGISTERS, Aspect, Texts, Topic
from farfield.lab.world import Floats, Ints

__all__ = ["FORMS", "WH_WORDS", "Phrasebook", "wh_words"]

WH_WORDS = ("what", "how", "who", "when", "where", "which", "why")

FORMS = ("keywords", "noun", "question")
"""``length of the river``, ``what is the length of the river``, ``how long is the river``."""

_KEYWORDS: Texts = (
    ("{m} {n}", "{n} {m}"),
    ("{n} of {m}", "explain {n} of {m}"),
    ("{n} facts {m}", "{m}: {n}", "notes on {n} of {m}"),
)
_NOUNS: Texts = (
    ("{w} is the {n} of {m}", "{w} was the {n} of {m}"),
    ("what about the {n} of {m}",),
    ("which {n} does {m} have", "which {n} did {m} have"),
)
# d is the question as such, e is the question embedded in another sentence.
_QUESTIONS: Texts = (
    ("{d}",),
    (
        "does anyone know {e}",
        "anyone know {e}",
        "I wonder {e}",
        "can you explain {e}",
        "my kids are asking {e}",
        "remind me {e}",
    ),
    (
        "{d} school project",
        "{d} short answer",
        "trying to find out {e}",
        "{d} quiz question",
        "need to know {e}",
        "{d} just the facts",
    ),
)
_MOVED = re.compile(r"\((\w+)\) ")


def wh_words(texts: pl.Series) -> pl.Series:
    """Return the first wh-word of each query, or ``"none"``."""
    found = texts.str.to_lowercase().str.extract(rf"\b({'|'.join(WH_WORDS)})\b")
    return found.fill_null("none")


class Phrasebook:
    """Every pattern there is, numbered: ``{m}`` stands for the mention, other slots for facts."""

    def __init__(self, topics: tuple[Topic, ...]) -> None:
        self._shape = (len(topics), ASPECTS, REGISTERS, REGISTERS, len(FORMS))
        cells = [
            _patterns(aspect, frame, phrase, form)
            for topic in topics
            for aspect in topic.aspects
            for frame in range(REGISTERS)
            for phrase in range(REGISTERS)
            for form in FORMS
        ]
        self._sizes = np.array([len(cell) for cell in cells])
        self._starts = np.cumsum(self._sizes) - self._sizes
        self.patterns = [pattern for cell in cells for pattern in cell]
        self.names_entity = np.array(["{m}" in pattern for pattern in self.patterns])
        """Whether a pattern has a mention; others tell the entity by what is known of it."""

    def pick(
        self, u: Floats, *, topic: Ints, aspect: Ints, frame: Ints, phrase: Ints, form: Ints
    ) -> Ints:
        """Return the number of a pattern for each number ``u`` in [0, 1)."""
        cell = np.ravel_multi_index((topic, aspect, frame, phrase, form), self._shape)
        result: Ints = self._starts[cell] + (u * self._sizes[cell]).astype(np.int64)
        return result


def _patterns(aspect: Aspect, frame: int, phrase: int, form: str) -> list[str]:
    if form == "question":
        return [
            around.replace("{d}", direct).replace("{e}", embedded)
            for direct, embedded in map(_direct_and_embedded, aspect.asks[phrase])
            for around in _QUESTIONS[frame]
        ]
    around_nouns = _NOUNS if form == "noun" else _KEYWORDS
    return [
        around.replace("{w}", aspect.pronoun).replace("{n}", noun)
        for noun in aspect.nouns[phrase]
        for around in around_nouns[frame]
    ]


def _direct_and_embedded(question: str) -> tuple[str, str]:
    question, bar, embedded = question.partition(" | ")
    direct = _MOVED.sub(r"\1 ", question)
    moved = _MOVED.search(question)
    if bar or moved is None:
        return direct, embedded or direct
    return direct, _MOVED.sub("", question).replace("{m}", f"{{m}} {moved[1]}", 1)
