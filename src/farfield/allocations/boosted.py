"""Trees that look at a result and its list."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from farfield.allocations.base import Bools, Floats, Keyed, Labels, Lists, Policy
from farfield.errors import SpecError
from farfield.spec import Spec

__all__ = ["boosted"]

_TOP = 10  # results whose mean is the level of a list


@dataclass(frozen=True, kw_only=True)
class boosted(Keyed):
    """The chance of relevance by gradient boosted trees.

    They see a result's score, its rank, how far it is below the first of its list and above the
    mean of the first ten, how far that first one is above the best of the other sources, and whose
    it is. What they make of it need not fall with the rank: a result never counts for more than
    those above it.

    Wants a hundred labelled queries or more; with fewer softmax is better. Trees cannot be written
    into a spec, so it has to be fitted wherever it is used.

    Relations: the most that scores alone have been seen to give, which is still far from the
    oracle.
    """

    trees: int = 100
    depth: int = 3
    rate: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trees < 1 or self.depth < 1:
            raise SpecError("trees and depth are whole numbers of at least 1.")
        if not 0 < self.rate <= 1:
            raise SpecError(f"rate is {self.rate}, expected above 0 and at most 1.")

    @property
    def learns(self) -> bool:
        """Trees always have to be grown."""
        return True

    def window(self, k: int) -> int:
        """Deep enough for the level."""
        return max(k, _TOP)

    def fit(self, log: Lists, labels: Labels, k: int) -> Policy:
        """Grow trees on labelled queries."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        there = labels.lists.there[:, :, :k] & labels.asked[:, :, None]
        relevant = labels.hits[:, :, :k][there]
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        if relevant.all() or not relevant.any():
            return _Grown(**given, model=None)
        model = HistGradientBoostingClassifier(
            max_iter=self.trees,
            max_depth=self.depth,
            learning_rate=self.rate,
            min_samples_leaf=5,
            early_stopping=False,
            random_state=self.seed,
        )
        model.fit(_features(labels.lists, k, there), relevant)
        return _Grown(**given, model=model)


@dataclass(frozen=True, kw_only=True)
class _Grown(boosted):
    """The same with its trees."""

    model: Any = field(compare=False)

    @property
    def spec(self) -> Spec:
        """As before: trees have no spelling."""
        given = {one.name: getattr(self, one.name) for one in fields(boosted)}
        return boosted(**given).spec

    @property
    def learns(self) -> bool:
        """Nothing any more."""
        return False

    def keys(self, lists: Lists, k: int) -> Floats:
        """The chances as logits; scores, where labels had nothing to tell apart."""
        if self.model is None:
            return lists.scores
        there = lists.there[:, :, :k]
        keys = np.full(there.shape, -np.inf)
        if there.any():
            keys[there] = self.model.decision_function(_features(lists, k, there))
        return keys


def _features(lists: Lists, k: int, there: Bools) -> Floats:
    """A row for each result: score, rank, distance to the first and to the mean, lead, source."""
    firsts = lists.scores[:, :, 0]
    level = lists.mean_of_top(_TOP)
    # Without its own first result: the best of the others.
    others = np.stack(
        [np.delete(firsts, number, axis=1).max(axis=1) for number in range(firsts.shape[1])], axis=1
    )
    both = np.isfinite(firsts) & np.isfinite(others)
    lead = np.subtract(firsts, others, out=np.zeros(firsts.shape), where=both)
    query, source, rank = np.nonzero(there)
    scores = lists.scores[:, :, :k][there]
    columns = (
        scores,
        np.log1p(rank),
        firsts[query, source] - scores,
        scores - level[query, source],
        lead[query, source],
        source,
    )
    return np.stack(columns, axis=1).astype(np.float64)
