"""Complementing: who finds what alone and together, headroom, breakdowns, the command line."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farfield
from farfield import Qrels, Queries, Run, lab
from farfield.errors import InputError
from farfield.questions._groups import group

# Relevant: 1: a b c d; 2: e f. Found, alone and together:
#   a by all, b by one & two, c by one, d by nobody; e by two, f by two & three.
QRELS = Qrels({"1": {"a": 1, "b": 2, "c": 1, "d": 1, "z": 0}, "2": {"e": 1, "f": 1}})
ONE = Run({"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"x": 1.0}}, name="one")
TWO = Run({"1": {"z": 9.0, "b": 3.0, "a": 2.0}, "2": {"y": 3.0, "e": 2.0, "f": 1.0}}, name="two")
THREE = Run({"1": {"a": 1.0}, "2": {"f": 1.0}}, name="three")


def counts(answer) -> dict[str, int]:
    return dict(answer.table.select("runs", "count").iter_rows())


def test_every_set_of_three_runs_by_hand():
    answer = farfield.complement(QRELS, [ONE, TWO, THREE], ["R"])
    assert counts(answer) == {
        "one": 1,
        "two": 1,
        "three": 0,
        "one & two": 1,
        "one & three": 0,
        "two & three": 1,
        "one & two & three": 1,
        "": 1,
    }
    assert answer.relevant == 6
    assert answer.table.row(-1, named=True)["runs"] == ""
    systems = {row["system"]: row for row in answer.systems.iter_rows(named=True)}
    assert [systems[name]["found"] for name in ("one", "two", "three", "any of them")] == [
        3,
        4,
        2,
        5,
    ]
    assert [systems[name]["alone"] for name in ("one", "two", "three")] == [1, 1, 0]
    assert systems["two"]["share"] == pytest.approx(4 / 6)
    assert systems["one"]["alone_share"] == pytest.approx(1 / 6)
    # Resampled are the two queries: "one" found 3 of 4, or 0 of 2, or together 3 of 6.
    assert (systems["one"]["low"], systems["one"]["high"]) == (0.0, 0.75)


def test_relevance_and_depth_count():
    graded = farfield.complement(QRELS, [ONE, TWO], ["R"], rel=2)
    assert counts(graded) == {"one & two": 1, "one": 0, "two": 0, "": 0}
    shallow = farfield.complement(QRELS, [ONE, TWO], ["R"], depth=1)
    # Only a, as the first of "one"; the first of "two" are z and y.
    assert counts(shallow) == {"one": 1, "two": 0, "one & two": 0, "": 5}
    # The fusion and the oracle see no more than that either.
    assert shallow.evaluation.summary.filter(system="oracle()")["mean"][0] == 1 / 8


docs = st.sampled_from("abcdefgh")
a_run = st.dictionaries(st.sampled_from("pqrs"), st.dictionaries(docs, st.floats(0, 1), min_size=1))
a_qrels = st.dictionaries(
    st.sampled_from("pqr"), st.dictionaries(docs, st.integers(0, 2), min_size=1), min_size=1
).filter(lambda q: any(r > 0 for docs in q.values() for r in docs.values()))


@settings(max_examples=40)
@given(a_qrels, st.lists(a_run, min_size=2, max_size=5), st.integers(1, 5))
def test_equal_to_sets_in_plain_python(qrels, runs, depth):
    made = [Run(run, name=f"r{i}") for i, run in enumerate(runs)]
    answer = farfield.complement(Qrels(qrels), made, ["R"], depth=depth, resamples=10)
    heads = [set(run.head(depth).frame.select("query_id", "doc_id").iter_rows()) for run in made]
    expected: dict[str, int] = {}
    for query, judged in qrels.items():
        for doc, relevance in judged.items():
            if relevance > 0:
                who = [f"r{i}" for i, head in enumerate(heads) if (query, doc) in head]
                expected[" & ".join(who)] = expected.get(" & ".join(who), 0) + 1
    found = {runs: count for runs, count in counts(answer).items() if count}
    assert found == expected
    assert answer.found.sum() == answer.relevant == sum(expected.values())
    json.dumps(answer.to_dict(), allow_nan=False)


# -- headroom -----------------------------------------------------------------------------------


def test_the_share_of_the_headroom_by_hand():
    # RR of "one": 1 and 0, of "two": 1/2 and 1/2. The best single run is the first to have 1/2 as
    # mean, "one". The oracle has 1 and 1. Its headroom is 0 and 1.
    answer = farfield.complement(QRELS, [ONE, TWO], ["RR"], fusions=["borda()"])
    rows = {row["system"]: row for row in answer.headroom.iter_rows(named=True)}
    assert {row["best_single"] for row in rows.values()} == {"one"}
    assert rows["oracle()"]["mean"] == 1.0
    assert rows["oracle()"]["captured"] == 1.0
    # The better of the two for each query: 1 and 1/2, half of the way.
    assert rows["best run per query"]["mean"] == 0.75
    assert rows["best run per query"]["captured"] == pytest.approx(0.5)
    # Borda: 1: a 3+1, b 2+2, z 3, c 1: b before a, both relevant. 2: y 3, e 2, x 1, f 1: 1/2.
    assert rows["borda()"]["mean"] == 0.75
    assert rows["borda()"]["captured"] == pytest.approx((0 + 1 / 2) / (0 + 1))


def test_a_lower_value_is_the_better_one_where_a_measure_says_so():
    answer = farfield.complement(QRELS, [ONE, TWO], ["ASL(bound=10)"])
    rows = {row["system"]: row for row in answer.headroom.iter_rows(named=True)}
    # one: 0 0 0 10 and 10 10; two: 1 1 10 10 and 1 1. two is better: 22/8 + 1/2 against 10/8 + 5.
    assert rows["oracle()"]["best_single"] == "two"
    assert rows["oracle()"]["mean"] < rows["oracle()"]["single_mean"]
    assert rows["oracle()"]["captured"] == 1.0


def test_no_headroom_is_said():
    perfect = Run(
        {"1": {"b": 9.0, "a": 3.0, "c": 2.0, "d": 1.0}, "2": {"e": 2.0, "f": 1.0}}, name="all"
    )
    answer = farfield.complement(QRELS, [perfect, ONE], ["R", "Success@1"])
    assert answer.headroom["captured"].null_count() == len(answer.headroom)
    assert answer.to_dict()["headroom"]["R"]["by"]["rrf()"]["captured"] is None
    answer.figure()


def test_one_query_has_shares_and_no_intervals():
    answer = farfield.complement(Qrels({"1": {"a": 1, "b": 1}}), [ONE, TWO], ["R"])
    assert answer.table["share"][0] == 1.0
    assert answer.table["low"].is_nan().all()
    assert answer.to_dict()["sets"][0]["low"] is None


# -- kinds of queries ---------------------------------------------------------------------------

QUERIES = Queries(
    {
        "query_id": ["1", "2"],
        "text": ["who was Ada", "largest lake in the north of europe by area"],
        "source": ["log", None],
        "year": [2019, 2024],
    }
)


def labels(by, edges=None, queries=QUERIES):
    found = group(queries, by, edges)
    assert set(found.of.values()) == set(found.names)
    return list(found.of.values())


def test_groups_by_hand():
    assert labels("length") == ["3", "9"]
    assert labels("length", [1, 4, 8]) == ["1-3", "8+"]
    assert labels("length", [4, 6]) == ["<4", "6+"]
    assert labels("length", [0, 3, 9]) == ["3-8", "9+"]
    assert labels("content") == ["1", "5"]  # Ada; largest lake north europe area
    assert labels("wh") == ["who", "other"]
    assert labels("source") == ["log", "(none)"]
    assert labels("year") == ["2019", "2024"]
    assert labels("year", [2000, 2020]) == ["2000-2019", "2020+"]
    assert labels("year", [2019.5]) == ["<2019.5", "2019.5+"]
    long = Queries({"query_id": ["1"], "text": ["a b c d e f g h i j k l"]})
    assert labels("length", queries=long) == ["10+"]  # as in Chen et al., Table 5
    several = Queries({"query_id": ["1"], "text": ["What's  how, and WHY"]})
    assert labels("wh", queries=several) == ["what"]
    gaps = Queries({"query_id": ["1", "2"], "text": ["a", "b"], "n": [None, 3.0]})
    assert labels("n", [1, 5], queries=gaps) == ["(none)", "1-4"]


def test_the_order_of_groups():
    texts = ["why a", "b", "what c d", "e f g h"]
    queries = Queries({"query_id": list("1234"), "text": texts, "n": [10, 9, 100, 9]})
    assert group(queries, "wh").names == ("what", "why", "other")
    assert group(queries, "length").names == ("1", "2", "3", "4")
    assert group(queries, "n").names == ("9", "10", "100")


@pytest.mark.parametrize(
    ("by", "edges", "message"),
    [
        ("lenght", None, "Did you mean 'length'?"),
        ("source", [1, 2], "edges are for numbers; source holds texts"),
        ("wh", [1, 2], "edges are for numbers"),
        ("length", [4, 1], "expected numbers that rise"),
        ("length", [], "expected numbers that rise"),
    ],
)
def test_what_cannot_be_grouped_says_why(by, edges, message):
    with pytest.raises(InputError) as caught:
        group(QUERIES, by, edges)
    assert message in str(caught.value)


def test_a_column_of_many_values_asks_for_edges():
    queries = Queries({"query_id": [str(i) for i in range(99)], "text": ["x"] * 99, "n": range(99)})
    with pytest.raises(InputError, match="has 99 different values, more than 40"):
        group(queries, "n")
    assert group(queries, "n", [0, 50]).names == ("0-49", "50+")


def test_a_breakdown_by_hand():
    answer = farfield.complement(QRELS, [ONE, TWO], ["R"], queries=QUERIES, by="length")
    rows = {
        (row["group"], row["system"]): (row["mean"], row["n"])
        for row in answer.breakdown.iter_rows(named=True)
    }
    assert rows["3", "one"] == (3 / 4, 1)
    assert rows["9", "one"] == (0.0, 1)
    assert rows["9", "two"] == (1.0, 1)
    assert rows["3", "oracle()"] == (3 / 4, 1)
    assert answer.to_dict()["breakdown"]["by"] == "length"


def test_breakdowns_recover_what_the_lab_planted():
    made = lab.make(passages=400, train=600, test=150, seed=2)
    runs = {name: Run(frame, name=name) for name, frame in lab.runs(made, seed=2).items()}
    planted = made.collection.queries.frame.drop("wh").join(
        made.truth.select("query_id", "kind"), on="query_id"
    )
    chosen = {name: runs[name] for name in ("lexical", "memory")}
    answer = farfield.complement(
        made.collection.qrels["test"], chosen, ["RR"], queries=Queries(planted), by="kind"
    )
    means = {(r["group"], r["system"]): r for r in answer.breakdown.iter_rows(named=True)}
    # The memory knows the training queries: near ones it answers, new topics it does not.
    near, far = means["near_duplicate", "memory"], means["new_topic", "memory"]
    assert near["low"] > far["high"]
    assert sum(r["n"] for (_, system), r in means.items() if system == "memory") == 150
    # Lengths and wh-words are as they were planted.
    frame = made.collection.queries.frame
    words = group(made.collection.queries, "length", list(range(1, 60)))
    assert [words.of[q] for q in frame["query_id"]] == frame["words"].cast(pl.String).to_list()
    wh = group(Queries(frame.drop("wh")), "wh")
    expected = frame["wh"].replace("none", "other").to_list()
    assert [wh.of[q] for q in frame["query_id"]] == expected


# -- figures, bad input, the command line -------------------------------------------------------


def test_figures():
    two = farfield.complement(QRELS, [ONE, TWO], ["R"]).figure()
    texts = [text for trace in two.data if trace.text is not None for text in trace.text]
    # c alone in one; e and f alone in two; a and b in both.
    assert {"1", "2", "found by none of them: 1", "<b>one</b>"} <= set(texts)
    runs = [ONE, TWO, THREE, ONE.named("four")]
    upset = farfield.complement(QRELS, runs, ["R", "RR"], queries=QUERIES, by="wh").figure()
    bars = upset.data[0]
    assert sorted(bars.y, reverse=True) == list(bars.y)
    assert sum(bars.y) == 5


def test_bad_input():
    with pytest.raises(InputError, match="1 run was given, expected 2 to 60"):
        farfield.complement(QRELS, [ONE])
    with pytest.raises(InputError, match=r"'rrf\(\)' is there twice"):
        farfield.complement(QRELS, [ONE, TWO], fusions=["rrf", "rrf()"])
    with pytest.raises(InputError, match="depth is 0"):
        farfield.complement(QRELS, [ONE, TWO], depth=0)
    with pytest.raises(InputError, match="no document is judged 7 or more"):
        farfield.complement(QRELS, [ONE, TWO], rel=7)
    with pytest.raises(InputError, match="needs the queries"):
        farfield.complement(QRELS, [ONE, TWO], by="length")
    with pytest.raises(InputError, match="Say by what"):
        farfield.complement(QRELS, [ONE, TWO], queries=QUERIES)
    with pytest.raises(InputError, match="1 judged queries are not among the queries, like '2'"):
        farfield.complement(QRELS, [ONE, TWO], queries=QUERIES.select(["1"]), by="length")


@pytest.fixture
def folder(tmp_path):
    farfield.write(QRELS, tmp_path / "qrels.txt")
    for run in (ONE, TWO, THREE):
        farfield.write(run, tmp_path / f"{run.name}.trec")
    farfield.write(QUERIES, tmp_path / "queries.jsonl")
    return tmp_path


def test_the_command(farfield, folder):
    command = ("complement", "qrels.txt", "one.trec", "two.trec", "three.trec", "-m", "R")
    done = farfield(*command, "-f", "rrf()", "-f", "borda()", "--figure", "x.html", cwd=folder)
    assert (done.status, done.err) == (0, "")
    assert "6 relevant documents, found by rank 1,000" in done.out
    assert "one & two & three" in done.out
    assert "none of them" in done.out
    assert "How much of the headroom is gained?" in done.out
    assert (folder / "x.html").stat().st_size > 1000
    found = farfield(
        *command,
        "--json",
        "--queries",
        "queries.jsonl",
        "--by",
        "length",
        "--edges",
        "1,5",
        cwd=folder,
    ).json
    assert found["relevant"] == 6
    sets = {" & ".join(row["runs"]): row["count"] for row in found["sets"]}
    assert sets["two & three"] == 1
    assert found["headroom"]["R"]["best_single"] == "two"
    assert {row["group"] for row in found["breakdown"]["rows"]} == {"1-4", "5+"}


@pytest.mark.parametrize("table", ["table", "systems", "headroom", "breakdown"])
def test_every_table_can_be_written(farfield, folder, table):
    done = farfield(
        *("complement", "qrels.txt", "one.trec", "two.trec", "-m", "R", "-o", "out.csv"),
        *("--table", table, "--queries", "queries.jsonl", "--by", "wh", "--per-query", "pq.csv"),
        cwd=folder,
    )
    assert done.status == 0, done.err
    assert len(pl.read_csv(folder / "out.csv")) > 0
    assert set(pl.read_csv(folder / "pq.csv")["system"]) == {"one", "two", "rrf()", "oracle()"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one.trec", "two.trec", "--table", "tabel", "-o", "x.csv"], "Did you mean 'table'?"),
        (["one.trec", "two.trec", "--table", "breakdown", "-o", "x.csv"], "needs --by"),
        (["one.trec", "two.trec", "--by", "length"], "needs the queries"),
        (["one.trec", "two.trec", "--queries", "queries.jsonl", "--by", "len"], "no column 'len'"),
        (["one.trec", "two.trec", "--edges", "a,b"], "--edges is 'a,b', expected numbers"),
        (["one.trec", "two.trec", "-f", "rff"], "no fusion is called 'rff'"),
        (["one.trec"], "1 run was given"),
        (["one.trec", "two.trec", "--figure", "x.doc"], "stands for no figure"),
    ],
)
def test_bad_input_ends_with_a_message_and_status_2(farfield, folder, arguments, message):
    done = farfield("complement", "qrels.txt", *arguments, cwd=folder)
    assert done.status == 2
    assert done.out == ""
    assert message in done.err


def test_many_runs_are_named_in_few_words():
    from farfield.cli.complement import _called

    runs = tuple("abcdefgh")
    assert _called("", runs) == "none of them"
    assert _called("a & b & c", runs) == "a & b & c"
    assert _called("a & b & c & d", runs) == "4 of the 8 runs"
    assert _called(" & ".join("abcdef"), runs) == "all but g & h"
    assert _called(" & ".join(runs), runs) == "all 8 runs"


def test_on_trec_dl_2019_systems_complement_one_another(real_data):
    files = [
        real_data / "runs" / "dl19" / f"{name}.2019.res.gz"
        for name in ("BM25RM3", "BM25_docT5q", "ANCE")
    ]
    qrels = farfield.read_qrels(real_data / "msmarco" / "qrels.dl19-passage.txt")
    answer = farfield.complement(qrels, files, ["R@1000"])
    heads = [
        set(farfield.read_run(file).frame.select("query_id", "doc_id").iter_rows())
        for file in files
    ]
    relevant = set(qrels.relevant().frame.select("query_id", "doc_id").iter_rows())
    found = [head & relevant for head in heads]
    assert answer.relevant == len(relevant) == 4102
    systems = {row["system"]: row for row in answer.systems.iter_rows(named=True)}
    assert systems["ANCE.2019"]["found"] == len(found[2])
    assert systems["ANCE.2019"]["alone"] == len(found[2] - found[0] - found[1]) == 147
    assert systems["any of them"]["found"] == len(found[0] | found[1] | found[2])
    # Recall of the oracle is the share of relevant documents that anyone found, by query.
    captured = answer.headroom.filter(system="rrf()").row(0, named=True)
    assert 0.5 < captured["captured"] < 0.75
    assert 0 < captured["low"] < captured["captured"] < captured["high"] < 1
    assert np.isclose(answer.headroom.filter(system="oracle()")["captured"][0], 1.0)
