"""Fusing: runs in and out, the search for weights, what engines are told, the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farfield
from farfield import Qrels, Run, fusions
from farfield.errors import InputError
from farfield.fusions import _pool
from farfield.fusions.base import Fusion
from farfield.questions import tune as tuning_module

QRELS = Qrels({"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}, "4": {"d": 1}})
# "good" has the relevant document first everywhere, "bad" last.
GOOD = Run(
    {q: {d: 2.0, "x": 0.5, "y": 0.0} for q, d in zip("1234", "abcd", strict=True)}, name="good"
)
BAD = Run(
    {q: {"y": 5.0, "x": 4.0, d: 3.0} for q, d in zip("1234", "abcd", strict=True)}, name="bad"
)


# -- fuse ---------------------------------------------------------------------------------------


def test_runs_come_as_tables_paths_or_a_mapping(tmp_path):
    farfield.write(GOOD, tmp_path / "good.trec.gz")
    farfield.write(BAD, tmp_path / "bad.parquet")
    paths = [tmp_path / "good.trec.gz", tmp_path / "bad.parquet"]
    run = farfield.fuse("rrf(k=1)", paths, k=2)
    assert run == farfield.fuse("rrf(k=1)", [GOOD, BAD], k=2)
    assert run == farfield.fuse(fusions.parse("rrf(k=1)"), {"A": GOOD, "B": paths[1]}, k=2)
    # a and y: 1/2 + 1/4 each, x: 1/3 + 1/3. The higher id comes first, and x does not fit.
    assert list(run.to_dict()["1"].items()) == [("y", 0.75), ("a", 0.75)]
    assert run.name == "rrf(k=1)"
    assert farfield.fuse("rrf", [GOOD, BAD], name="mine").name == "mine"


def test_the_oracle_takes_judgements_as_table_or_path(tmp_path):
    farfield.write(QRELS, tmp_path / "qrels.txt")
    first = farfield.fuse("oracle", [BAD, GOOD], qrels=tmp_path / "qrels.txt").frame
    assert first.filter(rank=1)["doc_id"].to_list() == ["a", "b", "c", "d"]
    with pytest.raises(InputError, match="needs judgements"):
        farfield.fuse("oracle", [BAD, GOOD])


def test_ties_of_files_are_ordered_as_asked(tmp_path):
    (tmp_path / "a.trec").write_text("1 Q0 a 1 1.0 t\n1 Q0 b 2 1.0 t\n")
    (tmp_path / "b.trec").write_text("1 Q0 z 1 1.0 t\n")
    for ties, expected in (("file", ["z", "a", "b"]), ("trec", ["z", "b", "a"])):
        run = farfield.fuse("rrf", [tmp_path / "a.trec", tmp_path / "b.trec"], ties=ties)
        assert run.doc_ids.to_list() == expected


def test_what_cannot_be_fused_is_said_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match="has 3 weights for 2 runs"):
        farfield.fuse("rrf(weights=[1, 2, 3])", [tmp_path / "no.trec", tmp_path / "such.trec"])
    with pytest.raises(InputError, match="was given 1 run"):
        farfield.fuse("rrf", [tmp_path / "no.trec"])
    with pytest.raises(InputError, match="two runs are called 'good'"):
        farfield.fuse("rrf", [GOOD, GOOD])


# -- tune ---------------------------------------------------------------------------------------

docs = st.sampled_from([*"abcdefgh"])
a_run = st.dictionaries(
    st.sampled_from("pqrst"),
    st.dictionaries(docs, st.sampled_from([0.0, 0.1, 0.5, 1.0, 7.0]), min_size=1),
)
a_qrels = st.dictionaries(
    st.sampled_from("pqrs"), st.dictionaries(docs, st.integers(0, 3), min_size=1), min_size=2
)


@pytest.mark.parametrize("spec", ["interpolate()", "rrf()", "comb_mnz(norm='z')", "borda(depth=3)"])
@pytest.mark.parametrize("measure", ["nDCG@3", "R", "ASL", "nDCG(judged_only=True)"])
@settings(max_examples=12)
@given(a_qrels, st.lists(a_run, min_size=2, max_size=3), st.integers(1, 6), st.integers(-1, 9))
def test_every_value_is_that_of_the_fused_run(spec, measure, qrels, runs, k, few):
    judged, made = Qrels(qrels), [Run(run, name=str(i)) for i, run in enumerate(runs)]
    before, _pool._FEW = _pool._FEW, few  # ranks are counted, or sorted out
    try:
        answer = farfield.tune(judged, made, spec, measure, k=k, folds=2, steps=2, resamples=10)
    finally:
        _pool._FEW = before
    assert answer.settings[0] == fusions.parse(spec)
    for number in {0, 1, len(answer.settings) - 1}:
        run = answer.settings[number].fuse(made, k=k, name="fused")
        expected = farfield.evaluate(judged, run, [measure]).per_query.frame["value"]
        assert answer.values[:, number] == pytest.approx(expected.to_numpy())


def test_the_best_weight_is_found():
    answer = farfield.tune(QRELS, [GOOD, BAD], measure="RR", folds=2, steps=4)
    # With more weight on "good" than on "bad" the relevant document comes first.
    means = dict(answer.curve.select("weight of good", "mean").iter_rows())
    assert means[1.0] == means[0.75] == 1.0
    assert means[0.25] < 1.0
    assert answer.best == fusions.parse("interpolate(weights=[0.75, 0.25])")
    summary = {row["system"]: row["mean"] for row in answer.summary.iter_rows(named=True)}
    assert summary["tuned"] == summary["best per query"] == 1.0
    # y, then the relevant one, before x: the scores of the two are 1/2 and 1/2.
    assert summary["interpolate()"] == pytest.approx(0.5)
    assert answer.gain["difference"] == pytest.approx(0.5)


def test_of_equally_good_settings_the_one_that_was_given_wins():
    answer = farfield.tune(QRELS, [GOOD, GOOD.named("again")], measure="RR", folds=4)
    assert answer.best == answer.fusion == fusions.parse("interpolate()")
    assert answer.folds["fusion"].to_list() == ["interpolate()"] * 4
    assert answer.gain["p"] == 1.0


def test_each_query_is_valued_by_a_choice_made_without_its_fold():
    rng = np.random.default_rng(4)
    runs = [
        Run(
            {str(q): {f"d{d}": float(s) for d, s in enumerate(rng.random(20))} for q in range(23)},
            name=n,
        )
        for n in "ab"
    ]
    qrels = Qrels({str(q): {f"d{rng.integers(20)}": 1} for q in range(23)})
    answer = farfield.tune(qrels, runs, measure="RR", folds=5, seed=9)
    assert sorted(np.bincount(answer.fold).tolist()) == [4, 4, 5, 5, 5]
    tuned = answer.per_query.frame.filter(system="tuned")["value"]
    for query in range(23):
        others = answer.values[answer.fold != answer.fold[query]].mean(axis=0)
        chosen = int(np.argmax(others > others.max() - 1e-12))
        assert tuned[query] == answer.values[query, chosen]
    # It is a bound for every setting, and the choices made with all in view are one above honest.
    assert (answer.per_query_best["value"].to_numpy() >= answer.values.max(axis=1)).all()
    assert answer.values.mean(axis=0).max() >= tuned.mean()
    again = farfield.tune(qrels, runs, measure="RR", folds=5, seed=9)
    assert again.to_dict() == answer.to_dict()
    assert (farfield.tune(qrels, runs, measure="RR", folds=5, seed=10).fold != answer.fold).any()


def test_the_smaller_value_is_the_better_one_where_a_measure_says_so():
    answer = farfield.tune(QRELS, [GOOD, BAD], measure="ASL", folds=2, steps=2)
    assert answer.best.weights == (1.0, 0.0)
    best = answer.per_query.frame.filter(system="best per query")["value"]
    assert best.to_list() == [0.0] * 4


def settings_of(spec: str, runs: int, steps: int) -> list[str]:
    return [str(s) for s in tuning_module._grid(fusions.parse(spec), runs, steps)]


def test_what_is_searched():
    assert settings_of("interpolate()", 2, 2) == [
        "interpolate()",  # the same as weights of 0.5 and 0.5
        "interpolate(weights=[0.0, 1.0])",
        "interpolate(weights=[1.0, 0.0])",
    ]
    # Three runs in four steps: 6 * 5 / 2 ways, and equal weights, which are not among them.
    assert len(settings_of("comb_sum()", 3, 4)) == 16
    # What is given stays: k, or the weights.
    assert settings_of("rrf(k=60)", 2, 1) == [
        "rrf(k=60)",
        "rrf(weights=[0.0, 1.0], k=60)",
        "rrf(weights=[1.0, 0.0], k=60)",
    ]
    assert "rrf(weights=[0.2, 0.8], k=10)" in settings_of("rrf(weights=[0.2, 0.8])", 2, 10)
    assert len(settings_of("rrf()", 2, 10)) == 11 * 9
    # Where a weight divides the rank the mean weight is 1, so that equal weights change nothing.
    assert "rrf(weights=[0.5, 1.5], k=3, dialect='qdrant')" in settings_of(
        "rrf(k=3, dialect='qdrant')", 2, 4
    )


def test_what_cannot_be_searched_says_why():
    with pytest.raises(
        InputError, match=r"steps=10 for 6 runs makes 3,003 settings of interpolate"
    ):
        settings_of("interpolate()", 6, 10)
    with pytest.raises(InputError, match=r"Take fewer steps or fewer runs, or say k in the spec"):
        settings_of("rrf()", 4, 10)
    with pytest.raises(InputError, match="leaves nothing open"):
        settings_of("rrf(weights=[1.0, 2.0], k=60)", 2, 10)
    with pytest.raises(InputError, match="needs judgements"):
        settings_of("oracle()", 2, 10)
    with pytest.raises(InputError, match="steps is 0"):
        settings_of("rrf()", 2, 0)
    with pytest.raises(InputError, match="folds is 9 for 4 judged queries"):
        farfield.tune(QRELS, [GOOD, BAD], folds=9)
    with pytest.raises(InputError, match="folds is 1"):
        farfield.tune(QRELS, [GOOD, BAD], folds=1)


def test_a_fusion_of_your_own_can_be_tuned():
    @dataclass(frozen=True, kw_only=True)
    class first_place(Fusion):
        """Only the first of each list counts."""

        def _points(self, lists, weight):
            return weight * (lists.rank == 1)

    answer = farfield.tune(QRELS, [GOOD, BAD], first_place(), "RR", folds=2, steps=4)
    assert answer.best.weights == (0.75, 0.25)


def test_the_figure_of_a_search():
    for runs, spec in (([GOOD, BAD], "interpolate()"), ([GOOD, BAD], "rrf()")):
        figure = farfield.tune(QRELS, runs, spec, "RR", folds=2, steps=4).figure()
        names = [trace.name for trace in figure.data if trace.name]
        assert any(name.startswith("tuned, out of fold 1.0") for name in names)
    three = [GOOD, BAD, GOOD.named("third")]
    figure = farfield.tune(QRELS, three, "interpolate()", "RR", folds=2, steps=3).figure()
    assert "0.33 / 0.33 / 0.33" in figure.data[0].x


# -- the report ---------------------------------------------------------------------------------


def test_a_report_compares_the_fusion_with_every_run():
    report = farfield.fuse_and_compare("interpolate()", [GOOD, BAD], QRELS, ["RR", "R@3"])
    assert report.comparison.baseline == "interpolate()"
    rows = {(r["system"], r["measure"]): r for r in report.comparison.table.iter_rows(named=True)}
    # RR: good 1, bad 1/3, fused 1/2, on every query.
    assert rows["good", "RR"]["difference"] == pytest.approx(1 / 2)
    assert rows["bad", "RR"]["difference"] == pytest.approx(1 / 3 - 1 / 2)
    assert report.verdicts == {
        "RR": "interpolate() is not better than good",
        "R@3": "interpolate() is not better than good and bad",
    }
    assert report.run.name == "interpolate()"
    assert report.depth == 3
    json.dumps(report.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="is the name of a run and of the fusion"):
        farfield.fuse_and_compare("rrf()", {"rrf()": GOOD, "b": BAD}, QRELS)


def test_a_report_with_a_search_takes_the_best_setting():
    report = farfield.fuse_and_compare(
        "interpolate()", [GOOD, BAD], QRELS, ["RR"], search=True, folds=2
    )
    assert report.tuning is not None
    assert report.fusion == report.tuning.best
    assert report.run.frame.filter(rank=1)["doc_id"].to_list() == ["a", "b", "c", "d"]
    assert report.comparison.baseline == "interpolate()"  # as it was given


# -- engines ------------------------------------------------------------------------------------

LISTS = {
    "one": {"q": {f"d{i}": 9.0 - i for i in range(8)}},
    "two": {"q": {f"d{(7 * i + 3) % 11}": 1.0 / (i + 1) for i in range(6)}},
    "three": {"q": {f"d{(5 * i) % 13}": 20.0 - i * i for i in range(7)}},
}


def by_engine(snippet, lists: list[dict[str, float]]) -> dict[str, float]:
    """What the engine's documentation says that it does with such a request."""
    body = snippet.requests[-1][1]
    found: dict[str, float] = {}

    def add(docs: list[tuple[str, float]]) -> None:
        for doc, points in docs:
            found[doc] = found.get(doc, 0.0) + points

    ranked = [sorted(docs, key=docs.get, reverse=True) for docs in lists]
    scaled = []
    for docs in lists:
        low, high = min(docs.values()), max(docs.values())
        scaled.append({doc: (score - low) / (high - low) for doc, score in docs.items()})
    if snippet.engine == "qdrant":
        assert [p["limit"] for p in body["prefetch"]] == [body["prefetch"][0]["limit"]] * len(lists)
        options = body["query"]["rrf"]
        weights = options.get("weights", [1.0] * len(lists))
        for docs, w in zip(ranked, weights, strict=True):
            add([(doc, 1 / (options["k"] + (r + 1) / w - 1)) for r, doc in enumerate(docs)])
    elif snippet.engine == "elasticsearch" and "rrf" in body["retriever"]:
        options = body["retriever"]["rrf"]
        for docs, child in zip(ranked, options["retrievers"], strict=True):
            w, c = child.get("weight", 1.0), options["rank_constant"]
            add([(doc, w / (c + r)) for r, doc in enumerate(docs, start=1)])
    elif snippet.engine == "elasticsearch":
        children = body["retriever"]["linear"]["retrievers"]
        for docs, raw, child in zip(scaled, lists, children, strict=True):
            scores = docs if child["normalizer"] == "minmax" else raw
            add([(doc, child["weight"] * score) for doc, score in scores.items()])
    else:
        (processor,) = snippet.requests[0][1]["phase_results_processors"]
        ((name, options),) = processor.items()
        combination = options["combination"]
        equal = [1 / len(lists)] * len(lists)
        weights = combination.get("parameters", {"weights": equal})["weights"]
        assert sum(weights) == pytest.approx(1.0)
        for docs, scores, w in zip(ranked, scaled, weights, strict=True):
            if name == "score-ranker-processor":
                c = combination["rank_constant"]
                add([(doc, w / (c + r)) for r, doc in enumerate(docs, start=1)])
            else:
                add([(doc, w * score) for doc, score in scores.items()])
    return found


