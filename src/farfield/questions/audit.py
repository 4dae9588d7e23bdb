"""How much of the test set was seen in training?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from farfield import encoders, stats
from farfield.encoders import Encoder
from farfield.errors import InputError
from farfield.io import read_qrels, read_queries
from farfield.overlap.annotation import LABELS, Annotation, read_labels
from farfield.overlap.candidates import candidates, evidence
from farfield.overlap.cleaning import leaked_test, leaking_train, power_statement
from farfield.overlap.entities import Finder, entity_overlap, finder
from farfield.overlap.intents import intent_similarity
from farfield.overlap.labels import shared_labels
from farfield.overlap.vocabulary import VocabularyOverlap, vocabulary_overlap
from farfield.tables import Qrels, Queries

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["Audit", "audit"]

PathLike = str | os.PathLike[str]

#: N-gram similarity from which two queries are called near-duplicates, where one number is needed.
NEAR_DUPLICATE = 0.75
_THRESHOLDS = np.round(np.arange(0.3, 1.001, 0.05), 2)


@dataclass(frozen=True)
class Audit:
    """What training and test data share. Parts that were not given data for are ``None``.

    ``labels``: relevance, query_id, relevant, shared. ``pairs``: every test query with its nearest
    training queries and the evidence. ``annotation``: labels of people, if there are any.
    """

    test_ids: pl.Series
    labels: pl.DataFrame | None
    pairs: pl.DataFrame | None
    annotation: Annotation | None
    vocabulary: VocabularyOverlap | None = None
    train: Queries | None = field(repr=False, default=None)
    test: Queries | None = field(repr=False, default=None)
    train_qrels: Qrels | None = field(repr=False, default=None)
    test_qrels: Qrels | None = field(repr=False, default=None)
    threshold: float = NEAR_DUPLICATE
    min_shared: tuple[int, ...] = (1, 2)
    level: float = 0.95
    seed: int = 0

    @property
    def queries(self) -> int:
        """The number of test queries."""
        return len(self.test_ids)

    @cached_property
    def label_overlap(self) -> pl.DataFrame | None:
        """Share of test queries with so many shared labels: relevance, min_shared, share …"""
        if self.labels is None:
            return None
        rows = []
        for least in self.min_shared:
            for (relevance,), group in self.labels.group_by("relevance", maintain_order=True):
                hit = group["shared"].to_numpy() >= least
                rows.append({"relevance": relevance, "min_shared": least, **self._share(hit)})
        return pl.DataFrame(rows)

    @cached_property
    def leak_curve(self) -> pl.DataFrame | None:
        """Share of test queries whose nearest training query is at least so similar."""
        if self.pairs is None:
            return None
        rows = []
        for method in ("ngram", "cosine"):
            if self.pairs[method].null_count() == len(self.pairs):
                continue
            best = self._best(pl.col(method).fill_null(0.0).max(), 0.0)
            for threshold in _THRESHOLDS:
                # Vectors are single precision: a cosine of 1 may come out a little less.
                hit = best >= threshold - 1e-6
                rows.append({"method": method, "threshold": threshold, **self._share(hit)})
        return pl.DataFrame(rows)

    @cached_property
    def query_overlap(self) -> pl.DataFrame | None:
        """Shares of test queries: exact in training, or with a near-duplicate there."""
        if self.pairs is None:
            return None
        exact = self._best(pl.col("exact").any(), False)
        near = self._best(pl.col("ngram").fill_null(0.0).max(), 0.0) >= self.threshold
        rows = [
            {"overlap": "exact", **self._share(exact)},
            {"overlap": "near_duplicate", **self._share(near & ~exact)},
            {"overlap": "neither", **self._share(~(near | exact))},
        ]
        return pl.DataFrame(rows)

    @cached_property
    def entity_overlap(self) -> pl.DataFrame | None:
        """Shares of test queries by entity overlap, of people's labels where there are some."""
        return self._graded("entity")

    @cached_property
    def intent_overlap(self) -> pl.DataFrame | None:
        """Shares of test queries by similarity of intent, of people's labels if there are some."""
        return self._graded("intent")

    @cached_property
    def leaked(self) -> pl.Series:
        """Test queries that were seen: a near-duplicate, or a shared label."""
        return leaked_test(
            self.pairs, self.labels, threshold=self.threshold, min_shared=min(self.min_shared)
        )

    @cached_property
    def leaking(self) -> pl.Series:
        """Training queries that give a test query or its answer away."""
        return leaking_train(
            self.pairs, self.train_qrels, self.test_qrels, threshold=self.threshold
        )

    def power(self, *, sd: float = 0.25) -> str:
        """Say what the test queries without leaks can still show."""
        return power_statement(self.queries - len(self.leaked), sd=sd)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield audit --json`` prints."""
        parts = {
            "label_overlap": self.label_overlap,
            "query_overlap": self.query_overlap,
            "leak_curve": self.leak_curve,
            "entity_overlap": self.entity_overlap,
            "intent_overlap": self.intent_overlap,
        }
        found: dict[str, Any] = {n: t.to_dicts() for n, t in parts.items() if t is not None}
        found |= {
            "queries": self.queries,
            "threshold": self.threshold,
            "leaked": len(self.leaked),
            "leaking": len(self.leaking),
            "power": self.power(),
        }
        if self.vocabulary is not None:
            found["vocabulary"] = self.vocabulary.to_dict()
        if self.annotation is not None:
            found["annotation"] = {
                "kappa": self.annotation.kappa,
                "annotators": self.annotation.annotators,
                "pairs": self.annotation.pairs,
            }
        return found

    def figure(self) -> go.Figure:
        """Draw the leak curve or, without query texts, the label overlap."""
        from farfield.questions import _audit_figures

        return _audit_figures.draw(self)

    # -- inside -----------------------------------------------------------------------------

    def _share(self, hit: np.ndarray) -> dict[str, Any]:
        found = stats.mean(hit.astype(np.float64), level=self.level, seed=self.seed)
        return {
            "share": found.value,
            "low": None if np.isnan(found.low) else found.low,
            "high": None if np.isnan(found.high) else found.high,
            "queries": int(hit.sum()),
        }

    def _best(self, expression: pl.Expr, otherwise: Any) -> np.ndarray:
        """Reduce the pairs of every test query; those without any get ``otherwise``."""
        assert self.pairs is not None
        reduced = self.pairs.group_by("query_id").agg(expression.alias("best"))
        every = self.test_ids.to_frame("query_id").join(
            reduced, on="query_id", how="left", maintain_order="left"
        )
        return every["best"].fill_null(otherwise).to_numpy()

    def _graded(self, question: str) -> pl.DataFrame | None:
        names = LABELS[question]
        if self.annotation is not None:
            chosen = self.annotation.labels.filter(pl.col("question") == question)
            grade = np.array([names.index(label) for label in chosen["label"]])
            source = "annotated"
        elif self.pairs is not None:
            number = pl.col(question).replace_strict(list(names), list(range(len(names))))
            grade = self._best(number.max(), 0)
            source = "predicted"
        else:
            return None
        rows = [
            {"overlap": names[value], "source": source, **self._share(grade == value)}
            for value in reversed(range(len(names)))
        ]
        return pl.DataFrame(rows)


def audit(
    *,
    train_queries: Queries | PathLike | None = None,
    test_queries: Queries | PathLike | None = None,
    train_qrels: Qrels | PathLike | None = None,
    test_qrels: Qrels | PathLike | None = None,
    encoder: Encoder | str | None = "lsa()",
    candidates_each: int = 10,
    entities: str | Finder = "terms",
    labels: Sequence[PathLike] = (),
    relevances: Iterable[int] | None = None,
    min_shared: Sequence[int] = (1, 2),
    sample: int | None = None,
    threshold: float = NEAR_DUPLICATE,
    level: float = 0.95,
    seed: int = 0,
) -> Audit:
    """Audit a test set against the training set.

    With both qrels: label overlap. With both sets of queries: exact and near-duplicate queries, the
    curve of the leak rate against the threshold, entity and intent overlap over the
    ``candidates_each`` best training queries of each method (n-grams, BM25, and the cosine of
    ``encoder``'s vectors; ``None`` for none). ``labels`` are sheets filled in by annotators.
    Where qrels are given, only the queries that they judge count.

    The nearest of many training queries is nearer than that of few, so leak rates against training
    sets of different sizes cannot be compared; ``sample`` draws so many training queries first.
    """
    if not 0 < threshold <= 1:
        raise InputError(f"threshold is {threshold}, expected above 0 and at most 1.")
    if any(least < 1 for least in min_shared) or not min_shared:
        raise InputError(f"min_shared is {list(min_shared)}, expected 1, 2, 3 …")
    if candidates_each < 1:
        raise InputError(f"candidates_each is {candidates_each}, expected 1, 2, 3 …")
    chosen = None if encoder is None else encoders.parse(encoder)
    find = finder(entities)
    train_q, test_q = (_qrels(q) for q in (train_qrels, test_qrels))
    train, test = (_queries(q) for q in (train_queries, test_queries))
    # A BEIR folder has the queries of all splits in one file; the judgements tell them apart.
    if test is not None and test_q is not None:
        test = test.select(test_q.query_ids)
    if train is not None and train_q is not None:
        train = train.select(train_q.query_ids)
    if sample is not None:
        train, train_q = _sampled(train, train_q, sample, seed)
    by_label = train_q is not None and test_q is not None
    by_text = train is not None and test is not None
    if not (by_label or by_text or labels):
        raise InputError(
            "nothing to compare: give the training and the test qrels, or the training and the "
            "test queries, or both."
        )
    pairs = words = None
    if train is not None and test is not None:
        found = candidates(test, train, k=candidates_each, encoder=chosen)
        pairs = evidence(found, test, train, test_qrels=test_q, train_qrels=train_q)
        pairs = intent_similarity(entity_overlap(pairs, find))
        if min(len(test), len(train)) > 1:
            words = vocabulary_overlap(train.frame["text"], test.frame["text"], seed=seed)
    shared = None
    if train_q is not None and test_q is not None:
        shared = shared_labels(train_q, test_q, relevances)
    annotation = read_labels(labels) if labels else None
    return Audit(
        test_ids=_test_ids(test, test_q, annotation),
        labels=shared,
        pairs=pairs,
        annotation=annotation,
        vocabulary=words,
        train=train,
        test=test,
        train_qrels=train_q,
        test_qrels=test_q,
        threshold=threshold,
        min_shared=tuple(min_shared),
        level=level,
        seed=seed,
    )


def _sampled(
    train: Queries | None, qrels: Qrels | None, size: int, seed: int
) -> tuple[Queries | None, Qrels | None]:
    """Draw training queries, and keep their judgements."""
    ids = train.frame["query_id"] if train is not None else qrels.query_ids if qrels else None
    if ids is None or not 1 <= size <= len(ids):
        known = 0 if ids is None else len(ids)
        raise InputError(
            f"sample is {size:,}, expected 1 to {known:,}, the training queries given."
        )
    drawn = ids.sort().sample(size, seed=seed).to_frame("query_id")
    return (
        None if train is None else train.select(drawn["query_id"]),
        None
        if qrels is None
        else Qrels.trusted(qrels.frame.join(drawn, on="query_id", how="semi")),
    )


def _test_ids(
    test: Queries | None, qrels: Qrels | None, annotation: Annotation | None
) -> pl.Series:
    if test is not None:
        return test.frame["query_id"].sort()
    if qrels is not None:
        return qrels.query_ids
    assert annotation is not None
    return annotation.labels["query_id"].unique().sort()


def _qrels(given: Qrels | PathLike | None) -> Qrels | None:
    return given if given is None or isinstance(given, Qrels) else read_qrels(given)


def _queries(given: Queries | PathLike | None) -> Queries | None:
    return given if given is None or isinstance(given, Queries) else read_queries(given)
