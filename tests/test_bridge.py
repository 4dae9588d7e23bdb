"""Sources that vouch for one another: by hand, by brute force, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from farfield import allocations
from farfield.errors import InputError
from farfield.questions._bridge import DocumentVectors, bridge, document_vectors
from farfield.questions._sources import search_sources
from farfield.tables import Corpus, Queries, Run


def vectors(rows: dict[str, list[float]]) -> DocumentVectors:
    values = np.array(list(rows.values()), dtype=np.float64)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    values = np.divide(values, lengths, out=values, where=lengths > 0)
    return DocumentVectors(pl.Series(list(rows)), values.astype(np.float32))


def test_by_hand():
    # Two results each; lists so short are their own tails: means of (s - last) over all but the
    # last, 1.0 in a and 3.0 in b, so that b = 2.
    runs = {
        "a": Run({"q": {"a1": 2.0, "a2": 1.0}}, name="a"),
        "b": Run({"q": {"b1": 4.0, "b2": 1.0}}, name="b"),
    }
    held = vectors({"a1": [1, 0], "a2": [0, 1], "b1": [0, 1], "b2": [1, 0]})
    assert allocations.gather(runs).tails.tolist() == [1.0, 3.0]
    one, two = (np.exp(s) / (np.exp(s[0]) + np.exp(s[1])) for s in ([1.0, 0.5], [2.0, 0.5]))
    found = bridge(runs, held, weight=1.0)
    # a2 resembles b1, which is b's best by far: it passes a1.
    assert found["a"].doc_ids.to_list() == ["a2", "a1"]
    assert found["a"].scores == pytest.approx([1.0 + 2.0 * two[0], 2.0 + 2.0 * two[1]])
    assert found["b"].doc_ids.to_list() == ["b1", "b2"]
    assert found["b"].scores == pytest.approx([4.0 + 2.0 * one[1], 1.0 + 2.0 * one[0]])
    alone = bridge(runs, held, weight=1.0, top=1)
    assert alone["a"].scores == pytest.approx([1.0 + 2.0, 2.0])


@pytest.mark.parametrize("sources", [2, 3, 7])
def test_as_one_would_write_it_down(sources, monkeypatch):
    monkeypatch.setattr("farfield.questions._bridge._TOGETHER", 3)
    rng = np.random.default_rng(sources)
    rows, runs = {}, {}
    for source in "abcdefg"[:sources]:
        ids = [f"{source}{at}" for at in range(40)]
        rows |= {doc: rng.normal(size=6).tolist() for doc in ids}
        found = {
            f"q{query}": {
                doc: float(rng.normal())
                for doc in rng.choice(ids, rng.integers(0, 25), replace=False)
            }
            for query in range(8)
        }
        rows[f"{source}0"] = [0.0] * 6  # of which nothing is known
        runs[source] = Run({q: d for q, d in found.items() if d}, name=source)
    held = vectors(rows)
    of = dict(zip(held.doc_ids, held.values.astype(np.float64), strict=True))
    scale = float(allocations.gather(runs).tails.mean())
    expected: dict[tuple[str, str], float] = {}
    results = {source: run.to_dict() for source, run in runs.items()}
    for source, by_query in results.items():
        for query, documents in by_query.items():
            for doc, score in documents.items():
                raised = 0.0
                for other in results:
                    best = list(results[other].get(query, {}).items())[:5]
                    if other == source or not best:
                        continue
                    shares = np.exp(np.array([s for _, s in best]) / scale)
                    shares /= shares.sum()
                    cosines = [of[doc] @ of[near] for near, _ in best]
                    raised += float(shares @ cosines) / (sources - 1)
                expected[query, doc] = score + 3.0 * scale * raised
    for source, run in bridge(runs, held, weight=3.0, top=5).items():
        assert run.name == source
        given = {(q, d): s for q, d, s, _ in run.frame.iter_rows()}
        wanted = {key: value for key, value in expected.items() if key[1].startswith(source)}
        assert given == pytest.approx(wanted, abs=1e-6)


def test_without_weight_nothing_changes():
    corpus = Corpus(
        {
            "doc_id": ["a1", "a2", "b1", "b2"],
            "text": ["red lamp", "blue lamp", "lamp red light", "blue light lamp"],
            "source": ["a", "a", "b", "b"],
        }
    )
    queries = Queries({"query_id": ["p", "q"], "text": ["red lamp", "blue"]})
    runs = search_sources(corpus, queries, "bm25()")
    held = document_vectors(corpus, "lsa(dimensions=2)")
    assert held.values.shape[0] == 4
    same = bridge(runs, held, weight=0.0)
    assert {name: run.frame.rows() for name, run in same.items()} == {
        name: run.frame.cast({"query_id": pl.String}).rows() for name, run in runs.items()
    }


def test_mistakes_are_named():
    runs = {name: Run({"q": {f"{name}1": 1.0}}, name=name) for name in "ab"}
    held = vectors({"a1": [1.0]})
    with pytest.raises(InputError, match="'b1' of 'b' has no vector"):
        bridge(runs, held)
    with pytest.raises(InputError, match="weight is -1"):
        bridge(runs, held, weight=-1)
    with pytest.raises(InputError, match="top is 0"):
        bridge(runs, held, top=0)
    with pytest.raises(InputError, match="at least 2"):
        bridge({"a": runs["a"]}, held)
