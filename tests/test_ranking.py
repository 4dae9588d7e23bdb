"""Ranked order: score descending, then document id descending by bytes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield import ranking
from farfield.errors import InputError, TableError
from farfield.tables import Run


def ranked(rows: list[tuple[str, str, float]], ties: str = "trec") -> list[tuple[str, str, int]]:
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    return [(q, d, r) for q, d, _, r in Run(frame, ties=ties).frame.iter_rows()]


def test_documents_are_ranked_by_score_and_queries_keep_their_order():
    rows = [("q2", "a", 1.0), ("q2", "b", 3.0), ("q1", "a", 2.0), ("q2", "c", 2.0)]
    assert ranked(rows) == [("q2", "b", 1), ("q2", "c", 2), ("q2", "a", 3), ("q1", "a", 1)]


def test_ties_go_to_the_larger_id_by_bytes():
    # "9" > "10" by bytes, and "é" (C3 A9) > "z" (7A).
    rows = [("q", "10", 1.0), ("q", "9", 1.0), ("q", "z", 1.0), ("q", "é", 1.0)]
    assert [d for _, d, _ in ranked(rows)] == ["é", "z", "9", "10"]


def test_ties_can_keep_the_order_of_the_file():
    rows = [("q", "a", 1.0), ("q", "b", 1.0), ("q", "c", 5.0)]
    assert [d for _, d, _ in ranked(rows, "file")] == ["a", "b", "c"]


def test_trec9_compares_in_single_precision():
    # 1 + 1e-9 is 1 in single precision, so "b" and "a" tie there and the larger id wins.
    rows = [("q", "a", 1.0 + 1e-9), ("q", "b", 1.0)]
    assert [d for _, d, _ in ranked(rows, "trec")] == ["a", "b"]
    assert [d for _, d, _ in ranked(rows, "trec9")] == ["b", "a"]


def test_minus_zero_ties_with_zero():
    rows = [("q", "a", 0.0), ("q", "b", -0.0)]
    assert [d for _, d, _ in ranked(rows)] == ["b", "a"]
    assert Run(pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")).tied == 1


def test_infinities_are_scores():
    rows = [("q", "a", float("-inf")), ("q", "b", 0.0), ("q", "c", float("inf"))]
    assert [d for _, d, _ in ranked(rows)] == ["c", "b", "a"]


def test_unknown_rule_is_refused_with_a_suggestion():
    with pytest.raises(InputError, match="'trec9'"):
        Run({"q": {"a": 1.0}}, ties="trec8")


def test_a_duplicate_names_both_rows():
    rows = [("q", "a", 3.0), ("p", "a", 3.0), ("q", "b", 2.0), ("q", "a", 1.0)]
    with pytest.raises(TableError, match="row 3.*'a' appears twice.*first in row 0"):
        ranked(rows)


def test_nothing_given_is_changed():
    frame = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    before = frame.clone()
    Run(frame).frame  # noqa: B018 (made when asked for)
    assert frame.equals(before)


def reference(rows: list[tuple[str, str, float]]) -> list[tuple[str, str, int]]:
    """The rule in plain Python."""
    order: dict[str, list[tuple[str, float]]] = {}
    for query, doc, score in rows:
        order.setdefault(query, []).append((doc, score))
    result = []
    for query, docs in order.items():
        docs.sort(key=lambda pair: pair[0].encode(), reverse=True)
        docs.sort(key=lambda pair: -pair[1])
        result += [(query, doc, at) for at, (doc, _) in enumerate(docs, 1)]
    return result


@given(
    st.lists(
        st.tuples(
            st.sampled_from("pqr"),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=3),
            st.sampled_from([-1.0, -0.0, 0.0, 0.5, 2.0, float("inf")]),
        ),
        unique_by=lambda row: row[:2],
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([1, 3, 131_072]),
)
def test_order_is_that_of_the_rule_whatever_the_blocks(rows, block):
    kept = ranking._BLOCK
    ranking._BLOCK = block
    try:
        assert ranked(rows) == reference(rows)
    finally:
        ranking._BLOCK = kept


@given(st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("abcdef")), max_size=25))
def test_duplicates_are_found_exactly_where_there_are_some(pairs):
    frame = pl.DataFrame(
        {"query_id": [q for q, _ in pairs], "doc_id": [d for _, d in pairs], "score": 1.0},
        schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64},
    )
    again = [i for i, pair in enumerate(pairs) if pair in pairs[:i]]
    if not again:
        Run(frame)
        return
    with pytest.raises(TableError) as caught:
        Run(frame)
    assert caught.value.row == again[0]
    assert caught.value.first_row == pairs.index(pairs[again[0]])


def test_hashes_that_meet_by_chance_are_no_duplicates(monkeypatch):
    """All hashes equal: every pair has to be told apart by its strings."""
    monkeypatch.setattr(pl.Series, "hash", lambda self: pl.Series([7] * len(self), dtype=pl.UInt64))
    Run({"q": {"a": 2.0, "b": 1.0}})
    frame = {"query_id": ["q", "q"], "doc_id": ["a", "a"], "score": [2.0, 1.0]}
    with pytest.raises(TableError, match="appears twice"):
        Run(frame)


@pytest.mark.parametrize("shuffled", [False, True])
def test_places_are_the_inverse_of_order(shuffled):
    rng = np.random.default_rng(3)
    queries = np.repeat(["p", "q", "r"], 20)
    docs = np.tile([f"d{i}" for i in range(20)], 3)
    scores = rng.integers(0, 6, 60).astype(float)
    rows = rng.permutation(60) if shuffled else np.arange(60)
    found = ranking.rank_rows(
        pl.Series(queries[rows]), pl.Series(docs[rows]), pl.Series(scores[rows])
    )
    order = found.order()
    assert sorted(order) == list(range(60))
    assert found.places_of(order).tolist() == list(range(60))
