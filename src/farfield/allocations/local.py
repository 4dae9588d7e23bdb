"""Every source measured by itself, query by query."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.allocations.base import Floats, Keyed, Lists
from farfield.errors import SpecError

__all__ = ["local"]


@dataclass(frozen=True, kw_only=True)
class local(Keyed):
    """A result's score less the mean of its source's best results for the query.

    The mean is over the first ``depth`` results, by default as many as are given out: it has to
    follow the budget. Needs no labels and no constant, for any number of sources. The default where
    a query wants something from each source; poor where sources are topical, since a source that
    has nothing to say looks like one that has.

    Relations: lse bends the mean towards the best result; level takes only a part of it away.
    """

    depth: int | None = None

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 1:
            raise SpecError(f"depth is {self.depth}, expected 1, 2, 3 …")

    def window(self, k: int) -> int:
        """As deep as the mean goes."""
        return max(k, self.depth or k)

    def keys(self, lists: Lists, k: int) -> Floats:
        """The scores above the level of their list."""
        return lists.scores - lists.mean_of_top(self.depth or k)[:, :, None]