@pytest.mark.parametrize(
    ("engine", "spec"),
    [
        ("qdrant", "rrf()"),
        ("qdrant", "rrf(k=60)"),
        ("qdrant", "rrf(dialect='qdrant')"),
        ("qdrant", "rrf(dialect='chroma')"),
        ("qdrant", "rrf(weights=[2.0, 1.0, 0.5], dialect='qdrant')"),
        ("qdrant", "rrf(weights=[2.0, 2.0, 2.0], dialect='qdrant')"),
        ("qdrant", "rrf(weights=[2.0, 2.0, 2.0])"),
        ("elasticsearch", "rrf()"),
        ("elasticsearch", "rrf(weights=[0.5, 0.2, 0.3], k=5)"),
        ("elasticsearch", "rrf(dialect='qdrant')"),
        ("elasticsearch", "rrf(dialect='chroma')"),
        ("elasticsearch", "interpolate(weights=[0.5, 0.2, 0.3])"),
        ("elasticsearch", "interpolate(norm='none')"),
        ("elasticsearch", "interpolate(absent='min')"),
        ("elasticsearch", "comb_sum(weights=[1.0, 2.0, 3.0])"),
        ("opensearch", "rrf(k=40)"),
        ("opensearch", "rrf(weights=[1.0, 2.0, 3.0])"),
        ("opensearch", "interpolate(weights=[1.0, 2.0, 3.0])"),
        ("opensearch", "comb_sum()"),
    ],
)
def test_an_engine_that_is_told_so_ranks_as_we_do(engine, spec):
    member = fusions.parse(spec)
    snippet = fusions.export(member, engine, list(LISTS), k=10, depth=20)
    theirs = by_engine(snippet, [docs["q"] for docs in LISTS.values()])
    ours = member.fuse([Run(run, name=name) for name, run in LISTS.items()], k=None).to_dict()["q"]
    assert set(theirs) == set(ours)
    scale = max(ours.values()) / max(theirs.values())
    assert {doc: score * scale for doc, score in theirs.items()} == pytest.approx(ours, abs=1e-12)
    json.loads(json.dumps(snippet.to_dict()))


