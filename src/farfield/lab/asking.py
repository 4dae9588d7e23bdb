"""Queries: what is asked, when and in which words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.lab.phrasing import Phrasebook
from farfield.lab.topic import ASPECTS, REGISTERS
from farfield.lab.world import Floats, Ints, World

__all__ = ["Asker", "Plan"]

_ROUNDS = 12  # of looking for queries that were not asked yet
_STUBBORN = 20  # so few repeated queries are worth another round even if the last one failed
_CHUNK = 100_000  # queries put into words at a time
_CASED, _MARKED = 0.06, 0.12  # share of queries with a capital, of questions with a question mark


@dataclass(frozen=True)
class Plan:
    """Queries before they are put into words: arrays of one length; ``when`` is in [0, 1)."""

    need: Ints
    pattern: Ints
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
            *(np.concatenate([getattr(p, field.name) for p in plans]) for field in fields(Plan))
        )


class Asker:
    """Plans queries about a world and puts them into words."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._book = Phrasebook(world.topics)
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
        before = len(plan)
        for _ in range(_ROUNDS):
            again = _repeated(plan)
            if not len(again) or len(again) > max(0.95 * before, _STUBBORN):
                break
            before = len(again)
            other = self._draw(rng, instead(len(again)), fresh)
            for field in fields(plan):
                getattr(plan, field.name)[again] = getattr(other, field.name)
        return plan

    def when(self, rng: np.random.Generator, need: Ints) -> Floats:
        """Return when each need is asked for, by the popularity of its topic over time."""
        topic = self._world.topic_of[need // ASPECTS]
        moments: Floats = rng.beta(self._seasons[topic, 0], self._seasons[topic, 1])
        return moments

    def turned(self, plan: Plan, row: int) -> str:
        """Return the text of a query with its parts in another order."""
        slots = self._world.slots[int(plan.need[row]) // ASPECTS]
        return self._book.turned[int(plan.pattern[row])].format_map(slots).lower()

    def write(self, rng: np.random.Generator, plan: Plan) -> pl.Series:
        """Return the texts of the queries."""
        style = rng.random((2, len(plan)))
        cased = style[0] < _CASED
        marked = (style[1] < _MARKED) & self._book.marked[plan.pattern]
        chunks = np.split(np.arange(len(plan)), range(_CHUNK, len(plan), _CHUNK))
        texts = (self._texts(plan.take(rows), cased[rows], marked[rows]) for rows in chunks)
        return pl.concat([pl.Series("text", chunk, pl.String) for chunk in texts])

    def _draw(self, rng: np.random.Generator, need: Ints, fresh: bool) -> Plan:
        entity, aspect = np.divmod(need, ASPECTS)
        topic = self._world.topic_of[entity]
        u = rng.random((3, len(need)))
        shift = 1 + (u[0] * (REGISTERS - 1)).astype(np.int64) if fresh else np.zeros_like(need)
        own = self._world.register_of[entity]
        frame, phrase = (own + shift) % REGISTERS, (own - shift) % REGISTERS
        when = self.when(rng, need)
        # Over the years people type fewer keywords and more whole questions.
        form = (u[1] > 0.7 - 0.4 * when).astype(np.int64)
        pattern = self._book.pick(
            u[2], topic=topic, aspect=aspect, frame=frame, phrase=phrase, form=form
        )
        return Plan(need, pattern, when)

    def _texts(
        self, plan: Plan, cased: npt.NDArray[np.bool_], marked: npt.NDArray[np.bool_]
    ) -> list[str]:
        slots, patterns = self._world.slots, self._book.patterns
        texts = []
        for entity, pattern, capital, mark in zip(
            (plan.need // ASPECTS).tolist(),
            plan.pattern.tolist(),
            cased.tolist(),
            marked.tolist(),
            strict=True,
        ):
            text = patterns[pattern].format_map(slots[entity])
            text = text[0].upper() + text[1:] if capital else text.lower()
            texts.append(text + "?" if mark else text)
        return texts


def _repeated(plan: Plan) -> Ints:
    """Return the rows whose query an earlier row asks already."""
    queries = (plan.need, plan.pattern)
    key = np.ravel_multi_index(queries, tuple(int(codes.max()) + 1 for codes in queries))
    first = np.unique(key, return_index=True)[1]
    return np.setdiff1d(np.arange(len(plan)), first, assume_unique=True)
