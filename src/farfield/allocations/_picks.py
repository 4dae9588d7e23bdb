"""Which results each query gets, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.allocations._lists import Bools, Floats, Ints, Lists
from farfield.tables import Allocation, Run

__all__ = ["Picks", "choose", "rounded"]

T = TypeVar("T", bound=np.generic)

_EQUAL = 1e-9  # remainders closer than this are the same


@dataclass(frozen=True, eq=False)
class Picks:
    """The results that each query gets, in the order in which they are shown.

    ``source`` and ``rank`` are (queries, k): whose result it is, and its place in that source's
    list, from 0. Where fewer than k are to be had, the last sources are -1.
    """

    lists: Lists
    source: Ints
    rank: Ints

    @cached_property
    def budgets(self) -> Ints:
        """How many results each source gives to each query: (queries, sources)."""
        numbers = np.arange(len(self.lists.runs))
        return np.stack([(self.source == number).sum(axis=1) for number in numbers], axis=1)

    @property
    def allocation(self) -> Allocation:
        """The budgets as a table: query_id, source, budget."""
        queries, sources = self.budgets.shape
        return Allocation.trusted(
            pl.DataFrame(
                {
                    "query_id": self.lists.query_ids.gather(np.repeat(np.arange(queries), sources)),
                    "source": list(self.lists.sources) * queries,
                    "budget": self.budgets.ravel(),
                }
            )
        )

    def run(self, name: str = "allocated") -> Run:
        """The results as one run; scores are minus the ranks, since sources differ in scale."""
        query, place = np.nonzero(self.source >= 0)
        source, rank = self.source[query, place], self.rank[query, place]
        at = self.lists.firsts[query, source] + rank
        mine = [np.flatnonzero(source == number) for number in range(len(self.lists.runs))]
        docs = pl.concat(
            run.doc_ids.gather(at[rows]).rename("doc_id")
            for run, rows in zip(self.lists.runs, mine, strict=True)
        )
        order = np.argsort(np.concatenate(mine))
        frame = pl.DataFrame(
            {
                "query_id": self.lists.query_ids.gather(query),
                "doc_id": docs.gather(order),
                "rank": place + 1,
            }
        )
        return Run(frame, name=name, ties="file")


def choose(
    lists: Lists, k: int, keys: Floats, stages: Ints | None = None, shown: Floats | None = None
) -> Picks:
    """Take the first k results of each query by stage, then by key (the largest first).

    Equal ones go by the better rank, then by the sources in turn, never by the ids of documents. A
    source's own order is kept whatever the keys say: a result is worth no more than those above it.
    ``shown`` gives the keys by which what was taken is ordered, where these are others.
    """
    width = min(k, lists.depth)
    there = lists.there[:, :, :width]
    kept = np.minimum.accumulate(np.where(there, keys[:, :, :width], -np.inf), axis=2)
    sources = len(lists.runs)
    numbers = (np.arange(sources) + lists.turns[:, None]) % sources

    def flat(values: npt.NDArray[T]) -> npt.NDArray[T]:
        """By rank, and within a rank by the sources in turn: the order among equals."""
        turned = np.take_along_axis(values.swapaxes(1, 2), numbers[:, None, :], axis=2)
        return turned.reshape(len(values), -1)

    order = np.argsort(-flat(kept), axis=1, kind="stable")
    if stages is not None:
        of = np.where(there, stages[:, :, :width], np.iinfo(np.int64).max)
        again = np.argsort(np.take_along_axis(flat(of), order, axis=1), axis=1, kind="stable")
        order = np.take_along_axis(order, again, axis=1)
    order = order[:, :k]
    if shown is not None:
        order = np.sort(order, axis=1)  # equal ones again by rank and turn
        by = flat(np.where(there, shown[:, :, :width], -np.inf))
        again = np.argsort(-np.take_along_axis(by, order, axis=1), axis=1, kind="stable")
        order = np.take_along_axis(order, again, axis=1)
    missing = ~np.take_along_axis(flat(there), order, axis=1)
    source = np.take_along_axis(numbers, order % sources, axis=1)
    return Picks(lists, np.where(missing, -1, source), np.where(missing, 0, order // sources))


def rounded(shares: Floats, k: int) -> tuple[Ints, Bools]:
    """Divide k slots by shares, with the largest remainders rounded up.

    Returns what is certain, and who shares the slots that remain because remainders tie: at most
    one each, and which of them is for the scores to say.
    """
    wanted = k * shares / shares.sum(axis=-1, keepdims=True)
    fixed = np.floor(wanted + _EQUAL)
    left = np.maximum(wanted - fixed, 0.0)
    spare = (k - fixed.sum(axis=-1, keepdims=True)).astype(np.int64)
    edge = np.take_along_axis(-np.sort(-left, axis=-1), np.maximum(spare - 1, 0), axis=-1)
    sure = (left > edge + _EQUAL) & (spare > 0)
    tied = (np.abs(left - edge) <= _EQUAL) & (spare > 0)
    enough = tied.sum(axis=-1, keepdims=True) <= spare - sure.sum(axis=-1, keepdims=True)
    return fixed.astype(np.int64) + (sure | (tied & enough)), tied & ~enough
