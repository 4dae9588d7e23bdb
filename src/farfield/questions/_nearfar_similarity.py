"""Loss against similarity: how similar queries and groups are, bins, correlations, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import atanh, factorial, isnan, nan, sqrt, tanh
from pathlib import Path
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import stats
from farfield.errors import InputError
from farfield.io.files import replacing
from farfield.questions.distance import FoldDistances

__all__ = [
    "Bins",
    "Similarities",
    "adjusted",
    "comparable",
    "correlate",
    "extremes",
    "in_words",
]

Floats = npt.NDArray[np.float64]

_KINDS = ("spearman", "pearson")
_FEWEST = 3  # points that have a correlation
_FEW = 5  # groups whose order, however good, may be chance
_CLEAR = 0.05
_LOSS = {"queries": "loss", "groups": "rel_loss"}
_FILES = ("per_query", "sets")
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(["over", "system", "measure", "indicator"], pl.String),
    "nearer": pl.Boolean,
    "kind": pl.String,
    **dict.fromkeys(["value", "low", "high"], pl.Float64),
    "n": pl.Int64,
    "p": pl.Float64,
}


@dataclass(frozen=True, eq=False)
class Similarities:
    """How similar far queries are to what was trained on in the fold in which they are far.

    ``per_query`` has values of queries, for indicators that have any; ``sets`` one for each group
    (the far queries of a fold) and indicator. ``nearer`` says whether a higher value is nearer.
    """

    per_query: pl.DataFrame  # query_id, indicator, nearer, value
    sets: pl.DataFrame  # group, indicator, nearer, value, low, high, same, relative

    @classmethod
    def of(cls, found: FoldDistances) -> Self:
        """Take what is far out of distances that were measured fold by fold."""
        far = {fold: one for (fold, role), one in found.distances.items() if role == "far"}
        if not far:
            raise InputError("the partition has no far queries: nothing can be lost from near.")
        nearer = {
            str(indicator): indicator.higher_is_nearer
            for one in far.values()
            for indicator in one.readings
        }
        told = pl.col("indicator").replace_strict(nearer, return_dtype=pl.Boolean).alias("nearer")
        queries = pl.concat(
            one.per_query.frame.filter(pl.col("system") == one.a.parts[0][0])
            for one in far.values()
        )
        per_query = (
            queries.rename({"measure": "indicator"})
            .group_by("query_id", "indicator", maintain_order=True)
            .agg(pl.col("value").mean())
        )
        sets = found.table.filter(pl.col("role") == "far").rename({"fold": "group"})
        return cls(
            per_query.select("query_id", "indicator", told, "value"),
            sets.select("group", "indicator", told, "value", "low", "high", "same", "relative"),
        )

    @property
    def of_queries(self) -> dict[tuple[str, bool], dict[str, float]]:
        """The values of queries, by indicator and whether a higher one is nearer."""
        return {
            (str(indicator), bool(nearer)): dict(part.select("query_id", "value").iter_rows())
            for (indicator, nearer), part in self.per_query.group_by(
                "indicator", "nearer", maintain_order=True
            )
        }

    def write(self, folder: Path) -> None:
        """Write both tables into a folder."""
        for name in _FILES:
            with replacing(folder / f"{name}.parquet") as file:
                getattr(self, name).write_parquet(file)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what was written."""
        return cls(*(pl.read_parquet(folder / f"{name}.parquet") for name in _FILES))


