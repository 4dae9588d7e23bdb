"""What all policies share: results of several sources go in, the results of each query come out.

A policy is one of two kinds. A :class:`Keyed` one gives every result a key, and the largest keys
are taken; a :class:`Split` gives every source a share, for all queries or query by query. Rounding,
ties, sources that run dry and the order within a source are seen to here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farfield.allocations._labels import Labels
from farfield.allocations._lists import Bools, Floats, Ints, Lists
from farfield.allocations._picks import Picks, choose, rounded
from farfield.errors import InputError
from farfield.spec import Member

__all__ = ["Bools", "Floats", "Ints", "Keyed", "Labels", "Lists", "Picks", "Policy", "Split"]


@dataclass(frozen=True, kw_only=True)
class Policy(Member):
    """Which k of the results of several sources does a query get?

    Every policy spends the whole budget where there are as many results, and keeps the order of
    each source.
    """

    #: Does it need to know what is relevant to the very queries it is used on?
    needs_qrels: ClassVar[bool] = False

    @property
    def learns(self) -> bool:
        """Does it leave something open that labels have to decide?"""
        return False

    def fit(self, log: Lists, labels: Labels, k: int) -> Policy:
        """Return the policy with what it learned from labelled queries.

        ``log`` are lists of many queries without labels, for what the scores of a source are like.
        """
        return self

    def window(self, k: int) -> int:
        """How deep lists should be to give out ``k`` results."""
        return k

    def pick(self, lists: Lists, k: int, labels: Labels | None = None) -> Picks:
        """Choose ``k`` results for each query."""
        self.check(lists, k, labels)
        return self._pick(lists, k, labels)

    def check(self, lists: Lists, k: int, labels: Labels | None = None) -> None:
        """Raise if these lists cannot be shared out so."""
        if k < 1:
            raise InputError(f"k is {k}, expected 1, 2, 3 … results for each query.")
        if self.learns:
            raise InputError(
                f"{self} has something to learn. Fit it on labelled queries first, or say it all "
                "in its spec."
            )
        if self.needs_qrels and labels is None:
            raise InputError(f"{self} needs judgements. Pass labels (--qrels on the command line).")

    def _pick(self, lists: Lists, k: int, labels: Labels | None) -> Picks:
        raise NotImplementedError(f"{type(self).__name__} defines no _pick")

    def _check_sources(self, lists: Lists, *given: tuple[float, ...]) -> None:
        """Raise unless each of some fields holds as many numbers as there are sources."""
        for values in given:
            if len(values) != len(lists.runs):
                raise InputError(
                    f"{self} is for {len(values)} sources, but there are {len(lists.runs)}: "
                    f"{', '.join(lists.sources)}. Give one number for each."
                )


@dataclass(frozen=True, kw_only=True)
class Keyed(Policy):
    """A policy that gives every result a key: the largest are taken, and shown in that order."""

    def keys(self, lists: Lists, k: int) -> Floats:
        """The key of every result, of the shape of the scores or of their first ``k`` ranks.

        Of what is no result it may be anything.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no keys")

    def _pick(self, lists: Lists, k: int, labels: Labels | None) -> Picks:
        return choose(lists, k, self.keys(lists, k))


@dataclass(frozen=True, kw_only=True)
class Split(Policy):
    """A policy that gives every source a share of the slots; what is taken is shown by score.

    Shares become slots by the largest remainder. Where remainders tie, and where a source runs dry,
    slots go by score.
    """

    def parts(self, lists: Lists, k: int) -> Floats:
        """The share of each source: (sources,), or (queries, sources)."""
        raise NotImplementedError(f"{type(self).__name__} defines no parts")

    def _pick(self, lists: Lists, k: int, labels: Labels | None) -> Picks:
        fixed, tied = rounded(self.parts(lists, k), k)
        ranks = np.arange(lists.depth)
        stages = np.full((*fixed.shape, lists.depth), 2)
        stages[(ranks == fixed[..., None]) & tied[..., None]] = 1
        stages[ranks < fixed[..., None]] = 0
        stages = np.broadcast_to(stages, lists.scores.shape)
        return choose(lists, k, lists.scores, stages, shown=lists.scores)
