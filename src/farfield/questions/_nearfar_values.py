"""What near and far are told from: values of all test queries, for models trained on each fold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import stats
from farfield.measures import Measure

__all__ = ["Floats", "Values", "loss_of", "named", "rel_loss"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Values:
    """Values of queries by system, measure, fold and seed, and the role of each in every fold."""

    values: pl.DataFrame  # system, measure, fold, seed, query_id, value
    roles: pl.DataFrame  # fold, query_id, role (near, far)
    measures: tuple[Measure, ...]
    systems: tuple[str, ...]
    level: float
    resamples: int
    seed: int

    @property
    def _options(self) -> dict[str, Any]:
        return {"level": self.level, "resamples": self.resamples, "seed": self.seed}

    @cached_property
    def _groups(self) -> dict[str, pl.Series]:
        """The far queries of each fold, in the order of the folds."""
        far = self.roles.filter(pl.col("role") == "far")
        return {
            str(fold): part["query_id"].sort()
            for (fold,), part in far.group_by("fold", maintain_order=True)
        }

    @cached_property
    def _paired(self) -> dict[tuple[str, str], tuple[pl.Series, Floats, Floats]]:
        """Queries that are near in some fold and far in one: values near and far, by seed."""
        told = self.values.join(self.roles, on=["fold", "query_id"], how="inner")
        means = told.group_by("system", "measure", "query_id", "role", "seed").agg(
            pl.col("value").mean()
        )
        found = {}
        for (system, measure), part in means.group_by("system", "measure"):
            names = [str(seed) for seed in part["seed"].unique().sort()]
            near, far = (
                part.filter(pl.col("role") == role)
                .pivot("seed", index="query_id", values="value")
                .sort("query_id")
                for role in ("near", "far")
            )
            both = near.select("query_id").join(far, on="query_id", how="semi")
            if len(both):
                sides = (
                    both.join(of, on="query_id", how="left", maintain_order="left").select(names)
                    for of in (near, far)
                )
                inside, out = (side.to_numpy() for side in sides)
                # A mean of like values may differ from them in the last digit: that is no loss.
                inside = np.where(np.isclose(inside, out, rtol=1e-12, atol=0.0), out, inside)
                found[str(system), str(measure)] = both["query_id"], inside, out
        return found

    def _sides(
        self, system: str, measure: Measure, queries: pl.Series | None = None
    ) -> tuple[pl.Series, Floats, Floats] | None:
        """The same of one system and measure, and of some queries; ``None`` if there are none."""
        found = self._paired.get((system, str(measure)))
        if found is None or queries is None:
            return found
        ids, near, far = found
        chosen = ids.is_in(queries.implode()).to_numpy()
        return (ids.filter(chosen), near[chosen], far[chosen]) if chosen.any() else None


def named(name: str, found: stats.Estimate) -> dict[str, float]:
    """Name the parts of an estimate: ``near``, ``near_low``, ``near_high``."""
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def rel_loss(measure: Measure, change: stats.Change) -> dict[str, float]:
    """The relative change as a loss: positive where the measure gets worse."""
    sign = -1.0 if measure.higher_is_better else 1.0
    found = change.relative
    value, low, high = (sign * of + 0.0 for of in (found.value, found.low, found.high))  # no -0.0
    low, high = sorted((low, high))
    return {"rel_loss": value, "rel_loss_low": low, "rel_loss_high": high}


def loss_of(measure: Measure, near: Floats, far: Floats) -> Floats:
    """What each query loses, the mean over seeds."""
    sign = 1.0 if measure.higher_is_better else -1.0
    found: Floats = sign * (near - far).mean(axis=1) + 0.0  # no -0.0
    return found
