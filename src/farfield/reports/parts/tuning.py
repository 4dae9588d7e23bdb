"""Which weights of a fusion are best, and do they hold up on other queries?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Table
from farfield.reports.page import Section
from farfield.reports.parts import Part

if TYPE_CHECKING:
    from farfield.questions.tune import Tuning

__all__ = ["PART", "tuning_blocks"]

_READING = (
    "Every setting is drawn with its mean; the tuned one is valued on queries that had no part in "
    "choosing it. Best per query is a bound that nobody reaches without the judgements."
)


def _of_answer(answer: Tuning) -> list[Section]:
    gain = words.with_interval(answer.gain, "difference", ends=("low", "high"))
    findings = [
        f"{answer.best} is best on all queries; chosen on other queries it changes "
        f"{answer.measure} by {gain} against {answer.fusion} ({words.p_value(answer.gain['p'])})."
    ]
    title = f"Which weights of {type(answer.fusion).__name__} are best?"
    blocks = tuning_blocks(answer)
    return [Section("tuning", title, reading=_READING, findings=findings, blocks=blocks)]


def tuning_blocks(answer: Tuning) -> list[Block]:
    """Return the curve of the settings, their table, and what was chosen in each fold."""
    return [
        Figures(answer.figure(), "The mean of every setting, and lines for tuned and best."),
        Table("settings", f"Settings of {answer.fusion}", answer.curve),
        Table("tuned", "As given, tuned on other queries, best of each query", answer.summary),
        Table("choices", "What was chosen without each fold", answer.folds),
    ]


PART = Part(order=72, answer="Tuning", of_answer=_of_answer)
