"""Shifts between short and long queries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from farfield.errors import SpecError
from farfield.shifts.base import Grouped, Groups, Pool

__all__ = ["length"]


@dataclass(frozen=True, kw_only=True)
class length(Grouped):
    """Groups of queries by their number of words.

    ``cuts`` says from how many words on a new group starts: [6] makes short (up to 5) and long (6
    and more), [4, 8] makes 1-3, 4-7 and 8+. Without it the median of all queries is the cut.
    ``count``: ``words`` between blanks, or single ``spaces`` (two spaces in a row count twice), as
    the released sets of MS-Shift do.
    """

    cuts: tuple[int, ...] = ()
    count: Literal["words", "spaces"] = "words"

    def __post_init__(self) -> None:
        if any(a >= b for a, b in pairwise((0, *self.cuts))):
            raise SpecError(f"cuts is {list(self.cuts)}, expected numbers above 0 that rise.")

    def grouping(self, pool: Pool, seed: int) -> Groups:
        """Count the words of every query."""
        texts = pool.queries.frame["text"]
        if self.count == "words":
            counts = texts.str.count_matches(r"\S+").to_numpy()
        else:
            counts = texts.str.split(" ").list.len().to_numpy()
        cuts = self.cuts or (max(1, int(np.ceil(np.median(counts)))),)
        of = np.searchsorted(cuts, counts, side="right").astype(np.int64)
        if len(cuts) == 1:
            names: tuple[str, ...] = ("short", "long")
        else:
            names = (
                f"1-{cuts[0] - 1}",
                *(f"{a}-{b - 1}" for a, b in pairwise(cuts)),
                f"{cuts[-1]}+",
            )
        return Groups(names, of, {"a new group starts at so many words": list(cuts)})
