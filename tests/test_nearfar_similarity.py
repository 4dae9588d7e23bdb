"""Loss against similarity: bins and boxes worked out by hand, planted losses, plain words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import factorial

import numpy as np
import polars as pl
import pytest

import farfield as ff
from farfield import lab
from farfield.errors import InputError
from farfield.questions._nearfar_figures import draw_points
from farfield.questions._nearfar_similarity import Similarities, comparable, correlate

OPTIONS = {"level": 0.95, "resamples": 1000, "seed": 0}


def planted(groups: dict[str, int], rank: Callable[[str, int], int]) -> ff.NearFar:
    """Groups of so many queries; the relevant document has rank 1 near and ``rank`` far.

    ``dense`` is trained, ``bm25`` is not.
    """
    names = {group: [f"{group}{number}" for number in range(n)] for group, n in groups.items()}
    roles = [
        {"fold": fold, "query_id": query, "role": "far" if fold == group else "near"}
        for fold in groups
        for group, queries in names.items()
        for query in queries
    ]
    every = [query for queries in names.values() for query in queries]
    qrels = ff.Qrels({"query_id": every, "doc_id": ["d"] * len(every), "relevance": 1})

    def run(far: str | None) -> ff.Run:
        rows = []
        for group, queries in names.items():
            for number, query in enumerate(queries):
                last = rank(group, number) if group == far else 1
                rows += [(query, "d" if n == last else f"x{n}", -n) for n in range(1, last + 1)]
        frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
        return ff.Run(frame.with_columns(pl.col("score").cast(pl.Float64)), name="run")

    runs = [("dense", fold, 0, run(fold)) for fold in groups] + [("bm25", None, 0, run(None))]
    return ff.near_far(ff.Partition(roles), qrels, runs, ["RR", "ASL"])


def knowing(
    answer: ff.NearFar, of_queries: dict[str, float], of_groups: dict[str, float]
) -> ff.NearFar:
    """The same answer, with similarities that are made up."""
    per_query, sets = (
        pl.DataFrame(list(given.items()), schema={name: pl.String, "value": float}, orient="row")
        for name, given in (("query_id", of_queries), ("group", of_groups))
    )
    told = {"indicator": pl.lit("r"), "nearer": pl.lit(True)}
    nothing = dict.fromkeys(("low", "high", "same", "relative"), pl.lit(None, pl.Float64))
    made = Similarities(
        per_query.select("query_id", **told, value="value"),
        sets.select("group", **told, value="value", **nothing),
    )
    return replace(answer, similarities=made)


@pytest.fixture(scope="module")
def four() -> ff.NearFar:
    """Two groups of two: a0, a1 have ranks 2 and 4 far, b0, b1 ranks 4 and 1."""
    ranks = {("a", 0): 2, ("a", 1): 4, ("b", 0): 4, ("b", 1): 1}
    similarity = {"a0": 0.1, "a1": 0.2, "b0": 0.8, "b1": 0.9}
    answer = planted({"a": 2, "b": 2}, lambda *at: ranks[at])
    return replace(knowing(answer, similarity, {"a": 0.1, "b": 0.8}), bins=2)


def row(frame: pl.DataFrame, **wanted: object) -> dict[str, object]:
    (found,) = frame.filter(**wanted).iter_rows(named=True)
    return found


# -- bins and boxes -----------------------------------------------------------------------------


def test_losses_in_bins(four):
    low = row(four.by_similarity, system="dense", measure="RR", bin=0)
    assert (low["indicator"], low["queries"]) == ("r", 2)
    assert (low["near"], low["far"]) == (1.0, pytest.approx((1 / 2 + 1 / 4) / 2))
    assert low["rel_loss"] == pytest.approx(1 - 3 / 8)
    assert (low["similarity_from"], low["similarity_to"]) == (0.1, pytest.approx(0.5))
    high = row(four.by_similarity, system="dense", measure="RR", bin=1)
    assert high["rel_loss"] == pytest.approx(1 - (1 / 4 + 1) / 2)
    assert row(four.by_similarity, system="bm25", measure="RR", bin=0)["rel_loss"] == 0.0


def test_boxes_are_of_differences_of_single_queries(four):
    # a0 loses 1 - 1/2, a1 loses 1 - 1/4: quantiles between two values are interpolated.
    low = row(four.boxes, system="dense", measure="RR", bin=0)
    assert low["mean"] == low["median"] == pytest.approx(0.625)
    assert (low["q1"], low["q3"]) == (pytest.approx(0.5625), pytest.approx(0.6875))
    assert (low["p5"], low["p95"]) == (pytest.approx(0.5125), pytest.approx(0.7375))
    # ASL is 0 near and 1, 3 far: to read more is a loss, and positive.
    asl = row(four.boxes, system="dense", measure="ASL", bin=0)
    assert (asl["mean"], asl["q1"], asl["q3"]) == (2.0, 1.5, 2.5)
    assert asl["mean_low"] <= asl["mean"] <= asl["mean_high"]


def test_bins_hold_equally_many_and_like_values_share_one():
    answer = planted({"a": 50, "b": 53}, lambda _, number: 1 + number % 3)
    ids = sorted(answer.values["query_id"].unique())
    spread = answer.losses_by({q: float(n) for n, q in enumerate(ids)}, bins=5)
    sizes = spread.filter(system="dense", measure="RR")["queries"]
    assert sizes.sum() == 103
    assert sizes.max() - sizes.min() <= 1
    same = answer.losses_by(dict.fromkeys(ids, 0.5), bins=5)
    assert same.filter(system="dense", measure="RR")["queries"].to_list() == [103]


def test_similarities_must_be_numbers_of_queries_that_are_compared(four):
    with pytest.raises(InputError, match="similarity of query 'a0' is nan"):
        four.losses_by({"a0": float("nan"), "a1": 0.1, "b0": 0.2}, bins=1)
    with pytest.raises(InputError, match="0 queries for 1 bins"):
        four.losses_by({"unknown": 0.1, "other": 0.2}, bins=1)
    with pytest.raises(InputError, match="bins"):
        four.boxes_by({"a0": 0.1, "a1": 0.1}, bins=0)


# -- correlations -------------------------------------------------------------------------------


def test_correlations_agree_with_scipy():
    from scipy import stats as peer

    rng = np.random.default_rng(3)
    answer = planted({"a": 40, "b": 40}, lambda _, number: 1 + number // 4)
    ids = sorted(answer.values["query_id"].unique())
    loss = {q: 1 - 1 / (1 + int(q[1:]) // 4) for q in ids}
    similarity = {q: -loss[q] + rng.normal(0, 0.3) for q in ids}
    found = knowing(answer, similarity, {}).correlations
    x, y = [similarity[q] for q in ids], [loss[q] for q in ids]
    pearson = peer.pearsonr(x, y)
    mine = row(found, system="dense", measure="RR", kind="pearson", over="queries")
    assert mine["value"] == pytest.approx(pearson.statistic)
    interval = pearson.confidence_interval(0.95)
    assert (mine["low"], mine["high"]) == (pytest.approx(interval.low), pytest.approx(interval[1]))
    assert mine["p"] < 0.01
    ranks = row(found, system="dense", measure="RR", kind="spearman", over="queries")
    assert ranks["value"] == pytest.approx(peer.spearmanr(x, y).statistic)
    # What a system that is not trained loses never varies.
    assert set(found["system"]) == {"dense"}


def test_groups_in_perfect_order_are_no_proof_when_they_are_few():
    groups = dict.fromkeys("abcd", 5)
    answer = planted(groups, lambda group, _: 2 + "abcd".index(group))  # d loses most
    similar = {group: 1.0 - 0.1 * place for place, group in enumerate(groups)}
    found = row(
        knowing(answer, {}, similar).correlations, system="dense", measure="RR", kind="spearman"
    )
    assert (found["value"], found["n"], found["over"]) == (pytest.approx(-1.0), 4, "groups")
    assert np.isnan(found["low"])
    assert found["p"] == pytest.approx(2 / factorial(4))  # this order, and its reverse


def test_fewer_than_three_groups_have_no_correlation(four):
    assert "groups" not in four.correlations["over"]
    assert "2 groups are too few" in four.reading[-1]


def test_with_three_groups_it_is_said_that_they_are_few():
    answer = planted(dict.fromkeys("abc", 5), lambda group, _: 2 + "abc".index(group))
    said = knowing(answer, {}, {"a": 0.9, "b": 0.8, "c": 0.7}).reading
    assert "Over 3 groups no indicator goes clearly with what is lost" in said[-2]
    assert "With 3 groups no p can be below 0.33" in said[-1]


def test_many_groups_of_several_shifts_tell_what_was_planted():
    rng = np.random.default_rng(0)
    far = rng.random(12)
    points = pl.DataFrame(
        {
            "shift": ["one", "two"] * 6,
            "system": "dense",
            "measure": "RR",
            "group": [str(n) for n in range(12)],
            "indicator": "mmd",
            "nearer": False,
            "value": far,
            "relative": [None] * 12,
            "rel_loss": 0.5 * far + rng.normal(0, 0.02, 12),
        },
        schema_overrides={"relative": pl.Float64},
    )
    found = correlate(comparable(points), "groups", **OPTIONS)
    ranks = row(found, kind="spearman")
    assert ranks["value"] > 0.9  # a distance: what is farther loses more
    assert ranks["p_adjusted"] < 0.01
    assert ranks["low"] < ranks["value"] < ranks["high"] < 1


def test_relative_values_compare_only_if_all_groups_have_one():
    frame = pl.DataFrame(
        {
            "indicator": ["r", "r", "m", "m"],
            "value": [1.0, 2, 3, 4],
            "relative": [0.5, 0.6, 0.7, None],
        }
    )
    assert comparable(frame)["similarity"].to_list() == [0.5, 0.6, 3.0, 4.0]


# -- from texts ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A lab whose far queries lose the more the less similar they are (R); late loses less."""
    place = tmp_path_factory.mktemp("similarity")
    made = lab.make(passages=200, train=300, test=150, seed=1).collection
    ff.write_collection(made, place / "lab")
    partition = ff.shift("resttest(buckets=3)", made).partition
    ff.write(partition, place / "part.parquet")
    similar = ff.fold_distances(made, partition, indicators=["r"]).per_query.frame
    far = similar.filter(pl.col("system").str.ends_with(" far")).sort("value", "query_id")
    order = {query: at / len(far) for at, query in enumerate(far["query_id"])}
    fold_of = {query: name.removesuffix(" far") for query, name in far["query_id", "system"].rows()}
    relevant = made.qrels["test"].relevant().frame.group_by("query_id").agg(pl.col("doc_id").min())
    table = ["system,fold,run"]
    for system, depth in (("dense", 9), ("late", 2)):
        for fold in partition.frame["fold"].unique(maintain_order=True):
            rows = []
            for query, doc_id in relevant.iter_rows():
                last = 1 + round(depth * (1 - order[query])) if fold_of[query] == fold else 1
                rows += [(query, f"x{n}", -float(n)) for n in range(1, last)]
                rows.append((query, doc_id, -float(last)))
            frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
            ff.write(ff.Run(frame, name=system), place / f"{system}-{fold}.parquet")
            table.append(f"{system},{fold},{system}-{fold}.parquet")
    (place / "runs.csv").write_text("\n".join([*table, "flat,,dense-0.parquet", ""]))
    return place


