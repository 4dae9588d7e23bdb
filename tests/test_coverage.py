"""Coverage: TaSC by hand, its laws, order and dates, who solves what, and the command."""

from __future__ import annotations

import json
from datetime import date
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import farfield
from farfield import Qrels, Run
from farfield.errors import InputError
from farfield.questions.coverage import coverage

# P@4 of a run is a quarter of the relevant documents among its four, so a list of counts is a run.
QUERIES = ["1", "2", "3", "4"]
QRELS = Qrels({q: {f"r{i}": 1 for i in range(4)} for q in QUERIES})


def run(name: str, *quarters: int) -> Run:
    """A run with so many relevant documents of four on queries 1, 2, 3, 4."""
    return Run(
        {
            q: {f"{'r' if i < good else 'x'}{i}": 4.0 - i for i in range(4)}
            for q, good in zip(QUERIES, quarters, strict=False)
        },
        name=name,
    )


OLD = run("old", 4, 2, 0, 0)  # 1, 0.5, 0, 0
MID = run("mid", 2, 4, 1, 0)  # 0.5, 1, 0.25, 0
NEW = run("new", 0, 0, 4, 0)  # 0, 0, 1, 0


def rows(answer) -> dict[str, dict[str, float]]:
    return {row.pop("system"): row for row in answer.table.iter_rows(named=True)}


def test_tasc_by_hand_against_earlier_runs():
    found = rows(coverage(QRELS, [OLD, MID, NEW], "P@4", against="earlier"))
    assert found["old"]["tasc"] == pytest.approx((1 + 0.5) / 4)  # nothing before it: the measure
    assert found["old"]["clone"] is None
    # What old leaves: 0, 0.5, 1, 1.
    assert found["mid"]["tasc"] == pytest.approx((0 * 0.5 + 0.5 * 1 + 1 * 0.25) / 4)
    # A copy of old, m (1 - m): 0, 0.25, 0, 0.
    assert found["mid"]["clone"] == pytest.approx(0.25 / 4)
    assert found["mid"]["beyond"] == pytest.approx((0.75 - 0.25) / 4)
    # Above the best so far: 0.5 on query 2, 0.25 on query 3.
    assert found["mid"]["gain"] == pytest.approx((0.5 + 0.25) / 4)
    # What old and mid leave: 0, 0, 0.75, 1. A copy of mid gets 0.75 x 0.25, one of old nothing.
    assert found["new"]["tasc"] == pytest.approx(0.75 / 4)
    assert found["new"]["clone"] == pytest.approx(0.75 * 0.25 / 4)
    assert found["new"]["clone_of"] == "mid"
    # Values dealt out at random: mean of what is left x mean of the values.
    assert found["new"]["chance"] == pytest.approx((0.75 + 1) / 4 * 1 / 4)
    assert [found[s]["priors"] for s in ("old", "mid", "new")] == [0, 1, 2]


def test_tasc_by_hand_against_all_others_and_with_mean():
    found = rows(coverage(QRELS, [OLD, MID, NEW], "P@4", agg="mean"))
    # Others of old: mid and new; means 0.25, 0.5, 0.625, 0.
    assert found["old"]["tasc"] == pytest.approx((0.75 * 1 + 0.5 * 0.5) / 4)
    # Others of new: old and mid; means 0.75, 0.75, 0.125, 0.
    assert found["new"]["tasc"] == pytest.approx(0.875 / 4)


def test_against_named_runs():
    answer = coverage(QRELS, [OLD, MID, NEW], "P@4", against="old")
    found = rows(answer)
    assert found["new"]["tasc"] == pytest.approx(1 / 4)  # old leaves all of query 3
    assert found["new"]["priors"] == 1
    assert found["old"]["tasc"] == pytest.approx(1.5 / 4)  # nothing else was named
    # Step 0 is what we have: 1, 0.5, 0, 0. new adds 1 on query 3; then mid 0.5 on query 2.
    steps = answer.greedy.select("step", "system", "gain").rows()
    assert steps == [
        (0, "old", pytest.approx(1.5 / 4)),
        (1, "new", pytest.approx(1 / 4)),
        (2, "mid", pytest.approx(0.5 / 4)),
    ]


