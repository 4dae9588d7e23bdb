"""The topics of the world, read from the text files in ``topics/``.

A topic is a file of ``key: value`` lines; a key may come again, and ``;`` separates values.
Adding a topic means adding a file and its name to ``TOPICS``.

    kind: the {stem} Bridge = bridge, crossing, span     a name, and a word for each register
    mention 1: the {k1} at {stem}                        how register 1 speaks of an entity
    brief: {stem} {k}                                    how every register does among keywords
    fact built: 1640 to 1910                             a number, one of several values, or
    fact builder: person                                 a person, place or root that is made up
    intro almanac: {name} is a listed {k0}.              how a source begins and embroiders
    aspect: completion                                   what can be told and asked; then, for it,
    almanac: It was completed in {built}.                a sentence of a source
    ask 0: when (was) {m} completed                      a question of register 0
    noun 0: completion date                              a noun phrase of register 0

In a question ``(was)`` marks the verb that moves behind the entity when the question is embedded
("tell me when X was completed"); where more than that changes, the embedded form follows after
a bar. A noun phrase goes behind a mention, as in "X completion date", or before one with "of";
where something else goes before one, it follows after a bar with its preposition: ``cure | cure
for``. A question may name a person of the facts instead of the entity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = [
    "ASPECTS",
    "REGISTERS",
    "SOURCES",
    "TOPICS",
    "Aspect",
    "Kind",
    "Texts",
    "Topic",
    "read_topic",
    "vocabulary",
]

TOPICS = (
    "buildings",
    "landscapes",
    "medicine",
    "music",
    "machines",
    "cooking",
    "voyages",
    "birds",
)
"""The topics that can be made, in the default order."""

SOURCES = ("almanac", "archive", "forum")
"""Who wrote the passages: a reference work, old records, people talking."""

REGISTERS = 3
"""How many ways of speaking there are."""

ASPECTS = 6
"""How many aspects every topic has."""

Texts = tuple[tuple[str, ...], ...]
"""Texts of each source, or of each register."""


@dataclass(frozen=True)
class Kind:
    """A kind of entity: how one is named, and a word for it in each register."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """One thing that is told about an entity by sources and asked in registers."""

    name: str
    section: str
    says: Texts
    asks: Texts
    nouns: Texts


@dataclass(frozen=True, kw_only=True)
class Topic:
    """Entities of one sort: their names, what is told of them and how people ask.

    ``facts`` has a range of numbers, values to choose from, or the name of a pool of names.
    ``sources`` says how much each source writes about the topic; ``season`` holds the two
    parameters of a beta distribution, the popularity of the topic over time.
    """

    name: str
    stems: tuple[str, ...]
    roots: str
    kinds: tuple[Kind, ...]
    mentions: Texts
    briefs: Texts
    facts: dict[str, range | str | tuple[str, ...]]
    intros: Texts
    colour: Texts
    aspects: tuple[Aspect, ...]
    sources: tuple[float, ...]
    season: tuple[float, float]


@cache
def read_topic(name: str) -> Topic:
    """Return the topic of that name."""
    blocks: list[dict[str, list[str]]] = [defaultdict(list)]
    for line in _text(name).splitlines():
        key, _, value = line.partition(": ")
        if key == "aspect":
            blocks.append(defaultdict(list))
        if key:
            blocks[-1][key].append(value)
    head, *aspects = blocks
    low, high = map(float, head["season"][0].split())
    return Topic(
        name=name,
        stems=tuple(head["stems"][0].split()),
        roots=head["roots"][0] if head["roots"] else "soft",
        kinds=tuple(_kind(line) for line in head["kind"]),
        mentions=_by_register(head, "mention"),
        briefs=tuple(
            tuple(text.replace("{k}", f"{{k{register}}}") for text in head["brief"][0].split("; "))
            for register in range(REGISTERS)
        ),
        facts={
            key.removeprefix("fact "): _fact(lines[0])
            for key, lines in head.items()
            if key.startswith("fact ")
        },
        intros=tuple(tuple(head[f"intro {source}"]) for source in SOURCES),
        colour=tuple(tuple(head[f"colour {source}"]) for source in SOURCES),
        aspects=tuple(_aspect(block) for block in aspects),
        sources=tuple(map(float, head["sources"][0].split())),
        season=(low, high),
    )


@cache
def vocabulary() -> frozenset[str]:
    """Return every word of the topics in lower case; no name should be one of them."""
    return frozenset(re.findall(r"[a-z]+", " ".join(map(_text, TOPICS)).lower()))


@cache
def _text(name: str) -> str:
    return (files("farfield.lab") / "topics" / f"{name}.txt").read_text(encoding="utf-8")


def _kind(line: str) -> Kind:
    name, _, words = line.partition(" = ")
    return Kind(name, tuple(words.split(", ")))


def _by_register(block: dict[str, list[str]], key: str) -> Texts:
    return tuple(
        tuple(value for line in block[f"{key} {register}"] for value in line.split("; "))
        for register in range(REGISTERS)
    )


def _fact(text: str) -> range | str | tuple[str, ...]:
    if text in ("person", "place", "root"):
        return text
    low, to, high = text.partition(" to ")
    if to and low.isdigit() and high.isdigit():
        return range(int(low), int(high) + 1)
    return tuple(text.split("; "))


def _aspect(block: dict[str, list[str]]) -> Aspect:
    return Aspect(
        name=block["aspect"][0],
        section=block["section"][0],
        says=tuple(tuple(block[source]) for source in SOURCES),
        asks=_by_register(block, "ask"),
        nouns=_by_register(block, "noun"),
    )
