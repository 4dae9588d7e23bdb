"""Policies tried on queries: what each gives out, and what that is worth.

A policy that learns is never valued on what it learned from. It is fitted and tried several times,
on folds or on small seed sets, and a query's value is the mean over the trials that kept it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from farfield.allocations import Labels, Lists, Picks, Policy
from farfield.errors import InputError

__all__ = ["Outcome", "Trial", "draw_seeds", "fold", "try_out"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Rows of queries to learn from, and rows to be tried on.
Trial = tuple[Ints, Ints]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a policy does with every query.

    ``fitted`` is the policy with what it learned from all labels: the one to use. ``picks`` are
    from the first trial that kept a query out; ``recall``, ``precision`` and ``shares`` (of the
    budget, by source) are means over all that did, and NaN for a query that none did.
    """

    policy: Policy
    fitted: Policy
    picks: Picks
    shares: Floats
    recall: Floats
    precision: Floats

    @property
    def tried(self) -> npt.NDArray[np.bool_]:
        """Which queries were kept out of learning at least once."""
        return ~np.isnan(self.shares[:, 0])


def fold(items: Ints, folds: int, seed: int) -> list[Trial]:
    """Learn from all folds but one, and try on that; queries of one item stay together."""
    count = int(items.max(initial=-1)) + 1
    if not 2 <= folds <= count:
        raise InputError(
            f"folds is {folds} for {count} queries or items, expected 2 to {count}. Policies that "
            "learn need labelled queries other than those they are tried on."
        )
    of_item = np.random.default_rng(seed).permutation(count) % folds
    of_query = of_item[items]
    return [(np.flatnonzero(of_query != f), np.flatnonzero(of_query == f)) for f in range(folds)]


def draw_seeds(items: Ints, seeds: int, draws: int, seed: int) -> list[Trial]:
    """Learn from few queries, each of another item, and try on all queries of all other items."""
    count = int(items.max(initial=-1)) + 1
    if not 1 <= seeds < count:
        raise InputError(
            f"seeds is {seeds} for {count} queries or items, expected 1 to {count - 1}: what is "
            "learned from is not tried on."
        )
    if draws < 1:
        raise InputError(f"draws is {draws}, expected 1, 2, 3 … sets of seeds.")
    trials = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        # The first query of each item in a random order is the one that has a label.
        order = rng.permutation(len(items))
        _, first = np.unique(items[order], return_index=True)
        chosen = rng.permutation(count)[:seeds]
        trials.append((np.sort(order[first[chosen]]), np.flatnonzero(~np.isin(items, chosen))))
    return trials


def try_out(
    policy: Policy,
    log: Lists,
    k: int,
    *,
    labels: Labels | None = None,
    seeds: Labels | None = None,
    trials: Sequence[Trial] = (),
) -> Outcome:
    """Let a policy share out k results of every query.

    ``labels`` are those of the very queries, ``seeds`` labels of other queries to learn from.
    Without ``seeds`` a policy that learns is fitted in each of the ``trials``.
    """
    if not policy.learns or seeds is not None:
        fitted = policy if seeds is None else policy.fit(log, seeds, k)
        return _outcome(policy, fitted, fitted.pick(log, k, labels), labels)
    if labels is None:
        raise InputError(
            f"{policy} learns from labels, and there are none. Give judgements (--qrels) or "
            "labelled queries (--labels)."
        )
    queries = len(log.query_ids)
    tried = np.zeros(queries)
    sums: dict[str, Any] = {}
    source, rank = np.full((queries, k), -1), np.zeros((queries, k), dtype=np.int64)
    for learn, test in trials:
        part = log.take(test)
        picks = policy.fit(log, labels.take(learn), k).pick(part, k)
        found = _outcome(policy, policy, picks, labels.take(test))
        new = test[tried[test] == 0]
        at = np.searchsorted(test, new)
        width = picks.source.shape[1]
        source[new, :width], rank[new, :width] = picks.source[at], picks.rank[at]
        for name in ("shares", "recall", "precision"):
            values = getattr(found, name)
            total = sums.setdefault(name, np.zeros((queries, *values.shape[1:])))
            total[test] += values
        tried[test] += 1
    with np.errstate(invalid="ignore"):
        means = {name: (total.T / tried).T for name, total in sums.items()}
    return Outcome(policy, policy.fit(log, labels, k), Picks(log, source, rank), **means)


def _outcome(policy: Policy, fitted: Policy, picks: Picks, labels: Labels | None) -> Outcome:
    given = np.maximum(picks.budgets.sum(axis=1, keepdims=True), 1)
    nothing = np.full(len(picks.source), np.nan)
    return Outcome(
        policy=policy,
        fitted=fitted,
        picks=picks,
        shares=picks.budgets / given,
        recall=nothing if labels is None else labels.recall(picks),
        precision=nothing if labels is None else labels.precision(picks),
    )
