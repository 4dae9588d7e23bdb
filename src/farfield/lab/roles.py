"""Which entities and needs training asks about, and which are kept for testing."""

from __future__ import annotations

import numpy as np

from farfield.lab.topic import ASPECTS
from farfield.lab.world import Ints, World

__all__ = ["Roles"]

_SEEN_ENTITIES = 0.6  # share of the entities of a topic that training asks about
_SEEN_NEEDS = 2 / 3  # share of the needs of such an entity


class Roles:
    """The parts that entities and needs play; decided before any query is asked.

    The last topic is kept from training. The last but one is trained on in full and never
    tested. Of every other topic some entities are kept from training, and of the entities that
    are trained on some needs.
    """

    def __init__(self, rng: np.random.Generator, world: World) -> None:
        self._world = world
        train_only, test_only = len(world.topics) - 2, len(world.topics) - 1
        topic = world.topic_of
        self._exists = world.answers[:, 0] >= 0
        self._popularity = rng.lognormal(0, 0.3, len(world.topics))
        self._vogue = rng.lognormal(0, 0.6, len(topic))
        needs = self._exists.reshape(-1, ASPECTS)

        seen = np.zeros(len(topic), dtype=bool)
        for at in range(train_only):
            entities = rng.permutation(np.flatnonzero(topic == at))
            count = round(_SEEN_ENTITIES * len(entities))
            seen[entities[: min(max(count, 1), len(entities) - 1)]] = True
        keys = np.where(needs, rng.random(needs.shape), 2.0)
        rank = keys.argsort(axis=1).argsort(axis=1)
        some = rank < np.rint(_SEEN_NEEDS * needs.sum(axis=1))[:, None]
        trained = seen[:, None] & some | (topic == train_only)[:, None]
        self.trainable = np.flatnonzero(trained.ravel() & self._exists)
        """The needs that training may ask for."""

        need_topic = np.repeat(topic, ASPECTS)
        self._tested = need_topic < train_only
        self._held_out = self._exists & self._tested & ~trained.ravel()
        self._new_entity = self._exists & self._tested & ~np.repeat(seen, ASPECTS)
        self._new_topic = self._exists & (need_topic == test_only)

    def pick(self, rng: np.random.Generator, needs: Ints, count: int) -> Ints:
        """Return some of the needs, those of popular topics and entities more often."""
        entity = needs // ASPECTS
        topic = self._world.topic_of[entity]
        within = np.bincount(topic, self._vogue[entity])
        bounds = np.cumsum(self._vogue[entity] / within[topic] * self._popularity[topic])
        at = np.searchsorted(bounds, rng.random(count) * bounds[-1], side="right")
        picked: Ints = needs[np.minimum(at, len(needs) - 1)]
        return picked

    def training_needs(self, rng: np.random.Generator, count: int) -> Ints:
        """Return needs to train on; every topic but the one that is kept has at least one."""
        topic = self._world.topic_of[self.trainable // ASPECTS]
        firsts = [self.pick(rng, self.trainable[topic == at], 1) for at in np.unique(topic)]
        return np.concatenate([*firsts, self.pick(rng, self.trainable, count - len(firsts))])

    def fresh_needs(self, asked: Ints) -> dict[str, Ints]:
        """Return the needs for each kind of fresh test query, given those asked in training."""
        known = np.zeros(len(self._exists), dtype=bool)
        known[asked] = True
        entity = np.repeat(known.reshape(-1, ASPECTS).any(axis=1), ASPECTS)
        return {
            "same_need": np.flatnonzero(known & self._tested),
            "same_entity": np.flatnonzero(self._held_out & entity),
            "same_topic": np.flatnonzero(self._new_entity),
            "new_topic": np.flatnonzero(self._new_topic),
        }
