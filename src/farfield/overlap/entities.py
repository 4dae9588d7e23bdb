"""Which entities queries name, and how far those of a test query are known from training.

An entity finder takes texts and returns a set of entities for each. ``terms`` takes the content
words, those that are rare enough among all queries; ``spacy`` the noun chunks and named entities of
a spaCy pipeline, if one is installed. Any function of that kind can be passed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from farfield.analysis import STOP_WORDS
from farfield.errors import InputError, MissingDependency, did_you_mean
from farfield.similarity.terms import words

__all__ = ["FINDERS", "Finder", "entity_overlap", "finder"]

#: Texts in, a list of entities for each out.
Finder = Callable[[pl.Series], pl.Series]


def terms(texts: pl.Series, *, commonest: float = 0.02) -> pl.Series:
    """Content words: no stop words, and in no more than a share of all texts."""
    found = words(texts)
    kept = found.filter(~pl.col("word").is_in(list(STOP_WORDS))).unique()
    spread = kept.group_by("word").len()
    # In a few texts every word is common; a word in five texts or fewer is never too common.
    limit = max(5.0, commonest * len(texts))
    kept = kept.join(spread.filter(pl.col("len") <= limit), on="word", how="semi")
    return _lists(kept, len(texts))


def spacy(texts: pl.Series, *, pipeline: str = "en_core_web_sm") -> pl.Series:
    """Named entities and noun chunks of a spaCy pipeline."""
    try:
        import spacy as library
    except ImportError:
        raise MissingDependency("spacy", "the entity finder 'spacy'") from None
    try:
        parse = library.load(pipeline)
    except OSError as error:
        raise InputError(
            f"spaCy has no pipeline {pipeline!r} on this machine. Install one, for example with: "
            f"python -m spacy download {pipeline}"
        ) from error
    rows: dict[str, list[object]] = {"text": [], "word": []}
    for number, parsed in enumerate(parse.pipe(texts.to_list(), batch_size=256)):
        for span in {*parsed.ents, *parsed.noun_chunks}:
            name = " ".join(t.lower_ for t in span if not t.is_stop and not t.is_punct)
            if name:
                rows["text"].append(number)
                rows["word"].append(name)
    return _lists(pl.DataFrame(rows, schema={"text": pl.Int64, "word": pl.String}), len(texts))


FINDERS: dict[str, Finder] = {"terms": terms, "spacy": spacy}


def finder(name: str | Finder) -> Finder:
    """Return the finder with this name; a function is taken as it is."""
    if callable(name):
        return name
    if name not in FINDERS:
        raise InputError(
            f"no entity finder is called {name!r}.{did_you_mean(name, FINDERS)} "
            f"Known: {', '.join(FINDERS)}."
        )
    return FINDERS[name]


def entity_overlap(pairs: pl.DataFrame, find: Finder) -> pl.DataFrame:
    """Grade pairs (text, train_text): full, partial or zero overlap of entities.

    Full: the same set of entities. Partial: at least one in common. Adds ``entities``,
    ``shared_entities`` and ``entity``.
    """
    texts = pl.concat([pairs["text"], pairs["train_text"]]).unique(maintain_order=True)
    table = pl.DataFrame({"text": texts, "found": find(texts)})
    own = pairs.select("text").join(table, on="text", how="left", maintain_order="left")["found"]
    other = pairs.select(pl.col("train_text").alias("text")).join(
        table, on="text", how="left", maintain_order="left"
    )["found"]
    shared = own.list.set_intersection(other)
    many = shared.list.len()
    full = (many == own.list.len()) & (many == other.list.len()) & (many > 0)
    grade = np.where(full, "full", np.where(many > 0, "partial", "zero"))
    return pairs.with_columns(
        own.list.join(" | ").alias("entities"),
        shared.list.sort().list.join(" | ").alias("shared_entities"),
        pl.Series("entity", grade),
    )


def _lists(found: pl.DataFrame, texts: int) -> pl.Series:
    """Gather words by text; a text without any has an empty list."""
    lists = found.unique().group_by("text").agg(pl.col("word").sort())
    every = pl.DataFrame({"text": np.arange(texts)}).join(lists, on="text", how="left")
    return every.sort("text")["word"].fill_null(pl.Series([[]], dtype=pl.List(pl.String))).alias("")
