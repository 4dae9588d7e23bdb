"""What do several runs become when they are fused into one, and was it worth it?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from farfield import fusions
from farfield.errors import InputError
from farfield.fusions import Fusion
from farfield.io import read_qrels
from farfield.measures import Measure
from farfield.questions.compare import Comparison
from farfield.questions.evaluate import (
    DEFAULT_MEASURES,
    PathLike,
    Runs,
    evaluate,
    named_runs,
    open_runs,
    parse_measures,
)
from farfield.questions.tune import Tuning, tune
from farfield.tables import Qrels, Run

__all__ = ["FusionReport", "fuse", "fuse_and_compare"]


def fuse(
    fusion: str | Fusion,
    runs: Runs,
    *,
    k: int | None = 1000,
    qrels: Qrels | PathLike | None = None,
    name: str | None = None,
    ties: str = "trec",
) -> Run:
    """Fuse runs, given as tables or as paths, into one.

    ``fusion`` is a member of :mod:`farfield.fusions` or its spec: ``"rrf(k=60)"``,
    ``"interpolate(weights=[0.3, 0.7])"``. The first ``k`` documents of each query are kept
    (``None``: all); a query counts if any run has it. Only the oracle needs ``qrels``. ``ties``
    says how runs that are read from files are ordered (see :class:`~farfield.tables.Run`).
    """
    member = fusions.parse(fusion)
    named = named_runs(runs)
    judgements = None
    if member.needs_qrels and qrels is not None:
        judgements = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    member.check(named, k=k, qrels=judgements)
    return member.fuse(list(open_runs(named, ties=ties)), k=k, name=name, qrels=judgements)


@dataclass(frozen=True)
class FusionReport:
    """A fusion beside the runs it is made of.

    ``comparison`` has the fusion as it was given for its baseline. With a ``tuning``, ``fusion``
    and ``run`` are those of the best setting on all queries; what that is worth on others is said
    by the tuning. ``depth`` is the length of the longest list.
    """

    fusion: Fusion
    run: Run
    runs: tuple[str, ...]
    depth: int
    comparison: Comparison
    tuning: Tuning | None = None

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """In words, for each measure: is the fusion above every run, and is that certain?"""
        evaluation = self.comparison.evaluation
        found: dict[str, str] = {}
        for measure in evaluation.measures:
            sign = -1.0 if measure.higher_is_better else 1.0
            rows = [
                row
                for row in self.comparison.table.iter_rows(named=True)
                if row["measure"] == str(measure)
            ]
            beaten = [row for row in rows if sign * row["difference"] > 0]
            certain = [row for row in beaten if row["p_adjusted"] < 1.0 - evaluation.level]
            if len(certain) == len(rows):
                text = "is better than every run, and significantly so"
            elif len(beaten) == len(rows):
                others = [row["system"] for row in beaten if row not in certain]
                text = f"is better than every run, but not significantly than {_listed(others)}"
            else:
                above = [row["system"] for row in rows if row not in beaten]
                text = f"is not better than {_listed(above)}"
            found[str(measure)] = f"{self.comparison.baseline} {text}"
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield fuse --qrels --json`` prints beside what was written."""
        found: dict[str, Any] = {
            "fusion": str(self.fusion),
            "runs": list(self.runs),
            "comparison": self.comparison.to_dict(),
            "verdicts": self.verdicts,
        }
        if self.tuning is not None:
            found["tuning"] = self.tuning.to_dict()
        return found


def fuse_and_compare(
    fusion: str | Fusion,
    runs: Runs,
    qrels: Qrels | PathLike,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    k: int = 1000,
    search: bool = False,
    folds: int = 5,
    steps: int = 10,
    test: str = "t",
    correction: str = "holm",
    ties: str = "trec",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> FusionReport:
    """Fuse runs, evaluate the fusion and every run, and compare them.

    With ``search`` what the fusion leaves open is searched for by the first measure, as
    :func:`~farfield.tune` does.
    """
    member, chosen = fusions.parse(fusion), parse_measures(measures)
    judgements = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    named = named_runs(runs)
    if str(member) in dict(named):
        raise InputError(f"{str(member)!r} is the name of a run and of the fusion. Rename the run.")
    member.check(named, k=k, qrels=judgements)
    opened = list(open_runs(named, ties=ties))
    options: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    run = member.fuse(opened, k=k, qrels=judgements)
    evaluation = evaluate(judgements, [*opened, run], chosen, **options)
    comparison = Comparison(evaluation, run.name, test, correction)
    tuning = None
    if search:
        grid: dict[str, Any] = {"k": k, "folds": folds, "steps": steps}
        tuning = tune(judgements, opened, member, chosen[0], **grid, **options)
        member = tuning.best
        run = member.fuse(opened, k=k)
    return FusionReport(
        fusion=member,
        run=run,
        runs=tuple(one.name for one in opened),
        depth=max(int(np.diff(one.bounds).max(initial=0)) for one in opened),
        comparison=comparison,
        tuning=tuning,
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
