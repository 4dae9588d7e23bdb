"""Runs of sources from retrievers with models: the same scores as in one index."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from farfield import retrievers
from farfield.questions._sources import search_sources
from farfield.tables import Corpus, Run
from test_neural_retrievers import models, offline, world  # noqa: F401  # fixtures

SPECS = {
    "dense": "dense(model={dense!r})",
    "windows": "dense(model={dense!r}, similarity='dot', window=2, stride=1)",
    "graph": "dense(model={dense!r}, search='hnsw')",
    "colbert": "colbert(model={multi!r})",
    "splade": "splade(model={sparse!r})",
    "rerank": "rerank(bm25(), model={cross!r})",
}


@pytest.fixture(scope="module")
def labelled(world):  # noqa: F811
    """Documents of three sources; one of them has no text at all."""
    corpus, queries = world
    empty = pl.col("text").str.strip_chars() == ""
    source = pl.when(empty).then(pl.lit("c")).otherwise(pl.Series(list("ab") * 40)[: len(corpus)])
    return Corpus(corpus.frame.with_columns(title=pl.lit(None, pl.String), source=source)), queries


@pytest.mark.parametrize("kind", SPECS)
def test_sources_hold_what_the_whole_index_finds(kind, models, labelled):  # noqa: F811
    corpus, queries = labelled
    spec = SPECS[kind].format(**models)
    runs = search_sources(corpus, queries, spec, depth=15)
    assert list(runs) == ["a", "b", "c"]
    assert len(runs["c"]) == 0
    assert max(np.diff(runs["a"].bounds)) == 15
    both = Run(pl.concat(run.frame for run in runs.values()).cast({"query_id": pl.String}))
    whole = retrievers.parse(spec.replace(", search='hnsw'", "")).index(corpus)
    found = whole.search(queries, 15).frame
    expected, given = (rows.sort("query_id", "rank") for rows in (found, both.head(15).frame))
    assert given["doc_id"].to_list() == expected["doc_id"].to_list()
    exact = kind != "rerank"  # where pairs are padded together, and round together
    tolerance = 0.0 if exact else 1e-5
    assert np.abs(given["score"].to_numpy() - expected["score"].to_numpy()).max() <= tolerance


def test_statistics_make_no_difference_to_models(models, labelled):  # noqa: F811
    corpus, queries = labelled
    some = Corpus(corpus.frame.filter(pl.col("source") != "c"))
    spec = SPECS["dense"].format(**models)
    pooled = search_sources(some, queries, spec, depth=15)
    own = search_sources(some, queries, spec, depth=15, statistics="own")
    for name in pooled:
        one, other = pooled[name].frame, own[name].frame
        assert one["doc_id"].to_list() == other["doc_id"].to_list()
        assert np.allclose(one["score"], other["score"], atol=1e-3)  # halves round by the batch
