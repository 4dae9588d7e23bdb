"""Allocating: what policies are worth, what is learned from what, the lab, the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import farfield
from farfield import Qrels, Queries, Run, allocations, lab, stats
from farfield.allocations.merge import merge
from farfield.cli import app
from farfield.errors import InputError
from farfield.io import write_collection
from farfield.questions._allocate_regime import regime
from farfield.questions._allocate_trials import draw_seeds, fold, try_out
from farfield.questions.allocate import BEST_FRACTION

A = Run({"p": {"a1": 9.0, "a2": 8.0}, "q": {"a3": 7.0, "a4": 6.0}, "r": {"a1": 2.0}}, name="a")
B = Run({"p": {"b1": 5.0, "b2": 4.0}, "q": {"b1": 9.5, "b3": 9.0}, "r": {"b2": 1.0}}, name="b")
QRELS = Qrels({"p": {"a1": 1, "b1": 1}, "q": {"a3": 1, "b3": 1}, "r": {"a1": 1, "x": 0}})


@pytest.fixture(scope="module")
def world():
    return lab.make(passages=600, train=150, test=300, seed=0)


@pytest.fixture(scope="module")
def by_source(world):
    """The lab by its three writers, who write about the same things."""
    return farfield.allocate(world.collection, retriever="bm25()", rel=2, k=6, seeds=30, draws=3)


@pytest.fixture(scope="module")
def files(world, by_source, tmp_path_factory) -> Path:
    """The runs of each source, the judgements and the queries as files."""
    folder = tmp_path_factory.mktemp("sources")
    for run in by_source.lists.runs:
        farfield.write(run, folder / f"{run.name}.trec")
    farfield.write(world.collection.qrels["test"], folder / "qrels.tsv")
    queries = world.collection.queries_of("test").frame
    farfield.write(Queries(queries.with_columns(item=pl.col("topic"))), folder / "queries.jsonl")
    return folder


def runs_of(folder: Path) -> list[str]:
    return [f"{name}={folder / name}.trec" for name in ("almanac", "archive", "forum")]


def recalls(answer) -> dict[str, float]:
    return dict(answer.table.select("policy", "recall").iter_rows())


# -- by hand ------------------------------------------------------------------------------------


def test_two_slots_by_hand():
    answer = farfield.allocate({"a": A, "b": B}, QRELS, k=2)
    # merge: p gets a1 a2, q gets b1 b3, r gets all. equal: p a1 b1, q a3 b1, r all.
    assert recalls(answer)["merge()"] == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert recalls(answer)["equal()"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    # The oracle: p a1 b1; of q either a3, or b1 b3; the first is the more precise.
    assert recalls(answer)["oracle()"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    precisions = dict(answer.table.select("policy", "precision").iter_rows())
    # Shown by score: of q b1 comes before a3 in an equal split, and a3 first by the oracle.
    assert precisions["equal()"] == pytest.approx((1 + 1 / 4 + 1) / 3)
    assert precisions["oracle()"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    closed = dict(answer.table.select("policy", "closed").iter_rows())
    assert (closed["merge()"], closed["equal()"], closed["oracle()"]) == (0, 1, 1)
    merged = answer.allocation("merge()").frame.filter(query_id="q")
    assert dict(merged.select("source", "budget").iter_rows()) == {"a": 0, "b": 2}
    shares = answer.shares.filter(policy="merge()")["share"].to_list()
    assert shares == pytest.approx([(1 + 0 + 1 / 2) / 3, (0 + 1 + 1 / 2) / 3])
    assert answer.run("equal()").to_dict()["q"] == {"b1": -1.0, "a3": -2.0}


def test_fractions_of_two_sources_have_their_slots():
    answer = farfield.allocate({"a": A, "b": B}, QRELS, k=2, resamples=10)
    table = answer.fractions
    assert table["share"].to_list() == [part / 10 for part in range(11)]
    assert table["slots of a"].to_list() == ["0"] * 3 + ["1"] * 5 + ["2"] * 3
    assert table["recall"][5] == pytest.approx(recalls(answer)["equal()"])
    assert answer.outcomes[BEST_FRACTION].fitted.shares == (1.0, 1.0)
    odd = farfield.allocate({"a": A, "b": B}, QRELS, k=3, resamples=10).fractions
    assert odd["slots of a"][5] == "1 or 2"


def test_values_are_those_of_the_runs(by_source, world):
    qrels = world.collection.qrels["test"]
    for policy in ("merge()", "equal()", "local()", "lse()", "oracle()"):
        found = farfield.evaluate(qrels, by_source.run(policy), ["R(rel=2)@6", "AP(rel=2)@6"])
        values = by_source.outcomes[policy]
        assert found.values("R(rel=2)@6")[0] == pytest.approx(values.recall)
        assert found.values("AP(rel=2)@6")[0] == pytest.approx(values.precision)
    rows = by_source.per_query.frame.filter(system="merge()", measure="R@6")
    kept = by_source.outcomes["merge()"].recall[by_source.tried]
    assert rows["value"].to_list() == kept.tolist()


# -- items --------------------------------------------------------------------------------------


def test_queries_of_one_item_are_resampled_together():
    rng = np.random.default_rng(0)
    runs, judged, items = {}, {}, {}
    for name in ("a", "b"):
        runs[name] = {
            f"q{i}": {f"{name}{i}-{d}": float(x) for d, x in enumerate(rng.normal(size=6))}
            for i in range(40)
        }
    for i in range(40):
        # Two queries each about one item, with the same answer.
        runs["a"][f"r{i}"], runs["b"][f"r{i}"] = runs["a"][f"q{i}"], runs["b"][f"q{i}"]
        judged[f"q{i}"] = judged[f"r{i}"] = {f"a{i}-1": 1}
        items[f"q{i}"] = items[f"r{i}"] = f"item {i}"
    sources = {name: Run(lists) for name, lists in runs.items()}
    queries = Queries({"query_id": list(items), "text": ["x"] * 80, "item": list(items.values())})
    plain = farfield.allocate(sources, Qrels(judged), k=3)
    clustered = farfield.allocate(sources, Qrels(judged), k=3, queries=queries)
    for policy in ("merge()", "equal()"):
        one, other = (a.table.filter(policy=policy).row(0, named=True) for a in (plain, clustered))
        assert one["recall"] == other["recall"]
        wide, narrow = (r["recall_high"] - r["recall_low"] for r in (other, one))
        assert 1.2 < wide / narrow < 1.7  # the root of two
    expected = stats.mean(
        clustered.outcomes["merge()"].recall, clusters=[items[q] for q in clustered.lists.query_ids]
    )
    row = clustered.table.filter(policy="merge()").row(0, named=True)
    assert row["recall_low"] == pytest.approx(expected.low)
    assert row["recall_high"] == pytest.approx(expected.high)
    assert clustered.to_dict()["items"] == 40


def test_what_is_learned_from_is_not_tried_on():
    items = np.array([0, 0, 1, 1, 2, 3, 4, 5, 5, 6])
    for learn, test in draw_seeds(items, 3, 20, seed=1):
        assert len(learn) == 3
        assert len(set(items[learn])) == 3  # each seed is of another item
        assert not set(items[learn]) & set(items[test])
        assert set(items[learn]) | set(items[test]) == set(items)
    assert len({tuple(learn) for learn, _ in draw_seeds(items, 3, 20, seed=1)}) > 10
    tried = np.concatenate([test for _, test in fold(items, 3, seed=1)])
    assert sorted(tried) == list(range(10))
    for learn, test in fold(items, 3, seed=1):
        assert not set(items[learn]) & set(items[test])


def test_a_policy_sees_no_label_of_what_it_is_tried_on(by_source):
    seen: list[tuple[set[str], set[str]]] = []

    @dataclass(frozen=True, kw_only=True)
    class spy(merge):
        """Notes what it learns from and what it is tried on."""

        known: ClassVar[set[str]] = set()

        @property
        def learns(self):
            return True

        def fit(self, log, labels, k):
            spy.known = set(labels.lists.query_ids)
            return self

        def pick(self, lists, k, labels=None):
            seen.append((spy.known, set(lists.query_ids)))
            assert labels is None
            return self._pick(lists, k, None)

    trials = fold(np.arange(len(by_source.lists.query_ids)), 4, seed=0)
    found = try_out(spy(), by_source.lists, 6, labels=by_source.labels, trials=trials)
    assert len(seen) == 4
    assert all(not known & tried for known, tried in seen)
    assert found.recall == pytest.approx(by_source.outcomes["merge()"].recall)
    assert (found.picks.source == by_source.outcomes["merge()"].picks.source).all()


def test_seeds_are_means_over_draws(by_source):
    trials = by_source.trials
    assert len(trials) == 3
    policy = allocations.parse("level()")
    sums, counts = np.zeros((2, len(by_source.items)))
    for learn, test in trials:
        part = by_source.labels.take(test)
        fitted = policy.fit(by_source.lists, by_source.labels.take(learn), 6)
        sums[test] += part.recall(fitted.pick(part.lists, 6))
        counts[test] += 1
    with np.errstate(invalid="ignore"):
        expected = sums / counts
    assert by_source.outcomes["level()"].recall == pytest.approx(expected, nan_ok=True)
    assert by_source.tried.sum() == (counts > 0).sum()


# -- sweeps -------------------------------------------------------------------------------------


def test_sweeps_over_budgets_and_seeds(by_source, world):
    answer = farfield.allocate(
        {run.name: run for run in by_source.lists.runs},
        world.collection.qrels["test"],
        rel=2,
        k=6,
        policies=["local()", "softmax()", "fraction()"],
        seeds=20,
        draws=3,
        budgets=[2, 6, 12],
        seed_sizes=[10, 40],
        resamples=50,
    )
    table = answer.by_budget
    assert table["k"].unique().to_list() == [2, 6, 12]
    at_six = dict(table.filter(k=6).select("policy", "recall").iter_rows())
    assert at_six == pytest.approx(recalls(answer))
    best = table.filter(policy="oracle()").sort("k")["recall"]
    assert best.is_sorted()
    seeds = answer.by_seeds
    assert seeds.select("policy", "seeds").rows() == [
        (p, n) for n in (10, 40) for p in ("fraction()", "softmax()")
    ]
    row = seeds.filter(policy="softmax()", seeds=40).row(0, named=True)
    means, over = [], []
    for learn, test in draw_seeds(answer.items, 40, 3, 0):
        part = answer.labels.take(test)
        fitted = allocations.parse("softmax()").fit(answer.lists, answer.labels.take(learn), 6)
        means.append(part.recall(fitted.pick(part.lists, 6)).mean())
        over.append(means[-1] - answer.outcomes["equal()"].recall[test].mean())
    assert row["recall"] == pytest.approx(np.mean(means))
    assert row["spread"] == pytest.approx(np.std(means, ddof=1))
    assert (row["least"], row["most"]) == (min(means), max(means))
    assert row["over equal()"] == pytest.approx(np.mean(over))
    text = json.dumps(answer.to_dict(), allow_nan=False)
    assert {"by_budget", "by_seeds", "policies"} <= set(json.loads(text))
    titles = [note.text for note in answer.figure().layout.annotations]
    assert any("by budget" in title for title in titles)
    assert any("labelled queries" in title for title in titles)


def test_contrasts_with_any_policy(by_source):
    table = by_source.against("fraction()")
    row = table.filter(policy="softmax()").row(0, named=True)
    one, other = (by_source.outcomes[n].recall for n in ("softmax()", "fraction()"))
    assert row["difference"] == pytest.approx(np.nanmean(one - other))
    assert "oracle()" not in table["policy"].to_list()
    # What is the same by construction is no comparison to correct for.
    assert "interleave()" not in by_source.against("equal()")["policy"].to_list()
    with pytest.raises(InputError, match="'locall' was not tried. Did you mean 'local"):
        by_source.against("locall")


def test_contrasts_where_all_policies_find_the_same():
    whole = farfield.allocate({"a": A, "b": B}, QRELS, k=100, resamples=10)
    for policy in whole.outcomes:  # bounds too
        found = whole.against(policy)
        assert len(found) == 0
        assert {"policy", "difference", "low", "high", "p", "p_adjusted"} <= set(found.columns)
    assert whole.recommended == "local()"


def test_contrasts_are_of_queries_that_all_policies_were_tried_on():
    # Two queries to learn from, drawn once: what is learned has no value for these.
    ids = [f"q{i}" for i in range(8)]
    a = Run({q: {f"a{q}": 2.0, f"c{q}": 1.0} for q in ids})
    b = Run({q: {f"b{q}": 1.0} for q in ids})
    qrels = Qrels({q: {f"a{q}": 1} for q in ids})
    answer = farfield.allocate({"a": a, "b": b}, qrels, k=3, seeds=2, draws=1, resamples=10)
    assert answer.tried.sum() == 6
    # All results of all sources: every policy has the same recall where it was tried.
    assert len(answer.against("equal()")) == 0
    assert "the same recall" in answer.recommendation


# -- words --------------------------------------------------------------------------------------


def test_not_separable_is_said(by_source):
    row = by_source.table.filter(policy=by_source.recommended).row(0, named=True)
    said = "not separable from equal split" in by_source.recommendation
    assert said == (row["p"] is not None and row["p"] >= 0.05)
    whole = farfield.allocate({"a": A, "b": B}, QRELS, k=100)  # all results, whatever the policy
    assert "not separable from equal split (the same recall)" in whole.recommendation
    assert whole.table["over_equal"].null_count() == len(whole.table)
    assert whole.table["closed"].null_count() == len(whole.table)  # there is no way to go
    json.dumps(whole.to_dict(), allow_nan=False)


def test_queries_that_nobody_answers_count_as_0():
    found = recalls(
        farfield.allocate({"a": A, "b": B}, Qrels({"p": {"a1": 1}, "z": {"a1": 1}}), k=4)
    )
    assert set(found.values()) == {0.5}
    alone = farfield.allocate({"a": A, "b": B}, Qrels({"p": {"a2": 1}}), k=2)
    assert alone.table["recall_low"].is_nan().all()  # one query says nothing of its spread
    json.dumps(alone.to_dict(), allow_nan=False)
    alone.figure()


def test_without_judgements_there_are_shares_and_runs():
    answer = farfield.allocate({"a": A, "b": B}, k=2)
    assert answer.recommended == "local()"
    assert "nothing is measured" in answer.recommendation
    assert set(answer.outcomes) == {"merge()", "equal()", "interleave()", "local()", "lse()"}
    assert len(answer.run()) == 6
    assert "policies" not in answer.to_dict()
    with pytest.raises(InputError, match="without judgements"):
        answer.table  # noqa: B018
    with pytest.raises(InputError, match="softmax\\(\\) learns from labels"):
        farfield.allocate({"a": A, "b": B}, k=2, policies=["softmax()"])
    assert farfield.allocate({"a": A, "b": B}, k=2, need="any").recommended == "merge()"


def test_a_certain_improvement_is_recommended():
    # Every query has its answer first in b, whose scores are far below those of a.
    a = Run({f"q{i}": {f"a{i}-{d}": 9.0 - d for d in range(4)} for i in range(30)})
    b = Run({f"q{i}": {f"b{i}-{d}": 1.0 - d / 9 for d in range(4)} for i in range(30)})
    qrels = Qrels({f"q{i}": {f"b{i}-0": 1} for i in range(30)})
    answer = farfield.allocate({"a": a, "b": b}, qrels, k=2, need="any")
    assert answer.default == "merge()"
    assert answer.recommended != "merge()"
    assert recalls(answer)[answer.recommended] == 1
    assert "100% of the way" in answer.recommendation


def test_the_hint_by_hand():
    # First scores of three queries in two sources; left of them after both means: +-1, 0, -+1.
    firsts = np.array([[4.0, 2.0], [3.0, 3.0], [2.0, 4.0]])
    sources = {
        name: Run(
            {
                f"q{i}-{copy}": {f"{name}{d}": firsts[i, s] - d / 4 for d in range(12)}
                for i in range(3)
                for copy in range(4)
            }
        )
        for s, name in enumerate("ab")
    }
    found = regime(allocations.gather(sources))
    # Squares: four of 1 in each four copies of three queries; Q (C - 1) = 12. The fall to rank 10
    # is 9 / 4.
    assert found.rho == pytest.approx(np.sqrt(16 / 12) / (9 / 4))
    assert found.need == "each"
    few = regime(allocations.gather({"a": A, "b": B}))
    assert (few.rho, few.need) == (None, None)
    assert "cannot be told" in few.text


# -- the lab ------------------------------------------------------------------------------------


def test_the_lab_says_who_writes_alike_and_who_is_topical(world, by_source):
    assert by_source.regime.need == "each"
    topical = farfield.allocate(
        world.collection, retriever="bm25()", by="topic", need="any", rel=2, k=8, seeds=60, draws=3
    )
    assert topical.regime.need == "any"
    found, alike = recalls(topical), recalls(by_source)
    # Levelling costs among topics and gains among writers.
    assert found["merge()"] > found["local()"] + 0.1 > found["equal()"]
    assert alike["local()"] > alike["merge()"]
    # No default loses to naive merging, also not what is learned.
    assert topical.default == "calibrated()"
    assert found["calibrated()"] > found["merge()"] - 0.005
    # Which source answers: the topic of the query is where the best results come from.
    topics = dict(world.queries.select("query_id", "topic").iter_rows())
    truth = np.array([topical.sources.index(topics[q]) for q in topical.lists.query_ids])
    picks = topical.outcomes["merge()"].picks
    assert (picks.source[:, 0] == truth).mean() > 0.93
    assert (picks.budgets.argmax(axis=1) == truth).mean() > 0.93


def test_the_labs_writers_that_answer_are_recovered(world, by_source):
    truth = dict(world.truth.select("query_id", "sources").iter_rows())
    answers = np.array(
        [[s in truth[q].split("+") for s in by_source.sources] for q in by_source.lists.query_ids]
    )
    # Relevant results are found in no source but those that were planted.
    hits = by_source.labels.hits.any(axis=2)
    assert not (hits & ~answers).any()
    assert hits[answers].mean() > 0.9
    # The oracle takes first from those, wherever it finds anything.
    picks, some = by_source.outcomes["oracle()"].picks, by_source.outcomes["oracle()"].recall > 0
    needed = answers[np.arange(len(answers)), picks.source[:, 0]]
    assert needed[some & (answers.sum(axis=1) == 1)].mean() > 0.75
    # And without labels the best result is from one of them more often than by chance.
    first = by_source.outcomes["local()"].picks.source[:, 0]
    found = answers[np.arange(len(answers)), first]
    assert stats.mean(found - answers.mean(axis=1)).low > 0


# -- collections, labels, titles, the bridge ----------------------------------------------------


@pytest.fixture(scope="module")
def shops():
    """Two shops whose records have titles and descriptions; twelve things are in both."""
    rng = np.random.default_rng(3)
    words = [f"word{i}" for i in range(300)]

    def table(prefix, things):
        rows = []
        for thing in things:
            own = [f"name{thing}", *rng.choice(words, 2)]
            text = [f"name{thing}" if rng.random() < 0.7 else "item", *rng.choice(words, 6)]
            rows.append({"id": f"{prefix}{thing}", "title": " ".join(own), "text": " ".join(text)})
        return pl.DataFrame(rows)

    matches = pl.DataFrame(
        {"left": [f"l{i}" for i in range(12)], "right": [f"r{i}" for i in range(12)]}
    )
    tables = {"left": table("l", range(40)), "right": table("r", [*range(12), *range(50, 80)])}
    return farfield.multi_source(
        tables, matches, id="id", title=["title"], text=["text"]
    ).collection


def test_titles_stand_in_for_labels(shops):
    answer = farfield.allocate(shops, retriever="bm25()", labels="titles", k=4)
    assert (answer.seeds.asked.sum(axis=1) == 1).all()
    assert not set(answer.seeds.lists.query_ids) & set(answer.lists.query_ids)
    assert not answer.outcomes["softmax()"].fitted.learns
    assert "calibrated()" not in answer.outcomes  # titles say nothing of other sources
    assert answer.default == "softmax()"
    assert len(np.unique(answer.items)) == 12


def test_labels_of_other_queries(shops):
    judged = shops.qrels["test"]
    ids = judged.query_ids.to_list()
    known = Qrels(judged.frame.filter(pl.col("query_id").is_in(ids[:3])))
    answer = farfield.allocate(shops, retriever="bm25()", labels=known, k=4)
    items = dict(shops.queries.frame.select("query_id", "item").iter_rows())
    assert len(answer.seeds) == 3
    assert not {items[q] for q in ids[:3]} & {items[q] for q in answer.lists.query_ids}
    assert answer.trials == ()
    runs = {run.name: run for run in answer.lists.runs}
    again = farfield.allocate(runs, judged, labels=known, queries=shops.queries, k=4)
    assert recalls(again)["softmax()"] == pytest.approx(recalls(answer)["softmax()"])
    with pytest.raises(InputError, match="all judged queries are labelled"):
        farfield.allocate(runs, known, labels=known, queries=shops.queries)


def test_the_bridge_is_compared_with_none(shops):
    answer = farfield.allocate(shops, retriever="bm25()", k=4, bridge=2, policies=["lse()"])
    plain = farfield.allocate(shops, retriever="bm25()", k=4, policies=["lse()"])
    table = answer.bridged
    assert dict(table.select("policy", "without").iter_rows()) == pytest.approx(recalls(plain))
    assert dict(table.select("policy", "with").iter_rows()) == pytest.approx(recalls(answer))
    row = table.row(0, named=True)
    assert row["difference"] == pytest.approx(row["with"] - row["without"])
    assert "bridged" in answer.to_dict()
    with pytest.raises(InputError, match="no bridge was asked for"):
        plain.bridged  # noqa: B018
    with pytest.raises(InputError, match="compares texts"):
        farfield.allocate({"a": A, "b": B}, QRELS, bridge=2)


# -- the command --------------------------------------------------------------------------------


def test_the_command_on_run_files(farfield, files, tmp_path):
    done = farfield(
        *("allocate", *runs_of(files), "--qrels", files / "qrels.tsv", "--rel", 2, "-k", 6),
        *("--queries", files / "queries.jsonl", "--item", "item", "--seeds", 4, "--draws", 2),
        *("--budgets", "3,6", "--seed-sizes", "3,5", "--resamples", 50),
        *("--figure", tmp_path / "f.html", "--run", tmp_path / "run.trec"),
        *("--allocation", tmp_path / "a.csv", "--use", "local()", "--table", "by_seeds"),
        *("-o", tmp_path / "seeds.csv", "--per-query", tmp_path / "values.csv"),
    )
    assert done.status == 0, done.err
    for said in ("oracle()", "best fraction in hindsight", "Share of the budget", "Use ", "rho"):
        assert said in done.out
    assert "2 times from 4 queries" in done.out
    assert "k = 3" in done.out
    assert (tmp_path / "f.html").stat().st_size > 10_000
    rows = pl.read_csv(tmp_path / "a.csv")
    assert rows.group_by("query_id").agg(pl.col("budget").sum())["budget"].max() == 6
    assert "spread" in pl.read_csv(tmp_path / "seeds.csv").columns
    values = pl.read_csv(tmp_path / "values.csv")
    assert {"R@6", "AP@6"} == set(values["measure"])


def test_the_command_says_json_and_nothing_else(farfield, files):
    done = farfield(
        *("allocate", *runs_of(files), "--qrels", files / "qrels.tsv", "--json", "--need", "any"),
        *("--resamples", 20),
    )
    found = done.json
    assert found["sources"] == ["almanac", "archive", "forum"]
    assert {"policies", "shares", "rho", "hint", "recommendation"} <= set(found)
    assert "look alike" in done.err  # the warning that the need does not fit
    assert "fractions" not in found


def test_the_command_on_a_collection(farfield, shops, tmp_path):
    write_collection(shops, tmp_path / "shops")
    done = farfield(
        *("allocate", tmp_path / "shops", "--retriever", "bm25()", "-k", 4, "--labels", "titles"),
        *("--bridge", 2, "--resamples", 20, "--runs", tmp_path / "runs"),
    )
    assert done.status == 0, done.err
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [
        "left.parquet",
        "right.parquet",
    ]
    assert "Fixed shares" in done.out
    assert "without and with the bridge" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a=missing.trec", "b=missing2.trec"], "missing.trec"),
        (["{one}"], "expected at least 2"),
        (["a={one}", "a={two}"], "two sources are called 'a'"),
        (["a={one}", "b={one}"], "is in 'a' and in 'b'"),
        (["=x", "b={one}"], "is no source"),
        (["a={one}", "b={two}", "--need", "all"], "Expected each or any"),
        (["a={one}", "b={two}", "-p", "locl()"], "Did you mean 'local'"),
        (["a={one}", "b={two}", "-p", "local()", "-p", "local()"], "given twice"),
        (["a={one}", "b={two}", "--seeds", "5", "--labels", "{qrels}"], "not both"),
        (["a={one}", "b={two}", "--qrels", "{qrels}", "--seeds", "5000"], "5000 for 300"),
        (
            ["a={one}", "b={two}", "--qrels", "{qrels}", "--seeds", "5", "--draws", "0"],
            "draws is 0",
        ),
        (["a={one}", "b={two}", "--labels", "titles"], "searched for like queries"),
        (["a={one}", "b={two}", "--qrels", "{qrels}", "--item", "x"], "column of the queries"),
        (["a={one}", "b={two}", "--retriever", "bm25()"], "one collection"),
        (["a={one}", "b={two}", "--table", "budget"], "Did you mean 'by_budget'"),
        (["a={one}", "b={two}", "--table", "by_seeds"], "--seed-sizes"),
        (["a={one}", "b={two}", "--budgets", "ten"], "whole numbers"),
        (["a={one}", "b={two}", "--budgets", "0,5"], "k is 0"),
        (["a={one}", "b={two}", "--use", "best()", "--run", "x.trec"], "was not tried"),
        (["a={one}", "b={two}", "-o", "x.csv"], "without judgements"),
        (["{folder}"], "needs a retriever"),
    ],
)
def test_bad_input_is_said(files, arguments, said):
    names = {
        "one": files / "almanac.trec",
        "two": files / "forum.trec",
        "qrels": files / "qrels.tsv",
        "folder": files,
    }
    given = [a.format(**names) for a in arguments]
    done = CliRunner().invoke(app, ["allocate", *given])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)


def test_bad_input_ends_with_status_2(farfield, files):
    done = farfield("allocate", f"a={files / 'almanac.trec'}")
    assert done.status == 2
    assert done.err.startswith("error: 1 source was given")


# -- real data ----------------------------------------------------------------------------------


def test_products_of_two_shops(real_data):
    folder = real_data / "products/abt-buy"
    made = farfield.multi_source([folder / "abt.csv", folder / "buy.csv"], folder / "gt.csv")
    answer = farfield.allocate(made.collection, retriever="bm25()", seeds=30)
    assert answer.regime.need == "each"
    over = dict(answer.against("equal()").select("policy", "difference").iter_rows())
    assert over["local()"] > 0
    learned = answer.against("fraction()").filter(policy="softmax()").row(0, named=True)
    assert learned["difference"] > 0
    assert learned["p_adjusted"] < 0.05


def test_sources_with_topics_want_pooled_statistics(real_data):
    made = farfield.by_source(real_data / "beir/medquad", "source", most=600)
    split = next(iter(made.collection.qrels))
    found = {}
    for statistics in ("pooled", "own"):
        answer = farfield.allocate(
            made.collection,
            retriever="bm25()",
            statistics=statistics,
            split=split,
            need="any",
            policies=["merge()"],
            resamples=20,
        )
        found[statistics] = recalls(answer)["merge()"]
    assert answer.regime.need == "any"
    assert found["pooled"] > found["own"] + 0.03
