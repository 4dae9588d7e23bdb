"""Diagnosis: where queries are placed, drops by hand, order of systems, the lab's truth."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

import farfield
from farfield import Qrels, Queries, Run, lab
from farfield.errors import FarfieldWarning, InputError
from farfield.questions.diagnose import OBSERVATIONAL, diagnose

TRAIN = Queries(
    {
        "query_id": ["t1", "t2", "t3"],
        "text": ["How tall is Mount Elbrus?", "red deer of the northern moors", "boil an egg"],
    }
)
TEST = Queries(
    {
        "query_id": ["a", "b", "c", "d", "e"],
        "text": [
            "how tall is  mount elbrus",  # exact, but for case and punctuation
            "red deers of the northern moors",  # a letter more
            "cooking time breakfast",  # shares a passage with t3
            "deer in winter",  # a word in common
            "zzz",  # nothing in common
        ],
    }
)
TRAIN_QRELS = Qrels({"t1": {"p1": 1}, "t2": {"p2": 1}, "t3": {"p3": 1, "p0": 0}})
QRELS = Qrels(
    {"a": {"p9": 1}, "b": {"p8": 1}, "c": {"p3": 2, "p7": 1}, "d": {"p0": 1}, "e": {"p6": 1}}
)
RUN = Run({q: {"p9": 1.0} for q in "abcde"}, name="one")


def strata(**options) -> dict[str, str]:
    given = {"queries": TEST, "train_queries": TRAIN, "train_qrels": TRAIN_QRELS, **options}
    answer = diagnose(QRELS, RUN, "P@1", **given)
    return dict(answer.placement.select("query_id", "stratum").rows())


# -- placing --------------------------------------------------------------------------------------


def test_every_query_has_its_place():
    assert strata(bins=2) == {
        "a": "exact",
        "b": "near_duplicate",
        "c": "shared_label",
        "d": "similarity_1",  # p0 is judged in training, as not relevant
        "e": "similarity_2",
    }


def test_places_say_why():
    answer = diagnose(
        QRELS, RUN, "P@1", queries=TEST, train_queries=TRAIN, train_qrels=TRAIN_QRELS, bins=2
    )
    found = {row.pop("query_id"): row for row in answer.placement.iter_rows(named=True)}
    assert (found["a"]["similarity"], found["a"]["train_id"]) == (1.0, "t1")
    # Words: deer|deers differ, 5 of 7 are shared; letters: more.
    assert 0.75 <= found["b"]["similarity"] < 1
    assert found["b"]["train_id"] == "t2"
    assert found["c"]["shared"] == 1
    assert (found["e"]["similarity"], found["e"]["train_id"]) == (0.0, None)
    table = answer.places.to_dicts()
    assert [row["queries"] for row in table] == [1, 1, 1, 1, 1]
    assert table[-1]["similarity_high"] == 0.0


def test_thresholds_move_queries():
    assert strata(threshold=0.99)["b"] == "similarity_1"
    assert strata(relevance=2)["c"] == "shared_label"
    assert strata(relevance=3)["c"] != "shared_label"
    assert strata(min_shared=2)["c"] != "shared_label"


def test_without_training_judgements_there_are_no_shared_labels():
    assert strata(train_qrels=None)["c"] not in ("shared_label", "exact", "near_duplicate")


def test_one_bin_and_more_bins_than_queries():
    assert strata(bins=1)["d"] == strata(bins=1)["e"] == "similarity_1"
    assert strata(bins=50) == strata(bins=2)


def test_equal_similarities_share_a_bin():
    many = Queries({"query_id": list("abcdefgh"), "text": ["xyz"] * 6 + ["egg", "egg, an boil"]})
    qrels = Qrels({q: {"p": 1} for q in "abcdefgh"})
    answer = diagnose(qrels, RUN, "P@1", queries=many, train_queries=TRAIN, bins=4, threshold=1.0)
    placed = dict(answer.placement.select("query_id", "stratum").rows())
    assert placed["h"] == "near_duplicate"  # the same words in another order
    assert placed["g"] == "similarity_1"
    assert {placed[q] for q in "abcdef"} == {"similarity_2"}


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5]), min_size=1, max_size=30), st.integers(1, 6))
@settings(max_examples=50)
def test_bins_keep_the_order_of_similarities(similarities, bins):
    from farfield.questions._placing import _binned

    found = pl.DataFrame(
        {
            "similarity": similarities,
            "contact": pl.Series([None] * len(similarities), dtype=pl.String),
        }
    )
    names = found.select(stratum=_binned(bins))["stratum"].str.strip_prefix("similarity_")
    number = names.cast(pl.Int64).to_list()
    assert set(number) == set(range(1, max(number) + 1))  # no number is left out
    assert max(number) <= bins
    for s, n in zip(similarities, number, strict=True):
        for other, m in zip(similarities, number, strict=True):
            assert (s == other) <= (n == m)
            assert (s > other) <= (n <= m)


def test_one_file_for_both_needs_the_training_judgements():
    both = Queries(pl.concat([TEST.frame, TRAIN.frame]))
    with pytest.raises(InputError, match="one file holds both"):
        strata(queries=both, train_queries=both, train_qrels=None)
    assert strata(queries=both, train_queries=both, bins=2) == strata(bins=2)


def test_training_queries_without_text_are_noted():
    with pytest.warns(FarfieldWarning, match="1 of 3 queries judged in training have no text"):
        strata(train_queries=Queries(TRAIN.frame.head(2)))
    other = Queries({"query_id": ["x"], "text": ["y"]})
    with pytest.raises(InputError, match="none of the 3 queries judged in training"):
        strata(train_queries=other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": Queries(TEST.frame.head(3))}, "lack the judged query 'd' \\(2 of 5"),
        ({"queries": None}, "give --queries and --train-queries"),
        ({"train_queries": None}, "give --queries and --train-queries"),
        ({"threshold": 0.0}, "threshold is 0.0"),
        ({"bins": 0}, "bins is 0"),
        ({"relevance": 0}, "relevance is 0"),
        ({"min_shared": 0}, "min_shared is 0"),
        ({"baseline": "two"}, "the baseline 'two' is not among the runs"),
        ({"near": ["exakt"]}, "Did you mean 'exact'"),
        ({"near": ["exact"], "far": ["exact"]}, "'exact' is near and far"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        strata(**options)


# -- strata that are given --------------------------------------------------------------------

PLACED = {"a": "near", "b": "near", "c": "odd", "d": "far", "e": "far"}


def by_hand(runs=RUN, measure="P@1", **options):
    return diagnose(QRELS, runs, measure, **{"strata": PLACED, **options})


def test_strata_called_near_and_far_are():
    answer = by_hand()
    assert (answer.strata, answer.near, answer.far) == (("near", "odd", "far"), ("near",), ("far",))
    assert answer.places["group"].to_list() == ["near", "between", "far"]
    assert answer.places["similarity_low"].to_list() == [None] * 3


def test_other_names_must_be_called_near_or_far():
    names = {q: s.upper() for q, s in PLACED.items()}
    with pytest.raises(InputError, match="which of the strata FAR, NEAR, ODD are near"):
        by_hand(strata=names)
    answer = by_hand(strata=names, near=["NEAR"], far=["FAR", "ODD"])
    assert answer.strata == ("NEAR", "FAR", "ODD")
    with pytest.raises(InputError, match="the strata lack the judged query 'e'"):
        by_hand(strata=dict.fromkeys("abcd", "near"))


@pytest.mark.parametrize("column", ["stratum", "kind", "role"])
def test_strata_from_a_file(tmp_path, column):
    rows = [{"qid": q, column: s, "other": "x"} for q, s in PLACED.items()]
    pl.DataFrame(rows).write_csv(tmp_path / "strata.csv")
    assert by_hand(strata=tmp_path / "strata.csv").placement.equals(by_hand().placement)


def test_near_is_widened_while_it_holds_fewer_than_ten():
    from farfield.questions._placing import choose_ends

    def ends(**counts):
        names = [name for name, n in counts.items() for _ in range(n)]
        return choose_ends(pl.DataFrame({"stratum": names}), None, None)[1:]

    many = {"similarity_1": 30, "similarity_2": 30}
    assert ends(exact=4, near_duplicate=6, shared_label=9, **many) == (
        ("exact", "near_duplicate"),
        ("similarity_1", "similarity_2"),
    )
    assert ends(exact=4, shared_label=6, **many)[0] == ("exact", "shared_label")
    assert ends(exact=4, shared_label=5, **many) == (
        ("exact", "shared_label", "similarity_1"),
        ("similarity_2",),
    )
    assert ends(exact=11, near_duplicate=2, **many)[0] == ("exact", "near_duplicate")
    assert ends(exact=40) == (("exact",), ())
    assert ends(exact=2, similarity_1=3) == (("exact",), ("similarity_1",))
    ten = {f"similarity_{i}": 30 for i in range(12, 0, -1)}
    assert ends(**ten)[1][-1] == "similarity_12"  # 12 is farther than 2


# -- numbers --------------------------------------------------------------------------------------

# Success@1 on a, b | c | d, e
GOOD_NEAR = Run({"a": {"p9": 1}, "b": {"p8": 1}, "c": {"p3": 1}}, name="memory")  # 1 1 | 1 | 0 0
GOOD_FAR = Run({"d": {"p0": 1}, "e": {"p6": 1}, "a": {"p9": 1}}, name="reason")  # 1 0 | 0 | 1 1


def test_means_and_drops_by_hand():
    answer = by_hand([GOOD_NEAR, GOOD_FAR])
    table = {(r["system"], r["stratum"]): r for r in answer.table.iter_rows(named=True)}
    assert table["memory", "near"]["mean"] == 1.0
    assert table["memory", "far"]["mean"] == 0.0
    assert table["reason", "near"]["mean"] == 0.5
    assert (table["reason", "odd"]["n"], table["reason", "odd"]["low"]) == (1, None)
    memory, reason = answer.drops.iter_rows(named=True)
    assert (memory["near"], memory["far"], memory["drop"]) == (1.0, 0.0, 1.0)
    assert (reason["near"], reason["far"], reason["drop"]) == (0.5, 1.0, -0.5)
    assert (memory["n_near"], memory["n_far"]) == (2, 2)


def test_the_order_of_systems_turns_round():
    answer = by_hand([GOOD_NEAR, GOOD_FAR])
    assert answer.agreement.tau == -1.0
    (pair,) = answer.pairs.iter_rows(named=True)
    # memory - reason: 0, 1 near and -1, -1 far
    assert (pair["near"], pair["far"], pair["change"]) == (0.5, -1.0, 1.5)
    assert pair["swaps"]
    # A swap needs both sides: near 0, 1 has t = 1 with one degree of freedom, so p = 0.5.
    assert pair["p_swap"] == pytest.approx(0.5)


def test_excess_is_the_drop_beyond_that_of_the_baseline():
    for runs in ([GOOD_NEAR, GOOD_FAR], [GOOD_FAR, GOOD_NEAR]):
        drops = by_hand(runs, baseline="reason").drops
        memory = drops.filter(pl.col("system") == "memory").row(0, named=True)
        assert memory["excess"] == pytest.approx(1.0 - (-0.5))
        assert memory["excess_low"] <= memory["excess"] <= memory["excess_high"]
        assert drops.filter(pl.col("system") == "reason")["excess"].to_list() == [None]
    assert "excess" not in by_hand(GOOD_FAR, baseline="reason").drops.columns


def synthetic(n: int = 60):
    """Three systems on n queries, near and far by halves, with values of RR from 1 to 1/10."""
    rng = np.random.default_rng(0)
    ids = [f"q{i:03d}" for i in range(n)]
    qrels = Qrels({q: {"good": 1} for q in ids})
    placed = {q: "near" if i < n // 2 else "far" for i, q in enumerate(ids)}
    runs = []
    for name, shift in (("a", 0), ("b", 2), ("c", 5)):
        ranks = rng.integers(1, 4, n) + np.where(np.arange(n) < n // 2, 0, shift)
        rows = {
            q: {("good" if i == r else f"x{i}"): float(-i) for i in range(1, r + 1)}
            for q, r in zip(ids, ranks.tolist(), strict=True)
        }
        runs.append(Run(rows, name=name))
    return qrels, runs, placed


def test_tests_and_corrections_are_those_of_scipy():
    qrels, runs, placed = synthetic()
    answer = diagnose(qrels, runs, "RR", strata=placed)
    values = answer.evaluation.values()
    p = [oracle.ttest_ind(row[:30], row[30:], equal_var=False).pvalue for row in values]
    assert answer.drops["p"].to_list() == pytest.approx(p)
    assert answer.drops["p_adjusted"].to_list() == pytest.approx(list(farfield.stats.adjust(p)))
    gaps = values[0] - values[2]
    change = answer.pairs.row(1, named=True)
    assert (change["system"], change["other"]) == ("a", "c")
    welch = oracle.ttest_ind(gaps[:30], gaps[30:], equal_var=False)
    assert change["p"] == pytest.approx(welch.pvalue)
    dealt = diagnose(qrels, runs, "RR", strata=placed, test="permutation")
    assert dealt.drops["p"].to_list() == pytest.approx(p, abs=0.1)


def test_same_input_and_seed_give_the_same_numbers():
    qrels, runs, placed = synthetic()
    one, two = (diagnose(qrels, runs, "RR", strata=placed, seed=4).to_dict() for _ in range(2))
    assert one == two


def test_signs_are_not_turned_for_a_measure_that_falls():
    answer = by_hand([GOOD_NEAR, GOOD_FAR], "ASL")
    assert answer.drops["drop"].to_list() == [-100.0, 50.0]
    assert answer.agreement.tau == -1.0


def test_nothing_is_far():
    answer = diagnose(QRELS, RUN, "P@1", strata=dict.fromkeys("abcde", "exact"))
    assert answer.far == ()
    assert len(answer.drops) == len(answer.pairs) == 0
    assert answer.agreement is None
    found = answer.to_dict()
    assert (found["drops"], found["ranking"]) == ({}, None)
    assert OBSERVATIONAL in found["note"]
    answer.figure()


# -- the lab --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[0, 7])
def world(request):
    made = lab.make(seed=request.param)
    runs = {name: Run(frame, name=name) for name, frame in lab.runs(made).items()}
    return made, runs


@pytest.fixture(scope="module")
def diagnosis(world):
    made, runs = world
    collection = made.collection
    return diagnose(
        collection.qrels["test"],
        runs,
        queries=collection.queries,
        train_queries=collection.queries,
        train_qrels=collection.qrels["train"],
        baseline="lexical",
    )


@pytest.mark.parametrize("kind", ["exact", "near_duplicate"])
def test_planted_duplicates_are_recovered(world, diagnosis, kind):
    both = world[0].truth.join(diagnosis.placement, on="query_id")
    planted, found = both["kind"] == kind, both["stratum"] == kind
    assert (planted & found).sum() / planted.sum() >= 0.95
    assert (planted & found).sum() / found.sum() >= 0.95


def test_shared_labels_are_recovered_exactly(world, diagnosis):
    both = world[0].truth.join(diagnosis.placement, on="query_id")
    assert len(both) == 800
    assert ((both["shared"] > 0) == both["shared_label"]).all()


def test_memory_drops_and_words_do_not(diagnosis):
    drops = {row.pop("system"): row for row in diagnosis.drops.iter_rows(named=True)}
    assert drops["memory"]["drop"] > 0.5
    assert drops["memory"]["low"] > 0.4
    assert drops["memory"]["p_adjusted"] < 1e-6
    assert drops["memory"]["excess"] > 0.5
    for name in ("lexical", "lexical-titles", "random"):
        assert drops[name]["drop"] < 0.1
        assert drops[name]["p_adjusted"] > 0.05 or drops[name]["drop"] < 0


def test_memory_and_words_change_places(diagnosis):
    assert diagnosis.agreement.tau < diagnosis.agreement.expected
    assert diagnosis.agreement.p < 0.01
    pairs = {(r["system"], r["other"]): r for r in diagnosis.pairs.iter_rows(named=True)}
    swap = pairs["lexical", "memory"]
    assert swap["swaps"]
    assert swap["near"] < 0 < swap["far"]
    assert swap["p_swap_adjusted"] < 1e-6
    assert not pairs["lexical", "random"]["swaps"]


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for name, table in {
        "qrels.txt": QRELS,
        "train-qrels.txt": TRAIN_QRELS,
        "queries.tsv": TEST,
        "train.tsv": TRAIN,
        "memory.trec": GOOD_NEAR,
        "reason.trec": GOOD_FAR,
    }.items():
        farfield.write(table, tmp_path / name)
    rows = [{"query_id": q, "stratum": s} for q, s in PLACED.items()]
    pl.DataFrame(rows).write_csv(tmp_path / "strata.csv")
    return tmp_path


FILES = ("qrels.txt", "memory.trec", "reason.trec", "-m", "P@1")
TEXTS = ("--queries", "queries.tsv", "--train-queries", "train.tsv")


def test_the_command_prints_what_the_question_answers(farfield, folder):
    done = farfield(
        *("diagnose", *FILES, *TEXTS, "--train-qrels", "train-qrels.txt", "--bins", "2", "--json"),
        *("--near", "exact", "--near", "near_duplicate", "-o", "p.csv", "--table", "placement"),
        cwd=folder,
    )
    assert (done.status, done.err) == (0, "")
    found = done.json
    assert found["note"] == OBSERVATIONAL
    assert [row["stratum"] for row in found["strata"]][:2] == ["exact", "near_duplicate"]
    assert found["drops"]["memory"]["drop"] == 1.0
    assert found["by_stratum"]["reason"]["exact"] == {
        "mean": 1.0,
        "low": None,
        "high": None,
        "n": 1,
    }
    assert found["ranking"]["tau"] == -1.0
    placed = pl.read_csv(folder / "p.csv")
    assert dict(placed.select("query_id", "stratum").rows()) == strata(bins=2)


def test_the_command_for_people(farfield, folder):
    done = farfield(
        *("diagnose", *FILES, "--strata", "strata.csv", "--baseline", "reason"),
        *("--figure", "f.html", "--per-query", "pq.csv", "-o", "t.csv"),
        cwd=folder,
    )
    assert done.status == 0, done.err
    assert OBSERVATIONAL in done.out
    line = next(x for x in done.out.splitlines() if x.startswith("memory") and "→" in x)
    assert line.split()[:6] == ["memory", "1.0000", "0.0000", "1", "→", "2"]
    assert "+1.5000" in line  # the excess
    assert "Of 1 pairs 1 change their order" in done.out
    assert "observational" in (folder / "f.html").read_text()
    assert len(pl.read_csv(folder / "t.csv")) == 6
    assert len(pl.read_csv(folder / "pq.csv")) == 10


def test_the_command_where_nothing_is_far(farfield, folder):
    (folder / "all.csv").write_text("query_id,stratum\n" + "".join(f"{q},exact\n" for q in "abcde"))
    done = farfield("diagnose", *FILES, "--strata", "all.csv", cwd=folder)
    assert done.status == 0, done.err
    assert "No query is far" in done.out
    json.loads(farfield("diagnose", *FILES, "--strata", "all.csv", "--json", cwd=folder).out)


def test_ranks_of_a_measure_that_falls(farfield, folder):
    arguments = [*FILES[:3], "-m", "ASL", "--strata", "strata.csv"]
    done = farfield("diagnose", *arguments, cwd=folder)
    line = next(x for x in done.out.splitlines() if x.startswith("memory") and "→" in x)
    assert "1 → 2" in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --queries and --train-queries"),
        ([*TEXTS, "--table", "drop"], "Did you mean 'drops'?"),
        ([*TEXTS, "--near", "close"], "no query is in the stratum 'close'"),
        ([*TEXTS, "--threshold", "75"], "threshold is 75.0"),
        (["--strata", "queries.tsv"], "no column"),
        (["--strata", "none.csv"], "there is no such file"),
        ([*TEXTS, "--baseline", "memo"], "Did you mean 'memory'?"),
        ([*TEXTS, "--test", "t"], "test is 't'"),
    ],
)
def test_the_command_refuses(farfield, folder, options, message):
    done = farfield("diagnose", *FILES, *options, cwd=folder)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


# -- real data ------------------------------------------------------------------------------------


def test_shared_labels_of_trec_dl_2019(real_data):
    """By the full training qrels, 76.7 % of the queries share a highly relevant passage."""
    folder = real_data / "msmarco"
    qrels = farfield.read_qrels(folder / "qrels.dl19-passage.txt")
    with pytest.warns(FarfieldWarning, match="10 judgements are repeated"):
        train_qrels = farfield.read_qrels(folder / "qrels.train.txt.gz")
    options = {
        "queries": farfield.read_queries(folder / "topics.dl19-passage.txt"),
        # Few of the training queries have a text here; one is enough to ask.
        "train_queries": Queries({"query_id": [train_qrels.query_ids[0]], "text": ["unlike"]}),
        "train_qrels": train_qrels,
    }
    run = real_data / "runs" / "dl19" / "BM25.2019.res.gz"
    with pytest.warns(FarfieldWarning, match="502,938 of 502,939 queries"):
        answer = diagnose(qrels, run, relevance=2, **options)
    counts = dict(answer.places.select("stratum", "queries").rows())
    assert counts["shared_label"] == 33  # 33 / 43 = 0.767