def test_the_test_exchanges_run_and_copy():
    # mid against old: differences to the copy are 0, 0.25, 0.25, 0: four sign patterns of which
    # two (both up, both down) are as extreme.
    found = rows(coverage(QRELS, [OLD, MID], "P@4", against="earlier"))
    assert found["mid"]["p"] == pytest.approx(2 / 4)
    assert found["old"]["p"] is None


def test_chance_is_tested_over_all_orders():
    # What is left: 0, 0.5, 1, 1; new's values 0, 0, 1, 0. It is as high as can be whenever its 1
    # falls on query 3 or 4, which is half of the orders; as far below: query 1 (sum 0), a quarter
    # of them, is |0 - 0.625| >= |1 - 0.625|.
    found = rows(coverage(QRELS, [OLD, NEW], "P@4", against="earlier"))
    assert found["new"]["p_chance"] == pytest.approx(3 / 4)


def test_missing_queries_count_as_nothing():
    short = Run({"1": {"r0": 1.0}}, name="short")
    answer = coverage(QRELS, [short, OLD], "P@4", against="earlier")
    found = rows(answer)
    assert found["short"]["tasc"] == pytest.approx(0.25 / 4)  # over all four judged queries
    assert found["old"]["tasc"] == pytest.approx((0.75 * 1 + 0.5) / 4)
    assert answer.evaluation.missing["short"] == 3


def test_who_solves_what():
    answer = coverage(QRELS, [OLD, MID, NEW], "P@4", against="earlier", solved=0.5)
    assert answer.unsolved.rows() == [("4", 0.0, None)]
    assert answer.first.rows() == [
        ("1", "old", 1.0, 2),
        ("2", "old", 0.5, 2),
        ("3", "new", 1.0, 1),
    ]
    strict = coverage(QRELS, [OLD, MID], "P@4", solved=0.75)
    assert strict.unsolved.rows() == [("4", 0.0, None), ("3", 0.25, "mid")]
    loose = coverage(QRELS, [OLD, MID], "P@4")  # anything above 0 solves
    assert loose.unsolved["query_id"].to_list() == ["4"]


def test_which_run_to_add_next():
    answer = coverage(QRELS, [OLD, MID, NEW], "P@4")
    # mid has the best mean (1.75); new then adds 0.75 on query 3, old 0.5 on query 1.
    assert answer.greedy["system"].to_list() == ["mid", "new", "old"]
    assert answer.greedy["gain"].to_list() == pytest.approx([1.75 / 4, 0.75 / 4, 0.5 / 4])
    assert answer.greedy["covered"].to_list() == pytest.approx([1.75 / 4, 2.5 / 4, 3 / 4])


def test_pairs_and_curves():
    answer = coverage(QRELS, [OLD, MID, NEW], "P@4")
    first = answer.pairs.row(0, named=True)
    # old - mid: 0.5, -0.5, -0.25, 0
    assert (first["system"], first["other"]) == ("old", "mid")
    assert first["distance"] == pytest.approx(1.25 / 4)
    assert first["difference"] == pytest.approx(-0.25 / 4)
    assert (first["wins"], first["ties"], first["losses"]) == (1, 1, 2)
    assert len(answer.pairs) == 3
    curve = answer.curves.filter(pl.col("system") == "mid")
    assert curve["value"].to_list() == [1.0, 0.5, 0.25, 0.0]
    assert curve["query_id"].to_list() == ["2", "1", "3", "4"]


def test_one_run_alone():
    answer = coverage(QRELS, OLD, "P@4")
    assert rows(answer)["old"]["tasc"] == pytest.approx(1.5 / 4)
    assert len(answer.pairs) == 0
    json.dumps(answer.to_dict(), allow_nan=False)
    answer.figure()


def test_one_query_has_no_interval():
    answer = coverage(Qrels({"1": {"r0": 1}}), [OLD, MID], "P@4")
    assert rows(answer)["old"]["low"] is None
    json.dumps(answer.to_dict(), allow_nan=False)


# -- laws -----------------------------------------------------------------------------------------

quarters = st.lists(st.integers(0, 4), min_size=4, max_size=4)
several = st.lists(quarters, min_size=1, max_size=5)