@dataclass(frozen=True)
class Bins:
    """Queries in bins of equally many, from the lowest values to the highest."""

    members: tuple[pl.Series, ...]
    edges: Floats

    @classmethod
    def of(cls, similarity: Mapping[str, float], known: Iterable[str], bins: int) -> Self:
        """Sort those queries into bins that are known; like values share a bin."""
        ids = sorted(set(similarity) & set(known))
        values = np.array([similarity[query] for query in ids], dtype=np.float64)
        if not np.isfinite(values).all():
            worst = ids[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise InputError(
                f"the similarity of query {worst!r} is {similarity[worst]}, expected a number."
            )
        if bins < 1 or len(ids) < 2 * bins:
            raise InputError(
                f"{len(ids)} queries for {bins} bins, expected two for each at least. Only queries "
                "that are near in one fold and far in another count."
            )
        edges = np.quantile(values, np.linspace(0, 1, bins + 1))
        place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
        names = pl.Series(ids, dtype=pl.String)
        return cls(tuple(names.filter(place == number) for number in range(bins)), edges)


def comparable(points: pl.DataFrame) -> pl.DataFrame:
    """Add ``similarity``: of an indicator's values those that compare between groups.

    That is ``relative``, which does not depend on how large the groups are, if all have one.
    """
    lacks = pl.col("relative").is_null().any().over("indicator")
    chosen = pl.when(lacks).then("value").otherwise("relative")
    return points.with_columns(chosen.alias("similarity"))


def correlate(
    points: pl.DataFrame, over: str, *, level: float, resamples: int, seed: int
) -> pl.DataFrame:
    """Correlate loss with similarity, for every system, measure and indicator.

    ``points`` has a row for each of what it is ``over``: system, measure, indicator, nearer,
    similarity, and loss (of queries) or rel_loss (of groups). Returns over, system, measure,
    indicator, nearer, kind (spearman, pearson), value, low, high, n, p (permutations; all orders
    where they are few), p_adjusted (Holm, over systems and indicators). Intervals are Fisher's,
    which are wide where points are few. There is no row with fewer than three points, nor for a
    system whose loss is always the same, as that of one that is not trained.
    """
    rows = []
    keys = ["system", "measure", "indicator", "nearer"]
    for key, part in points.group_by(keys, maintain_order=True):
        x, y = (part[name].to_numpy() for name in ("similarity", _LOSS[over]))
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        if len(x) < _FEWEST or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
            continue
        pairs = [np.column_stack([pl.Series(of).rank().to_numpy(), of]) for of in (x, y)]
        tests = stats.correlation_tests(*pairs, resamples=max(resamples, 1000), seed=seed)
        for kind, test in zip(_KINDS, tests, strict=True):
            low, high = _interval(kind, test.statistic, len(x), level)
            row = {"over": over, **dict(zip(keys, key, strict=True)), "kind": kind}
            row |= {"value": test.statistic, "low": low, "high": high}
            rows.append(row | {"n": len(x), "p": test.p})
    return adjusted(pl.DataFrame(rows, schema=_COLUMNS), ["measure", "kind"])


def _interval(kind: str, value: float, n: int, level: float) -> tuple[float, float]:
    """Fisher's interval; for ranks with the variance of Bonett and Wright (2000)."""
    if n < 4 or abs(value) > 1.0 - 1e-12:  # a perfect order of few groups says little
        return nan, nan
    variance = (1.0 + value**2 / 2.0 if kind == "spearman" else 1.0) / (n - 3)
    half = NormalDist().inv_cdf(0.5 + level / 2.0) * sqrt(variance)
    return tanh(atanh(value) - half), tanh(atanh(value) + half)


def adjusted(frame: pl.DataFrame, within: list[str]) -> pl.DataFrame:
    """Correct p-values (Holm) among rows that are alike in some columns."""
    if not len(frame):
        return frame.with_columns(pl.lit(nan).alias("p_adjusted"))
    parts = []
    for part in frame.with_row_index("at").partition_by(within, maintain_order=True):
        p = part["p"].fill_nan(None)
        corrected = np.full(len(part), np.nan)
        known = p.is_not_null().to_numpy()
        if known.any():
            corrected[known] = stats.adjust(p.drop_nulls().to_numpy(), "holm")
        parts.append(part.with_columns(pl.Series("p_adjusted", corrected)))
    return pl.concat(parts).sort("at").drop("at")


# -- in short, and in words ---------------------------------------------------------------------


def extremes(by_similarity: pl.DataFrame, correlations: pl.DataFrame) -> pl.DataFrame:
    """Loss in the farthest and the nearest bin, and how it goes with similarity over queries.

    For the first measure: indicator, system, measure, bins, farthest and nearest with low and high
    (rel_loss), spearman, n, p_adjusted; and shift, where the tables have it. Systems that lose
    nothing are not there.
    """
    if not len(by_similarity) or not len(correlations):
        return pl.DataFrame()
    keys = [k for k in ("shift", "indicator", "system", "measure") if k in by_similarity.columns]
    mine = pl.col("measure") == by_similarity["measure"][0]
    # From the farthest bin to the nearest, whichever way the indicator counts.
    order = pl.when("nearer").then("bin").otherwise(-pl.col("bin"))
    bins = by_similarity.filter(mine).sort(order, maintain_order=True)
    names = {"": "rel_loss", "_low": "rel_loss_low", "_high": "rel_loss_high"}
    ends = bins.group_by(keys, maintain_order=True).agg(
        pl.len().alias("bins"),
        *(pl.col(name).first().alias(f"farthest{end}") for end, name in names.items()),
        *(pl.col(name).last().alias(f"nearest{end}") for end, name in names.items()),
    )
    found = correlations.filter(mine, over="queries", kind="spearman")
    found = found.select(*keys, pl.col("value").alias("spearman"), "nearer", "n", "p_adjusted")
    return found.join(ends, on=keys, maintain_order="left")


def in_words(
    by_similarity: pl.DataFrame, correlations: pl.DataFrame, groups: int | None
) -> list[str]:
    """Say in plain words how loss goes with similarity, for the first measure.

    There are ``groups`` altogether; with few of them their order says little, whatever it is.
    ``None``: nothing is to be said of groups.
    """
    said = [
        f"{row['indicator']}: {row['system']} loses {_loss(row, 'farthest')} of {row['measure']} "
        f"in the farthest of {row['bins']} bins of queries and {_loss(row, 'nearest')} in the "
        f"nearest; over {row['n']:,} queries {_related(row)}."
        for row in extremes(by_similarity, correlations).iter_rows(named=True)
    ]
    if groups is None:
        return said
    if groups < _FEWEST:
        plural = "s are" if groups != 1 else " is"
        few = f"{groups} group{plural} too few to say whether groups that are farther lose more."
        return [*said, few]
    if not len(correlations):
        return said
    over = correlations.filter(over="groups", kind="spearman")
    over = over.filter(pl.col("measure") == correlations["measure"][0])
    over = over.rename({"value": "spearman"}).sort(pl.col("spearman").abs())
    clear = over.filter(pl.col("p_adjusted") <= _CLEAR)
    said += [
        f"{row['indicator']}: with {row['system']}, over {row['n']} groups {_related(row)}."
        for row in clear.iter_rows(named=True)
    ]
    if len(over) and not len(clear):
        row = over.row(-1, named=True)
        said.append(
            f"Over {row['n']} groups no indicator goes clearly with what is lost; the strongest is "
            f"{row['indicator']} with {row['system']} ({_spearman(row)})."
        )
    if groups <= _FEW and len(over):
        said.append(
            f"With {groups} groups no p can be below {2 / factorial(groups):.2g} before it is "
            "corrected, however well they are in order: more groups or more shifts would tell."
        )
    return said


def _loss(row: dict[str, Any], end: str) -> str:
    if isnan(row[end]):
        return "an unknown share (near is 0)"
    return f"{row[end]:.1%} [{row[f'{end}_low']:.1%}, {row[f'{end}_high']:.1%}]"


def _related(row: dict[str, Any]) -> str:
    if row["p_adjusted"] > _CLEAR:
        return f"there is no clear relation ({_spearman(row)})"
    farther_loses = (row["spearman"] < 0) == row["nearer"]
    return f"those that are farther lose {'more' if farther_loses else 'less'} ({_spearman(row)})"


def _spearman(row: dict[str, Any]) -> str:
    p = row["p_adjusted"]
    return f"Spearman {row['spearman']:+.2f}, p {'< 0.0001' if p < 0.0001 else f'{p:.4f}'}"
