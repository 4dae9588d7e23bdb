"""Tables are checked when made and trusted afterwards."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield.collection import Card, Collection
from farfield.errors import FarfieldWarning, InputError, TableError
from farfield.tables import Allocation, Corpus, Partition, PerQuery, Qrels, Queries, Run

QRELS = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "relevance": [1, 0]}


def test_a_missing_column_is_named_with_what_was_found():
    with pytest.raises(
        TableError, match=r"no column 'relevance'.*Found query_id, doc_id, Relevance"
    ):
        Qrels({"query_id": ["q"], "doc_id": ["d"], "Relevance": [1]})


def test_an_unknown_column_is_refused():
    with pytest.raises(TableError, match="unknown column 'iteration'"):
        Qrels({**QRELS, "iteration": [0, 0]})


def test_other_columns_ride_along_with_queries_and_documents():
    queries = Queries({"query_id": ["1"], "topic": ["birds"], "text": ["where do swifts sleep"]})
    assert queries.frame.columns == ["query_id", "text", "topic"]
    assert Corpus({"doc_id": ["1"], "text": [""], "title": ["Swift"]}).frame["title"][0] == "Swift"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relevance": [1, None]}, "row 1: relevance is missing"),
        ({"doc_id": ["a", None]}, "row 1: doc_id is missing"),
        ({"doc_id": ["a", ""]}, "row 1: doc_id is empty"),
        ({"relevance": [1.0, 0.5]}, "row 1: relevance 0.5 is not a whole number"),
        ({"relevance": ["1", "0"]}, "column 'relevance' holds String, expected Int64"),
        ({"doc_id": [1.5, 2.5]}, "column 'doc_id' holds Float64, expected String"),
    ],
)
def test_values_that_cannot_be_used_are_named(change, message):
    with pytest.raises(TableError, match=message):
        Qrels({**QRELS, **change})


def test_whole_numbers_are_taken_as_ids_and_booleans_as_relevance():
    qrels = Qrels({"query_id": [7], "doc_id": [12], "relevance": [True]})
    assert qrels.frame.rows() == [("7", "12", 1)]


def test_nan_scores_are_refused():
    with pytest.raises(TableError, match="row 1: score is NaN"):
        Run({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, float("nan")]})


def test_a_key_given_twice_names_both_rows():
    with pytest.raises(TableError, match=r"row 2: doc_id 'a' appears more than once.*row 0"):
        Corpus({"doc_id": ["a", "b", "a"], "text": ["x", "y", "z"]})


def test_the_same_judgement_twice_is_said_and_counted_once():
    twice = {"query_id": ["q", "q"], "doc_id": ["a", "a"], "relevance": [1, 1]}
    with pytest.warns(FarfieldWarning, match="1 judgement is repeated"):
        assert len(Qrels(twice)) == 1


def test_two_different_judgements_are_a_fault():
    rows = {"query_id": ["q", "p", "q"], "doc_id": ["a", "a", "a"], "relevance": [1, 1, 2]}
    with pytest.raises(TableError, match=r"row 2: .*'a' is judged 2.*but 1 before.*row 0"):
        Qrels(rows)


def test_dictionaries_go_in_and_out():
    nested = {"q": {"a": 1, "b": 0}, "p": {"a": 2}}
    assert Qrels(nested).to_dict() == nested
    scores = {"q": {"b": 2.0, "a": 1.0}}
    assert Run(scores).to_dict() == scores


@pytest.mark.parametrize(
    "data", [{"q": {"a": "high"}}, {"q": {"a": 1, "b": "x"}}, 17, [[1], [2, 3]]]
)
def test_what_cannot_be_a_table_is_an_input_error(data):
    with pytest.raises(TableError):
        Run(data)


def test_empty_tables_are_tables():
    assert len(Run({})) == 0
    assert len(Qrels({})) == 0


def test_a_rank_replaces_a_score_only_where_there_is_none():
    rows = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "rank": [2, 1]}
    assert Run(rows).doc_ids.to_list() == ["b", "a"]
    assert Run({**rows, "score": [9.0, 1.0]}).doc_ids.to_list() == ["a", "b"]


def test_roles_and_budgets_are_checked():
    with pytest.raises(TableError, match="role 'test' is not one of train, near, far"):
        Partition({"fold": ["1"], "query_id": ["q"], "role": ["test"]})
    with pytest.raises(TableError, match="budget is negative"):
        Allocation({"query_id": ["q"], "source": ["a"], "budget": [-1]})
    value = {"query_id": ["q"], "system": ["s"], "measure": ["RR"], "value": [float("nan")]}
    with pytest.raises(TableError, match="value is NaN"):
        PerQuery(value)


rows = st.lists(
    st.tuples(st.text(min_size=1, max_size=3), st.text(min_size=1, max_size=3), st.integers(0, 3)),
    unique_by=lambda row: row[:2],
    min_size=1,
)


@given(rows, st.randoms())
def test_a_fingerprint_names_the_content_and_not_the_order(given_rows, random):
    def qrels(some):
        return Qrels(pl.DataFrame(some, schema=["query_id", "doc_id", "relevance"], orient="row"))

    shuffled = list(given_rows)
    random.shuffle(shuffled)
    assert qrels(given_rows) == qrels(shuffled)
    q, d, r = shuffled[0]
    assert qrels(given_rows) != qrels([(q, d, r + 1), *shuffled[1:]])


def test_fingerprints_stay_the_same_between_versions():
    # Caches and manifests hold these; a change must be deliberate.
    assert Qrels(QRELS).fingerprint == "5075cd27cafc0640d282a0a46681f02c"
    assert Run({"q": {"a": 1.5}}).fingerprint == "cdabc79f41a705ce7b624bf7d86f5e2f"


def test_columns_do_not_run_into_one_another():
    one = Queries({"query_id": ["1", "2"], "text": ["ab", "c"]})
    other = Queries({"query_id": ["1", "2"], "text": ["a", "bc"]})
    assert one.fingerprint != other.fingerprint


def test_head_and_without_self():
    run = Run({"q": {"q": 3.0, "a": 2.0, "b": 2.0}, "p": {"a": 1.0}})
    assert run.head(2).to_dict() == {"q": {"q": 3.0, "b": 2.0}, "p": {"a": 1.0}}
    assert run.without_self().to_dict() == {"q": {"b": 2.0, "a": 2.0}, "p": {"a": 1.0}}
    assert run.tied == 1
    assert run.head(2).tied == 0


def test_a_collection_makes_its_parts_when_asked_for():
    asked = []

    def corpus():
        asked.append("corpus")
        return Corpus({"doc_id": ["a"], "text": ["x"]})

    collection = Collection(
        "tiny",
        corpus=corpus,
        queries=Queries({"query_id": ["q", "p"], "text": ["x", "y"]}),
        qrels={"test": Qrels({"q": {"a": 1}}), "train": lambda: Qrels({"p": {"z": 1}})},
        card=Card(licence="CC0"),
    )
    assert collection.queries_of("test").frame["query_id"].to_list() == ["q"]
    assert not asked
    with pytest.raises(InputError, match="'z', which is not among the 1 corpus"):
        collection.check()
    assert asked == ["corpus"]
    with pytest.raises(InputError, match="no split 'tset'. Did you mean 'test'"):
        collection.qrels["tset"]
    assert collection.card.to_dict() == {"licence": "CC0"}
    assert len(collection.fingerprint) == 32