def tasc(lists, **options) -> list[float]:
    runs = [run(f"s{at}", *values) for at, values in enumerate(lists)]
    answer = coverage(QRELS, runs, "P@4", resamples=10, **options)
    return answer.table["tasc"].to_list()


@given(lists=several, against=st.sampled_from(["others", "earlier"]))
def test_nothing_is_below_zero_nor_max_above_mean_nor_mean_above_the_measure(lists, against):
    highest = tasc(lists, agg="max", against=against)
    mean = tasc(lists, agg="mean", against=against)
    for low, high, values in zip(highest, mean, lists, strict=True):
        assert -1e-12 <= low <= high + 1e-12
        assert high <= sum(values) / 16 + 1e-12


@given(lists=several)
def test_without_priors_tasc_is_the_measure(lists):
    assert tasc(lists, against="earlier")[0] == pytest.approx(sum(lists[0]) / 16)


@given(lists=several, more=quarters)
def test_another_prior_never_raises_max(lists, more):
    before = tasc(lists, agg="max")
    after = tasc([*lists, more], agg="max")
    assert all(b >= a - 1e-12 for b, a in zip(before, after[:-1], strict=True))


@given(values=quarters)
def test_a_copy_scores_what_the_clone_column_says(values):
    m = np.array(values) / 4
    answer = coverage(QRELS, [run("one", *values), run("copy", *values)], "P@4", against="earlier")
    found = rows(answer)["copy"]
    assert found["tasc"] == pytest.approx(float(np.mean(m * (1 - m))))
    assert found["clone"] == pytest.approx(found["tasc"])
    assert found["beyond"] == pytest.approx(0)
    assert found["p"] == 1.0
    assert found["gain"] == 0


@given(lists=several, copied=st.integers(0, 4))
def test_a_copy_of_a_prior_run_is_never_beyond_the_best_copy(lists, copied):
    lists = [*lists, lists[copied % len(lists)]]
    runs = [run(f"s{at}", *values) for at, values in enumerate(lists)]
    answer = coverage(QRELS, runs, "P@4", against="earlier", resamples=10)
    assert answer.table["beyond"][-1] <= 1e-12


@given(lists=several, order=st.permutations(QUERIES))
def test_the_order_of_queries_does_not_matter(lists, order):
    names = dict(zip(QUERIES, order, strict=True))
    renamed = Qrels(QRELS.frame.with_columns(pl.col("query_id").replace_strict(names)))
    runs = [run(f"s{at}", *values) for at, values in enumerate(lists)]
    others = [
        Run(r.frame.with_columns(pl.col("query_id").replace_strict(names)), name=r.name)
        for r in runs
    ]
    one, two = (
        coverage(q, r, "P@4", resamples=10).table["tasc"].to_list()
        for q, r in ((QRELS, runs), (renamed, others))
    )
    assert one == pytest.approx(two)


@given(lists=several)
def test_greedy_gains_shrink_and_add_up(lists):
    runs = [run(f"s{at}", *values) for at, values in enumerate(lists)]
    greedy = coverage(QRELS, runs, "P@4", resamples=10).greedy
    gains = greedy["gain"].to_list()
    assert all(a >= b - 1e-12 for a, b in pairwise(gains))
    best = np.max([np.array(values) / 4 for values in lists], axis=0)
    assert sum(gains) == pytest.approx(best.mean())
    assert greedy["covered"][-1] == pytest.approx(best.mean())


# -- dates ----------------------------------------------------------------------------------------


def test_dates_give_the_order():
    dates = {"new": "2019-05", "old": "2020-01", "mid": "2020-10"}
    answer = coverage(QRELS, [OLD, MID, NEW], "P@4", against="earlier", dates=dates)
    assert answer.evaluation.systems == ("new", "old", "mid")
    found = rows(answer)
    assert found["new"]["tasc"] == pytest.approx(1 / 4)
    assert found["old"]["tasc"] == pytest.approx(1.5 / 4)  # new has not touched its queries
    assert answer.to_dict()["tasc"]["mid"]["date"] == "2020-10"
    assert len(answer.figure().data) > len(coverage(QRELS, [OLD, MID, NEW], "P@4").figure().data)


