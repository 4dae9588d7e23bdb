"""Which source gives how many results?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from farfield.reports.blocks import Block, Figures, Table
from farfield.reports.page import Section
from farfield.reports.parts import Part

if TYPE_CHECKING:
    from farfield.questions.allocate import Allocated

__all__ = ["PART"]

_READING = (
    "A policy shares a budget of results out among sources; closed is how much of the way from "
    "naive merging to the oracle it goes, and over equal how it differs from giving every source "
    "the same. The best fraction in hindsight and the oracle are bounds: they were chosen on "
    "these queries."
)


def _of_answer(answer: Allocated) -> list[Section]:
    blocks: list[Block] = [
        Figures(answer.figure(), "What policies are worth, and how much each source gives.")
    ]
    if answer.labels is not None:
        recall, precision = answer.measures
        labels = {"recall": recall, "precision": precision, "over_equal": "over equal split"}
        blocks.append(
            Table(
                "policies",
                "What every policy is worth",
                answer.table,
                labels=labels,
                kinds={"closed": "share", "over_equal": "signed"},
            )
        )
        if len(answer.sources) == 2:
            blocks.append(Table("fractions", "Fixed shares", answer.fractions, labels=labels))
        if answer.budgets:
            blocks.append(Table("budgets", "By budget", answer.by_budget, labels=labels))
        if answer.seed_sizes:
            title = "By the number of labelled queries"
            blocks.append(Table("seeds", title, answer.by_seeds, labels=labels))
    blocks.append(Table("shares", "Share of the budget by source", answer.shares))
    findings = [answer.recommendation, answer.regime.text]
    title = "Which source gives how many results?"
    return [Section("allocation", title, reading=_READING, findings=findings, blocks=blocks)]


PART = Part(order=80, answer="Allocated", of_answer=_of_answer)
