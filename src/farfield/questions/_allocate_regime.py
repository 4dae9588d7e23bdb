"""Do sources overlap, or has each its topics? A hint from scores alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from farfield.allocations import Lists

__all__ = ["HEAD", "Need", "Regime", "regime"]

#: What a query wants: something from each source, or the answer from any of them.
Need = Literal["each", "any"]

_CUT = 0.8
HEAD = 10  # ranks whose fall is the yardstick
_FEWEST = 10  # queries that all sources answer


@dataclass(frozen=True)
class Regime:
    """How much the best scores of sources differ from query to query (rho), and what that hints at.

    Of the collections it was tried on it was 0.45 to 0.76 where sources overlapped and 0.82 to 1.52
    where they were topical; on parts of them it has been wrong. A hint, no rule.
    """

    rho: float | None
    queries: int

    @property
    def need(self) -> Need | None:
        """What queries seem to want."""
        return None if self.rho is None else "any" if self.rho >= _CUT else "each"

    @property
    def text(self) -> str:
        """The hint in a sentence."""
        if self.rho is None:
            return (
                f"Whether sources overlap or are topical cannot be told: {self.queries:,} queries "
                "have results from all of them."
            )
        if self.need == "any":
            return (
                f"The sources look topical (rho {self.rho:.2f}, cut {_CUT}): probably one of them "
                "has the answer, and merging comparable scores does well (need any)."
            )
        return (
            f"The sources look alike (rho {self.rho:.2f}, cut {_CUT}): each probably has "
            "something, and levelling them does well (need each)."
        )


def regime(lists: Lists) -> Regime:
    """Measure how much the best scores vary over queries and sources beyond both means.

    rho is the root mean square of what is left of the best score of each query in each source after
    the mean of the source and the mean of the query are taken away, over the mean fall of scores
    from the first to the tenth result. Only queries count that every source has results for.
    """
    whole = (lists.lengths > 0).all(axis=1)
    queries = int(whole.sum())
    if queries < _FEWEST:
        return Regime(None, queries)
    firsts = lists.scores[whole, :, 0]
    left = firsts - firsts.mean(axis=0) - firsts.mean(axis=1, keepdims=True) + firsts.mean()
    last = np.minimum(lists.lengths[whole], HEAD) - 1
    tenths = np.take_along_axis(lists.scores[whole], last[:, :, None], axis=2)[:, :, 0]
    fall = float((firsts - tenths).mean())
    if fall <= 0:
        return Regime(None, queries)
    spread = np.sqrt(np.square(left).sum() / (queries * (firsts.shape[1] - 1)))
    return Regime(float(spread / fall), queries)