def test_what_the_requests_look_like():
    snippet = fusions.export(fusions.parse("rrf()"), "qdrant", ["bm25", "dense"], k=10, depth=100)
    assert snippet.requests == (
        (
            "POST /collections/<collection>/points/query",
            {
                "prefetch": [
                    {"query": "<query of bm25>", "using": "<vector of bm25>", "limit": 100},
                    {"query": "<query of dense>", "using": "<vector of dense>", "limit": 100},
                ],
                # Ranks from 0: 1 / (61 + 0) is 1 / (60 + 1).
                "query": {"rrf": {"k": 61}},
                "limit": 10,
            },
        ),
    )
    member = fusions.parse("interpolate(weights=[0.3, 0.7])")
    (pipeline, search) = fusions.export(member, "opensearch", ["a", "b"], k=5).requests
    assert pipeline[0] == "PUT /_search/pipeline/<pipeline>"
    processor = pipeline[1]["phase_results_processors"][0]["normalization-processor"]
    assert processor == {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": [0.3, 0.7]}},
    }
    assert search[1]["query"]["hybrid"]["pagination_depth"] == 5
    dbsf = fusions.export(fusions.parse("interpolate(norm='dbsf')"), "qdrant", ["a", "b"])
    assert dbsf.requests[0][1]["query"] == {"fusion": "dbsf"}
    window = fusions.export(fusions.parse("rrf(dialect='pyserini')"), "elasticsearch", ["a", "b"])
    assert window.requests[0][1]["retriever"]["rrf"]["rank_window_size"] == 1000


