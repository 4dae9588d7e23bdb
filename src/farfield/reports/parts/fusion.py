"""What several runs become when they are fused, and was it worth it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.comparison import comparison_blocks
from farfield.reports.parts.tuning import PART as TUNING

if TYPE_CHECKING:
    from farfield.questions.fuse import FusionReport

__all__ = ["PART"]

_READING = (
    "Each run is compared with the fusion over the same queries: a negative difference means that "
    "the fusion is better. Intervals and p-values are of paired differences, corrected over all."
)


def _of_answer(answer: FusionReport) -> list[Section]:
    findings = [f"{measure}: {said}." for measure, said in answer.verdicts.items()]
    title = f"Is {answer.comparison.baseline} worth it?"
    blocks = comparison_blocks(answer.comparison)
    found = [Section("fusion", title, reading=_READING, findings=findings, blocks=blocks)]
    if answer.tuning is not None and TUNING.of_answer is not None:
        found += TUNING.of_answer(answer.tuning)
    return found


PART = Part(order=71, answer="FusionReport", of_answer=_of_answer)
