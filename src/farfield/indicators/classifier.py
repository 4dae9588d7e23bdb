"""Classifier two-sample test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from farfield.errors import SpecError
from farfield.indicators._dealing import deals, p_value
from farfield.indicators.base import Floats, Indicator, Ints, Reading, Sides, spread

__all__ = ["classifier"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class classifier(Indicator):
    """How well a linear classifier tells A's queries from B's: 0.5 not at all, 1 without fail.

    The value is the area under the ROC curve (AUC): the probability that a query of A looks more
    like A than a query of B does, to a classifier that was fitted to other queries (``folds``).
    The classifier is Fisher's linear discriminant (least squares on the labels, with a ``ridge``
    relative to the mean variance). On sets of MS-Shift its AUC is within 0.01 of that of
    logistic regression, and it is linear in the labels, so that it can be fitted anew to all
    ``permutations`` of them at once: ``p`` is of that permutation test. A Mann-Whitney test of the
    cross-validated scores would not do: every pair of queries counts in two folds, which doubles
    the variance that it assumes. At most ``size`` queries of each side are drawn.

    Relations: mmd needs no straight line between the sets, and is harder to read.
    """

    higher_is_nearer: ClassVar[bool] = False

    size: int = 2000
    folds: int = 5
    permutations: int = 1000
    ridge: float = 0.01

    def __post_init__(self) -> None:
        self._at_least(2, "size", "folds")
        self._at_least(1, "permutations")
        if not 0.0 < self.ridge < np.inf:
            raise SpecError(f"ridge is {self.ridge}, expected a number above 0.")

    def compare(self, sides: Sides) -> Reading:
        """Learn to tell A's queries from B's, and try it on those left out."""
        rows = sides.rows(self.size)
        drawn = [v[i].astype(np.float64) for v, i in zip(sides.vectors(self), rows, strict=True)]
        both = np.concatenate(drawn)
        labels = np.arange(len(both)) < len(drawn[0])
        fold = self._folds(labels, sides.seed)
        placed = np.empty(len(both))
        values = []
        # Dealt within folds, every deal has the counts that the labels have.
        for number, block in enumerate(deals(labels, self.permutations, sides.seed, fold)):
            area = np.zeros(block.shape[1])
            for part in np.unique(fold):
                held = np.flatnonzero(fold == part)
                scores = self._scores(both, block, held)
                ranks = _ranks(scores)
                of_a = block[held]
                a, b = int(of_a[:, 0].sum()), int((~of_a[:, 0]).sum())
                below = np.where(of_a, ranks, 0.0).sum(axis=0) - a * (a + 1) / 2.0
                area += below / (a * b) * (a / len(drawn[0]))
                if number == 0:
                    placed[held] = _placements(ranks[:, 0], of_a[:, 0])
            values.append(area)
        dealt = np.concatenate(values)
        value = float(dealt[0])
        # DeLong's variance is that of a given classifier; with folds it is up to twice that.
        delong = sum(placed[side].var(ddof=1) / side.sum() for side in (labels, ~labels))
        low, high = sides.around(value, float(np.sqrt(2.0 * delong)))
        if value == 1.0:  # no mistake in n tries is no proof that there will be none
            low = ((1.0 - sides.level) / 2.0) ** (1.0 / min(map(len, drawn)))
        return Reading(
            value=value,
            low=max(low, 0.0),
            high=min(high, 1.0),
            same=0.5,
            p=p_value(dealt),
            details={
                "queries": len(drawn[0]),
                "own_queries": len(drawn[1]),
                "folds": int(fold.max()) + 1,
                "permutations": self.permutations,
            },
            a=spread(placed[labels], len(sides.a), rows[0]),
        )

    def explain(self, reading: Reading) -> str:
        """Say how often it is right."""
        return (
            "of a query from each side, a classifier tells which is A's in "
            f"{reading.value:.0%} of pairs (guessing: 50%)."
        )

    def _folds(self, labels: Bools, seed: int) -> Ints:
        """The fold of each query; every fold has its share of both sides."""
        rng = np.random.default_rng(seed)
        count = min(self.folds, int(labels.sum()), int((~labels).sum()))
        fold = np.empty(len(labels), dtype=np.int64)
        for side in (labels, ~labels):
            fold[side] = rng.permutation(np.arange(int(side.sum())) % count)
        return fold

    def _scores(self, vectors: Floats, labels: Bools, held: Ints) -> Floats:
        """Scores of the queries held out, from all others, for every column of labels."""
        fitted = np.ones(len(vectors), dtype=bool)
        fitted[held] = False
        known = vectors[fitted]
        centre = known.mean(axis=0)
        known = known - centre
        covariance = known.T @ known
        width = len(covariance)
        weight = self.ridge * max(float(np.trace(covariance)) / width, 1e-12)
        told = labels[fitted].astype(np.float64)
        told -= told.mean(axis=0)
        slopes = np.linalg.solve(covariance + weight * np.eye(width), known.T @ told)
        scores: Floats = (vectors[held] - centre) @ slopes
        return scores


def _ranks(scores: Floats) -> Floats:
    """Ranks of each column from 1, equals sharing theirs; rounding does not make a difference."""
    from scipy.stats import rankdata

    size = np.abs(scores).max(axis=0)
    unit = np.divide(scores, size, out=np.zeros_like(scores), where=size > 0)
    ranks: Floats = rankdata(np.round(unit, 10), axis=0)
    return ranks


def _placements(ranks: Floats, of_a: Bools) -> Floats:
    """For each query the share of the other side that it is on the right side of."""
    from scipy.stats import rankdata

    placed = np.empty(len(ranks))
    for side in (of_a, ~of_a):  # a rank among all less the rank among one's own
        placed[side] = (ranks[side] - rankdata(ranks[side])) / np.count_nonzero(~side)
    placed[~of_a] = 1.0 - placed[~of_a]
    return placed