@pytest.mark.parametrize(
    ("engine", "spec", "message"),
    [
        ("qdrant", "rrf(weights=[1.0, 2.0])", "Tune rrf(dialect='qdrant')"),
        ("qdrant", "interpolate()", "it has rrf, and dbsf without weights"),
        ("qdrant", "interpolate(weights=[1.0, 2.0], norm='dbsf')", "dbsf without weights"),
        ("qdrant", "interpolate(norm='dbsf', absent='min')", "it gives absent documents 0"),
        ("qdrant", "rrf(absent='last')", "it gives absent documents nothing"),
        ("elasticsearch", "rrf(weights=[1.0, 2.0], dialect='qdrant')", "these divide the rank"),
        ("elasticsearch", "rrf(k=1, dialect='qdrant')", "its constant is at least 1"),
        ("elasticsearch", "interpolate(norm='z')", "the linear retriever with minmax or none"),
        ("elasticsearch", "comb_mnz()", "cannot express comb_mnz()"),
        ("elasticsearch", "borda()", "cannot express borda()"),
        ("opensearch", "interpolate(norm='none')", "means of scores after minmax"),
        ("opensearch", "oracle()", "no engine knows which documents are relevant"),
        ("vespa", "rrf()", "no engine is called 'vespa'"),
        ("qdrnt", "rrf()", "Did you mean 'qdrant'?"),
    ],
)
def test_what_an_engine_cannot_express_is_said_and_not_printed(engine, spec, message):
    with pytest.raises(InputError) as caught:
        fusions.export(fusions.parse(spec), engine, ["a", "b"])
    assert message in str(caught.value)