@pytest.fixture(scope="module")
def recovered(folder) -> ff.NearFar:
    return ff.near_far(
        folder / "part.parquet",
        folder / "lab" / "qrels" / "test.tsv",
        folder / "runs.csv",
        ["RR"],
        collection=folder / "lab",
        indicators=["r", "jaccard", "classifier"],
    )


def test_what_was_planted_is_found_again(recovered):
    bins = recovered.by_similarity.filter(indicator="r", system="dense")
    assert bins["rel_loss"].is_sorted(descending=True)
    assert bins["rel_loss"][0] > 0.8
    assert bins["rel_loss"][-1] < 0.4
    found = recovered.correlations.filter(indicator="r", kind="spearman", over="queries")
    assert found["system"].to_list() == ["dense", "late"]
    assert (found["value"] < -0.9).all()
    assert (found["p_adjusted"] < 0.05).all()
    assert any(
        "r: dense loses" in line and "those that are farther lose more" in line
        for line in recovered.reading
    )


def test_the_words_turn_distances_round(recovered):
    """A classifier's probability is high for far queries: the last bin is the farthest."""
    bins = recovered.by_similarity.filter(indicator="classifier", system="dense")
    assert not bins["nearer"].any()
    (line,) = (text for text in recovered.reading if text.startswith("classifier: dense"))
    assert line.index(f"{bins['rel_loss'][-1]:.1%}") < line.index("in the farthest")


