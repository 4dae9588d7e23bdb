"""The frames of a collection, from the arrays it was planned in."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl

from farfield.lab.asking import Plan
from farfield.lab.phrasing import wh_words
from farfield.lab.topic import ASPECTS, SOURCES
from farfield.lab.world import Floats, Ints, World

__all__ = ["corpus", "ids", "qrels", "queries", "truth", "word_counts"]

# Every passage is older than every query, so no question comes before its answer.
_PASSAGES = (date(2010, 1, 1), date(2019, 12, 31))
_QUERIES = (date(2020, 1, 1), date(2023, 12, 31))
_SEASONS = np.array([(2.0, 2.0), (2.0, 4.0), (4.0, 2.0)])  # archives write first, forums last
_DIGITS = 5


def ids(prefix: str, count: int) -> pl.Series:
    """Return ids that sort as they count."""
    numbers = pl.int_range(1, count + 1, eager=True).cast(pl.String)
    return prefix + numbers.str.zfill(max(_DIGITS, len(str(count))))


def word_counts(texts: pl.Series) -> pl.Series:
    """Return how many words each text has."""
    return texts.str.count_matches(r"\S+").cast(pl.Int64)


def corpus(rng: np.random.Generator, world: World, doc_ids: pl.Series) -> pl.DataFrame:
    """Return the passages."""
    seasons = _SEASONS[world.source_of]
    return pl.DataFrame(
        {
            "doc_id": doc_ids,
            "title": world.titles,
            "text": world.texts,
            "topic": _topics(world, world.entity_of),
            "source": _named(SOURCES, world.source_of),
            "date": _dates(rng.beta(seasons[:, 0], seasons[:, 1]), *_PASSAGES),
            "entity": _entities(world, world.entity_of),
        }
    )


def queries(
    world: World, plan: Plan, query_ids: pl.Series, texts: pl.Series, split: str
) -> pl.DataFrame:
    """Return the queries of a split."""
    return pl.DataFrame(
        {
            "query_id": query_ids,
            "text": texts,
            "topic": _topics(world, plan.need // ASPECTS),
            "wh": wh_words(texts),
            "words": word_counts(texts),
            "source": _named(SOURCES, world.source_of[world.answers[plan.need, 0]]),
            "date": _dates(plan.when, *_QUERIES),
            "split": pl.repeat(split, len(plan), eager=True),
        }
    )


def qrels(world: World, need: Ints, query_ids: pl.Series, doc_ids: pl.Series) -> pl.DataFrame:
    """Return a judgement for every passage about the entity that a query is about."""
    entity = need // ASPECTS
    counts = np.diff(world.first)[entity]
    query = np.repeat(np.arange(len(need)), counts)
    nth = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
    doc = world.placed[world.first[entity[query]] + nth]
    answers = (world.answers[need[query]] == doc[:, None]).any(axis=1)
    return pl.DataFrame(
        {
            "query_id": query_ids[query],
            "doc_id": doc_ids[doc],
            "relevance": np.where(answers, 2, 1).astype(np.int64),
        }
    ).sort("query_id", "doc_id")


def truth(
    world: World, asked: Ints, need: Ints, query_ids: pl.Series, **planted: pl.Series
) -> pl.DataFrame:
    """Return what is known about each test query, given the needs asked in training."""
    trained_entities = np.zeros(len(world.topic_of), dtype=bool)
    trained_entities[asked // ASPECTS] = True
    trained_topics = np.zeros(len(world.topics), dtype=bool)
    trained_topics[world.topic_of[asked // ASPECTS]] = True
    # One slot more than there are passages: -1, no second answer, falls into it.
    answered = np.zeros(len(world.texts) + 1, dtype=bool)
    answered[world.answers[asked]] = True
    answered[-1] = False
    answers = world.answers[need]
    one, two = world.source_of[answers[:, 0]], world.source_of[answers[:, 1]]
    low, high = np.minimum(one, two), np.maximum(one, two)
    pairs = [f"{a}+{b}" for a in SOURCES for b in SOURCES]
    both = answers[:, 1] >= 0
    entity = need // ASPECTS
    return pl.DataFrame(
        {
            "query_id": query_ids,
            **planted,
            "shared_label": trained_entities[entity],
            "shared_answer": answered[answers].any(axis=1),
            "topic_in_training": trained_topics[world.topic_of[entity]],
            "entity": _entities(world, entity),
            "aspect": [world.aspect(at) for at in need.tolist()],
            "source": _named(SOURCES, one),
            "sources": _named(
                [*SOURCES, *pairs], np.where(both, len(SOURCES) * (1 + low) + high, one)
            ),
        }
    )


def _named(names: tuple[str, ...] | list[str], codes: Ints) -> pl.Series:
    return pl.Series(names, dtype=pl.String)[codes]


def _topics(world: World, entity: Ints) -> pl.Series:
    return _named([topic.name for topic in world.topics], world.topic_of[entity])


def _entities(world: World, entity: Ints) -> pl.Series:
    return _named([slots["title"] for slots in world.slots], entity)


def _dates(when: Floats, first: date, last: date) -> pl.Series:
    days = np.datetime64(first) + (when * ((last - first).days + 1)).astype(np.int64)
    return pl.Series(days).cast(pl.Date).cast(pl.String)
