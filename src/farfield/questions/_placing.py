"""Where each test query lies, seen from the training queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from warnings import warn

import polars as pl

from farfield.errors import FarfieldWarning, InputError, did_you_mean
from farfield.io import read_qrels, read_queries
from farfield.overlap.labels import shared_labels
from farfield.questions._small_files import read_pairs
from farfield.similarity import nearest, normal_form
from farfield.tables import Qrels, Queries

__all__ = ["CONTACT", "choose_ends", "place", "placed_by"]

CONTACT = ("exact", "near_duplicate", "shared_label")
"""Strata of queries that training has touched, from nearest to farthest."""

PATHS = (str, os.PathLike)
PathLike = str | os.PathLike[str]

_BIN = "similarity_"
_LEAST = 10  # queries; fewer on the near side show nothing


def place(
    qrels: Qrels,
    queries: Queries | PathLike | None,
    train_queries: Queries | PathLike | None,
    train_qrels: Qrels | PathLike | None,
    *,
    threshold: float,
    relevance: int,
    min_shared: int,
    bins: int,
) -> pl.DataFrame:
    """Place every judged query: query_id, stratum, similarity, train_id, shared.

    ``exact``: the same normal form as a training query. ``near_duplicate``: an n-gram similarity
    of ``threshold`` or more to a training query. ``shared_label``: at least ``min_shared`` passages
    of this ``relevance`` or more are relevant in training. All others by their similarity to the
    nearest training query, in ``bins`` of about equal size, ``similarity_1`` the nearest.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"threshold is {threshold}, expected above 0 and at most 1.")
    for name, value in (("relevance", relevance), ("min_shared", min_shared), ("bins", bins)):
        if value < 1:
            raise InputError(f"{name} is {value}, expected 1, 2, 3 …")
    test, train, train_judged = _sides(qrels, queries, train_queries, train_qrels)
    found = (
        test.frame.select("query_id", normal=normal_form(test.frame["text"]))
        .join(_exact(train), on="normal", how="left", maintain_order="left")
        .join(
            nearest(test, train, k=1).select("query_id", "similarity", near_id="train_id"),
            on="query_id",
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("similarity").fill_null(0.0))
    )
    shared = pl.DataFrame(schema={"query_id": pl.String, "shared": pl.UInt32})
    if train_judged is not None:
        shared = shared_labels(train_judged, qrels, [relevance]).select("query_id", "shared")
    found = found.join(shared, on="query_id", how="left", maintain_order="left")
    contact = (
        pl.when(pl.col("exact_id").is_not_null())
        .then(pl.lit("exact"))
        .when(pl.col("similarity") >= threshold)
        .then(pl.lit("near_duplicate"))
        .when(pl.col("shared") >= min_shared)
        .then(pl.lit("shared_label"))
    )
    found = found.with_columns(contact=contact)
    return found.select(
        "query_id",
        stratum=pl.coalesce("contact", _binned(bins)),
        similarity="similarity",
        train_id=pl.coalesce("exact_id", "near_id"),
        shared="shared",
    ).sort("query_id")


def placed_by(qrels: Qrels, given: Mapping[str, str] | PathLike) -> pl.DataFrame:
    """Place every judged query where a mapping or a file says."""
    columns = ("stratum", "kind", "role", "group")
    strata = read_pairs(given, "query_id", *columns) if isinstance(given, PATHS) else given
    ids = qrels.query_ids
    lost = [query for query in ids if query not in strata]
    if lost:
        raise InputError(
            f"the strata lack the judged query {lost[0]!r} ({len(lost):,} of {len(ids):,} are "
            "missing). Give every judged query a stratum."
        )
    return pl.DataFrame(
        {
            "query_id": ids,
            "stratum": [strata[query] for query in ids],
            "similarity": pl.Series([None] * len(ids), dtype=pl.Float64),
            "train_id": pl.Series([None] * len(ids), dtype=pl.String),
            "shared": pl.Series([None] * len(ids), dtype=pl.UInt32),
        }
    )


