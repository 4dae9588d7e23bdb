"""Do runs hold up on queries that are unlike those of training?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield.questions.diagnose import OBSERVATIONAL
from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Table, Words
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.evaluation import by_query

if TYPE_CHECKING:
    from farfield.questions.diagnose import Diagnosis

__all__ = ["PART"]

_READING = (
    "Strata go from queries that training held word for word to those that are unlike any of its "
    "queries; drop is the mean near minus the mean far. A drop that a system without training has "
    "as well is due to harder queries, so look at what a run drops more than that (excess)."
)


def _of_answer(answer: Diagnosis) -> list[Section]:
    level = answer.evaluation.level
    findings = []
    if len(answer.drops):
        clear = answer.drops.filter(pl.col("p_adjusted") < 1.0 - level).sort("drop")
        told = [
            f"{row['system']} {words.with_interval(row, 'drop', ends=('low', 'high'))}"
            for row in clear.reverse().iter_rows(named=True)
        ]
        measure = answer.evaluation.measures[0]
        said = words.listed(told) if told else "no run"
        findings.append(f"{measure} differs clearly between near and far for {said}.")
    if answer.agreement is not None:
        found = answer.agreement
        row = {"tau": found.tau, "low": found.low, "high": found.high}
        tau = words.with_interval(row, "tau", ends=("low", "high"))
        findings.append(f"Near and far queries order the runs alike to a Kendall's tau of {tau}.")
    blocks: list[Block] = [
        Words(OBSERVATIONAL),
        Figures(answer.figure(), "The measure from near to far, and drops with their intervals."),
        Table(
            "drops", "Near minus far", answer.drops, kinds={"drop": "signed", "excess": "signed"}
        ),
        Table("strata", "Means of every stratum", answer.table, labels={"n": "queries"}),
        Table("places", "The strata", answer.places),
    ]
    if len(answer.pairs):
        kinds = {"change": "signed", "near": "signed", "far": "signed"}
        blocks.append(Table("pairs", "What changes between two runs", answer.pairs, kinds=kinds))
    placed = answer.placement
    values = by_query(answer.evaluation)
    joined = placed.join(values.frame, on="query_id", how="left", maintain_order="left")
    title = f"{values.title}, and where it lies"
    blocks.append(Table("by-query", title, joined, labels=values.labels))
    title = "Do runs hold up on queries unlike those of training?"
    return [Section("diagnosis", title, reading=_READING, findings=findings, blocks=blocks)]


PART = Part(order=41, answer="Diagnosis", of_answer=_of_answer)
