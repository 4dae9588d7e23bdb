"""Does performance far from training predict performance elsewhere?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield.questions.align import align
from farfield.reports import words
from farfield.reports.blocks import Figures, Table
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.rundir import RunDirectory

if TYPE_CHECKING:
    from farfield.questions.align import Alignment

__all__ = ["PART"]

_READING = (
    "Each point is a system; the rank correlation says how well the order of systems by one score "
    "tells their order by another. With few systems its interval is wide, and only a difference "
    "between two predictors that is tested should be believed."
)
_FEWEST = 4


def _of_run(run: RunDirectory) -> list[Section]:
    """Do near and far on the first shift predict far on the others?"""
    first, *others = run.shifts
    if not others or len(first.systems) < _FEWEST:
        return []
    measure = str(run.measures[0])
    rows = run.tables["table"].filter(
        (pl.col("measure") == measure) & (pl.col("average") == "micro")
    )
    scores = pl.DataFrame({"system": list(first.systems)})
    for shift in run.shifts:
        here = rows.filter(pl.col("shift") == shift.name)
        columns = [
            pl.col(side).alias(f"{side}, {shift.name}")
            for side in ("near", "far")
            if shift is first or side == "far"
        ]
        scores = scores.join(here.select("system", *columns), on="system", how="left")
    predictors = [f"{side}, {first.name}" for side in ("near", "far")]
    return _of_answer(align(scores, predictors))


def _of_answer(answer: Alignment) -> list[Section]:
    rows = answer.table.filter(pl.col("kind") == "spearman").sort("value", descending=True)
    best = rows.row(0, named=True)
    rho = words.with_interval(best, "value", ends=("low", "high"))
    findings = [
        f"Over {len(answer.scores):,} systems {best['predictor']} goes best with {best['target']}: "
        f"Spearman's rho {rho}."
    ]
    clear = answer.differences.filter(
        (pl.col("p_adjusted") < 0.05) & (pl.col("kind") == "spearman")
    )
    if len(answer.differences):
        said = "no two predictors are separable" if not len(clear) else "some predictors differ"
        findings.append(
            f"Corrected for their number, {said} (the table of differences says which)."
        )
    return [
        Section(
            "alignment",
            "Does one score predict another?",
            reading=_READING,
            findings=findings,
            blocks=[
                Figures(answer.figure(), "Scores of systems against one another."),
                Table("correlations", "Rank correlations", answer.table, labels={"n": "systems"}),
                Table(
                    "differences",
                    "Predictors compared",
                    answer.differences,
                    kinds={"difference": "signed"},
                ),
                Table("scores", "Scores of the systems", answer.scores),
            ],
        )
    ]


PART = Part(order=90, answer="Alignment", of_answer=_of_answer, of_run=_of_run)
