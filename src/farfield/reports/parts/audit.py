"""How much of the test set was seen in training, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield.reports import words
from farfield.reports.blocks import Block, Explorer, Figures, Table, Words
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.rundir import RunDirectory

if TYPE_CHECKING:
    from farfield.questions.audit import Audit

__all__ = ["PART"]

_READING = (
    "The curve says how many test queries have a training query at least so similar; there is no "
    "natural threshold, and it rises with the number of training queries. Entities and intents "
    "are predicted from words unless people have labelled them, so take them as hints."
)
_PAIRS, _BY_VECTORS = 4, 2  # training queries shown of each test query, by words and by vectors
_TEXT = 1000  # letters of a query


def _of_run(run: RunDirectory) -> list[Section]:
    return _of_answer(run.audit)


def _of_answer(answer: Audit) -> list[Section]:
    blocks: list[Block] = []
    if answer.leak_curve is not None or answer.label_overlap is not None:
        alt = "Share of test queries by similarity to their nearest training query, with bands."
        blocks.append(Figures(answer.figure(), alt))
    blocks += [_overlaps(answer), *_curves(answer), *_explorer(answer)]
    findings = [
        f"{words.plural(len(answer.leaked), 'test query was', 'test queries were')} seen in "
        f"training, of {answer.queries:,}: a near-duplicate (n-gram similarity of "
        f"{answer.threshold:g} or more) or a relevant document in common. {answer.power()}"
    ]
    if answer.vocabulary is not None:
        v = answer.vocabulary
        findings.append(
            f"Words in common: weighted Jaccard {v.jaccard:.3f} (± {v.sd:.3f}), {v.ratio:.0%} of "
            "what two samples of one side reach."
        )
    title = "How much of the test set was seen in training?"
    return [Section("audit", title, reading=_READING, findings=findings, blocks=blocks)]


def _overlaps(answer: Audit) -> Table:
    """All shares in one table: labels, queries, entities, intents."""
    known = [
        ("queries", answer.query_overlap),
        ("entities", answer.entity_overlap),
        ("intents", answer.intent_overlap),
    ]
    if answer.label_overlap is not None:
        said = pl.format("relevance >= {}, {} shared or more", "relevance", "min_shared")
        known.insert(0, ("relevant documents", answer.label_overlap.with_columns(overlap=said)))
    parts = []
    for kind, frame in known:
        if frame is not None:
            source = f" ({frame['source'][0]})" if "source" in frame.columns else ""
            named = pl.lit(kind + source).alias("kind")
            shares = pl.col("share", "low", "high").cast(pl.Float64)
            parts.append(frame.select(named, "overlap", shares, "queries"))
    return Table("overlap", "What test queries share with training", pl.concat(parts))


def _curves(answer: Audit) -> list[Block]:
    if answer.leak_curve is None:
        return []
    return [
        Table(
            "leak-curve",
            "Share of test queries with a training query at least so similar",
            answer.leak_curve,
            labels={"threshold": "similarity at least"},
        )
    ]


def _explorer(answer: Audit) -> list[Block]:
    """Every test query, its nearest training queries, and the evidence."""
    if answer.pairs is None or not len(answer.pairs):
        return []
    pairs = answer.pairs.with_columns(pl.col("text", "train_text").str.head(_TEXT))
    best = pl.col("ngram").fill_null(0.0).max().alias("similarity")
    queries = (
        pairs.group_by("query_id", maintain_order=True)
        .agg(
            pl.col("text").first(),
            best,
            pl.col("cosine").max(),
            pl.col("exact").any(),
        )
        .with_columns(seen=pl.col("query_id").is_in(answer.leaked.implode()))
    )
    if answer.labels is not None and len(answer.labels):
        shared = answer.labels.filter(pl.col("relevance") == pl.col("relevance").min())
        queries = queries.join(
            shared.select("query_id", shared_labels="shared"), on="query_id", how="left"
        )
    queries = queries.sort("similarity", "query_id", descending=[True, False])
    near = pairs.with_row_index("at")
    by_vectors = near.sort("cosine", descending=True, nulls_last=True)
    kept = pl.concat(
        [
            near.group_by("query_id", maintain_order=True).head(_PAIRS),
            by_vectors.group_by("query_id", maintain_order=True).head(_BY_VECTORS),
        ]
    ).unique("at")
    shown = [
        "train_text",
        "train_id",
        "ngram",
        "cosine",
        "exact",
        "entity",
        "intent",
        "shared_terms",
        "shared_passages",
    ]
    evidence = Table(
        "leaks",
        "Its nearest training queries",
        kept.sort("at").select("query_id", *shown, "bm25"),
        shown=shown,
        labels={"train_text": "training query", "train_id": "id"},
    )
    listed = Table(
        "test-queries",
        "Test queries",
        queries,
        labels={"query_id": "test query", "similarity": "n-gram similarity"},
    )
    return [
        Words(
            f"Of each test query the {_PAIRS} nearest training queries by words are shown, and the "
            f"{_BY_VECTORS} nearest by vectors. Shared passages are relevant to both."
        ),
        Explorer("Leak explorer: pick a test query", listed, [evidence]),
    ]


PART = Part(order=10, answer="Audit", of_answer=_of_answer, of_run=_of_run)
