"""Do runs differ from a baseline, by how much, and could we have seen it?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from farfield import stats
from farfield.errors import InputError
from farfield.measures import Measure
from farfield.questions.evaluate import (
    DEFAULT_MEASURES,
    Evaluation,
    PathLike,
    Runs,
    evaluate,
    named_runs,
)
from farfield.stats.checks import choice
from farfield.tables import Qrels, Run

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Differences of runs from a baseline, over the same queries."""

    evaluation: Evaluation
    baseline: str
    test: str = "t"
    correction: str = "holm"

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per run and measure: difference, interval, p-values, wins, ties, losses …"""
        evaluation = self.evaluation
        return stats.contrasts(
            evaluation.per_query,
            self.baseline,
            test=self.test,
            correction=self.correction,
            level=evaluation.level,
            resamples=evaluation.resamples,
            seed=evaluation.seed,
            lower_is_better=[str(m) for m in evaluation.measures if not m.higher_is_better],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield compare --json`` prints."""
        differences: dict[str, dict[str, Any]] = {}
        for row in self.table.iter_rows(named=True):
            system, measure = row.pop("system"), row.pop("measure")
            row.pop("n")
            differences.setdefault(system, {})[measure] = {
                key: _finite(value) for key, value in row.items()
            }
        return {
            "baseline": self.baseline,
            "differences": differences,
            "test": self.test,
            "correction": self.correction,
            **self.evaluation.to_dict(),
        }


def compare(
    qrels: Qrels | PathLike,
    baseline: Run | PathLike,
    runs: Runs,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    test: str = "t",
    correction: str = "holm",
    ties: str = "trec",
    drop_self: bool = False,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Compare runs with a baseline, query by query.

    ``test`` is ``"t"``, ``"wilcoxon"`` or ``"randomisation"``, each paired and two-sided;
    ``correction`` (``"holm"``, ``"bonferroni"``, ``"bh"``, ``"none"``) is over all comparisons made
    here. Everything else is as for :func:`~farfield.evaluate`.
    """
    choice("test", test, stats.PAIRED_TESTS)
    choice("correction", correction, stats.CORRECTIONS)
    ((name, source),) = named_runs(baseline)
    others = dict(named_runs(runs))
    if name in others:
        raise InputError(
            f"{name!r} is the name of the baseline and of another run. Rename one of the files, or "
            "pass a mapping {name: run}."
        )
    evaluation = evaluate(
        qrels,
        dict([(name, source), *others.items()]),
        measures,
        ties=ties,
        drop_self=drop_self,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    return Comparison(evaluation, name, test, correction)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
