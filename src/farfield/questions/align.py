"""Does performance far from training predict performance out of domain?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import stats
from farfield.errors import InputError, did_you_mean
from farfield.io.files import PathLike
from farfield.questions._small_files import read_rows
from farfield.stats.checks import share, whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["Alignment", "align", "scores_of"]

Floats = npt.NDArray[np.float64]

_FEWEST = 4


@dataclass(frozen=True, eq=False)
class Alignment:
    """How well some scores of systems predict others, by rank correlations over the systems.

    ``scores`` has a row per system. ``predictors`` are held against every column of ``targets``;
    with ``each``, every column against the mean of all others.
    """

    scores: pl.DataFrame
    system: str
    predictors: tuple[str, ...]
    targets: tuple[str, ...]
    each: bool
    left_out: int  # systems that lack a score
    level: float
    resamples: int
    seed: int

    @cached_property
    def table(self) -> pl.DataFrame:
        """target, predictor, kind, value, low, high, n: one row for each pair and correlation."""
        rows = []
        for target, predictors in self._pairs():
            matrix = self.scores.select(predictors).to_numpy()
            for kind in stats.RANK_CORRELATIONS:
                found = stats.rank_correlations(
                    matrix, self._target(target, predictors), kind=kind, **self._options
                )
                for predictor, one in zip(predictors, found, strict=True):
                    row = {"target": target, "predictor": predictor, "kind": kind}
                    rows.append(row | {"value": one.value, "low": one.low, "high": one.high})
        frame = pl.DataFrame(rows).with_columns(n=pl.lit(len(self.scores)))
        if self.each:
            order = frame.filter(pl.col("kind") == "spearman").sort("value", descending=True)
            rank = {name: place for place, name in enumerate(order["predictor"])}
            frame = frame.sort(pl.col("predictor").replace_strict(rank), maintain_order=True)
        return frame

    @cached_property
    def differences(self) -> pl.DataFrame:
        """Pairs of predictors of one target: how much better the last goes with it than the first.

        target, predictor, other, kind, difference, low, high, p, p_adjusted (Holm, over all rows
        of a kind). With ``each``, the best predictor is compared with all others, each on the
        mean of what neither of the two is.
        """
        rows = []
        for target, one, other, goal in self._contests():
            columns = (self.scores[name].to_numpy() for name in (one, other))
            first, second = columns
            for kind in stats.RANK_CORRELATIONS:
                gap, test = stats.compare_rank_correlations(
                    first, second, goal, kind=kind, **self._options
                )
                row: dict[str, Any] = {"target": target, "predictor": one}
                row |= {"other": other, "kind": kind}
                row |= {"difference": gap.value, "low": gap.low, "high": gap.high, "p": test.p}
                rows.append(row)
        schema: dict[str, Any] = dict.fromkeys(["target", "predictor", "other", "kind"], pl.String)
        schema |= dict.fromkeys(["difference", "low", "high", "p"], pl.Float64)
        frame = pl.DataFrame(rows, schema=schema)
        parts = []
        for kind in stats.RANK_CORRELATIONS:
            part = frame.filter(pl.col("kind") == kind)
            p = part["p"].to_numpy()
            adjusted = stats.adjust(p, "holm") if len(part) else p
            parts.append(part.with_columns(pl.Series("p_adjusted", adjusted, dtype=pl.Float64)))
        return pl.concat(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield align --json`` prints."""
        return {
            "systems": len(self.scores),
            "left_out": self.left_out,
            "correlations": self.table.fill_nan(None).to_dicts(),
            "differences": self.differences.fill_nan(None).to_dicts(),
        }

    def figure(self) -> go.Figure:
        """Draw target against predictor, a point for each system."""
        from farfield.questions._align_figures import draw

        return draw(self)

    def points(self, target: str, predictor: str) -> tuple[Floats, Floats]:
        """Return the scores of both, system by system."""
        goal = self._mean_without(predictor) if self.each else self.scores[target].to_numpy()
        return self.scores[predictor].to_numpy(), goal

    @property
    def _options(self) -> dict[str, Any]:
        return {"level": self.level, "resamples": self.resamples, "seed": self.seed}

    def _pairs(self) -> list[tuple[str, list[str]]]:
        if self.each:
            return [(f"mean of the others than {name}", [name]) for name in self.predictors]
        return [(target, list(self.predictors)) for target in self.targets]

    def _target(self, target: str, predictors: list[str]) -> Floats:
        return self._mean_without(*predictors) if self.each else self.scores[target].to_numpy()

    def _mean_without(self, *names: str) -> Floats:
        others = [name for name in self.predictors if name not in names]
        found: Floats = self.scores.select(others).to_numpy().mean(axis=1)
        return found

    def _contests(self) -> list[tuple[str, str, str, Floats]]:
        if self.each:
            best = self.table["predictor"][0]
            others = list(self.table["predictor"].unique(maintain_order=True))[1:]
            return [
                ("mean of the others", best, other, self._mean_without(best, other))
                for other in others
            ]
        *firsts, last = self.predictors
        return [
            (target, last, first, self.scores[target].to_numpy())
            for target in self.targets
            for first in firsts
        ]