def test_opensearch_takes_five_queries():
    with pytest.raises(InputError, match="takes 5 queries at most"):
        fusions.export(fusions.parse("rrf()"), "opensearch", list("abcdef"))


# -- the command line ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    farfield.write(QRELS, tmp_path / "qrels.txt")
    farfield.write(GOOD, tmp_path / "good.trec")
    farfield.write(BAD, tmp_path / "bad.trec")
    return tmp_path


def test_the_fused_run_is_written(farfield, folder):
    import farfield as library

    command = ("fuse", "rrf(k=60)", "good.trec", "bad.trec", "-k", "2", "-o", "fused.trec.gz")
    done = farfield(*command, cwd=folder)
    assert (done.status, done.err) == (0, "")
    assert done.out == "fused.trec.gz: rrf(k=60), 4 queries, 8 rows\n"
    run = library.read_run(folder / "fused.trec.gz")
    assert run == library.fuse("rrf(k=60)", [GOOD, BAD], k=2)
    found = farfield(*command, "--json", cwd=folder).json
    assert found == {
        "fusion": "rrf(k=60)",
        "runs": ["good", "bad"],
        "out": "fused.trec.gz",
        "queries": 4,
        "rows": 8,
    }


def test_the_fusion_is_evaluated_and_compared(farfield, folder):
    command = ("fuse", "interpolate()", "good.trec", "bad.trec", "--qrels", "qrels.txt", "-m", "RR")
    done = farfield(*command, cwd=folder)
    assert done.status == 0, done.err
    assert "against interpolate()" in done.out
    assert "RR: interpolate() is not better than good." in done.out
    found = farfield(*command, "--json", cwd=folder).json
    assert found["comparison"]["differences"]["bad"]["RR"]["difference"] == pytest.approx(-1 / 6)
    assert found["verdicts"] == {"RR": "interpolate() is not better than good"}


