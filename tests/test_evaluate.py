"""Evaluating and comparing: population, counts, names, numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import pytrec_eval

import farfield
from farfield import Qrels, Run
from farfield.errors import InputError

QRELS = Qrels({"1": {"a": 1}, "2": {"a": 1, "b": 1}, "3": {"c": 1}, "4": {"a": 0}})
GOOD = Run({"1": {"a": 2.0, "b": 1.0}, "2": {"a": 1.0, "b": 1.0}, "9": {"a": 1.0}}, name="good")
POOR = Run({"1": {"b": 2.0, "a": 1.0}, "2": {"x": 3.0}, "3": {"c": 1.0}}, name="poor")


def test_values_counts_and_means():
    answer = farfield.evaluate(QRELS, [GOOD, POOR], ["RR", "R@1"])
    values = {(q, s, m): v for q, s, m, v in answer.per_query.frame.iter_rows()}
    # good: query 1 first, 2 first, 3 missing, 4 has nothing relevant.
    assert [values[q, "good", "RR"] for q in "1234"] == [1.0, 1.0, 0.0, 0.0]
    assert [values[q, "good", "R@1"] for q in "1234"] == [1.0, 0.5, 0.0, 0.0]
    assert [values[q, "poor", "RR"] for q in "1234"] == [0.5, 0.0, 1.0, 0.0]
    assert answer.queries == 4
    assert answer.missing == {"good": 2, "poor": 1}
    assert answer.ties == {"good": 1, "poor": 0}
    assert answer.unjudged == {"good": 1, "poor": 0}
    found = answer.to_dict()["measures"]
    assert found["good"]["RR"]["mean"] == 2.0 / 4
    assert found["poor"]["R@1"]["mean"] == 1.0 / 4
    assert found["good"]["RR"]["low"] <= 0.5 <= found["good"]["RR"]["high"]


def test_one_query_has_a_mean_and_no_interval():
    answer = farfield.evaluate(Qrels({"1": {"a": 1}}), GOOD, ["RR"])
    assert answer.to_dict()["measures"]["good"]["RR"] == {"mean": 1.0, "low": None, "high": None}


def test_documents_with_the_id_of_their_query_are_left_out_only_when_asked():
    qrels, run = Qrels({"q": {"a": 1}}), Run({"q": {"q": 2.0, "a": 1.0}})
    keep, drop = (farfield.evaluate(qrels, run, ["RR"], drop_self=d) for d in (False, True))
    assert keep.per_query.frame["value"].to_list() == [0.5]
    assert drop.per_query.frame["value"].to_list() == [1.0]


def test_runs_come_as_tables_paths_or_a_mapping(tmp_path):
    farfield.write(GOOD, tmp_path / "good.trec.gz")
    farfield.write(POOR, tmp_path / "poor.parquet")
    from_files = farfield.evaluate(QRELS, [tmp_path / "good.trec.gz", tmp_path / "poor.parquet"])
    from_tables = farfield.evaluate(QRELS, [GOOD, POOR])
    assert from_files.per_query == from_tables.per_query
    renamed = farfield.evaluate(QRELS, {"A": GOOD, "B": tmp_path / "poor.parquet"})
    assert renamed.systems == ("A", "B")


def test_two_runs_of_one_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="two runs are called 'good'"):
        farfield.evaluate(QRELS, [GOOD, GOOD])
    with pytest.raises(InputError, match="'good' is the name of the baseline and of another run"):
        farfield.compare(QRELS, GOOD, [GOOD])


def test_nothing_to_evaluate_is_said():
    with pytest.raises(InputError, match="no run was given"):
        farfield.evaluate(QRELS, [])
    with pytest.raises(InputError, match="no measure was given"):
        farfield.evaluate(QRELS, GOOD, [])
    with pytest.raises(InputError, match="the measure RR@10 is given twice"):
        farfield.evaluate(QRELS, GOOD, ["RR@10", "MRR@10"])


def test_a_comparison_has_differences_wins_and_losses():
    table = farfield.compare(QRELS, GOOD, POOR, ["RR", "ASL"]).table
    rr, asl = table.iter_rows(named=True)
    # poor - good: -0.5, -1, +1, 0
    assert rr["difference"] == pytest.approx(-0.5 / 4)
    assert (rr["wins"], rr["ties"], rr["losses"]) == (1, 1, 2)
    # ASL: good 0, 0, 100, 0; poor 1, 100, 0, 0. Lower is better, so a smaller value wins.
    assert asl["difference"] == pytest.approx((1 + 100 - 100) / 4)
    assert (asl["wins"], asl["ties"], asl["losses"]) == (1, 1, 2)


def test_same_input_and_seed_give_the_same_numbers():
    one, two = (farfield.compare(QRELS, GOOD, POOR, seed=7).to_dict() for _ in range(2))
    assert one == two


def test_trec_dl_2019(real_data):
    """BM25 and ANCE on the 43 judged queries, to four decimals as pytrec_eval has them."""
    files = [real_data / "runs" / "dl19" / f"{name}.2019.res.gz" for name in ("BM25", "ANCE")]
    qrels = farfield.read_qrels(real_data / "msmarco" / "qrels.dl19-passage.txt")
    specs = {"nDCG@10": "ndcg_cut_10", "R@1000": "recall_1000", "AP": "map", "RR": "recip_rank"}
    answer = farfield.evaluate(qrels, files, specs)
    found = answer.to_dict()["measures"]
    assert answer.queries == 43
    assert round(found["BM25.2019"]["nDCG@10"]["mean"], 4) == 0.4795
    assert round(found["ANCE.2019"]["nDCG@10"]["mean"], 4) == 0.6537


def test_every_real_run_equals_pytrec_eval_query_by_query(real_data):
    qrels = farfield.read_qrels(real_data / "msmarco" / "qrels.dl19-passage.txt")
    specs = {"nDCG@10": "ndcg_cut_10", "R@1000": "recall_1000", "AP": "map", "RR": "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), set(specs.values()))
    files = sorted((real_data / "runs" / "dl19").glob("*.gz"))
    assert len(files) == 17
    for file in files:
        # pytrec_eval compares scores in single precision.
        run = farfield.read_run(file, ties="trec9")
        theirs = evaluator.evaluate(run.to_dict())
        frame = farfield.evaluate(qrels, run, specs).per_query.frame
        for query, _, measure, value in frame.iter_rows():
            assert value == pytest.approx(theirs[query][specs[measure]], abs=1e-6), (file, query)


def test_a_large_run_takes_the_same_values_in_any_order():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "query_id": np.repeat([f"q{i}" for i in range(300)], 500),
            "doc_id": np.concatenate(
                [rng.choice(5000, 500, replace=False) for _ in range(300)]
            ).astype(str),
            "score": rng.integers(0, 200, 150_000).astype(float),
        }
    )
    judged = frame.sample(3000, seed=1).select("query_id", "doc_id", relevance=pl.lit(1))
    qrels = Qrels(judged)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=2)
    one, two = (farfield.evaluate(qrels, Run(f)).per_query for f in (frame, shuffled))
    assert one == two