def align(
    scores: pl.DataFrame | PathLike,
    predictors: Sequence[str] = (),
    targets: Sequence[str] = (),
    *,
    system: str | None = None,
    without: Sequence[str] = (),
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Alignment:
    """Say how well scores of systems predict other scores of the same systems.

    ``scores`` has a row per system and a column per score (for long tables see
    :func:`scores_of`); ``system`` names the column of their names, by default the first. Give
    ``predictors`` (near, then far) and ``targets`` (out-of-domain scores; by default all other
    columns). Without predictors, every column is held against the mean of all others. Columns
    named in ``without`` do not count. Systems that lack a score in any of the columns are left out,
    and counted.
    """
    share("level", level)
    whole("resamples", resamples, 1)
    frame = scores if isinstance(scores, pl.DataFrame) else read_rows(scores)
    names = system or frame.columns[0]
    _known([names], frame.columns, "column")
    numeric = [name for name in frame.columns if name != names and _is_number(frame[name])]
    _known(without, frame.columns, "column")
    numeric = [name for name in numeric if name not in without]
    each = not predictors
    if each and targets:
        raise InputError("targets need predictors to be held against. Give both, or neither.")
    predictors = list(predictors) or numeric
    targets = list(targets) or [name for name in numeric if name not in predictors]
    _known([*predictors, *targets], numeric, "column of numbers")
    if each and len(predictors) < 3:
        raise InputError(
            f"there are {len(predictors)} columns of numbers, expected at least 3 to hold each "
            "against the mean of the others."
        )
    if not each and not targets:
        raise InputError("there is no column left to predict. Name it as a target.")
    used = list(dict.fromkeys([*predictors, *(() if each else targets)]))
    chosen = frame.select(
        pl.col(names).cast(pl.String), *(pl.col(n).cast(pl.Float64) for n in used)
    )
    complete = chosen.filter(
        pl.all_horizontal(pl.col(n).is_not_null() & pl.col(n).is_finite() for n in used)
    )
    if complete[names].is_duplicated().any():
        twice = complete.filter(pl.col(names).is_duplicated())[names][0]
        raise InputError(f"the system {twice!r} is there twice. Keep one of the rows.")
    if len(complete) < _FEWEST:
        raise InputError(
            f"{len(complete)} systems have all of the {len(used)} scores, expected at least "
            f"{_FEWEST}. Choose columns that more systems have ({len(chosen):,} rows were given)."
        )
    return Alignment(
        complete.sort(names),
        names,
        tuple(predictors),
        tuple(targets),
        each,
        len(chosen) - len(complete),
        level,
        resamples,
        seed,
    )


def scores_of(
    table: pl.DataFrame | PathLike,
    *,
    rows: str,
    columns: str,
    value: str,
    where: Mapping[str, Sequence[str]] | None = None,
) -> pl.DataFrame:
    """Make a table with a row per system of a long one: a row per system and data set.

    ``where`` keeps only rows with one of these values in a column, for each column. If a system
    then has several values for one data set, that is an error.
    """
    frame = table if isinstance(table, pl.DataFrame) else read_rows(table)
    _known([rows, columns, value, *(where or {})], frame.columns, "column")
    for name, kept in (where or {}).items():
        texts = frame[name].cast(pl.String)
        _known(kept, texts.drop_nulls().unique().to_list(), f"value of {name}")
        frame = frame.filter(texts.is_in(list(kept)))
    if not _is_number(frame[value]):
        raise InputError(f"the column {value!r} holds {frame[value].dtype}, expected numbers.")
    frame = frame.select(
        pl.col(rows).cast(pl.String),
        pl.col(columns).cast(pl.String),
        pl.col(value).cast(pl.Float64),
    )
    twice = frame.filter(pl.struct(rows, columns).is_duplicated())
    if len(twice):
        raise InputError(
            f"{rows} {twice[rows][0]!r} has several values for {columns} {twice[columns][0]!r}. "
            "Choose one with where (--where split=test)."
        )
    wide = frame.pivot(columns, index=rows, values=value, sort_columns=True)
    return wide.sort(rows)


def _is_number(column: pl.Series) -> bool:
    if column.dtype.is_numeric():
        return True
    if column.dtype != pl.String:
        return False
    texts = column.str.strip_chars()
    texts = texts.filter(texts != "")
    return bool(len(texts)) and texts.cast(pl.Float64, strict=False).null_count() == 0


def _known(names: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            some = ", ".join(list(known)[:20]) + (" …" if len(known) > 20 else "")
            raise InputError(
                f"there is no {what} {name!r}.{did_you_mean(name, known)} There are: {some}."
            )
