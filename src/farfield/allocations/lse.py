"""Every source measured by a soft maximum of itself."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.allocations.base import Floats, Keyed, Lists
from farfield.errors import SpecError

__all__ = ["lse"]

_DEEPEST = 101  # the tail of a list ends here


@dataclass(frozen=True, kw_only=True)
class lse(Keyed):
    """A result's score less T ln(mean of exp(s / T)) over its source's best results for the query.

    T is ``times`` the ``scale``, by default the mean excess of a list's tail (ranks 11 to 100 above
    rank 101) over all queries and sources, which needs queries but no labels. The mean is over
    ``depth`` results, by default twice as many as are given out.

    Relations: local is its limit for a large T, softmax has a T for each source and learns it. A
    little better than local in the mean, worse at its worst.
    """

    times: float = 4.0
    depth: int | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("times", self.times), ("depth", self.depth), ("scale", self.scale)):
            if value is not None and not 0 < value < float("inf"):
                raise SpecError(f"{name} is {value}, expected a number above 0.")

    def window(self, k: int) -> int:
        """Deep enough for the mean and for the tail."""
        return max(k, self.depth or 2 * k, _DEEPEST)

    def keys(self, lists: Lists, k: int) -> Floats:
        """The scores above the soft maximum of their list."""
        scale = float(lists.tails.mean()) if self.scale is None else self.scale
        level = lists.soft_mean_of_top(self.depth or 2 * k, self.times * scale)
        return lists.scores - level[:, :, None]
