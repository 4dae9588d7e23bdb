"""Make a collection: a world, queries about it, judgements, and the truth about all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import polars as pl

from farfield.collection import Card, Collection
from farfield.errors import InputError, did_you_mean
from farfield.lab import frames
from farfield.lab.asking import Asker, Plan
from farfield.lab.planting import EDITS, edited, normal
from farfield.lab.roles import Roles
from farfield.lab.topic import ASPECTS, TOPICS, read_topic
from farfield.lab.world import FEWEST_PASSAGES, Ints, World, build
from farfield.tables import Corpus, Qrels, Queries

__all__ = ["KINDS", "Lab", "make"]

KINDS = ("exact", "near_duplicate", "same_need", "same_entity", "same_topic", "new_topic")
"""How near a test query is to training, from nearest to farthest.

``exact``: a training query again, up to case and punctuation. ``near_duplicate``: one again,
slightly changed. ``same_need``: asks what a training query asks, in other words. ``same_entity``:
asks something else about an entity asked about in training. ``same_topic``: about an entity that
no training query is about. ``new_topic``: about a topic that no training query is about.
"""

_FRESH = {"same_need": 0.15, "same_entity": 0.15, "same_topic": 0.45, "new_topic": 0.25}
_EXACT = 1 / 3  # share of the planted queries
_LONG = 6  # words; a slip changes too much of a shorter query to leave it a near-duplicate


@dataclass(frozen=True, eq=False)
class Lab:
    """A made collection whose truth is known. Frames are plain, ids are strings, dates are ISO.

    corpus: doc_id, title, text, topic, source, date, entity
    queries: query_id, text, topic, wh, words, source, date, split; the source is that of the
        passage that answers, the first one where two do
    qrels: "train" and "test": query_id, doc_id, relevance; 2 answers the query, 1 is another
        passage about the same entity; every query has one or two answers, from different sources
    truth: a row for each test query: query_id, kind (of KINDS), edit (of EDITS, of the planted),
        duplicate_of (the training query it was made from), shared_label (a passage judged for it
        is judged for a training query as well), shared_answer (the same of passages that
        answer), topic_in_training, entity, aspect, source, sources (all that answer, joined by +)
    """

    corpus: pl.DataFrame
    queries: pl.DataFrame
    qrels: dict[str, pl.DataFrame]
    truth: pl.DataFrame
    topics: tuple[str, ...]
    train_only: str
    test_only: str
    seed: int

    @cached_property
    def collection(self) -> Collection:
        """The corpus, queries and judgements as a collection, checked."""
        queries = self.queries.drop("split")
        return Collection(
            "lab",
            corpus=Corpus(self.corpus),
            queries=Queries(queries),
            qrels={split: Qrels(frame) for split, frame in self.qrels.items()},
            card=Card(
                licence="Apache-2.0",
                revision=f"seed {self.seed}",
                description="A generated world in which the truth is known; see farfield.lab.",
            ),
        )


def make(
    *,
    passages: int = 2000,
    train: int = 4000,
    test: int = 800,
    topics: Sequence[str] = TOPICS,
    duplicates: float = 0.15,
    seed: int = 0,
) -> Lab:
    """Make a collection of the given sizes.

    The last of the topics is kept from training, the last but one is never tested.
    ``duplicates`` is the share of test queries that are planted: a third of them exact, the
    others near-duplicates. Of the rest 30 % are about entities known from training, 45 % about
    other entities of known topics and 25 % about the topic kept from training.

    Training queries are different from one another up to about five times as many as there are
    passages; of more than that some come again, as they do in a log.

    The same arguments give the same bytes, and passages depend on neither ``train`` nor ``test``.
    """
    _check(passages, train, test, topics, duplicates, seed)
    *in_world, in_dates, in_roles, in_train, in_test = np.random.SeedSequence(seed).spawn(8)
    world = build(tuple(map(read_topic, topics)), passages, in_world)
    roles = Roles(np.random.default_rng(in_roles), world)
    asker = Asker(world)

    rng = np.random.default_rng(in_train)
    asked = asker.plan(
        rng,
        roles.training_needs(rng, train),
        instead=partial(roles.pick, rng, roles.trainable),
        fresh=False,
    ).take(rng.permutation(train))
    train_texts = asker.write(rng, asked)

    rng = np.random.default_rng(in_test)
    counts = _counts(test, duplicates)
    planted, origins, edits, planted_texts = _plant(rng, world, asker, asked, train_texts, counts)
    fresh = _fresh(rng, roles, asker, asked, counts)
    order = rng.permutation(test)
    tested = Plan.join([planted, *fresh])
    tested_texts = pl.concat([planted_texts, *(asker.write(rng, plan) for plan in fresh)])
    kinds = np.repeat(KINDS, [counts[kind] for kind in KINDS])
    unplanted = test - len(planted)

    doc_ids = frames.ids("d", passages)
    train_ids, test_ids = frames.ids("train-", train), frames.ids("test-", test)
    tested = tested.take(order)
    return Lab(
        corpus=frames.corpus(np.random.default_rng(in_dates), world, doc_ids),
        queries=pl.concat(
            [
                frames.queries(world, asked, train_ids, train_texts, "train"),
                frames.queries(world, tested, test_ids, tested_texts[order], "test"),
            ]
        ),
        qrels={
            "train": frames.qrels(world, asked.need, train_ids, doc_ids),
            "test": frames.qrels(world, tested.need, test_ids, doc_ids),
        },
        truth=frames.truth(
            world,
            asked.need,
            tested.need,
            test_ids,
            kind=pl.Series(kinds[order]),
            edit=pl.Series([*edits, *[None] * unplanted], dtype=pl.String)[order],
            duplicate_of=pl.concat(
                [train_ids[origins], pl.Series([None] * unplanted, dtype=pl.String)]
            )[order],
        ),
        topics=tuple(topics),
        train_only=topics[-2],
        test_only=topics[-1],
        seed=seed,
    )


def _check(
    passages: int, train: int, test: int, topics: Sequence[str], duplicates: float, seed: int
) -> None:
    if isinstance(topics, str) or len(topics) < 3 or len(set(topics)) < len(topics):
        raise InputError(
            f"topics={topics!r}: expected at least three different names, for one topic is kept "
            f"from training and one is never tested. Choose from {', '.join(TOPICS)}."
        )
    for name in topics:
        if name not in TOPICS:
            raise InputError(
                f"topics: {name!r} is not a topic of the lab.{did_you_mean(name, TOPICS)} "
                f"Choose from {', '.join(TOPICS)}."
            )
    least = {
        "passages": (passages, FEWEST_PASSAGES * len(topics), f"{FEWEST_PASSAGES} for each topic"),
        "train": (train, len(topics) - 1, "one for each topic that is trained on"),
        "test": (test, 1, "one query"),
        "seed": (seed, 0, "a seed is not negative"),
    }
    for name, (given, fewest, reason) in least.items():
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < fewest:
            raise InputError(
                f"{name}={given!r}: expected a whole number of at least {fewest} ({reason}). "
                f"Pass {name}={fewest} or more."
            )
    if isinstance(duplicates, bool) or not isinstance(duplicates, int | float | np.floating):
        raise InputError(f"duplicates={duplicates!r}: expected a number. Pass a share like 0.15.")
    if not 0 <= duplicates <= 1:
        raise InputError(
            f"duplicates={duplicates!r}: expected a share of the test queries, from 0 to 1. "
            f"Pass 0.15 for 15 %."
        )


def _counts(test: int, duplicates: float) -> dict[str, int]:
    """Return how many test queries there are of each kind; they add up to ``test``."""
    planted = round(duplicates * test)
    exact = round(planted * _EXACT)
    counts = {"exact": exact, "near_duplicate": planted - exact}
    rest, share = test - planted, 1.0
    for kind, part in _FRESH.items():
        counts[kind] = round(rest * part / share)
        rest, share = rest - counts[kind], share - part
    return counts


def _plant(
    rng: np.random.Generator,
    world: World,
    asker: Asker,
    asked: Plan,
    texts: pl.Series,
    counts: dict[str, int],
) -> tuple[Plan, Ints, list[str], pl.Series]:
    """Return planted queries, the training queries they are made from, the edits and the texts."""
    train_only = len(world.topics) - 2
    tested = world.topic_of[asked.need // ASPECTS] != train_only
    long = tested & (frames.word_counts(texts).to_numpy() >= _LONG)
    exact = _sample(rng, np.flatnonzero(tested), counts["exact"])
    unused = np.setdiff1d(np.flatnonzero(long), exact)
    pool = next(
        rows for rows in (unused, np.flatnonzero(long), np.flatnonzero(tested)) if len(rows)
    )
    origins = np.concatenate([exact, _sample(rng, pool, counts["near_duplicate"])])
    edits = ["exact"] * len(exact)
    edits += rng.choice(EDITS[1:], counts["near_duplicate"]).tolist()
    known = set(map(normal, texts)) if counts["near_duplicate"] else set()
    planted = [
        edited(rng, edit, texts[row], asker.turned(asked, row), known.__contains__)
        for row, edit in zip(origins.tolist(), edits, strict=True)
    ]
    plan = asked.take(origins)
    plan = replace(plan, when=asker.when(rng, plan.need))
    return plan, origins, edits, pl.Series("text", planted, pl.String)


def _sample(rng: np.random.Generator, rows: Ints, count: int) -> Ints:
    """Return rows, each as often as any other, give or take one."""
    turns = [rng.permutation(rows) for _ in range(-(-count // len(rows)))]
    return np.concatenate([*turns, np.empty(0, np.int64)])[:count].astype(np.int64)


def _fresh(
    rng: np.random.Generator, roles: Roles, asker: Asker, asked: Plan, counts: dict[str, int]
) -> list[Plan]:
    return [
        asker.plan(
            rng,
            roles.pick(rng, needs, counts[kind]),
            instead=partial(roles.pick, rng, needs),
            fresh=True,
        )
        for kind, needs in roles.fresh_needs(asked.need).items()
        if counts[kind]
    ]
