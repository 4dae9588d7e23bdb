"""What all measures share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from farfield.errors import SpecError
from farfield.judged import JudgedRun
from farfield.spec import Member

__all__ = ["BinaryMeasure", "Measure", "ratio"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Measure(Member):
    """A value for every judged query.

    A measure sees a :class:`~farfield.judged.JudgedRun`: the judged documents and the ranks a run
    gave them. Queries that the run lacks have no ranks, and get the worst value.
    """

    bare: ClassVar[bool] = True
    #: Is a larger value a better one?
    higher_is_better: ClassVar[bool] = True
    #: Do all values lie between 0 and 1? (Coverage needs that.)
    bounded: ClassVar[bool] = True

    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.cutoff is not None and self.cutoff < 1:
            raise SpecError(f"cutoff is {self.cutoff}, expected 1, 2, 3 …")

    def values(self, judged: JudgedRun) -> Floats:
        """Return one value for each of ``judged.query_ids``."""
        return self._values(self._view(judged))

    def _view(self, judged: JudgedRun) -> JudgedRun:
        """What the measure looks at: everything, unless it says otherwise."""
        return judged

    def _values(self, judged: JudgedRun) -> Floats:
        raise NotImplementedError(f"{type(self).__name__} defines no _values")


@dataclass(frozen=True, kw_only=True)
class BinaryMeasure(Measure):
    """A measure for which a document is relevant or not.

    Documents of relevance ``rel`` or more are. ``judged_only=True`` first removes the documents
    that nobody judged.
    """

    rel: int = 1
    judged_only: bool = False

    def _view(self, judged: JudgedRun) -> JudgedRun:
        return judged.condensed if self.judged_only else judged

    def relevant(self, judged: JudgedRun) -> npt.NDArray[np.bool_]:
        """Which judged documents count as relevant."""
        return np.greater_equal(judged.relevance, self.rel)


def ratio(part: Floats, whole: Floats) -> Floats:
    """Divide, with 0 where there is nothing to divide by."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0)
