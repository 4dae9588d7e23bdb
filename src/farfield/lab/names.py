"""Invented names, made from the sounds of several imaginary languages."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

__all__ = ["Names", "Person", "invent"]

_SOUNDS = {
    # style: onsets, nuclei, codas, endings
    "place": (
        "b br d dr f g gr h k kl l m n r s sk st t th tr v".split(),
        "a e i o u".split(),
        "l ld n nd r rn rk sk ss st v mm".split(),
        "mark holt brook wick stead mere fell gate haven combe thorpe den".split(),
    ),
    "surname": (
        "b bl c d f fr g gl h j k l m n p pr r s sw t tr v w".split(),
        "a e i o u ai ea".split(),
        "l ll lt m n nd r rr rs s st tch v".split(),
        "ick ow er en ley and ing ard ett orn ens".split(),
    ),
    "soft": (
        ["", "", "", *"l m n r s t v w".split()],
        "a e i o u".split(),
        "l lm m n nn r rl rv s ss th v vr".split(),
        "e a en is or una ele an iel".split(),
    ),
    "romance": (
        "b c d f g m p r s t v z".split(),
        "a e i o".split(),
        "r l n v z lt nt rz sc mb".split(),
        "olle ane etta ino ucca esco ara ona".split(),
    ),
    "island": (
        "t m n k l v h r s w".split(),
        "a e i o u".split(),
        "t m n k l v h r w".split(),
        "aru eki ohi ula ano iva oti amu".split(),
    ),
    "liquid": (
        "l m s t f r w n d".split(),
        "a e i o".split(),
        "ll n r v l rr".split(),
        "ian amer une ell owen isk edon".split(),
    ),
}
_FIRST = "Al Bre Co Da El Fi Gwe Ha Il Jo Ka Li Ma Ne Or Ro Sa Te Ul Vi Wi Ze".split()
_MIDDLE = "l n r s v th nd lm d m ll rr".split()
_TRIPLE = re.compile(r"(.)\1\1")
_LAST = {"she": "a e ine ia ette ora".split(), "he": "o an us ard ic en or win".split()}


@dataclass(frozen=True)
class Person:
    """A person of the world: a name, and the pronouns for them."""

    name: str
    he: str
    his: str
    him: str


def invent(rng: np.random.Generator, style: str, count: int) -> list[str]:
    """Return that many different names; they grow longer when short ones run out."""
    onsets, nuclei, codas, endings = _SOUNDS[style]
    found: dict[str, None] = {}
    syllables = 1
    while len(found) < count:
        before = len(found)
        draws = rng.random((2 * (count - before) + 8, 3 * syllables + 1)).tolist()
        for row in draws:
            parts = [
                pool[int(u * len(pool))]
                for u, pool in zip(row, (onsets, nuclei, codas) * syllables, strict=False)
            ]
            name = "".join([*parts, endings[int(row[-1] * len(endings))]])
            found.setdefault(_TRIPLE.sub(r"\1\1", name).capitalize())
        if len(found) - before < (count - before) // 2:
            syllables += 1
    return list(found)[:count]


class Names:
    """The pools that the names of one world come from.

    Places and surnames are shared by entities of several topics, so that a name alone seldom
    says which passage is meant; a full name belongs to one person only.
    """

    def __init__(
        self, rng: np.random.Generator, *, places: int, surnames: int, persons: int
    ) -> None:
        self._rng = rng
        self.places = invent(rng, "place", places)
        self.surnames = invent(rng, "surname", surnames)
        self._persons = iter(self._people(persons))

    def roots(self, style: str, count: int) -> list[str]:
        """Return names in the style of a topic."""
        return invent(self._rng, style, count)

    def person(self) -> Person:
        """Return a person who has not been named before."""
        return next(self._persons)

    def _people(self, count: int) -> list[Person]:
        firsts = [
            (first + middle + last, pronoun)
            for first in _FIRST
            for middle in _MIDDLE
            for pronoun, endings in _LAST.items()
            for last in endings
        ]
        needed = max(40, 2 * count // len(self.surnames) + 1)
        chosen = self._rng.permutation(len(firsts))[: min(needed, len(firsts))]
        pairs = self._rng.permutation(len(chosen) * len(self.surnames))[:count]
        people = []
        for first, last in zip(*np.divmod(pairs, len(self.surnames)), strict=True):
            name, he = firsts[chosen[first]]
            his, him = ("her", "her") if he == "she" else ("his", "him")
            people.append(Person(f"{name} {self.surnames[last]}", he, his, him))
        return people
