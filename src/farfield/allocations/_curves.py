"""Curves from scores to chances of relevance, and what a source is worth beyond its scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from farfield.allocations._lists import Bools, Floats, Ints

__all__ = ["conditional", "pointwise", "rising"]

_STEPS = 50  # of Newton's method, at most
_HALVES = 30  # of a step, until it leads down
_DONE = 1e-8
_FIRM = 1e-6  # keeps the slope where it is when nothing depends on it
_FARTHEST = 30.0  # a logit beyond this is certainty
_BINS = 20  # of scores, before they are made to rise


def conditional(scores: Floats, hits: Bools, ridge: float) -> tuple[float, Floats]:
    """The slope for all sources and the offset of each that tell relevant results from the others.

    Of (queries, sources, depth) scores, results are compared with those of the same query only: the
    chance of each is exp(slope s + offset) over the sum of that, and the relevant ones of a query
    are to be likely (a conditional logit). What makes one query have better scores than another is
    no evidence. ``ridge`` draws offsets to 0.
    """
    known = hits.any(axis=(1, 2))
    there = np.isfinite(scores[known])
    x = np.where(there, scores[known], 0.0)
    weight = hits[known] / hits[known].sum(axis=(1, 2), keepdims=True)
    theirs, wanted = weight.sum(axis=(0, 2)), (weight * x).sum()
    sources = scores.shape[1]

    def cost(found: Floats) -> tuple[float, Floats, Floats]:
        logits = np.where(there, found[0] * x + found[1:, None], -np.inf)
        highest = logits.max(axis=(1, 2), keepdims=True)
        chance = np.exp(logits - highest)
        whole = chance.sum(axis=(1, 2), keepdims=True)
        chance /= whole
        unlikely = (highest + np.log(whole)).sum() - found[0] * wanted - (found[1:] * theirs).sum()
        of_source, with_x = chance.sum(axis=2), (chance * x).sum(axis=2)
        mean = with_x.sum(axis=1)
        slope = np.concatenate(
            ([mean.sum() - wanted], of_source.sum(axis=0) - theirs + ridge * found[1:])
        )
        bend = np.empty((sources + 1, sources + 1))
        bend[0, 0] = (chance * x * x).sum() - (mean**2).sum() + _FIRM
        bend[0, 1:] = bend[1:, 0] = (with_x - of_source * mean[:, None]).sum(axis=0)
        bend[1:, 1:] = np.diag(of_source.sum(axis=0) + ridge) - of_source.T @ of_source
        return unlikely + 0.5 * ridge * (found[1:] ** 2).sum(), slope, bend

    start = np.zeros(sources + 1)
    found = _newton(cost, start) if known.any() else start
    return _rising_only(found[0], found[1:])


def pointwise(
    x: Floats, relevant: Bools, source: Ints, sources: int, ridge: float
) -> tuple[float, Floats]:
    """The slope and the offsets of a logistic curve through all results, whatever their query.

    Labels are drawn away from 0 and 1 as Platt (1999) does, so that a clean cut has an end.
    """
    yes = int(relevant.sum())
    target = np.where(relevant, (yes + 1.0) / (yes + 2.0), 1.0 / (len(x) - yes + 2.0))

    def cost(found: Floats) -> tuple[float, Floats, Floats]:
        logits = found[0] * x + found[1] + found[2:][source]
        unlikely = (np.logaddexp(0.0, logits) - target * logits).sum()
        chance = 1.0 / (1.0 + np.exp(-np.clip(logits, -_FARTHEST, _FARTHEST)))
        miss, weight = chance - target, chance * (1.0 - chance)
        of_source = np.bincount(source, miss, sources) + ridge * found[2:]
        slope = np.concatenate(([(miss * x).sum(), miss.sum()], of_source))
        with_x, alone = (np.bincount(source, w, sources) for w in (weight * x, weight))
        bend = np.zeros((sources + 2, sources + 2))
        bend[0, 0], bend[1, 1] = (weight * x * x).sum() + _FIRM, weight.sum() + _FIRM
        bend[0, 1] = bend[1, 0] = with_x.sum()
        bend[0, 2:] = bend[2:, 0] = with_x
        bend[1, 2:] = bend[2:, 1] = alone
        bend[2:, 2:] = np.diag(alone + ridge)
        return unlikely + 0.5 * ridge * (found[2:] ** 2).sum(), slope, bend

    start = np.zeros(sources + 2)
    found = _newton(cost, start) if yes else start
    return _rising_only(found[0], found[2:])


def rising(z: Floats, relevant: Bools) -> tuple[Floats, Floats]:
    """Knots and heights of the rising curve nearest to the shares of relevant results, as logits.

    Of results in bins of about the same size; neighbours that fall are pooled until none does.
    """
    order = np.argsort(z, kind="stable")
    pools: list[list[float]] = []  # size, relevant, sum of z
    for part in np.array_split(order, max(1, min(_BINS, len(order)))):
        pools.append([float(len(part)), float(relevant[part].sum()), float(z[part].sum())])
        while len(pools) > 1 and pools[-2][1] * pools[-1][0] >= pools[-1][1] * pools[-2][0]:
            last = pools.pop()
            pools[-1] = [one + other for one, other in zip(pools[-1], last, strict=True)]
    size, found, total = np.array(pools).T
    share = (found + 0.5) / (size + 1.0)
    logits: Floats = np.maximum.accumulate(np.log(share / (1.0 - share)))
    return total / np.maximum(size, 1.0), logits


def _newton(cost: Callable[[Floats], tuple[float, Floats, Floats]], start: Floats) -> Floats:
    """Follow a cost, given with its slope and bend, to its lowest point."""
    found, (now, slope, bend) = start, cost(start)
    for _ in range(_STEPS):
        step = np.linalg.solve(bend, slope)
        for _ in range(_HALVES):
            after = cost(found - step)
            if after[0] <= now:
                break
            step /= 2.0  # far from the end a whole step may leap over it
        found, (now, slope, bend) = found - step, after
        if np.abs(step).max() < _DONE:
            break
    return found


def _rising_only(slope: float, offsets: Floats) -> tuple[float, Floats]:
    """Scores that say nothing, or the contrary, are left as they are."""
    return (float(slope), offsets) if slope > 0 else (1.0, np.zeros(len(offsets)))
