"""One run for each source: every retriever, shared and own statistics, what is refused."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest

import farfield as ff
from farfield import retrievers
from farfield.collection import Collection
from farfield.errors import InputError
from farfield.questions._sources import search_sources, sources_of
from farfield.retrievers import Index, Retriever
from farfield.tables import Corpus, Qrels, Queries, Run

SPECS = [
    "bm25()",
    "bm25(k1=1.2, b=0.75, variant='terrier')",
    "bm25(variant='atire')",
    "rm3(bm25())",
    "bo1(bm25(), docs=5)",
]


@pytest.fixture(scope="module")
def world() -> Collection:
    return ff.lab.make(passages=400, train=40, test=60, seed=0).collection


def together(runs: dict[str, Run]) -> Run:
    """One run of those of all sources."""
    return Run(pl.concat(run.frame for run in runs.values()).cast({"query_id": pl.String}))


def rows(run: Run) -> pl.DataFrame:
    return run.frame.cast({"query_id": pl.String}).sort("query_id", maintain_order=True)


@pytest.mark.parametrize("spec", SPECS)
def test_sources_hold_what_the_whole_index_finds(spec, world):
    source = dict(world.corpus.frame.select("doc_id", "source").iter_rows())
    runs = search_sources(world, world.queries, spec, depth=20)
    assert list(runs) == sorted(set(source.values()))
    assert [run.name for run in runs.values()] == list(runs)
    for name, run in runs.items():
        assert {source[doc] for doc in run.doc_ids} == {name}
        assert max(np.diff(run.bounds)) == 20
    # The best of all sources together are the best of the whole index, to the last digit.
    whole = retrievers.parse(spec).index(world.corpus)
    assert rows(together(runs).head(20)).equals(rows(whole.search(world.queries, 20)))
    # And a source has the best of its own of the whole ranking.
    everything = whole.search(world.queries, 400).frame
    for name, run in runs.items():
        of_source = [source[doc] == name for doc in everything["doc_id"]]
        assert rows(run).equals(rows(Run(everything.filter(of_source), ties="file").head(20)))


def test_own_statistics_are_those_of_a_source_alone(world):
    runs = search_sources(world, world.queries, "bm25()", depth=20, statistics="own")
    pooled = search_sources(world, world.queries, "bm25()", depth=20)
    for name, run in runs.items():
        alone = Corpus(world.corpus.frame.filter(pl.col("source") == name))
        expected = retrievers.parse("bm25()").index(alone).search(world.queries, 20)
        assert rows(run).equals(rows(expected))
        assert not rows(run).equals(rows(pooled[name]))


def test_rarity_of_words_by_hand():
    # "cat": 3 of 4 documents have it, but only 1 of 2 in b. All have one word, so lengths are 1.
    corpus = Corpus(
        {
            "doc_id": ["a1", "a2", "b1", "b2"],
            "text": ["cat", "cat", "cat", "dog"],
            "source": ["a", "a", "b", "b"],
        }
    )
    queries = Queries({"query_id": ["q"], "text": ["cat"]})

    def score(documents, df):
        return np.log(1 + (documents - df + 0.5) / (df + 0.5)) / 1.9

    pooled = search_sources(corpus, queries, "bm25()")
    assert pooled["a"].scores == pytest.approx([score(4, 3)] * 2)
    assert pooled["b"].scores == pytest.approx([score(4, 3)])
    own = search_sources(corpus, queries, "bm25()", statistics="own")
    assert own["a"].scores == pytest.approx([score(2, 2)] * 2)
    assert own["b"].scores == pytest.approx([score(2, 1)])
    assert pooled["a"].doc_ids.to_list() == ["a2", "a1"]  # equals by id, descending


def test_hybrids_rank_all_sources_together(world):
    spec = "hybrid(rrf(k=60), bm25(), bm25(k1=3.0), depth=60)"
    runs = search_sources(world, world.queries, spec, depth=20)
    whole = retrievers.parse(spec).index(world.corpus).search(world.queries, 10)
    # Each of the three sources is asked for a third of the depth: the best are the same.
    best = together(runs).head(10)
    assert rows(best.head(3)).equals(rows(whole.head(3)))
    assert len({score for run in runs.values() for score in run.head(1).scores}) > 3


class Alphabet(Index):
    """Documents by the alphabet, whatever is asked."""

    def __init__(self, retriever: Retriever, corpus: Corpus) -> None:
        self.retriever, self.ids = retriever, corpus.frame["doc_id"].sort(descending=True)

    def __len__(self) -> int:
        return len(self.ids)

    def _search(self, queries, k, name):
        rows = [
            (query, doc, float(-at))
            for query in queries.frame["query_id"]
            for at, doc in enumerate(self.ids.head(k))
        ]
        return Run(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"), name=name)


def test_a_retriever_of_ones_own_needs_no_more_than_search(world):
    runs = Alphabet(retrievers.parse("bm25()"), world.corpus).search_parts(
        world.queries,
        {name: part.frame["doc_id"] for name, part in sources_of(world).items()},
        3,
    )
    for name, part in sources_of(world).items():
        expected = part.frame["doc_id"].sort(descending=True).head(3).to_list()
        assert runs[name].doc_ids.to_list() == expected * len(world.queries)


def test_a_source_without_hits_has_an_empty_run():
    corpus = Corpus({"doc_id": ["1", "2"], "text": ["cat", "dog"], "source": ["a", "b"]})
    runs = search_sources(corpus, Queries({"query_id": ["q"], "text": ["cat"]}), "bm25()")
    assert (len(runs["a"]), len(runs["b"])) == (1, 0)


def test_sources_may_be_told_by_queries():
    corpus = Corpus({"doc_id": ["1", "2", "3"], "text": ["cat", "dog", "cat dog"]})
    queries = Queries(
        {"query_id": ["p", "q", "r"], "text": ["cat"] * 3, "section": ["x", "x", "y"]}
    )
    qrels = {"query_id": ["p", "q", "r", "r"], "doc_id": ["1", "3", "2", "3"]}

    def judged(*relevance: int) -> Collection:
        judgements = {"all": Qrels({**qrels, "relevance": relevance})}
        return Collection("c", corpus=corpus, queries=queries, qrels=judgements)

    one = judged(1, 1, 1, 0)
    parts = sources_of(one, "section")
    assert {name: part.frame["doc_id"].to_list() for name, part in parts.items()} == {
        "x": ["1", "3"],
        "y": ["2"],
    }
    assert search_sources(one, queries, "bm25()", column="section")["y"].doc_ids.to_list() == []
    with pytest.raises(InputError, match=r"'3' has no section, or more than one \(1 of 3"):
        sources_of(judged(1, 1, 1, 1), "section")


def test_mistakes_are_named(world):
    with pytest.raises(InputError, match="no.* column 'sourc'.*mean 'source'"):
        search_sources(world, world.queries, "bm25()", column="sourc")
    with pytest.raises(InputError, match="statistics='poled'.*mean 'pooled'"):
        search_sources(world, world.queries, "bm25()", statistics="poled")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="depth|k is 0"):
        search_sources(world, world.queries, "bm25()", depth=0)
    alone = Corpus(world.corpus.frame.with_columns(source=pl.lit("a")))
    with pytest.raises(InputError, match="all 400 documents are of one source"):
        search_sources(alone, world.queries, "bm25()")
    with pytest.raises(InputError, match="'nobody' is not in the index"):
        retrievers.parse("bm25()").index(world.corpus).search_parts(
            world.queries, {"a": pl.Series(["nobody"])}, 3
        )


def test_many_queries_and_sources_take_seconds():
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(3000)])
    texts = [" ".join(words[rng.zipf(1.3, 30) % 3000]) for _ in range(4500)]
    ids = [f"d{number}" for number in range(4500)]
    source = [f"s{number % 9}" for number in range(4500)]
    corpus = Corpus({"doc_id": ids, "text": texts, "source": source})
    asked = [" ".join(rng.choice(words, 4)) for _ in range(7000)]
    queries = Queries({"query_id": [f"q{number}" for number in range(7000)], "text": asked})
    start = time.process_time()
    runs = search_sources(corpus, queries, "bm25()", depth=100)
    assert len(runs) == 9
    assert time.process_time() - start < 60  # about 4 on a quiet core
