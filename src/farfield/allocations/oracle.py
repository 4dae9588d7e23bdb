"""The best that any split of the budget could do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farfield.allocations._picks import Picks, choose
from farfield.allocations.base import Bools, Ints, Labels, Lists, Policy

__all__ = ["oracle"]

_NEVER = np.iinfo(np.int64).max // 4
_MOST_WAYS = 1_000  # to have the same recall, among which the best is looked for


@dataclass(frozen=True, kw_only=True)
class oracle(Policy):
    """The split of each query with the best recall, and of those the best average precision.

    Needs judgements, so it is a bound and no policy: it knows at which rank the relevant document
    is, and scores do not. The recall is exact for any number of sources, and so is the precision
    unless a query has more than a thousand splits of that recall. What it needs is shown by score,
    and what fills up the budget after it; where lists are at least k long this is the best that any
    split shown by score can have.

    Relations: best fractions and all policies of this family keep the order of sources, so none has
    a better recall; one that orders results otherwise may have the better average precision.
    """

    needs_qrels: ClassVar[bool] = True

    def _pick(self, lists: Lists, k: int, labels: Labels | None) -> Picks:
        assert labels is not None  # checked before
        slots = _slots(labels.within(k), k)
        stages = (np.arange(lists.depth) >= slots[:, :, None]).astype(np.int64)
        return choose(lists, k, lists.scores, stages)


def _slots(labels: Labels, k: int) -> Ints:
    """How many results of each source have to be taken: (queries, sources)."""
    costs = _costs(labels.hits)
    all_of_them = np.where(costs < _NEVER, costs, 0).max(axis=2)
    slots: Ints = all_of_them
    # Only where not everything that was found can be had is there a choice.
    for row in np.flatnonzero(all_of_them.sum(axis=1) > k):
        ways = _ways(costs[row].tolist(), k)
        at = 0 if len(ways) == 1 else _most_precise(ways, labels.lists, labels.hits[row], int(row))
        slots[row] = ways[at]
    return slots


def _ways(costs: list[list[int]], k: int) -> Ints:
    """The ways to have as many relevant results as k slots can have: (ways, sources).

    Source by source from the last: the fewest slots for so many hits. Then every way that does not
    spend more is followed from the first source on.
    """
    cheapest: list[list[int]] = [[0]]
    for own in reversed(costs):
        rest = cheapest[-1]
        best = [_NEVER] * (len(own) + len(rest) - 1)
        for mine, cost in enumerate(own):
            for theirs, other in enumerate(rest):
                best[mine + theirs] = min(best[mine + theirs], cost + other)
        cheapest.append([cost for cost in best if cost <= k])
    cheapest.reverse()
    found: list[tuple[int, ...]] = []
    open_ways: list[tuple[tuple[int, ...], int]] = [((), len(cheapest[0]) - 1)]
    while open_ways and len(found) < _MOST_WAYS:
        way, hits = open_ways.pop()
        if len(way) == len(costs):
            found.append(way)
            continue
        rest, spent = cheapest[len(way) + 1], sum(way)
        open_ways += [
            ((*way, cost), hits - mine)
            for mine, cost in enumerate(costs[len(way)][: hits + 1])
            if hits - mine < len(rest) and spent + cost + rest[hits - mine] <= k
        ]
    return np.array(found)


def _most_precise(ways: Ints, lists: Lists, hits: Bools, row: int) -> int:
    """Which of some ways has the best average precision for a query, shown by score."""
    source, rank = np.nonzero(lists.there[row])
    scores = lists.scores[row][source, rank]
    turn = (source - lists.turns[row]) % len(lists.runs)
    order = np.lexsort((turn, rank, -scores))
    source, rank = source[order], rank[order]
    taken = rank < ways[:, source]
    relevant = taken & hits[source, rank]
    precision = np.cumsum(relevant, axis=1) / np.maximum(np.cumsum(taken, axis=1), 1)
    return int(np.argmax(np.where(relevant, precision, 0.0).sum(axis=1)))


def _costs(hits: Bools) -> Ints:
    """How many results of a source it takes to have 0, 1, 2 … relevant ones: (…, hits + 1)."""
    counts = np.cumsum(hits, axis=2)
    most = int(counts[:, :, -1].max(initial=0))
    costs = np.full((*hits.shape[:2], most + 1), _NEVER)
    costs[:, :, 0] = 0
    query, source, rank = np.nonzero(hits)
    costs[query, source, counts[query, source, rank]] = rank + 1
    return costs
