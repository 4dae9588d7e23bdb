"""The world: entities with facts, and the passages that sources write about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.lab.names import Names, Person
from farfield.lab.topic import ASPECTS, REGISTERS, SOURCES, Topic

__all__ = ["FEWEST_PASSAGES", "Floats", "Ints", "World", "build"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Slots = dict[str, str]

FEWEST_PASSAGES = 6
"""Of a topic: two entities, so that one can be kept from training."""

_SIZES = (3, 4, 5)  # passages of an entity; three tell everything, more retell some of it
_PLOTS = ((0, 1), (2, 3), (4, 5), (0, 2), (4, 1))  # what they tell, in a shuffled order
_TITLES = (
    ("{title}", "{title}: {section}", "{title}, an overview"),
    ("Papers on {name}", "Box {few}, {stem}", "Loose sheets on {section}"),
    ("All about {name}", "My two pence on {section}", "Re: {stem}"),
)
_FEW = ("three", "four", "five", "six", "seven", "eight", "nine", "eleven")
_SEASONS = ("spring", "summer", "autumn", "winter")
_WORDS = 30  # no passage is shorter
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])")


@dataclass(frozen=True)
class World:
    """Entities and passages, as arrays; a need is ``entity * ASPECTS + aspect``.

    The passages of entity ``e`` are ``placed[first[e] : first[e + 1]]``, and ``answers`` has for
    every need the one or two passages that answer it, or -1.
    """

    topics: tuple[Topic, ...]
    slots: list[Slots]
    topic_of: Ints
    register_of: Ints
    first: Ints
    placed: Ints
    answers: Ints
    titles: list[str]
    texts: list[str]
    source_of: Ints
    entity_of: Ints

    def aspect(self, need: int) -> str:
        """Return the name of the aspect that a need is about."""
        topic = self.topics[int(self.topic_of[need // ASPECTS])]
        return topic.aspects[need % ASPECTS].name


class _Draw:
    """Choices from a row of numbers in [0, 1) that was drawn beforehand."""

    def __init__(self, row: Sequence[float]) -> None:
        self._row = iter(row)

    def choose(self, options: Sequence[str]) -> str:
        return options[int(next(self._row) * len(options))]

    def other_than(self, avoided: str, options: Sequence[str]) -> str:
        at = int(next(self._row) * len(options))
        return options[at] if options[at] != avoided else options[(at + 1) % len(options)]


def build(
    topics: tuple[Topic, ...], passages: int, seeds: Sequence[np.random.SeedSequence]
) -> World:
    """Return a world with that many passages, about equally many for each topic."""
    naming, stating, planning, writing = map(np.random.default_rng, seeds)
    sizes = [
        _sizes(planning, passages // len(topics) + (at < passages % len(topics)))
        for at in range(len(topics))
    ]
    topic_of = np.repeat(np.arange(len(topics)), [len(of_topic) for of_topic in sizes])
    slots, places = _entities(naming, stating, topics, [len(of_topic) for of_topic in sizes])
    counts = np.concatenate(sizes)
    first = np.concatenate([[0], np.cumsum(counts)])
    entity = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(passages) - first[entity]
    order = planning.permuted(np.tile(np.arange(ASPECTS), (len(counts), 1)), axis=1)
    told = order[entity[:, None], np.array(_PLOTS)[nth]]
    source = _sources(planning, topics, topic_of, first, counts)
    # Passages are shuffled, or their order would say which belong together.
    placed = planning.permutation(passages)
    answers = np.full((len(counts) * ASPECTS, 2), -1)
    for retelling in (False, True):
        rows = np.flatnonzero((nth >= 3) == retelling)
        for part in (0, 1):
            answers[entity[rows] * ASPECTS + told[rows, part], int(retelling)] = placed[rows]
    titles, texts = [""] * passages, [""] * passages
    draws = writing.random((passages, 16)).tolist()
    for row, at in enumerate(placed.tolist()):
        of = int(entity[row])
        titles[at], texts[at] = _write(
            topics[topic_of[of]],
            slots[of],
            places,
            int(source[row]),
            told[row].tolist(),
            draws[row],
        )
    return World(
        topics=topics,
        slots=slots,
        topic_of=topic_of,
        register_of=planning.integers(0, REGISTERS, len(counts)),
        first=first,
        placed=placed,
        answers=answers,
        titles=titles,
        texts=texts,
        source_of=source[np.argsort(placed)],
        entity_of=entity[np.argsort(placed)],
    )


def _sizes(rng: np.random.Generator, passages: int) -> Ints:
    sizes = rng.choice(_SIZES, passages // min(_SIZES) + 1)
    ends = np.cumsum(sizes)
    cut = int(np.searchsorted(ends, passages))
    kept: Ints = sizes[: cut + 1].copy()
    kept[-1] -= ends[cut] - passages
    return kept


def _sources(
    rng: np.random.Generator, topics: tuple[Topic, ...], topic_of: Ints, first: Ints, counts: Ints
) -> Ints:
    """Return a source for every passage; a retelling has another source than what it retells."""
    likely = np.cumsum([topic.sources for topic in topics], axis=1)[topic_of]
    likely /= likely[:, -1:]
    of_entity = (rng.random((len(counts), 5))[:, :, None] > likely[:, None, :]).sum(axis=2)
    for nth in (3, 4):
        # Aspect i of the shuffled order is first told by passage i // 2.
        one, two = (of_entity[:, part // 2] for part in _PLOTS[nth])
        third = len(SOURCES) - one - two  # 0 + 1 + 2, so this is the source not used
        step = rng.integers(1, len(SOURCES), len(counts))
        of_entity[:, nth] = np.where(one == two, (one + step) % len(SOURCES), third)
    entity = np.repeat(np.arange(len(counts)), counts)
    result: Ints = of_entity[entity, np.arange(len(entity)) - first[entity]]
    return result


def _entities(
    naming: np.random.Generator,
    stating: np.random.Generator,
    topics: tuple[Topic, ...],
    counts: list[int],
) -> tuple[list[Slots], list[str]]:
    # A stem serves several entities of different kinds: a bridge and a mill of one town.
    stems = max(counts) // 2 + 4
    people = sum(
        count * (("person" in topic.stems) + list(topic.facts.values()).count("person"))
        for topic, count in zip(topics, counts, strict=True)
    )
    names = Names(naming, places=stems + 8, surnames=max(stems, people // 8) + 8, persons=people)
    pools = {"place": names.places, "surname": names.surnames}
    slots: list[Slots] = []
    for topic, count in zip(topics, counts, strict=True):
        pools["root"] = names.invent(topic.roots, stems)
        # Every topic starts at the head of a pool, so that its names are those of other topics too.
        share = stems // len(topic.stems) + 1
        known = [stem for pool in topic.stems for stem in pools.get(pool, [])[:share]]
        pairs = naming.permutation(max(len(known), 1) * len(topic.kinds))[:count]
        kinds = naming.integers(0, len(topic.kinds), count)
        for nth, row in enumerate(stating.random((count, len(topic.facts))).tolist()):
            if known:
                stem, at = known[pairs[nth] // len(topic.kinds)], pairs[nth] % len(topic.kinds)
                person = Person(stem, "it", "its", "it")
            else:
                person, at = names.person(), kinds[nth]
            slots.append(_describe(topic, person, int(at), _Draw(row), names, pools))
    return slots, names.places


def _describe(
    topic: Topic,
    person: Person,
    kind: int,
    draw: _Draw,
    names: Names,
    pools: dict[str, list[str]],
) -> Slots:
    """Return what the templates of a topic need to know about one entity."""
    name = topic.kinds[kind].name.format(stem=person.name)
    title = name.removeprefix("the ")
    slots = {
        "stem": person.name,
        "name": name,
        "title": title[0].upper() + title[1:],
        "he": person.he,
        "his": person.his,
        "him": person.him,
    }
    slots |= {f"k{at}": word for at, word in enumerate(topic.kinds[kind].words)}
    for fact, values in topic.facts.items():
        if values == "person":
            slots[fact] = names.person().name
        elif isinstance(values, str):
            slots[fact] = draw.other_than(person.name, pools[values])
        elif isinstance(values, range):
            slots[fact] = draw.choose([str(value) for value in values])
        else:
            slots[fact] = draw.choose(values)
    return {key: value.format_map(slots) if "{" in value else value for key, value in slots.items()}


def _write(
    topic: Topic,
    slots: Slots,
    places: list[str],
    source: int,
    told: list[int],
    row: Sequence[float],
) -> tuple[str, str]:
    """Return the title and the text of a passage."""
    draw = _Draw(row)
    aspects = [topic.aspects[aspect] for aspect in told]
    filled = slots | {
        "section": aspects[0].section,
        "elsewhere": draw.other_than(slots["stem"], places),
        "kind": draw.choose((slots["k1"], slots["k2"])),
        "few": draw.choose(_FEW),
        "season": draw.choose(_SEASONS),
    }
    title = draw.choose(_TITLES[source]).format_map(filled)
    templates = [draw.choose(topic.intros[source])]
    templates += [draw.choose(aspect.says[source]) for aspect in aspects]
    text = " ".join(_sentence(template.format_map(filled)) for template in templates)
    colour = [_sentence(template.format_map(filled)) for template in topic.colour[source]]
    short = _WORDS - text.count(" ") - 1
    colour = [some for some in colour if some.count(" ") >= short - 1] or [max(colour, key=len)]
    if short > 0 or draw.choose(("none", "some", "some")) == "some":
        text += " " + draw.choose(colour)
    return _ARTICLE.sub(r"\1n ", title), _ARTICLE.sub(r"\1n ", text)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