def test_runs_of_one_date():
    dates = {"old": date(2020, 1, 1), "mid": date(2020, 1, 1), "new": date(2021, 1, 1)}
    runs = [MID, OLD, NEW]
    with pytest.raises(InputError, match="'mid' and 'old' have the same date, 2020-01-01"):
        coverage(QRELS, runs, "P@4", against="earlier", dates=dates)
    given_first = coverage(
        QRELS, runs, "P@4", against="earlier", dates=dates, date_ties="earlier", solved=0.5
    )
    assert given_first.table["priors"].to_list() == [0, 1, 2]
    assert given_first.first["system"].to_list() == ["mid", "mid", "new"]
    together = coverage(
        QRELS, runs, "P@4", against="earlier", dates=dates, date_ties="together", solved=0.5
    )
    assert together.table["priors"].to_list() == [0, 0, 2]
    assert together.first.rows()[:2] == [("1", "mid", 0.5, 2), ("1", "old", 1.0, 2)]
    # Against all others the order decides nothing, so the tie is no fault.
    assert coverage(QRELS, runs, "P@4", dates=dates).turn.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        ({"old": "2020"}, "the dates lack the run 'mid'"),
        ({"old": "2020", "mdi": "2021"}, "Did you mean 'mdi'"),
        ({"old": "October 2020", "mid": "2021"}, "'October 2020', expected 2020, 2020-10"),
        ({"old": "2020-13", "mid": "2021-01"}, "'2020-13', expected 2020, 2020-10"),
        ({"old": "2020-10", "mid": "2020-10-05"}, "which was first cannot be told"),
    ],
)
def test_dates_that_do_not_do(dates, message):
    with pytest.raises(InputError, match=message):
        coverage(QRELS, [OLD, MID], "P@4", against="earlier", dates=dates)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dates.csv", "run,date,remark\nmid,2019,x\nold,2020,y\n"),
        ("dates.tsv", "run\tdate\nmid\t2019\nold\t2020\n"),
        ("dates.json", '{"mid": "2019",\n "old": "2020"}'),
        ("flat.json", '{"mid": 2019, "old": 2020}'),
        ("dates.jsonl", '{"run": "mid", "date": "2019"}\n{"run": "old", "date": "2020"}\n'),
    ],
)
def test_files_of_dates(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    answer = coverage(QRELS, [OLD, MID], "P@4", against="earlier", dates=tmp_path / name)
    assert answer.evaluation.systems == ("mid", "old")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,day\nold,2020\n", "no column 'date'"),
        ("run,date\nold,\n", "row 1: date is missing"),
        ("run,date\nold,2020\nold,2021\n", "run 'old' is there twice"),
        ('{"old": ["2020"]}', "expected {run: date}"),
        ('["old", "2020"]', "expected {run: date}"),
        ('{"run": "old", "date": {"year": 2020}}', "date holds lists or objects"),
        ('{"run": "old", "day": "2020"}', "no column 'date'"),
        ("", "empty"),
    ],
)
def test_files_of_dates_that_do_not_do(tmp_path, text, message):
    (tmp_path / "dates.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        coverage(QRELS, OLD, "P@4", dates=tmp_path / "dates.csv")


# -- input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "ASL"}, "the measure ASL does not lie between 0 and 1"),
        ({"measure": "NumRet"}, "NumRet does not lie between 0 and 1"),
        ({"agg": "median"}, "agg is 'median'"),
        ({"solved": 2.0}, "solved is 2.0"),
        ({"against": "other"}, "Did you mean 'others'"),
        ({"against": []}, "against names no run"),
        ({"against": ["old", "odl"]}, "against is 'odl'"),
        ({"date_ties": "later", "dates": {"old": "2020", "mid": "2021"}}, "date_ties is 'later'"),
        ({"correction": "none of them"}, "correction is 'none of them'"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        coverage(QRELS, [OLD, MID], **{"measure": "P@4", **options}).to_dict()


def test_a_measure_that_does_not_keep_its_promise(own_members):
    from dataclasses import dataclass

    @farfield.measures.add
    @dataclass(frozen=True, kw_only=True)
    class Loud(farfield.measures.Measure):
        """Promises values up to 1, and gives 2."""

        def _values(self, judged):
            return np.full(len(judged.query_ids), 2.0)

    with pytest.raises(InputError, match="Loud of query '1' in 'old' is 2.0"):
        coverage(QRELS, OLD, "Loud")


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    farfield.write(QRELS, tmp_path / "qrels.txt")
    for r in (OLD, MID, NEW):
        farfield.write(r, tmp_path / f"{r.name}.trec")
    (tmp_path / "dates.csv").write_text("run,date\nold,2019\nmid,2020\nnew,2020\n")
    return tmp_path


FILES = ("qrels.txt", "old.trec", "mid.trec", "new.trec")


def test_the_command_prints_what_the_question_answers(farfield, folder):
    done = farfield("coverage", *FILES, "-m", "P@4", "--against", "earlier", "--json", cwd=folder)
    assert (done.status, done.err) == (0, "")
    found = done.json
    assert list(found["tasc"]) == ["old", "mid", "new"]
    entry = found["tasc"]["mid"]
    assert {"value", "low", "high", "clone", "measure"} <= set(entry)
    assert entry["value"] == pytest.approx(0.75 / 4)
    assert entry["clone"] == pytest.approx(0.25 / 4)
    assert entry["measure"] == pytest.approx(1.75 / 4)
    assert entry["low"] <= entry["value"] <= entry["high"]
    assert found["unsolved"] == [{"query_id": "4", "best": 0.0, "system": None}]
    assert found["queries"] == 4


def test_the_command_for_people(farfield, folder):
    options = ("-m", "P@4", "--against", "earlier", "--dates", "dates.csv")
    refused = farfield("coverage", *FILES, *options, cwd=folder)
    assert refused.status == 2
    assert "'mid' and 'new' have the same date" in refused.err
    done = farfield(
        *("coverage", *FILES, *options, "--date-ties", "together", "--figure", "f.html"),
        *("-o", "pairs.csv", "--table", "pairs", "--per-query", "pq.csv"),
        cwd=folder,
    )
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "TaSC (max) of P@4 against the runs before it"
    assert lines[2].split()[:3] == ["old", "0.3750", "0.3750"]
    assert "—" in lines[2]
    assert "Solved by nobody: 4" in done.out
    assert "Solved first by: old 2, mid 1, new 1" in done.out
    assert pl.read_csv(folder / "pairs.csv")["distance"].len() == 3
    assert len(pl.read_csv(folder / "pq.csv")) == 12
    assert "<html>" in (folder / "f.html").read_text()


def test_the_command_against_named_runs(farfield, folder):
    options = ("-m", "P@4", "--against", "old", "--against", "mid")
    done = farfield("coverage", *FILES, *options, cwd=folder)
    assert "against old and mid" in done.out
    assert "0 old+mid" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "ASL"], "does not lie between 0 and 1"),
        (["--table", "pair"], "Did you mean 'pairs'?"),
        (["--dates", "none.csv"], "there is no such file"),
        (["--against", "nobody"], "against is 'nobody'"),
        (["--figure", "f.png"], "stands for no figure"),
    ],
)
def test_the_command_refuses(farfield, folder, options, message):
    done = farfield("coverage", *FILES, *options, cwd=folder)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


# -- real data ------------------------------------------------------------------------------------


def test_the_rankers_of_trec_dl_2019(real_data):
    """On nDCG@10 no ranker covers clearly more than a copy of the best of the others would."""
    files = sorted((real_data / "runs" / "dl19").glob("*.gz"))
    answer = coverage(real_data / "msmarco" / "qrels.dl19-passage.txt", files)
    table = answer.table
    assert len(table) == 17
    assert (table["tasc"] <= table["measure"]).all()
    best = table.sort("tasc", descending=True).row(0, named=True)
    assert best["system"] == "splade.dl19"
    assert round(best["tasc"], 4) == 0.1020
    assert table.filter((pl.col("beyond") > 0) & (pl.col("p_adjusted") < 0.05)).is_empty()
    assert (table["tasc"] < table["chance"]).all()  # all are strong on the same queries
    assert answer.greedy["system"].to_list()[1] == "splade.dl19"
    alike = answer.pairs.sort("distance").row(0, named=True)
    assert {alike["system"], alike["other"]} == {"prf_rank_beta05.2019", "prf_rerank_beta05.2019"}
