"""Several shifts at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from farfield.errors import SpecError
from farfield.shifts.base import Fold, Grouped, Groups, Pool, Shift, counted

__all__ = ["cross"]


@dataclass(frozen=True, kw_only=True)
class cross(Grouped):
    """The combinations of the groups of several shifts: ``cross(length(), whwords())``.

    In each fold one combination is far. ``leave`` says what training leaves out: the ``cell``, that
    is only queries of this very combination, so that each of its sides is known from others; or the
    ``margins``, that is all queries that share a side with it. Near are the test queries of what
    was trained on.
    """

    shifts: tuple[Shift, ...]
    leave: Literal["cell", "margins"] = "cell"

    def __post_init__(self) -> None:
        if len(self.shifts) < 2:
            raise SpecError(f"{len(self.shifts)} shift given, expected at least 2.")
        for shift in self.shifts:
            if not isinstance(shift, Grouped) or type(shift).deal_pool is not Grouped.deal_pool:
                raise SpecError(f"{shift} makes no groups of queries, so it cannot be crossed.")
            if shift.balance:
                raise SpecError(f"{shift}: give balance to cross, not to the shifts in it.")

    def grouping(self, pool: Pool, seed: int) -> Groups:
        """Combine the groups; a query that is in no group of one shift is in none here."""
        parts = self._parts(pool, seed)
        shape = [len(part.names) for part in parts]
        of = np.ravel_multi_index([np.maximum(part.of, 0) for part in parts], shape)
        of[np.any([part.of < 0 for part in parts], axis=0)] = -1
        names = tuple(" & ".join(names) for names in product(*(part.names for part in parts)))
        facts = {str(s): p.facts for s, p in zip(self.shifts, parts, strict=True) if p.facts}
        return Groups(names, of.astype(np.int64), facts | {"shape": shape})

    def leave_out(self, pool: Pool, groups: Groups, number: int) -> Fold:
        """Make the fold in which the combination with this number is far."""
        if self.leave == "cell":
            return super().leave_out(pool, groups, number)
        shape = groups.facts["shape"]
        own = np.unravel_index(number, shape)
        sides = np.unravel_index(np.maximum(groups.of, 0), shape)
        there = groups.of >= 0
        apart = there & np.all(
            [side != mine for side, mine in zip(sides, own, strict=True)], axis=0
        )
        inside = groups.of == number
        between = there & ~apart & ~inside
        return Fold(
            groups.names[number],
            train=np.flatnonzero(apart & ~pool.is_test),
            near=np.flatnonzero(apart & pool.is_test),
            far=np.flatnonzero(inside & pool.is_test),
            dropped=counted(
                {
                    "in no group": int((~there).sum()),
                    "share a side with the group left out": int(between.sum()),
                    "training queries of the group left out": int((inside & ~pool.is_test).sum()),
                }
            ),
        )

    def _parts(self, pool: Pool, seed: int) -> list[Groups]:
        return [shift.grouping(pool, seed) for shift in self.shifts if isinstance(shift, Grouped)]
