"""How far apart are two sets of queries?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from farfield import encoders, progress, stats
from farfield import indicators as indicator_family
from farfield.encoders import Encoder
from farfield.errors import InputError
from farfield.indicators import Indicator, Reading, Side, Sides
from farfield.indicators.base import Ints, Vectors
from farfield.indicators.classifier import classifier
from farfield.io import read
from farfield.io.files import PathLike
from farfield.questions._query_sets import Given, QuerySet, query_set
from farfield.similarity.terms import normal_form
from farfield.stats.checks import share, whole
from farfield.tables import Partition, PerQuery, Queries

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["DEFAULT", "Distance", "FoldDistances", "distance", "fold_distances"]

#: The indicators that are read unless others are asked for.
DEFAULT = ("jaccard", "r", "neighbours", "mmd", "classifier")

_COLUMNS: dict[str, Any] = {
    "indicator": pl.String,
    **dict.fromkeys(["value", "low", "high", "same", "relative", "p", "p_adjusted"], pl.Float64),
}


@dataclass(frozen=True, eq=False)
class Distance:
    """How far A (what is tested) is from B (what was trained on), by several indicators."""

    a: QuerySet
    b: QuerySet
    sides: Sides
    readings: Mapping[Indicator, Reading]
    encoder: Encoder | None  # None: no indicator asked for vectors

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per indicator: indicator, value, low, high, same, relative, p, p_adjusted.

        ``same`` is what the value would be if A were drawn from what B was drawn from; ``relative``
        the one over the other, for similarities. ``p`` tests just that, for the indicators that
        are tests; it is corrected for their number (Holm).
        """
        rows = [_row(indicator, reading) for indicator, reading in self.readings.items()]
        return _adjusted(pl.DataFrame(rows, schema=_COLUMNS))

    @cached_property
    def per_query(self) -> PerQuery:
        """Values of queries, of A's and of B's own: the system is the set they come from.

        Only of indicators that have any, and of the queries that they looked at.
        """
        frames = []
        for indicator, reading in self.readings.items():
            for of, values in ((self.a, reading.a), (self.b, reading.b)):
                if values is not None:
                    column = pl.Series("value", values, dtype=pl.Float64)
                    named = of.keys.with_columns(pl.lit(str(indicator)).alias("measure"), column)
                    frames.append(named.filter(pl.col("value").is_not_nan()))
        return PerQuery(pl.concat(frames) if frames else pl.DataFrame(schema=PerQuery.columns))

    @cached_property
    def shared(self) -> int:
        """How many of A's queries are in B, word for word (letters and digits, in lower case)."""
        a, b = (normal_form(of.texts) for of in (self.a, self.b))
        return int(a.is_in(b.unique().implode()).sum())

    @property
    def apart(self) -> bool | None:
        """Does any test tell the sets apart? ``None`` if no indicator is a test."""
        p = self.table["p_adjusted"].drop_nulls()
        return bool((p <= 1.0 - self.sides.level + 1e-12).any()) if len(p) else None

    @property
    def verdict(self) -> str:
        """The outcome in plain words."""
        tests = self.table.filter(pl.col("p").is_not_null())
        if self.apart is None:
            return "None of these indicators is a test; add jaccard, mmd or classifier for one."
        if not self.apart:
            return (
                f"Indistinguishable: no test tells {self.a.name} ({len(self.a):,} queries) from "
                f"{self.b.name} ({len(self.b):,}), which is no proof that they are alike."
            )
        found = tests.filter(pl.col("p_adjusted") <= 1.0 - self.sides.level + 1e-12)
        by = (
            " and ".join(found["indicator"])
            if len(found) < 3
            else f"{len(found)} of {len(tests)} tests"
        )
        text = f"Apart: {by} tell{'s' if len(found) == 1 else ''} "
        text += f"{self.a.name} from {self.b.name}."
        pairs = (x.explain(y) for x, y in self.readings.items() if isinstance(x, classifier))
        return " ".join([text, *(sentence[0].upper() + sentence[1:] for sentence in pairs)])

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield distance --json`` prints: a reading per indicator, and more."""
        found: dict[str, Any] = {}
        rows = self.table.iter_rows(named=True)
        for (indicator, reading), row in zip(self.readings.items(), rows, strict=True):
            extra = {"relative": row["relative"], "p_adjusted": row["p_adjusted"]}
            found[str(indicator)] = reading.to_dict() | extra
        return found | {
            "a": {"name": self.a.name, "queries": len(self.a)},
            "b": {"name": self.b.name, "queries": len(self.b)},
            "shared": self.shared,
            "apart": self.apart,
            "verdict": self.verdict,
            "encoder": None if self.encoder is None else str(self.encoder),
            "level": self.sides.level,
            "seed": self.sides.seed,
        }

    def figure(self) -> go.Figure:
        """Draw distributions of similarities, of A's queries and of B's own, and a map of both."""
        from farfield.questions import _distance_figures

        return _distance_figures.draw(self)


@dataclass(frozen=True, eq=False)
class FoldDistances:
    """How far the near and the far queries of each fold are from its training queries."""

    distances: Mapping[tuple[str, str], Distance]  # by fold and role

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per fold, role and indicator: fold, role, queries, train, and the reading.

        The columns are those of :attr:`Distance.table`; p-values are corrected over all rows.
        """
        frames = [
            found.table.select(
                pl.lit(fold).alias("fold"),
                pl.lit(role).alias("role"),
                pl.lit(len(found.a)).alias("queries"),
                pl.lit(len(found.b)).alias("train"),
                *_COLUMNS,
            )
            for (fold, role), found in self.distances.items()
        ]
        return _adjusted(pl.concat(frames))

    @cached_property
    def per_query(self) -> PerQuery:
        """Values of the near and far queries: the system is fold and role, as ``0 far``."""
        frames = [
            found.per_query.frame.filter(pl.col("system") == found.a.parts[0][0])
            for found in self.distances.values()
        ]
        return PerQuery(pl.concat(frames))

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield distance --partition --json`` prints: fold, role, reading."""
        folds: dict[str, dict[str, Any]] = {}
        for (fold, role), found in self.distances.items():
            folds.setdefault(fold, {})[role] = found.to_dict()
        return {"folds": folds}

    def figure(self) -> go.Figure:
        """Draw the similarity of near and far queries to their training queries, fold by fold."""
        from farfield.questions import _distance_figures

        return _distance_figures.draw_folds(self)


def distance(
    a: Given | Sequence[Given],
    b: Given | Sequence[Given],
    *,
    indicators: Sequence[str | Indicator] = DEFAULT,
    encoder: str | Encoder = "lsa()",
    level: float = 0.95,
    seed: int = 0,
) -> Distance:
    """Say how far A, what is tested, is from B, what was trained on.

    Either is a table of queries, a file, a BEIR folder, a split of one (``folder:train``) or a
    collection; several are taken together, as they are. ``encoder`` makes the vectors, if an
    indicator compares some, fitted to both sets where it has to be fitted.
    """
    chosen, made = _checked(indicators, encoder, level, seed)
    one = query_set(a, "A")
    other = query_set(b, "B", taken=[name for name, _ in one.parts])
    # Too few queries are refused before they are encoded.
    sides = Sides(Side(one.texts), Side(other.texts), level=level, seed=seed)
    if made is not None:
        vectors = made.encode(*(queries for of in (one, other) for _, queries in of.parts))
        first = _joined(vectors[: len(one.parts)])
        sides = replace(
            sides,
            a=replace(sides.a, vectors=first),
            b=replace(sides.b, vectors=_joined(vectors[len(one.parts) :])),
        )
    return _compared(one, other, sides, chosen, made)


def fold_distances(
    queries: Given,
    partition: Partition | PathLike,
    *,
    indicators: Sequence[str | Indicator] = DEFAULT,
    encoder: str | Encoder = "lsa()",
    level: float = 0.95,
    seed: int = 0,
) -> FoldDistances:
    """Say, for each fold of a shift, how far its near and its far queries are from its training.

    ``queries`` holds the texts of all queries that the partition names. All folds are compared in
    one space. Everything else is as for :func:`distance`.
    """
    chosen, made = _checked(indicators, encoder, level, seed)
    table = partition if isinstance(partition, Partition) else read(partition, Partition)
    ((_, every),) = query_set(queries, "queries").parts
    known = every.select(table.frame["query_id"])
    stray = table.frame.join(known.frame, on="query_id", how="anti")
    if len(stray):
        raise InputError(
            f"the partition names query {stray['query_id'][0]!r}, which is not among the queries "
            f"given ({stray['query_id'].n_unique():,} such queries). Give those it was made of."
        )
    vectors = None if made is None else made.encode(known)[0]
    numbered = known.frame.select("query_id").with_row_index("row")
    roles = table.frame.join(numbered, on="query_id").sort("fold", "row")
    distances: dict[tuple[str, str], Distance] = {}
    pairs = [
        (fold, role, part)
        for (fold,), part in roles.group_by("fold", maintain_order=True)
        for role in ("near", "far")
        if role in part["role"]
    ]
    if not pairs:
        raise InputError("the partition has neither near nor far queries: nothing to compare.")
    for fold, role, part in progress.track(pairs, "folds"):
        one, other = (_rows_of(part, wanted) for wanted in (role, "train"))
        sets = [
            QuerySet(name, ((name, Queries.trusted(known.frame[rows])),))
            for name, rows in ((f"{fold} {role}", one), (f"{fold} train", other))
        ]
        a, b = (
            Side(of.texts, None if vectors is None else vectors[rows])
            for of, rows in zip(sets, (one, other), strict=True)
        )
        both = Sides(a, b, level=level, seed=seed)
        distances[str(fold), role] = _compared(sets[0], sets[1], both, chosen, made)
    return FoldDistances(distances)


# -- inside -------------------------------------------------------------------------------------


def _checked(
    indicators: Sequence[str | Indicator], encoder: str | Encoder, level: float, seed: int
) -> tuple[list[Indicator], Encoder | None]:
    """The indicators, each once, and the encoder if one of them needs it."""
    share("level", level)
    whole("seed", seed, 0)
    given = [indicators] if isinstance(indicators, str | Indicator) else indicators
    chosen = list(dict.fromkeys(map(indicator_family.parse, given)))
    if not chosen:
        raise InputError(f"no indicator was asked for. Choose some of {', '.join(DEFAULT)}.")
    made = encoders.parse(encoder)
    return chosen, made if any(indicator.needs_vectors for indicator in chosen) else None


def _joined(parts: list[Vectors]) -> Vectors:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _rows_of(part: pl.DataFrame, role: str) -> Ints:
    """The rows of the queries that have this role in a fold."""
    rows = part.filter(pl.col("role") == role)["row"].to_numpy().astype(np.int64)
    if len(rows) < 2:
        raise InputError(
            f"fold {part['fold'][0]!r} has {len(rows)} {role} queries, expected at least 2."
        )
    return rows


def _compared(
    a: QuerySet, b: QuerySet, sides: Sides, chosen: list[Indicator], encoder: Encoder | None
) -> Distance:
    readings = {indicator: indicator.compare(sides) for indicator in chosen}
    return Distance(a, b, sides, readings, encoder)


def _row(indicator: Indicator, reading: Reading) -> dict[str, Any]:
    found = {name: reading.to_dict()[name] for name in ("value", "low", "high", "same", "p")}
    compared = indicator.higher_is_nearer and reading.same > 0
    relative = reading.value / reading.same if compared else None
    return {"indicator": str(indicator), **found, "relative": relative, "p_adjusted": None}


def _adjusted(table: pl.DataFrame) -> pl.DataFrame:
    """Correct the p-values for their number."""
    p = table["p"].to_numpy(allow_copy=True).astype(np.float64).copy()
    tested = ~np.isnan(p)
    if tested.any():
        p[tested] = stats.adjust(p[tested], "holm")
    return table.with_columns(pl.Series("p_adjusted", p).fill_nan(None))
