"""Invented names, made from the sounds of several imaginary languages."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from farfield.lab.topic import vocabulary

__all__ = ["Names", "Person"]

_SOUNDS = {
    # style: onsets, nuclei, codas, endings; a dash is silence
    "place": (
        "b br d dr f g gr h k kl l m n r s sk st t th tr v",
        "a e i o u",
        "l n nd r rn rk sk ss st v mm",
        "mark holt brook wick stead mere fell gate haven combe thorpe den",
    ),
    "surname": (
        "b bl c d f fr g gl h j k l m n p pr r s sw t tr v w",
        "a e i o u ai ea",
        "l ll lt m n nd r rr rs s st tch v",
        "ick ow er en ley and ing ard ett orn ens",
    ),
    "soft": (
        "- - - l m n r s t v w",
        "a e i o u",
        "l lm m n nn r rl rv s ss th v vr",
        "e a en is or una ele an iel",
    ),
    "romance": (
        "b c d f g m p r s t v z",
        "a e i o",
        "r l n v z lt nt rz sc mb",
        "olle ane etta ino ucca esco ara ona",
    ),
    "island": (
        "t m n k l v h r s w",
        "a e i o u",
        "t m n k l v h r w",
        "aru eki ohi ula ano iva oti amu",
    ),
    "liquid": (
        "l m s t f r w n d",
        "a e i o",
        "ll n r v l rr",
        "ian amer une ell owen isk edon",
    ),
}
_FIRST = "A Bre Co Da E Fi Gwe Ha I Jo Ka Li Ma Ne O Ro Sa Te U Vi Wi Ze"
_MIDDLE = "l n r s v th nd lm d m ll rr"
_TRIPLE = re.compile(r"(.)\1\1")
_COARSE = re.compile("anus|arse|bast|bitc|dick|fist|homo|semen|turd|urin|vomi", re.IGNORECASE)
_LAST = {"she": "a enne ine ia ette ora", "he": "o an us ard ic or win"}


@dataclass(frozen=True)
class Person:
    """A person of the world: a name, and the pronouns for them."""

    name: str
    he: str
    his: str
    him: str


class Names:
    """The pools that the names of one world come from.

    Places and surnames are shared by entities of several topics, so that a name alone seldom
    says which passage is meant; a full name belongs to one person only.
    """

    def __init__(
        self, rng: np.random.Generator, *, places: int, surnames: int, persons: int
    ) -> None:
        self._rng = rng
        self._taken = {word.capitalize() for word in vocabulary()}
        self.places = self.invent("place", places)
        self.surnames = self.invent("surname", surnames)
        self._persons = iter(self._people(persons))

    def invent(self, style: str, count: int) -> list[str]:
        """Return that many new names; they grow longer when short ones run out."""
        *core, endings = (text.replace("-", "").split(" ") for text in _SOUNDS[style])
        found: list[str] = []
        syllables = 1
        while len(found) < count:
            missing = count - len(found)
            for row in self._rng.random((2 * missing + 8, 3 * syllables + 1)).tolist():
                pools = [*core * syllables, endings]
                parts = [pool[int(u * len(pool))] for u, pool in zip(row, pools, strict=True)]
                name = _TRIPLE.sub(r"\1\1", "".join(parts)).capitalize()
                if not (name in self._taken or _COARSE.search(name) or len(found) == count):
                    self._taken.add(name)
                    found.append(name)
            if count - len(found) > missing // 2:
                syllables += 1
        return found

    def person(self) -> Person:
        """Return a person who has not been named before."""
        return next(self._persons)

    def _people(self, count: int) -> list[Person]:
        known = {
            first + middle + last: pronoun
            for first in _FIRST.split()
            for middle in _MIDDLE.split()
            for pronoun, endings in _LAST.items()
            for last in endings.split()
            if not _COARSE.search(first + middle + last)
        }
        firsts = list(known.items())
        needed = max(40, 2 * count // len(self.surnames) + 1)
        chosen = self._rng.permutation(len(firsts))[: min(needed, len(firsts))]
        pairs = self._rng.permutation(len(chosen) * len(self.surnames))[:count]
        people = []
        for first, last in zip(*np.divmod(pairs, len(self.surnames)), strict=True):
            name, he = firsts[chosen[first]]
            his, him = ("her", "her") if he == "she" else ("his", "him")
            people.append(Person(f"{name} {self.surnames[last]}", he, his, him))
        return people
