"""How far apart are sets of queries?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield.reports.blocks import Block, Figures, Table
from farfield.reports.page import Section
from farfield.reports.parts import Part

if TYPE_CHECKING:
    from farfield.questions.distance import Distance

__all__ = ["PART", "distance_table"]

_READING = (
    "Every indicator has a value with its interval and, as same, what the value would be if "
    "nothing were different; relative is the one over the other, for similarities. p tests just "
    "that, where an indicator is a test, and is corrected for their number."
)


def _of_answer(answer: Distance) -> list[Section]:
    blocks: list[Block] = []
    if answer.encoder is not None:
        alt = "Distributions of similarities of both sets, and a map of their vectors."
        blocks.append(Figures(answer.figure(), alt))
    blocks.append(distance_table(answer.table))
    return [
        Section(
            "distance",
            f"How far is {answer.a.name} from {answer.b.name}?",
            reading=_READING,
            findings=[
                answer.verdict,
                f"{answer.shared:,} of {len(answer.a):,} queries are the same, word for word.",
            ],
            blocks=blocks,
        )
    ]


def distance_table(table: pl.DataFrame) -> Table:
    """Return the readings of indicators, for sets or for folds."""
    return Table(
        "distances",
        "How far from the training queries?",
        table,
        labels={"train": "training queries", "same": "if nothing differed"},
        kinds={"relative": "share"},
    )


PART = Part(order=21, answer="Distance", of_answer=_of_answer)
