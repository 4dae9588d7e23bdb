"""How far are the near and the far queries of each fold from its training queries?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from farfield.errors import InputError
from farfield.reports.blocks import Block, Figures
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.distances import distance_table

if TYPE_CHECKING:
    from farfield.questions.distance import FoldDistances

__all__ = ["PART"]

_READING = (
    "Near and far queries of each fold are compared with the training queries of that fold; same "
    "is what a value would be if nothing were different. A shift has worked where far is farther "
    "than near in every fold."
)


def _of_answer(answer: FoldDistances) -> list[Section]:
    blocks: list[Block] = []
    try:
        alt = "Boxes of the similarity of near and far queries to training, fold by fold."
        blocks.append(Figures(answer.figure(), alt))
    except InputError:  # none of the indicators has a value for each query
        pass
    blocks.append(distance_table(answer.table))
    title = "How far are near and far queries from training?"
    return [Section("distance", title, reading=_READING, blocks=blocks)]


PART = Part(order=22, answer="FoldDistances", of_answer=_of_answer)
