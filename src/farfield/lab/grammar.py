"""What a topic of the world is made of, and how its phrasings combine into queries.

A fact can be asked for in three *registers*, three ways of speaking that share few words.
A query has a phrase (what is asked), a frame (how it is asked) and a mention (of whom), each in
a register. Every entity has a register of its own:

- training queries about it take phrase, frame and mention all from that register;
- fresh test queries take the phrase from one of the other two, frame and mention from the last.

So every phrase, frame and mention is met in training, but a fresh test query never repeats the
words of a training query about the same entity, and never repeats the combination used for
another one. That is what keeps fresh test queries clear of near-duplicates at every size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

__all__ = [
    "ASPECTS",
    "REGISTERS",
    "SOURCES",
    "WH_WORDS",
    "Aspect",
    "Draw",
    "Fact",
    "Kind",
    "Topic",
    "number",
    "pick",
    "question_patterns",
    "keyword_patterns",
    "wh_word",
    "year",
]

SOURCES = ("almanac", "archive", "forum")
"""Who wrote the passages: a reference work, old records, and people talking."""

WH_WORDS = ("what", "how", "who", "when", "where", "which", "why")
REGISTERS = 3
ASPECTS = 6
"""How many aspects every topic has."""

Three = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Texts for each register, or for each source."""


class Draw:
    """Random choices from a row of numbers in [0, 1) that was drawn beforehand."""

    def __init__(self, row: Sequence[float]) -> None:
        self._row = iter(row)

    def below(self, n: int) -> int:
        """Return an integer from 0 to ``n - 1``."""
        return int(next(self._row) * n)

    def choose(self, options: Sequence[str]) -> str:
        """Return one of the options."""
        return options[self.below(len(options))]


Fact = Callable[[Draw], str]
"""Makes the value of a fact; ``"person"``, ``"place"`` and ``"root"`` come from the names."""


def pick(*options: str) -> Fact:
    """Return a fact that is one of the options."""
    return lambda draw: draw.choose(options)


def number(low: int, high: int) -> Fact:
    """Return a fact that is a whole number from ``low`` to ``high``."""
    return lambda draw: str(low + draw.below(high - low + 1))


def year(low: int, high: int) -> Fact:
    """Return a fact that is a year."""
    return number(low, high)


@dataclass(frozen=True)
class Kind:
    """A kind of entity: a word for it in each register, and how an entity of it is named."""

    words: tuple[str, str, str]
    name: str


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """One thing that can be told and asked about an entity.

    ``says`` holds sentences for each source, ``asks`` questions and ``nouns`` noun phrases for
    each register. In a question ``(was)`` marks the verb that moves behind the entity when the
    question is embedded ("tell me when X was built"); where more than that changes, the
    embedded form follows after a bar.
    """

    name: str
    section: str
    pronoun: str = "what"
    says: Three
    asks: Three
    nouns: Three


@dataclass(frozen=True, kw_only=True)
class Topic:
    """Entities of one sort: how they are named, what is told of them and how people ask."""

    name: str
    stems: tuple[str, ...]
    sounds: str
    kinds: tuple[Kind, ...]
    mentions: Three
    facts: dict[str, Fact | str]
    intros: Three
    colour: Three
    aspects: tuple[Aspect, Aspect, Aspect, Aspect, Aspect, Aspect]
    sources: tuple[float, float, float]
    season: tuple[float, float]


# Of each register: frames around a question (d direct, e embedded), around a noun, and keywords.
_AROUND_QUESTIONS: Three = (
    ("{d}",),
    (
        "does anyone know {e}",
        "can somebody here explain {e}",
        "I keep wondering {e}",
        "have you ever heard {e}",
        "my kids are asking {e}",
        "could someone remind me {e}",
    ),
    (
        "{d} for a school report",
        "{d} short answer please",
        "trying to find out {e}",
        "{d} for a pub quiz",
        "need a source on {e}",
        "{d} according to local history",
    ),
)
_AROUND_NOUNS: Three = (
    ("{w} is the {n} of {m}", "{w} was the {n} of {m}"),
    ("what do we know about the {n} of {m}", "what have you read on the {n} of {m}"),
    ("what should I write for the {n} of {m}", "what to put down as {n} for {m}"),
)
_KEYWORDS: Three = (
    ("{m} {n}", "{n} {m}"),
    ("{n} of {m}", "explain {n} of {m}", "asking about the {n} of {m}"),
    ("{m} {n} facts", "notes on {n} of {m}", "{m} background and {n}"),
)

_MOVED = re.compile(r"\((\w+)\) ")


def _direct_and_embedded(question: str) -> tuple[str, str]:
    direct, bar, embedded = question.partition(" | ")
    if bar:
        return direct, embedded
    moved = _MOVED.search(question)
    if moved is None:
        return question, question
    rest = question[: moved.start()] + question[moved.end() :]
    return (
        question[: moved.start()] + moved[1] + " " + question[moved.end() :],
        rest.replace("{m}", "{m} " + moved[1], 1),
    )


def question_patterns(aspect: Aspect, frame: int, phrase: int) -> list[str]:
    """Return every question about an aspect for a frame and a phrase register."""
    around = [
        pattern.replace("{d}", direct).replace("{e}", embedded)
        for direct, embedded in map(_direct_and_embedded, aspect.asks[phrase])
        for pattern in _AROUND_QUESTIONS[frame]
    ]
    nouns = [
        pattern.replace("{w}", aspect.pronoun).replace("{n}", noun)
        for noun in aspect.nouns[phrase]
        for pattern in _AROUND_NOUNS[frame]
    ]
    # However many frames a register has, most questions are asked as questions.
    return around * max(1, 2 * len(nouns) // len(around)) + nouns


def keyword_patterns(aspect: Aspect, frame: int, phrase: int) -> list[str]:
    """Return every keyword query about an aspect for a frame and a phrase register."""
    return [
        pattern.replace("{n}", noun)
        for noun in aspect.nouns[phrase]
        for pattern in _KEYWORDS[frame]
    ]


_WORD = re.compile(r"[a-z]+")


@cache
def _is_wh(word: str) -> bool:
    return word in WH_WORDS


def wh_word(text: str) -> str:
    """Return the first wh-word of a query, or ``"none"``."""
    for match in _WORD.finditer(text.lower()):
        if _is_wh(match[0]):
            return match[0]
    return "none"
