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

FORMS = ("keywords", "question")
"""``length of the river``, ``how long is the river``."""

_FRONT = "{m}, "

# A query whose frame ends in a question mark may end in one, too.
# m is a mention, b a brief one; n is a noun, p a noun with its preposition.
_KEYWORDS: Texts = (
    ("{b} {n}",),
    ("{p} {m}",),
    ("{b} {n} anyone?", "{b} {n} info", "question about the {p} {m}"),
)
# d is the question as such, e is the question embedded in another sentence.
_QUESTIONS: Texts = (
    ("{d}?",),
    (
        "does anyone know {e}?",
        "anyone know {e}?",
        "do you know {e}?",
        "my kids ask {e}",
        "remind me {e}",
    ),
    (
        "can you tell me {e}?",
        "need to know {e}",
        "I forgot {e}",
        "wondering {e}",
        _FRONT + "any idea {e}?",
    ),
)
_MOVED = re.compile(r"\((\w+)\) ")
_SLOT = re.compile(r"\{\w+\}")
_PREPOSITION = re.compile(r"\b(by|for|from|of|to|with) $")


def wh_words(texts: pl.Series) -> pl.Series:
    """Return the first wh-word of each query, or ``"none"``."""
    found = texts.str.to_lowercase().str.extract(rf"\b({'|'.join(WH_WORDS)})\b")
    return found.fill_null("none")


class Phrasebook:
    """Every pattern there is, numbered; its slots are filled with what is known of an entity."""

    def __init__(self, topics: tuple[Topic, ...]) -> None:
        self._shape = (len(topics), ASPECTS, REGISTERS, REGISTERS, len(FORMS))
        cells = [
            _patterns(topic, aspect, frame, phrase, form)
            for topic in topics
            for aspect in topic.aspects
            for frame in range(REGISTERS)
            for phrase in range(REGISTERS)
            for form in FORMS
        ]
        self._sizes = np.array([len(cell) for cell in cells])
        self._starts = np.cumsum(self._sizes) - self._sizes
        pairs = [pair for cell in cells for pair in cell]
        self.patterns = [pattern.removesuffix("?") for pattern, _ in pairs]
        self.turned = [turned.removesuffix("?") for _, turned in pairs]
        """Each pattern with its parts in another order."""
        self.marked = np.array([pattern.endswith("?") for pattern, _ in pairs])
        """Whether a question mark may follow a pattern."""

    def pick(
        self, u: Floats, *, topic: Ints, aspect: Ints, frame: Ints, phrase: Ints, form: Ints
    ) -> Ints:
        """Return the number of a pattern for each number ``u`` in [0, 1)."""
        cell = np.ravel_multi_index((topic, aspect, frame, phrase, form), self._shape)
        result: Ints = self._starts[cell] + (u * self._sizes[cell]).astype(np.int64)
        return result


def _patterns(
    topic: Topic, aspect: Aspect, register: int, phrase: int, form: str
) -> list[tuple[str, str]]:
    """Return pairs of a pattern and the same turned round."""
    if form == "question":
        asks, frames = aspect.asks[phrase], _QUESTIONS[register]
        pairs = [_question(ask, frame) for ask in asks for frame in frames]
    else:
        nouns, frames = aspect.nouns[phrase], _KEYWORDS[register]
        pairs = [_keywords(noun, frame) for noun in nouns for frame in frames]
    names = {"{m}": topic.mentions[register], "{b}": topic.briefs[register]}
    return [
        (pattern.replace(slot, name), turned.replace(slot, name))
        for pattern, turned in pairs
        for slot in _SLOT.findall(pattern)[:1]
        # A pattern without a mention tells the entity by what is known of it.
        for name in names.get(slot, (slot,))
    ]


def _keywords(noun: str, frame: str) -> tuple[str, str]:
    noun, _, with_preposition = noun.partition(" | ")
    with_preposition = with_preposition or f"{noun} of"
    pattern = frame.replace("{p}", with_preposition)
    if "{b}" in frame:
        turned = frame.replace("{b} {n}", "{n} {b}")
    else:
        turned = _FRONT + frame.replace("{p} {m}", with_preposition.rpartition(" ")[0])
    return pattern.replace("{n}", noun), turned.replace("{n}", noun)


def _question(ask: str, frame: str) -> tuple[str, str]:
    direct, embedded = _direct_and_embedded(ask)
    around = frame.removeprefix(_FRONT)
    plain = around.replace("{d}", direct).replace("{e}", embedded)
    name, direct, embedded = _with_pronouns(direct, embedded)
    fronted = f"{name}, " + around.replace("{d}", direct).replace("{e}", embedded)
    return (plain, fronted) if around == frame else (fronted, plain)


def _direct_and_embedded(ask: str) -> tuple[str, str]:
    ask, bar, embedded = ask.partition(" | ")
    direct = _MOVED.sub(r"\1 ", ask)
    moved = _MOVED.search(ask)
    if bar or moved is None:
        return direct, embedded or direct
    return direct, _MOVED.sub("", ask).replace("{m}", f"{{m}} {moved[1]}", 1)


def _with_pronouns(direct: str, embedded: str) -> tuple[str, str, str]:
    """Return the slot of whom a question names, and the question without the name."""
    name, he, him = "{m}", "{he}", "{him}"
    if name not in direct:
        name, he, him = _SLOT.findall(direct)[0], "they", "them"
    before, _, after = embedded.partition(name)
    pronoun = him if not after or _PREPOSITION.search(before) else he
    # "what are the walls of X made of" needs none: "X, what are the walls made of".
    owned = re.compile(rf"\b(the [\w ]+) of {re.escape(name)}")
    direct, embedded = (
        owned.sub(r"\1", text).replace(name, pronoun) for text in (direct, embedded)
    )
    return name, direct, embedded