def test_sets_are_compared_with_what_was_trained_on(recovered):
    assert set(recovered.points["indicator"]) == {"r", "jaccard", "classifier"}
    jaccard = recovered.points.filter(indicator="jaccard", system="dense")
    assert jaccard["similarity"].to_list() == jaccard["relative"].to_list()
    assert recovered.correlations.filter(over="groups")["n"].unique().to_list() == [3]
    assert recovered.correlations.filter(indicator="jaccard")["over"].unique().to_list() == [
        "groups"
    ]


def test_an_indicator_of_sets_alone_says_nothing_of_queries(folder):
    answer = ff.near_far(
        folder / "part.parquet",
        folder / "lab" / "qrels" / "test.tsv",
        folder / "runs.csv",
        ["RR"],
        collection=folder / "lab",
        indicators=["jaccard"],
    )
    assert not len(answer.by_similarity)
    assert set(answer.correlations["over"]) == {"groups"}
    assert "Over 3 groups" in answer.reading[1]


def test_the_figure_has_a_panel_for_each_view(recovered):
    drawn = recovered.figure()
    titles = [note.text for note in drawn.layout.annotations]
    assert [title for title in titles if "single queries" in title] == [
        "RR: losses of single queries"
    ] * 2
    assert sum("groups by" in title for title in titles) == 3
    assert {trace.type for trace in drawn.data} == {"scatter", "box"}
    shifts = recovered.points.with_columns(shift=pl.lit("resttest"))
    assert len(draw_points(shifts).data) == 9