def test_the_best_setting_is_searched_for_written_and_exported(farfield, folder):
    import farfield as library

    done = farfield(
        *("fuse", "interpolate()", "good.trec", "bad.trec", "--qrels", "qrels.txt", "-m", "RR"),
        *("--tune", "--folds", "2", "--steps", "4", "-o", "best.trec"),
        *("--export", "opensearch", "--figure", "curve.html"),
        cwd=folder,
    )
    assert done.status == 0, done.err
    assert "Tuned over 5 settings, 2 folds" in done.out
    assert "best.trec: interpolate(weights=[0.75, 0.25]), 4 queries, 12 rows" in done.out
    assert '"weights": [\n              0.75,' in done.out
    assert "0.001 in OpenSearch" in done.err
    run = library.read_run(folder / "best.trec")
    assert run.frame.filter(rank=1)["doc_id"].to_list() == ["a", "b", "c", "d"]
    assert "plotly" in (folder / "curve.html").read_text()


def test_a_request_alone_needs_no_runs_to_be_read(farfield, folder):
    done = farfield("fuse", "rrf", "bm25.trec", "dense.trec", "--export", "qdrant", cwd=folder)
    assert done.status == 0
    assert done.out.startswith("POST /collections/<collection>/points/query\n{")
    assert "<query of bm25>" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rrf", "good.trec", "bad.trec"], "Give -o FILE to write it, --qrels FILE to evaluate"),
        (["rff", "good.trec", "bad.trec", "-o", "x.trec"], "Did you mean 'rrf'?"),
        (["rrf", "good.trec", "-o", "x.trec"], "was given 1 run, expected at least 2"),
        (["rrf", "good.trec", "bad.trec", "--tune", "-o", "x.trec"], "--tune needs judgements"),
        (
            ["rrf", "good.trec", "bad.trec", "-m", "RR", "-o", "x.trec"],
            "--measure needs judgements",
        ),
        (["rrf", "good.trec", "bad.trec", "-o", "x.trec", "--figure", "x.html"], "Give --tune"),
        (
            ["borda", "good.trec", "bad.trec", "-o", "x.trec", "--export", "qdrant"],
            "cannot express",
        ),
        (["rrf", "good.trec", "bad.trec", "-o", "x.doc"], "stands for no format"),
        (["rrf", "good.trec", "no.trec", "-o", "x.trec"], "there is no such file"),
        (["oracle", "good.trec", "bad.trec", "-o", "x.trec"], "needs judgements"),
        (
            ["rrf", "good.trec", "bad.trec", "--qrels", "qrels.txt", "--tune", "--folds", "9"],
            "folds is 9 for 4 judged queries",
        ),
    ],
)
def test_bad_input_ends_with_a_message_and_status_2(farfield, folder, arguments, message):
    before = {path.name for path in folder.iterdir()}
    done = farfield("fuse", *arguments, cwd=folder)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert message in done.err
    assert {path.name for path in folder.iterdir()} == before


