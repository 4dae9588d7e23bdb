"""Queries: who asks what, when and in which words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.lab.phrasing import FORMS, Phrasebook
from farfield.lab.topic import ASPECTS, REGISTERS
from farfield.lab.world import Ints, World

__all__ = ["Asker", "Plan"]

Floats = npt.NDArray[np.float64]

_ROUNDS = 12  # of looking for queries that were not asked yet
_CHUNK = 100_000
_CASED, _MARKED = 0.06, 0.12  # share of queries with a capital, of questions with a question mark
_NOUN = 0.2  # share of questions that ask "what is the length of" rather than "how long is"


@dataclass(frozen=True)
class Plan:
    """Queries before they are put into words; ``when`` runs from 0 to 1."""

    need: Ints
    register: Ints
    cell: Ints
    pattern: Ints
    mention: Ints
    form: Ints
    when: Floats

    def __len__(self) -> int:
        return len(self.need)

    def take(self, rows: Ints) -> Plan:
        """Return some of the queries."""
        return Plan(*(getattr(self, field.name)[rows] for field in fields(self)))

    @staticmethod
    def join(plans: list[Plan]) -> Plan:
        """Return the queries of all plans."""
        return Plan(
            *(np.concatenate([getattr(p, f.name) for p in plans]) for f in fields(plans[0]))
        )


class Asker:
    """Plans queries about a world and puts them into words."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._book = Phrasebook(world.topics)
        self._mentions = np.array(
            [[len(forms) for forms in topic.mentions] for topic in world.topics]
        )
        self._seasons = np.array([topic.season for topic in world.topics])

    def plan(
        self,
        rng: np.random.Generator,
        need: Ints,
        *,
        instead: Callable[[int], Ints],
        fresh: bool,
    ) -> Plan:
        """Return a query for each need, all different, ``fresh`` ones unlike any of training.

        A query that was planned before gives way to one for another need, which ``instead``
        chooses. When all is said, queries come again, as they do in a log.
        """
        plan = self._draw(rng, need, fresh)
        for _ in range(_ROUNDS):
            again = self._repeated(plan)
            if not len(again):
                break
            other = self._draw(rng, instead(len(again)), fresh)
            for field in fields(plan):
                getattr(plan, field.name)[again] = getattr(other, field.name)
        return plan

    def when(self, rng: np.random.Generator, need: Ints) -> Floats:
        """Return when each need is asked for, by the popularity of its topic."""
        topic = self._world.topic_of[need // ASPECTS]
        return rng.beta(self._seasons[topic, 0], self._seasons[topic, 1])

    def _draw(self, rng: np.random.Generator, need: Ints, fresh: bool) -> Plan:
        entity, aspect = np.divmod(need, ASPECTS)
        topic = self._world.topic_of[entity]
        u = rng.random((5, len(need)))
        shift = 1 + (u[0] * (REGISTERS - 1)).astype(np.int64) if fresh else np.zeros_like(need)
        own = self._world.register_of[entity]
        frame, phrase = (own + shift) % REGISTERS, (own - shift) % REGISTERS
        when = self.when(rng, need)
        # Over the years people type fewer keywords and more whole questions.
        keywords = u[1] < 0.55 - 0.35 * when
        form = np.where(keywords, 0, np.where(u[2] < _NOUN, 1, 2))
        cell = self._book.cell(topic, aspect, frame, phrase, form)
        return Plan(
            need=need,
            register=frame,
            cell=cell,
            pattern=(u[3] * self._book.sizes(cell)).astype(np.int64),
            mention=(u[4] * self._mentions[topic, frame]).astype(np.int64),
            form=form,
            when=when,
        )

    @staticmethod
    def _repeated(plan: Plan) -> Ints:
        """Return the rows whose query an earlier row asks already."""
        key = np.ravel_multi_index(
            (plan.need, plan.cell, plan.pattern, plan.mention),
            (plan.need.max() + 1, plan.cell.max() + 1, plan.pattern.max() + 1, 8),
        )
        _, first = np.unique(key, return_index=True)
        return np.setdiff1d(np.arange(len(plan)), first)

    def mention(self, plan: Plan, row: int) -> str:
        """Return the words by which a query names its entity."""
        entity = int(plan.need[row]) // ASPECTS
        topic = self._world.topics[self._world.topic_of[entity]]
        form = topic.mentions[plan.register[row]][plan.mention[row]]
        return form.format_map(self._world.slots[entity])

    def write(self, rng: np.random.Generator, plan: Plan) -> pl.Series:
        """Return the texts of the queries."""
        style = rng.random((2, len(plan)))
        cased = style[0] < _CASED
        marked = (style[1] < _MARKED) & (plan.form > FORMS.index("keywords"))
        parts = [
            pl.Series("text", self._texts(plan.take(rows), cased[rows], marked[rows]), pl.String)
            for rows in np.split(np.arange(len(plan)), range(_CHUNK, len(plan), _CHUNK))
        ]
        return pl.concat(parts)

    def _texts(
        self, plan: Plan, cased: npt.NDArray[np.bool_], marked: npt.NDArray[np.bool_]
    ) -> list[str]:
        world, book = self._world, self._book
        entity = plan.need // ASPECTS
        texts = []
        for slots, topic, cell, nth, register, form, case, mark in zip(
            map(world.slots.__getitem__, entity.tolist()),
            world.topic_of[entity].tolist(),
            plan.cell.tolist(),
            plan.pattern.tolist(),
            plan.register.tolist(),
            plan.mention.tolist(),
            cased.tolist(),
            marked.tolist(),
            strict=True,
        ):
            pattern = book.pattern(cell, nth)
            if "{m}" in pattern:
                pattern = pattern.replace("{m}", world.topics[topic].mentions[register][form])
            text = pattern.format_map(slots)
            text = text[0].upper() + text[1:] if case else text.lower()
            texts.append(text + "?" if mark else text)
        return texts
