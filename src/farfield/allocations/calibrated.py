"""Scores turned into chances of relevance, with something for each source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from farfield.allocations._curves import conditional, pointwise, rising
from farfield.allocations.base import Floats, Keyed, Labels, Lists, Policy
from farfield.errors import SpecError

__all__ = ["calibrated"]

_TOP = 10  # results of each list that say what the scores of a source are like
_SLIGHT = 1e-6  # what scores are worth where the chances are equal


@dataclass(frozen=True, kw_only=True)
class calibrated(Keyed):
    """The chance that a result is relevant: one curve for all sources, and an offset for each.

    ``curve`` says what is learned from labels. ``conditional``: the slope and the offsets that make
    relevant results likely among all results of their query; without offsets it is naive merging.
    ``platt`` and ``isotonic``: a logistic or any rising curve through all results of all queries,
    after scores are put in deviations from the mean of their source's ten best. ``ridge`` holds
    offsets near 0 and the curve is one for all, since with its own a source without a labelled
    success would be shut out. The other fields are what was learned.

    The default with labels where one of many topical sources has the answer. Curves across queries
    learn mostly that some queries have good scores everywhere, which is no help within one, and
    lose to merging. Where a query wants something from each source all of them lose to an equal
    split: they do not see that a source has already given what it had.

    Relations: merge is what it starts from, softmax compares a result with its own list only.
    """

    curve: Literal["conditional", "platt", "isotonic"] = "conditional"
    ridge: float = 10.0
    slope: float | None = None
    offsets: tuple[float, ...] = ()
    centres: tuple[float, ...] = ()
    spreads: tuple[float, ...] = ()
    knots: tuple[float, ...] = ()
    heights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.ridge < np.inf:
            raise SpecError(f"ridge is {self.ridge}, expected a number above 0.")
        counts = {len(x) for x in (self.offsets, self.centres, self.spreads)}
        if self.slope is not None and not (
            self.slope > 0
            and len(counts) == 1
            and all(spread > 0 for spread in self.spreads)
            and (self.curve == "isotonic") == bool(self.knots)
            and len(self.knots) == len(self.heights)
        ):
            raise SpecError(
                "what was learned belongs together: a slope above 0, as many offsets, centres and "
                "spreads (above 0) as sources, and for isotonic as many heights as knots."
            )

    @property
    def learns(self) -> bool:
        """Whether the curve is left open."""
        return self.slope is None

    def window(self, k: int) -> int:
        """Deep enough to know what the scores of a source are like."""
        return max(k, _TOP)

    def fit(self, log: Lists, labels: Labels, k: int) -> Policy:
        """Learn the curve and the offsets from labelled queries."""
        if not self.learns:
            return self
        centres, spreads = _scale(log, together=self.curve == "conditional")
        depth = self.window(k)
        z = (labels.lists.scores[:, :, :depth] - centres[:, None]) / spreads[:, None]
        there = labels.lists.there[:, :, :depth] & labels.asked[:, :, None]
        hits = labels.hits[:, :, :depth] & there
        knots = heights = np.empty(0)
        if self.curve == "conditional":
            slope, offsets = conditional(np.where(there, z, -np.inf), hits, self.ridge)
        else:
            if self.curve == "isotonic":
                knots, heights = rising(z[there], hits[there])
            x, source = _along(z[there], knots, heights), np.nonzero(there)[1]
            slope, offsets = pointwise(x, hits[there], source, len(centres), self.ridge)
        learned = {
            "offsets": offsets,
            "centres": centres,
            "spreads": spreads,
            "knots": knots,
            "heights": heights,
        }
        written: dict[str, Any] = {
            name: tuple(float(f"{x:.5g}") for x in values) for name, values in learned.items()
        }
        return replace(self, slope=float(f"{slope:.5g}"), **written)

    def keys(self, lists: Lists, k: int) -> Floats:
        """The chances as logits."""
        self._check_sources(lists, self.offsets)
        centres, spreads, offsets = (
            np.array(x)[:, None] for x in (self.centres, self.spreads, self.offsets)
        )
        z = (lists.scores[:, :, :k] - centres) / spreads
        x = _along(z, np.array(self.knots), np.array(self.heights))
        return np.asarray(float(self.slope or 0.0) * x + offsets, dtype=np.float64)


def _scale(log: Lists, *, together: bool) -> tuple[Floats, Floats]:
    """Mean and deviation of the ten best scores over all queries: of each source, or of all."""
    axes = (0, 1, 2) if together else (0, 2)
    there = log.there[:, :, :_TOP]
    scores = np.where(there, log.scores[:, :, :_TOP], 0.0)
    counts = np.maximum(there.sum(axis=axes, keepdims=True), 1)
    centres = scores.sum(axis=axes, keepdims=True) / counts
    squares = np.where(there, (scores - centres) ** 2, 0.0).sum(axis=axes, keepdims=True)
    spreads = np.sqrt(squares / counts)
    some = spreads[spreads > 0]
    spreads = np.where(spreads > 0, spreads, some.mean() if len(some) else 1.0)
    sources = len(log.runs)
    centres, spreads = (np.broadcast_to(x.ravel(), sources) for x in (centres, spreads))
    return centres, spreads


def _along(z: Floats, knots: Floats, heights: Floats) -> Floats:
    """The height of the curve; without knots it is straight."""
    return z if not len(knots) else np.interp(z, knots, heights) + _SLIGHT * z