# -- real runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "recall"),
    [(["BM25", "ANCE"], 0.8130), (["BM25RM3", "BM25_docT5q", "ANCE"], 0.8426)],
)
def test_the_hybrid_beats_every_member_on_trec_dl_2019(real_data, names, recall):
    files = [real_data / "runs" / "dl19" / f"{name}.2019.res.gz" for name in names]
    qrels = real_data / "msmarco" / "qrels.dl19-passage.txt"
    report = farfield.fuse_and_compare("rrf()", files, qrels, ["R@1000", "R(rel=2)@1000"])
    table = report.comparison.table
    assert len(table) == 2 * len(names)
    # Every member is below the hybrid: the differences from it are negative, all of the interval,
    # and significant after correction.
    assert (table["difference"] < 0).all()
    assert (table["high"] < 0).all()
    assert (table["p_adjusted"] < 0.01).all()
    for verdict in report.verdicts.values():
        assert verdict == "rrf() is better than every run, and significantly so"
    means = report.comparison.evaluation.summary.filter(system="rrf()", measure="R@1000")
    assert round(means["mean"][0], 4) == recall


def test_on_trec_dl_2019_tuned_weights_do_not_hold_up(real_data):
    files = [real_data / "runs" / "dl19" / f"{name}.2019.res.gz" for name in ("BM25", "ANCE")]
    answer = farfield.tune(real_data / "msmarco" / "qrels.dl19-passage.txt", files)
    means = dict(answer.summary.select("system", "mean").iter_rows())
    best = answer.curve.filter(pl.col("best"))["mean"][0]
    # Chosen on all queries a weight seems to gain 0.014; on queries not used for it, nothing.
    assert str(answer.best) == "interpolate(weights=[0.3, 0.7])"
    assert round(best - means["interpolate()"], 3) == 0.014
    assert means["tuned"] < best
    assert answer.gain["p"] > 0.5
    assert means["best per query"] > best
