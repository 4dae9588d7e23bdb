"""Alignment: correlations by hand and against scipy, published tables, the command line."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farfield as ff
from farfield import stats
from farfield.errors import InputError

NUMBERS = st.lists(st.integers(-3, 3).map(float), min_size=5, max_size=12)


@settings(max_examples=60)
@given(st.data())
def test_correlations_equal_scipys_also_with_ties(data):
    from scipy.stats import kendalltau, spearmanr

    a = np.array(data.draw(NUMBERS))
    b = np.array(
        data.draw(st.lists(st.integers(-3, 3).map(float), min_size=len(a), max_size=len(a)))
    )
    for kind, oracle in (("spearman", spearmanr), ("kendall", kendalltau)):
        (mine,) = stats.rank_correlations(a[:, None], b, kind=kind, resamples=20)
        if len(set(a)) == 1 or len(set(b)) == 1:
            assert np.isnan(mine.value)
        else:
            assert mine.value == pytest.approx(oracle(a, b).statistic, abs=1e-9)
            assert mine.low <= mine.value <= mine.high


def test_resampled_correlations_are_those_of_the_repeated_systems():
    """The quadratic form over counts equals writing the systems down as often as drawn."""
    from scipy.stats import kendalltau, spearmanr

    from farfield.stats.association import _kendall, _spearman

    rng = np.random.default_rng(0)
    a, b = rng.random(9), rng.random(9).round(1)
    counts = rng.multinomial(9, np.full(9, 1 / 9), 25).astype(float)
    for measure, oracle in ((_spearman, spearmanr), (_kendall, kendalltau)):
        found = measure(a, b, counts)
        for row, value in zip(counts.astype(int), found, strict=True):
            repeated = oracle(np.repeat(a, row), np.repeat(b, row)).statistic
            assert value == pytest.approx(repeated, abs=1e-9)


def test_a_hand_computed_tau():
    # Orders 1 2 3 4 and 1 3 2 4: five pairs agree, one does not: (5 - 1) / 6.
    (tau,) = stats.rank_correlations([[1.0], [2.0], [3.0], [4.0]], [1, 3, 2, 4], kind="kendall")
    assert tau.value == pytest.approx(4 / 6)
    # Spearman: 1 - 6 sum d^2 / n(n^2-1) = 1 - 6 * 2 / 60.
    (rho,) = stats.rank_correlations([[1.0], [2.0], [3.0], [4.0]], [1, 3, 2, 4])
    assert rho.value == pytest.approx(1 - 12 / 60)


def test_the_better_predictor_is_told_from_the_worse():
    rng = np.random.default_rng(1)
    worth = rng.random(40)
    good, bad = worth + 0.05 * rng.random(40), rng.random(40)
    gap, test = stats.compare_rank_correlations(good, bad, worth)
    assert gap.low > 0.5 and test.p < 0.01  # noqa: PT018
    same, none = stats.compare_rank_correlations(good, good, worth)
    assert (same.value, none.p) == (0.0, 1.0)


def test_the_test_holds_its_level():
    """Two predictors of equal worth are told apart about as often as the level says."""
    rng = np.random.default_rng(2)
    p = []
    for _ in range(200):
        worth = rng.random(20)
        one, other = (worth + 0.5 * rng.random(20) for _ in range(2))
        p.append(stats.compare_rank_correlations(one, other, worth, resamples=99)[1].p)
    assert np.mean(np.array(p) <= 0.05) <= 0.09


@pytest.fixture
def scores() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    far = rng.random(24)
    return pl.DataFrame(
        {
            "system": [f"s{n:02}" for n in range(24)],
            "near": 0.3 * far + rng.random(24),
            "far": far,
            "covid": far + 0.1 * rng.random(24),
            "touche": rng.random(24),
            "note": ["text"] * 24,
        }
    )


def test_far_predicts_what_near_does_not(scores):
    answer = ff.align(scores, ["near", "far"], ["covid"])
    found = {(row["predictor"], row["kind"]): row for row in answer.table.iter_rows(named=True)}
    assert found["far", "spearman"]["low"] > found["near", "spearman"]["high"]
    (row, _) = answer.differences.iter_rows(named=True)
    assert (row["predictor"], row["other"]) == ("far", "near")
    assert row["low"] > 0
    assert row["p_adjusted"] <= 0.05
    every = ff.align(scores, ["near", "far"])
    assert every.targets == ("covid", "touche")


def test_each_against_the_mean_of_the_others(scores):
    answer = ff.align(scores, without=["near"])
    table = answer.table.filter(pl.col("kind") == "kendall")
    mean = scores.select("covid", "touche").mean_horizontal().to_numpy()
    (by_hand,) = stats.rank_correlations(scores.select("far").to_numpy(), mean, kind="kendall")
    assert table.filter(pl.col("predictor") == "far")["value"][0] == pytest.approx(by_hand.value)
    assert len(answer.figure().data) == 3


def test_systems_that_lack_a_score_are_left_out_and_counted(scores):
    holes = scores.with_columns(
        far=pl.when(pl.col("system") < "s03").then(None).otherwise(pl.col("far"))
    )
    answer = ff.align(holes, ["near", "far"], ["covid"])
    assert (len(answer.scores), answer.left_out) == (21, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predictors": ["naer"]}, "no column of numbers 'naer'. Did you mean 'near'"),
        ({"predictors": ["note"]}, "no column of numbers 'note'"),
        ({"targets": ["covid"]}, "targets need predictors"),
        ({"without": ["touch"]}, "Did you mean 'touche'"),
        ({"without": ["touche", "near"]}, "expected at least 3"),
    ],
)
def test_align_refuses(options, message, scores):
    with pytest.raises(InputError, match=message):
        ff.align(scores, **options)


def test_too_few_systems(scores):
    with pytest.raises(InputError, match="3 systems have all of the 3 scores, expected at least 4"):
        ff.align(scores.head(3), ["near", "far"], ["covid"])


def test_a_long_table_becomes_a_wide_one():
    long = pl.DataFrame(
        {
            "model": ["a", "a", "b"],
            "task": ["x", "y", "x"],
            "split": ["t", "t", "t"],
            "v": [1, 2, 3],
        }
    )
    wide = ff.scores_of(long, rows="model", columns="task", value="v")
    assert wide.to_dicts() == [
        {"model": "a", "x": 1.0, "y": 2.0},
        {"model": "b", "x": 3.0, "y": None},
    ]
    twice = pl.concat([long, long.with_columns(split=pl.lit("d"))])
    with pytest.raises(InputError, match="several values"):
        ff.scores_of(twice, rows="model", columns="task", value="v")
    again = ff.scores_of(twice, rows="model", columns="task", value="v", where={"split": ["d"]})
    assert again.equals(wide)


def test_the_published_table(real_data, farfield, tmp_path):
    done = farfield(
        *("align", real_data / "published" / "mteb_retrieval_scores.csv", "--json"),
        *("--rows", "model", "--columns", "task", "--value", "ndcg_at_10"),
        *("--where", "split=test", "--without", "MSMARCO", "--resamples", "200"),
        *("--figure", tmp_path / "align.html", "-o", tmp_path / "table.csv"),
    )
    assert done.status == 0
    found = [row for row in done.json["correlations"] if row["kind"] == "spearman"]
    assert len(found) == 14
    assert found[0]["value"] > 0.9
    assert all(row["low"] <= row["value"] <= row["high"] for row in found)
    assert (tmp_path / "table.csv").read_text().startswith("target,predictor,kind,value,low,high,n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scores.csv", "-p", "x"], "no column of numbers 'x'"),
        (["scores.csv", "--rows", "a"], "add --columns"),
        (
            ["scores.csv", "--rows", "a", "--columns", "b", "--value", "c", "--where", "x"],
            "--where",
        ),
        (["missing.csv"], "there is no such file"),
        (["scores.csv", "--table", "corelations"], "Did you mean 'correlations'"),
    ],
)
def test_the_command_refuses_with_a_message(arguments, message, farfield, tmp_path):
    (tmp_path / "scores.csv").write_text("system,near,far,ood\n" + "a,1,2,3\n")
    done = farfield("align", *arguments, cwd=tmp_path)
    assert done.status == 2
    assert message in " ".join(done.err.split())
