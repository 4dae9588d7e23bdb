"""Per-query tables: summaries and contrasts, and the tables that are refused."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from farfield import stats
from farfield.errors import InputError, TableError
from farfield.stats.pivot import _from_blocks, _from_rows


def rows(*records: tuple[str, str, str, float | None]) -> pl.DataFrame:
    return pl.DataFrame(records, schema=["query_id", "system", "measure", "value"], orient="row")


def long(values: dict[tuple[str, str], list[float]]) -> pl.DataFrame:
    return rows(
        *(
            (f"q{i}", system, measure, value)
            for (system, measure), column in values.items()
            for i, value in enumerate(column)
        )
    )


SMALL = long(
    {
        ("dense", "nDCG@10"): [2.0, 4.0, 6.0],
        ("bm25", "nDCG@10"): [1.0, 2.0, 3.0],
        ("dense", "latency"): [1.0, 5.0, 3.0],
        ("bm25", "latency"): [2.0, 5.0 + 1e-10, 5.0],
        ("hybrid", "nDCG@10"): [1.0, 2.0, 3.0],
        ("hybrid", "latency"): [3.0, 6.0, 6.0],
    }
)


def test_summarise_by_hand() -> None:
    found = stats.summarise(SMALL, method="t")
    assert found.columns == ["system", "measure", "mean", "low", "high", "n"]
    assert found.dtypes == [pl.String] * 2 + [pl.Float64] * 3 + [pl.Int64]
    assert found.select("system", "measure").rows() == [
        ("dense", "nDCG@10"),
        ("dense", "latency"),
        ("bm25", "nDCG@10"),
        ("bm25", "latency"),
        ("hybrid", "nDCG@10"),
        ("hybrid", "latency"),
    ]
    assert found["mean"].to_list() == pytest.approx([4.0, 3.0, 2.0, 4.0, 2.0, 5.0])
    assert found["n"].to_list() == [3] * 6
    # 1, 2, 3: deviation 1, error 1/sqrt 3, t(0.975, 2) = 4.302653.
    assert found.row(2)[3:5] == pytest.approx(
        (2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / math.sqrt(3)), abs=1e-6
    )


def test_summarise_passes_its_options_on() -> None:
    values = np.random.default_rng(0).exponential(size=9)  # q0 to q8 sort as they are
    table = long({("a", "m"): values.tolist()})
    options = {"level": 0.8, "method": "percentile", "resamples": 50, "seed": 3}
    labels = [0, 0, 1, 1, 2, 2, 3, 3, 3]
    direct = stats.mean(values, clusters=labels, **options)  # type: ignore[arg-type]
    clusters = {f"q{i}": label for i, label in enumerate(labels)}
    found = stats.summarise(table, clusters=clusters, **options)  # type: ignore[arg-type]
    assert found.row(0) == ("a", "m", direct.value, direct.low, direct.high, 9)
    assert found.row(0) != stats.summarise(table, **options).row(0)  # type: ignore[arg-type]


def test_the_order_of_the_rows_changes_no_number() -> None:
    rng = np.random.default_rng(0)
    table = long({(s, m): rng.random(20).tolist() for s in "abc" for m in ("x", "y")})
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    key = ["system", "measure"]
    assert_frame_equal(stats.summarise(table).sort(key), stats.summarise(shuffled).sort(key))
    assert_frame_equal(
        stats.contrasts(table, "b", test="randomisation").sort(key),
        stats.contrasts(shuffled, "b", test="randomisation").sort(key),
    )
    first_seen = shuffled["system"].unique(maintain_order=True).to_list()
    assert first_seen != ["a", "b", "c"]
    assert stats.summarise(shuffled)["system"].unique(maintain_order=True).to_list() == first_seen


BLOCKS = long({(s, m): [0.1, 0.5, 0.3] for s in "ab" for m in ("x", "y")})


def test_blocks_are_reshaped_into_the_table_that_rows_make() -> None:
    for frame in (BLOCKS, BLOCKS.head(6), BLOCKS.head(3), BLOCKS.head(1), BLOCKS[::3]):
        whole, row_by_row = _from_blocks(frame), _from_rows(frame)
        assert whole is not None
        assert (whole.systems, whole.measures) == (row_by_row.systems, row_by_row.measures)
        assert whole.queries.to_list() == row_by_row.queries.to_list()
        assert whole.values.tolist() == row_by_row.values.tolist()
        assert whole.present.tolist() == row_by_row.present.tolist()


@pytest.mark.parametrize(
    "order",
    [
        [0, 2, 1, 3, 5, 4, 6, 8, 7, 9, 11, 10],  # the queries are not sorted
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 10],  # not in the last block
        [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11],  # measure by measure
        [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11],  # query by query
        [0, 4, 2, 3, 1, 5, 6, 7, 8, 9, 10, 11],  # a row of another block
        [0, 1, 2, 3, 4, 5, 6, 7, 8],  # a block is missing
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],  # a row is missing
        [0, 1, 2, 9, 10, 11],  # each system has a measure of its own
    ],
)
def test_what_is_not_in_blocks_is_not_reshaped(order: list[int]) -> None:
    frame = BLOCKS[order]
    assert _from_blocks(frame) is None
    found = {(s, m): (mean, n) for s, m, mean, _, _, n in stats.summarise(frame).rows()}
    expected = frame.group_by("system", "measure").agg(pl.col("value").mean(), pl.len())
    assert found == {(s, m): (pytest.approx(mean), n) for s, m, mean, n in expected.rows()}


def test_a_block_given_twice_is_refused() -> None:
    with pytest.raises(TableError, match=r"second value for query 'q0'.*first in row 0") as caught:
        stats.summarise(pl.concat([BLOCKS, BLOCKS]))
    assert caught.value.row == 12


def test_summarise_takes_systems_with_unequal_queries() -> None:
    table = rows(
        ("q1", "a", "m", 1.0),
        ("q2", "a", "m", 3.0),
        ("q2", "b", "m", 5.0),
        ("q3", "b", "m", 7.0),
        ("q4", "b", "m", 9.0),
        ("q4", "b", "only", 0.5),
    )
    found = stats.summarise(table)
    assert found.select("system", "measure", "mean", "n").rows() == [
        ("a", "m", 2.0, 2),
        ("b", "m", 7.0, 3),
        ("b", "only", 0.5, 1),
    ]
    expected = stats.mean([5.0, 7.0, 9.0])
    assert found.row(1)[3:5] == pytest.approx((expected.low, expected.high))
    assert math.isnan(found.row(2)[3])


def test_tables_of_the_project_and_other_types_are_taken() -> None:
    expected = stats.summarise(SMALL)
    assert_frame_equal(stats.summarise(SimpleNamespace(frame=SMALL)), expected)
    coded = SMALL.with_columns(
        pl.col("query_id").cast(pl.Categorical), pl.col("system").cast(pl.Categorical)
    )
    assert_frame_equal(stats.summarise(coded), expected)
    whole = SMALL.filter(pl.col("measure") == "nDCG@10").with_columns(
        pl.col("value").cast(pl.Int32)
    )
    assert stats.summarise(whole)["mean"].to_list() == [4.0, 2.0, 2.0]
    hits = SMALL.with_columns(pl.col("value") > 2.0)
    assert stats.summarise(hits)["mean"].to_list() == pytest.approx(
        [2 / 3, 2 / 3, 1 / 3, 2 / 3, 1 / 3, 1.0]
    )


def test_contrasts_by_hand() -> None:
    found = stats.contrasts(SMALL, "bm25", method="t", lower_is_better=["latency"])
    assert found.columns == [
        *("system", "measure", "difference", "low", "high", "p", "p_adjusted"),
        *("effect_size", "wins", "ties", "losses", "detectable", "n"),
    ]
    assert found.dtypes == (
        [pl.String] * 2 + [pl.Float64] * 6 + [pl.Int64] * 3 + [pl.Float64, pl.Int64]
    )
    by_cell = {(r["system"], r["measure"]): r for r in found.iter_rows(named=True)}
    assert list(by_cell) == [
        ("dense", "nDCG@10"),
        ("dense", "latency"),
        ("hybrid", "nDCG@10"),
        ("hybrid", "latency"),
    ]

    # dense - bm25 in nDCG: 1, 2, 3, worked out in test_paired_t_by_hand.
    gain = by_cell["dense", "nDCG@10"]
    assert gain["difference"] == 2.0
    assert gain["p"] == pytest.approx(1 - math.sqrt(12 / 14))
    assert gain["effect_size"] == pytest.approx(2.0)
    assert gain["high"] - 2.0 == pytest.approx(4.302653 / math.sqrt(3), abs=1e-6)
    assert (gain["wins"], gain["ties"], gain["losses"], gain["n"]) == (3, 0, 0, 3)
    assert gain["detectable"] == pytest.approx(stats.detectable_difference([1, 2, 3]))

    # In latency: -1, -1e-10 (a tie), -2. Lower is better, so two wins; the sign stays.
    faster = by_cell["dense", "latency"]
    assert faster["difference"] == pytest.approx(-1.0)
    assert (faster["wins"], faster["ties"], faster["losses"]) == (2, 1, 0)

    # hybrid ties in nDCG everywhere, and its latency is 1 worse everywhere.
    same, slower = by_cell["hybrid", "nDCG@10"], by_cell["hybrid", "latency"]
    assert (same["difference"], same["low"], same["high"], same["p"]) == (0.0, 0.0, 0.0, 1.0)
    assert (same["effect_size"], same["detectable"], same["ties"]) == (0.0, 0.0, 3)
    assert (slower["wins"], slower["losses"]) == (0, 3)

    # The family is the whole table.
    assert found["p_adjusted"].to_list() == stats.adjust(found["p"].to_numpy()).tolist()
    unturned = stats.contrasts(SMALL, "bm25", method="t")
    assert unturned.filter(system="dense", measure="latency")["losses"].item() == 2


@pytest.mark.parametrize(
    ("test", "clustered"),
    [
        ("t", False),
        ("wilcoxon", False),
        ("randomisation", False),
        ("t", True),
        ("randomisation", True),
    ],
)
def test_contrasts_agree_with_the_single_functions(test: str, clustered: bool) -> None:
    rng = np.random.default_rng(5)
    names = [f"q{i:02}" for i in range(30)]
    columns = {(s, m): rng.random(30) for s in ("a", "b", "c") for m in ("x", "y")}
    table = rows(
        *((q, s, m, v) for (s, m), vs in columns.items() for q, v in zip(names, vs, strict=True))
    )
    labels = [i // 3 for i in range(30)] if clustered else None
    found = stats.contrasts(
        table,
        "a",
        test=test,
        correction="bh",
        level=0.9,
        resamples=300,
        test_resamples=500,
        seed=9,
        clusters=dict(zip(names, labels, strict=True)) if labels else None,
    )
    for row in found.iter_rows(named=True):
        ours, base = columns[row["system"], row["measure"]], columns["a", row["measure"]]
        gap = stats.difference(
            ours, base, paired=True, level=0.9, resamples=300, seed=9, clusters=labels
        )
        assert (row["difference"], row["low"], row["high"]) == pytest.approx(
            (gap.value, gap.low, gap.high)
        )
        single = stats.paired_test(ours, base, test=test, resamples=500, seed=9, clusters=labels)
        assert row["p"] == pytest.approx(single.p)
        assert row["effect_size"] == pytest.approx(stats.effect_size(ours, base))
    if not clustered:
        detectable = stats.detectable_difference(columns["c", "y"] - columns["a", "y"], alpha=0.1)
        assert found["detectable"][-1] == pytest.approx(detectable)
    assert found["p_adjusted"].to_list() == stats.adjust(found["p"].to_numpy(), "bh").tolist()


def test_contrasts_of_measures_with_queries_of_their_own() -> None:
    table = long(
        {
            ("a", "m"): [1.0, 2.0, 4.0],
            ("b", "m"): [2.0, 4.0, 7.0],
            ("a", "rare"): [1.0, 2.0],
            ("b", "rare"): [2.0, 5.0],
        }
    )
    found = stats.contrasts(table, "a")
    assert found.select("difference", "n").rows() == [(2.0, 3), (2.0, 2)]


def test_contrasts_on_one_query_say_nothing() -> None:
    row = stats.contrasts(long({("a", "m"): [1.0], ("b", "m"): [2.0]}), "a").row(0, named=True)
    assert (row["difference"], row["p"], row["p_adjusted"]) == (1.0, 1.0, 1.0)
    assert all(math.isnan(row[name]) for name in ("low", "high", "effect_size", "detectable"))


def test_contrasts_name_the_missing_query() -> None:
    table = long({("a", "m"): [1.0, 2.0, 4.0], ("b", "m"): [2.0, 4.0]})
    with pytest.raises(InputError, match="'b' has no 'm' for query 'q2', which 'a' has; 1 query"):
        stats.contrasts(table, "a")
    with pytest.raises(InputError, match="'b' has no 'm' for query 'q2', which 'a' has"):
        stats.contrasts(table, "b")
    lone = long({("a", "m"): [1.0, 2.0], ("b", "m"): [2.0, 4.0], ("b", "x"): [0.0, 0.0]})
    with pytest.raises(InputError, match="'a' has no 'x' for query 'q0'"):
        stats.contrasts(lone, "a")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"baseline": "BM52"}, "Did you mean 'bm25'"),
        ({"test": "sign"}, "Choose one of t, wilcoxon, randomisation"),
        ({"correction": "hulm"}, "Did you mean 'holm'"),
        ({"lower_is_better": "latency"}, "collection of names"),
        ({"power": 0.05}, "power above 0.05"),
        ({"test_resamples": 0}, "test_resamples is 0"),
        ({"clusters": {"q0": 1}}, "no label for query 'q1'"),
    ],
)
def test_contrasts_refuse(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stats.contrasts(SMALL, **{"baseline": "bm25", **kwargs})  # type: ignore[arg-type]


def test_contrasts_need_another_system() -> None:
    with pytest.raises(InputError, match="no system but the baseline"):
        stats.contrasts(long({("a", "m"): [1.0]}), "a")


def test_tables_that_break_the_rules_are_refused() -> None:
    with pytest.raises(TableError, match=r"second value for query 'q1'.*first in row 0") as caught:
        stats.summarise(rows(("q1", "a", "m", 1.0), ("q2", "a", "m", 1.0), ("q1", "a", "m", 2.0)))
    assert (caught.value.row, caught.value.first_row) == (2, 0)
    for bad in (math.nan, None, math.inf):
        with pytest.raises(TableError, match="row 1: the value of query 'q2', system 'a'"):
            stats.summarise(rows(("q1", "a", "m", 1.0), ("q2", "a", "m", bad)))
    with pytest.raises(TableError, match=r"no column 'query_id'.*Did you mean 'queryid'"):
        stats.summarise(SMALL.rename({"query_id": "queryid"}))
    with pytest.raises(TableError, match="no rows"):
        stats.summarise(SMALL.clear())
    with pytest.raises(TableError, match="holds String"):
        stats.summarise(SMALL.with_columns(pl.col("value").cast(pl.String)))
    with pytest.raises(TableError, match="row 1: system is missing"):
        stats.summarise(
            SMALL.with_columns(system=pl.when(pl.col("query_id") != "q1").then("system"))
        )
    with pytest.raises(InputError, match="LazyFrame, where a polars DataFrame"):
        stats.summarise(SMALL.lazy())  # type: ignore[arg-type]