def choose_ends(
    placement: pl.DataFrame, near: Sequence[str] | None, far: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return all strata from near to far, those that are called near and those called far.

    Near are exact queries and near-duplicates; where they are fewer than ten, the next strata
    join them. Far are the similarity strata that remain (the farthest always does): queries that
    training has not touched.
    Of strata with other names, those called near and far are.
    """
    counts = dict(placement["stratum"].value_counts().iter_rows())
    for name in (*(near or ()), *(far or ())):
        if name not in counts:
            raise InputError(
                f"no query is in the stratum {name!r}.{did_you_mean(name, counts)} "
                f"There are {', '.join(sorted(counts))}."
            )
    bins = sorted((n for n in counts if n.startswith(_BIN)), key=lambda n: (len(n), n))
    order = [*(name for name in CONTACT if name in counts), *bins]
    ours = len(order) == len(counts)
    if near is None:
        near = _nearest_of(order, counts) if ours else [n for n in counts if n == "near"]
    if far is None:
        far = [n for n in bins if n not in near] if ours else [n for n in counts if n == "far"]
    if set(near) & set(far):
        raise InputError(f"the stratum {min({*near} & {*far})!r} is near and far. Choose one.")
    if not ours:
        if not (near and far):
            raise InputError(
                f"which of the strata {', '.join(sorted(counts))} are near and which are far? "
                "Name them: --near exact --far new_topic (each may be repeated)."
            )
        order = [*near, *sorted(counts.keys() - {*near, *far}), *far]
    return tuple(order), tuple(near), tuple(far)


def _nearest_of(order: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """Return the strata to call near; the farthest of the similarity strata stays out."""
    near: list[str] = []
    for name in order[:-1] if order[-1].startswith(_BIN) else order:
        if name in CONTACT[:2] or sum(counts[n] for n in near) < _LEAST:
            near.append(name)
    return near


def _sides(
    qrels: Qrels,
    queries: Queries | PathLike | None,
    train_queries: Queries | PathLike | None,
    train_qrels: Qrels | PathLike | None,
) -> tuple[Queries, Queries, Qrels | None]:
    """Read what is given as a path: test queries, training queries, training judgements."""
    if queries is None or train_queries is None:
        raise InputError(
            "to place the test queries, their texts and those of the training queries are needed: "
            "give --queries and --train-queries, or --strata to say where each query lies."
        )
    train_judged = read_qrels(train_qrels) if isinstance(train_qrels, PATHS) else train_qrels
    test = _judged(qrels, read_queries(queries) if isinstance(queries, PATHS) else queries)
    given = read_queries(train_queries) if isinstance(train_queries, PATHS) else train_queries
    return test, _trained(test, given, train_judged), train_judged


def _judged(qrels: Qrels, queries: Queries) -> Queries:
    """Return the texts of the judged queries, all of them."""
    test = queries.select(qrels.query_ids)
    if len(test) < len(qrels.query_ids):
        lost = qrels.query_ids.filter(~qrels.query_ids.is_in(test.frame["query_id"].implode()))
        raise InputError(
            f"the queries lack the judged query {lost[0]!r} ({len(lost):,} of "
            f"{len(qrels.query_ids):,} are missing). Give the text of every judged query."
        )
    return test


def _trained(test: Queries, train: Queries, qrels: Qrels | None) -> Queries:
    """Return the training queries: of a file that holds others too, those judged in training."""
    if qrels is not None:
        trained = train.select(qrels.query_ids)
        if not len(trained):
            raise InputError(
                f"none of the {len(qrels.query_ids):,} queries judged in training is among the "
                f"{len(train):,} training queries. Were files of different collections given?"
            )
        lost = len(qrels.query_ids) - len(trained)
        if lost:
            warn(
                f"{lost:,} of {len(qrels.query_ids):,} queries judged in training have no text, so "
                "test queries like them pass for far.",
                FarfieldWarning,
                stacklevel=4,
            )
        return trained
    columns = ["query_id", "text"]
    others = test.frame.join(train.frame, on=columns, how="anti")
    if not len(others):
        raise InputError(
            "every test query is among the training queries, with its id: one file holds both. "
            "Give the training judgements as well (--train-qrels), so that only the queries judged "
            "in training count."
        )
    return train


def _exact(train: Queries) -> pl.DataFrame:
    """For every normal form the first training query that has it: normal, exact_id."""
    frame = train.frame.select(exact_id="query_id", normal=normal_form(train.frame["text"]))
    return frame.filter(pl.col("normal") != "").sort("exact_id").unique("normal", keep="first")


def _binned(bins: int) -> pl.Expr:
    """Name the bin of each query without contact; equal similarities share a bin."""
    alone = pl.col("contact").is_null()
    # Between 0 and 1, nearest first; equals stand together in the middle of their places.
    place = ((-pl.col("similarity")).rank("average") - 0.5).over("contact") / pl.len().over(
        "contact"
    )
    number = (place * bins).floor().rank("dense").over("contact").cast(pl.Int64)
    return pl.when(alone).then(pl.lit(_BIN) + number.cast(pl.String))