def test_a_shift_without_pairs_has_no_losses_to_hold_against_anything(folder):
    """Near and far are other queries: nothing is lost by any of them."""
    frame = ff.read(folder / "part.parquet", ff.Partition).frame.filter(pl.col("fold") == "0")
    answer = ff.near_far(
        ff.Partition(frame),
        folder / "lab" / "qrels" / "test.tsv",
        [("flat", None, 0, folder / "dense-0.parquet")],
        ["RR"],
        collection=folder / "lab",
    )
    for name in ("by_similarity", "boxes", "points", "correlations"):
        assert not len(getattr(answer, name)), name
    assert answer.reading == [
        "1 group is too few to say whether groups that are farther lose more."
    ]
    assert answer.figure().data


# -- the command --------------------------------------------------------------------------------


def test_the_command_holds_loss_against_similarity(folder, farfield):
    files = ("nearfar", "part.parquet", "lab/qrels/test.tsv", "runs.csv", "-m", "RR")
    shown = farfield(*files, "--collection", "lab", "-i", "r", "--bins", 4, cwd=folder)
    assert shown.status == 0
    assert "Loss of RR by similarity to what was trained on" in shown.out
    assert "r: dense loses" in shown.out
    written = ("--table", "boxes", "-o", "boxes.csv", "--figure", "f.html", "--json")
    document = farfield(*files, "--collection", "lab", *written, cwd=folder).json
    assert {entry["indicator"] for entry in document["points"]} == {"jaccard", "r"}
    assert len(document["boxes"]) == len(pl.read_csv(folder / "boxes.csv")) == 3 * 5
    assert (folder / "f.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-i", "r"], "--indicator r needs the texts of the queries. Give --collection."),
        (["--table", "boxes"], "--table boxes needs the texts of the queries"),
        (["--collection", "lab", "-i", "rr"], "no indicator is called 'rr'"),
        (["--collection", "lab", "--bins", "0"], "bins is 0"),
        (["--collection", "other.tsv"], "which is not among the queries given"),
    ],
)
def test_bad_input_is_named(options, message, folder, farfield):
    (folder / "other.tsv").write_text("q-1\ta query\nq-2\tanother one\n")
    files = ("nearfar", "part.parquet", "lab/qrels/test.tsv", "runs.csv", "-m", "RR")
    done = farfield(*files, *options, cwd=folder)
    assert done.status == 2
    assert message in " ".join(done.err.split())
