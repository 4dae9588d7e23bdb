"""All results in one pot."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.allocations.base import Floats, Keyed, Lists

__all__ = ["merge"]


@dataclass(frozen=True, kw_only=True)
class merge(Keyed):
    """The results with the best scores, whichever source they are from (naive merging).

    As good as scores are comparable: those of one encoder, or of BM25 with statistics of all
    sources. Right where a query is answered by one of many topical sources.

    Relations: local takes the level of each source away first; level is a dial between the two.
    """

    def keys(self, lists: Lists, k: int) -> Floats:
        """The scores."""
        return lists.scores
