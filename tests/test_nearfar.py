"""Near and far of trained systems: values worked out by hand, laws, the command line."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.stats

import farfield as ff
from farfield import stats
from farfield.errors import InputError
from farfield.questions._nearfar_differences import who_loses_less

# Two groups of test queries, a (a1, a2) and b (b1, b2); in the fold a, the group a is left out.
PARTITION = ff.Partition(
    [
        {"fold": fold, "query_id": query, "role": "far" if query[0] == fold else "near"}
        for fold in "ab"
        for query in ("a1", "a2", "b1", "b2")
    ]
    + [{"fold": fold, "query_id": f"t{fold}", "role": "train"} for fold in "ab"]
)
QRELS = ff.Qrels(
    {"query_id": ["a1", "a2", "b1", "b2"], "doc_id": ["d1", "d2", "d3", "d4"], "relevance": [1] * 4}
)


def run(name: str, **ranks: int) -> ff.Run:
    """A run in which each query has its relevant document at a rank."""
    relevant = dict(QRELS.frame.select("query_id", "doc_id").iter_rows())
    rows = [
        {"query_id": query, "doc_id": relevant[query] if n == rank else f"x{n}", "score": -float(n)}
        for query, rank in ranks.items()
        for n in range(1, rank + 1)
    ]
    return ff.Run(rows, name=name)


# RR of model A (fold a): a1 1/2, a2 1/4, b1 1, b2 1/2. Of model B (fold b): 1, 1/2, 1/4, 1/2.
MODEL_A = run("A", a1=2, a2=4, b1=1, b2=2)
MODEL_B = run("B", a1=1, a2=2, b1=4, b2=2)
TRAINED = [("dense", "a", 0, MODEL_A), ("dense", "b", 0, MODEL_B), ("bm25", None, 0, MODEL_A)]


@pytest.fixture(scope="module")
def answer() -> ff.NearFar:
    train = ff.Qrels({"query_id": ["ta", "tb"], "doc_id": ["d1", "d9"], "relevance": [1, 1]})
    return ff.near_far(PARTITION, QRELS, TRAINED, ["RR", "ASL"], train_qrels=train)


def row(frame: pl.DataFrame, **wanted: object) -> dict[str, object]:
    (found,) = frame.filter(
        pl.all_horizontal(pl.col(name) == value for name, value in wanted.items())
    ).iter_rows(named=True)
    return found


def test_near_and_far_average_the_same_queries(answer):
    found = row(answer.table, system="dense", measure="RR", average="micro")
    # far: a1, a2 from fold a, b1, b2 from fold b. near: the other way round.
    assert found["far"] == pytest.approx((1 / 2 + 1 / 4 + 1 / 4 + 1 / 2) / 4)
    assert found["near"] == pytest.approx((1 + 1 / 2 + 1 + 1 / 2) / 4)
    assert found["delta"] == pytest.approx(found["far"] / found["near"] - 1)
    assert found["delta"] == pytest.approx(-0.5)
    assert found["near_low"] <= found["near"] <= found["near_high"]


def test_an_untrained_system_loses_nothing(answer):
    for average in ("micro", "macro"):
        found = row(answer.table, system="bm25", measure="RR", average=average)
        assert found["delta"] == found["delta_low"] == found["delta_high"] == 0.0
        assert found["near"] == found["far"]


def test_macro_counts_every_group_alike():
    partition = ff.Partition(
        PARTITION.frame.filter(pl.col("query_id") != "a2")
    )  # one query in group a, two in b
    qrels = ff.Qrels(QRELS.frame.filter(pl.col("query_id") != "a2"))
    found = ff.near_far(partition, qrels, TRAINED, ["RR"]).table
    far = {"a": 1 / 2, "b": (1 / 4 + 1 / 2) / 2}
    assert row(found, system="dense", average="macro")["far"] == pytest.approx(
        sum(far.values()) / 2
    )
    assert row(found, system="dense", average="micro")["far"] == pytest.approx(1.25 / 3)


def test_the_leave_one_out_matrix(answer):
    found = {
        (r["left_out"], r["group"]): r["mean"]
        for r in answer.matrix.filter(
            (pl.col("system") == "dense") & (pl.col("measure") == "RR")
        ).iter_rows(named=True)
    }
    assert found == {
        ("a", "a"): pytest.approx(3 / 8),
        ("a", "b"): pytest.approx(3 / 4),
        ("b", "a"): pytest.approx(3 / 4),
        ("b", "b"): pytest.approx(3 / 8),
    }
    loss = row(answer.losses, system="dense", measure="RR", group="a")
    assert (loss["avg_in"], loss["out"]) == (pytest.approx(3 / 4), pytest.approx(3 / 8))
    assert loss["rel_loss"] == pytest.approx(0.5)


def test_a_loss_is_positive_also_where_less_is_better(answer):
    # ASL (irrelevant documents above): near 0, 1 and 0, 1; far 1, 3 and 3, 1.
    found = row(answer.table, system="dense", measure="ASL", average="micro")
    assert (found["near"], found["far"]) == (pytest.approx(0.5), pytest.approx(2.0))
    loss = row(answer.losses, system="dense", measure="ASL", group="a")
    assert loss["rel_loss"] == pytest.approx(2.0 / 0.5 - 1)
    assert loss["rel_loss_low"] <= loss["rel_loss"] <= loss["rel_loss_high"]


def test_memorised_documents_are_told_apart(answer):
    # d1 is relevant to the training query ta: a1 is seen, the others are not.
    seen = row(answer.by_memory, system="dense", measure="RR", seen=True)
    assert (seen["queries"], seen["near"], seen["far"]) == (1, 1.0, 0.5)
    assert row(answer.by_memory, system="dense", measure="RR", seen=False)["queries"] == 3


def test_several_seeds_are_averaged_and_widen_the_interval():
    rng = np.random.default_rng(0)
    near = rng.random((200, 3)) * 0.01 + np.array([0.4, 0.5, 0.6])
    far = near * 0.8
    several = stats.relative_change(near, far)
    single = stats.relative_change(near.mean(axis=1), far.mean(axis=1))
    assert several.before.value == pytest.approx(single.before.value)
    assert several.relative.value == pytest.approx(-0.2)
    width = [one.before.high - one.before.low for one in (several, single)]
    assert width[0] > 5 * width[1]
    assert several.relative.high - several.relative.low < 1e-9  # the loss is the same in each


def test_the_interval_of_the_change_covers_what_is_true():
    """Of 200 samples of 60 queries, about 95 % have the true ratio in their interval."""
    rng = np.random.default_rng(1)
    held = 0
    for at in range(200):
        near = rng.beta(2, 2, 60)
        far = near * rng.choice([0.5, 1.0], 60)  # on average three quarters
        found = stats.relative_change(near, far, resamples=300, seed=at).relative
        held += found.low <= -0.25 <= found.high
    assert 0.90 <= held / 200 <= 0.985


def test_restrain_has_near_and_far_in_two_folds_of_the_same_queries():
    rows = [
        {"fold": fold, "query_id": query, "role": role}
        for fold, role in (("interpolation", "near"), ("extrapolation", "far"))
        for query in ("a1", "a2", "b1", "b2")
    ]
    runs = [("dense", "interpolation", 0, MODEL_B), ("dense", "extrapolation", 0, MODEL_A)]
    found = ff.near_far(ff.Partition(rows), QRELS, runs, ["RR"]).table
    micro = row(found, average="micro")
    assert (micro["near"], micro["far"]) == (pytest.approx(2.25 / 4), pytest.approx(2.25 / 4))


def test_different_queries_near_and_far_are_two_samples():
    roles = {"a1": "near", "a2": "near", "b1": "far", "b2": "far"}
    rows = [{"fold": "from 2020", "query_id": q, "role": r} for q, r in roles.items()]
    found = ff.near_far(ff.Partition(rows), QRELS, [("s", None, 0, MODEL_A)], ["RR"]).table
    (only,) = found.iter_rows(named=True)
    assert (only["near"], only["far"]) == (pytest.approx(3 / 8), pytest.approx(3 / 4))
    assert only["delta"] == pytest.approx(1.0)


def test_two_systems_are_compared_on_the_same_queries(answer):
    found = row(answer.differences, measure="RR", system="dense", other="bm25")
    assert found["near"] == pytest.approx(0.75 - 0.5625)
    assert found["far"] == pytest.approx(0.375 - 0.5625)
    assert found["delta"] == pytest.approx(-0.5)
    assert found["delta_low"] <= -0.5 <= found["delta_high"]
    # Each query's part in delta: (far - near / 2) / 0.75, beside -0.5; bm25 has none.
    moved = -0.5 + np.array([0, 0, (1 / 4 - 1 / 2) / 0.75, (1 / 2 - 1 / 4) / 0.75])
    assert found["p"] == pytest.approx(scipy.stats.ttest_1samp(moved, 0).pvalue)
    assert found["p_adjusted"] == found["p"]  # one pair


def test_comparing_the_other_way_round_turns_the_sign():
    turned = [TRAINED[2], *TRAINED[:2]]
    one, other = (ff.near_far(PARTITION, QRELS, of, ["RR"]).differences for of in (TRAINED, turned))
    for name in ("near", "far", "delta"):
        assert other[name][0] == pytest.approx(-one[name][0])
        assert other[f"{name}_low"][0] == pytest.approx(-one[f"{name}_high"][0])
    assert other["p"][0] == pytest.approx(one["p"][0])


def test_systems_that_change_alike_are_rarely_told_apart_and_the_interval_covers():
    rng = np.random.default_rng(0)
    clear = covered = 0
    for trial in range(300):
        hard = rng.beta(2, 1, 60)  # what queries have in common
        changes = []
        for far in (0.8, 0.8):
            near = hard * rng.uniform(0.6, 1.0, 60)
            changes.append(
                stats.relative_change(near, near * far * rng.uniform(0.7, 1.3, 60), seed=trial)
            )
        found = stats.change_difference(*changes)
        clear += found.p < 0.05
        covered += found.relative.low <= 0.0 <= found.relative.high
    assert 4 <= clear <= 27  # 15 expected
    assert covered >= 270  # of 285


def test_a_clear_difference_is_found():
    rng = np.random.default_rng(1)
    near = rng.beta(2, 1, 200)
    robust, frail = (near * share * rng.uniform(0.9, 1.1, 200) for share in (0.95, 0.8))
    found = stats.change_difference(
        stats.relative_change(near, robust), stats.relative_change(near, frail)
    )
    assert found.p < 0.0001
    assert 0.1 < found.relative.low < found.relative.value < found.relative.high < 0.2


def test_changes_of_other_queries_cannot_be_compared():
    one, two = (stats.relative_change(np.ones(n), np.ones(n)) for n in (5, 6))
    grouped = stats.relative_change(np.ones(5), np.ones(5), groups=list("aabbb"))
    for other in (two, grouped, stats.relative_change(np.ones(5), np.ones(5), resamples=10)):
        with pytest.raises(InputError, match="not of the same queries"):
            stats.change_difference(one, other)


def changes_of(measure: str, **deltas: float) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"system": name, "measure": measure, "average": "micro", "delta": delta}
            for name, delta in deltas.items()
        ]
    )


@pytest.mark.parametrize(("measure", "sign"), [("RR@10", -1.0), ("ASL", 1.0)])
def test_it_is_said_who_loses_least(measure, sign):
    table = changes_of(
        measure, bm25=0.0, lost=float("nan"), a=sign * 0.02, b=sign * 0.1, c=sign * 0.03
    )
    pairs = [("bm25", "a", 0.01), ("a", "b", 0.001), ("a", "c", 0.4), ("b", "c", 0.001)]
    found = pl.DataFrame(
        [
            {"measure": measure, "system": one, "other": two, "p_adjusted": p}
            for one, two, p in pairs
        ]
    )
    assert who_loses_less(table, found) == [
        f"a loses least of {measure} (2.0%), clearly less than b (10.0%) (p at most 0.0010, Holm); "
        "not clearly less than c (3.0%)."
    ]


def test_of_one_trained_system_nothing_is_said_of_who_loses_least(answer):
    assert who_loses_less(answer.table, answer.differences) == []
    assert answer.reading == []


def test_loss_by_similarity_is_a_ratio_of_means(answer):
    similarity = {"a1": 0.1, "a2": 0.2, "b1": 0.8, "b2": 0.9}
    found = answer.losses_by(similarity, bins=2)
    low = row(found, system="dense", measure="RR", bin=0)
    assert (low["queries"], low["near"], low["far"]) == (
        2,
        pytest.approx(0.75),
        pytest.approx(0.375),
    )
    assert low["delta"] == pytest.approx(-0.5)
    with pytest.raises(InputError, match="for 3 bins"):
        answer.losses_by(similarity, bins=3)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "no run was given"),
        (TRAINED[:1], "dense has no run of fold 'b' and seed 0"),
        ([*TRAINED, TRAINED[0]], "dense has two runs of fold 'a'"),
        ([("dense", "c", 0, MODEL_A)], "is of fold 'c'"),
    ],
)
def test_runs_that_do_not_fit_the_folds(runs, message):
    with pytest.raises(InputError, match=message):
        ff.near_far(PARTITION, QRELS, runs, ["RR"])


def test_unjudged_test_queries_are_an_error():
    qrels = ff.Qrels(QRELS.frame.head(3))
    with pytest.raises(InputError, match="query 'b2' of the partition is not judged"):
        ff.near_far(PARTITION, qrels, TRAINED, ["RR"])


@pytest.fixture
def folder(tmp_path):
    ff.write(PARTITION, tmp_path / "part.csv")
    ff.write(QRELS, tmp_path / "test.qrels")
    for trained in (MODEL_A, MODEL_B):
        ff.write(trained, tmp_path / f"{trained.name}.trec")
    (tmp_path / "runs.csv").write_text(
        "system,fold,run\ndense,a,A.trec\ndense,b,B.trec\nbm25,,A.trec\n"
    )
    return tmp_path


def test_the_command(folder, farfield):
    arguments = ("nearfar", "part.csv", "test.qrels", "runs.csv", "-m", "RR")
    shown = farfield(*arguments, "--figure", "f.html", "-o", "t.csv", cwd=folder)
    assert shown.status == 0
    assert "-50.0%" in shown.out
    assert (folder / "f.html").exists()
    assert (folder / "t.csv").read_text().startswith("system,measure,average")
    document = farfield(*arguments, "--json", cwd=folder).json
    assert {r["system"] for r in document["near_far"]} == {"dense", "bm25"}
    assert len(document["matrix"]) == 8


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("system,fold\nx,a\n", "no column 'run'"),
        ("system,run,seed\nx,A.trec,one\n", "the seed 'one' is no whole number"),
        ("system,run\nx,\n", "system or run is missing"),
        ("system,run\nx,missing.trec\n", "there is no such file"),
    ],
)
def test_a_bad_table_of_runs_is_named(table, message, folder, farfield):
    (folder / "bad.csv").write_text(table)
    done = farfield("nearfar", "part.csv", "test.qrels", "bad.csv", cwd=folder)
    assert done.status == 2
    assert message in " ".join(done.err.split())
