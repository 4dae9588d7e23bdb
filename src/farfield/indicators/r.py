"""Model-based similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from farfield.indicators._nearest import nearest, nearest_own
from farfield.indicators.base import (
    Floats,
    Indicator,
    Reading,
    Sides,
    Vectors,
    estimate,
    spread,
)

__all__ = ["r"]


@dataclass(frozen=True, kw_only=True)
class r(Indicator):
    """R of Lupart et al. 2023: how similar a query's vector is to those of the training queries.

    ``variant`` says how: ``dot``, the mean inner product with all of B, which is the inner product
    with B's mean vector; ``cosine``, the cosine with that mean vector; ``top``, the mean over the
    ``k`` most similar queries of B; ``max``, the most similar one. R belongs to a query; the value
    is the mean over A's queries, and ``same`` the mean over B's own, each without itself;
    ``difference`` is the one less the other. The interval is about A's queries: B is what it is.

    ``top`` and ``max`` compare every pair, so they look at no more than ``size`` queries of A and
    of B's own (``None``: at all), in all of B.

    Relations: neighbours gives the distribution that ``max`` is the mean of. jaccard needs no
    vectors.
    """

    variant: Literal["dot", "cosine", "top", "max"] = "dot"
    k: int = 10
    size: int | None = 5000

    def __post_init__(self) -> None:
        self._at_least(1, "k")
        self._at_least(2, "size")

    def compare(self, sides: Sides) -> Reading:
        """Compare A's queries, and B's own, with B."""
        a, b = sides.vectors(self)
        if self.variant in ("top", "max"):
            k = 1 if self.variant == "max" else self.k
            rows = sides.rows(self.size)
            far = nearest(np.ascontiguousarray(a[rows[0]]), b, k).mean(axis=1)
            own = nearest_own(b, rows[1], k).mean(axis=1)
            columns = spread(far, len(a), rows[0]), spread(own, len(b), rows[1])
        else:
            columns = far, own = self._by_mean(a, b)
        found, within = sides.mean(far), sides.mean(own)
        return Reading(
            value=found.value,
            low=found.low,
            high=found.high,
            same=within.value,
            details={
                "same_low": within.low,
                "same_high": within.high,
                **estimate("difference", sides.difference(far, own)),
                "queries": len(far),
                "own_queries": len(own),
            },
            a=columns[0],
            b=columns[1],
        )

    def explain(self, reading: Reading) -> str:
        """Say how much less similar A's queries are than B's own."""
        found = reading.details
        return (
            "similarity of A's queries to those of B, less that of B's own: "
            f"{found['difference']:+.4f} "
            f"[{found['difference_low']:+.4f}, {found['difference_high']:+.4f}]."
        )

    def _by_mean(self, a: Vectors, b: Vectors) -> tuple[Floats, Floats]:
        """Products with B's mean vector, of A's queries and of B's own, each without itself."""
        total = b.sum(axis=0, dtype=np.float64)
        far, own = _times(a, total), _times(b, total)
        squares = np.einsum("ij,ij->i", b, b, dtype=np.float64)
        own_without = own - squares
        if self.variant == "dot":
            return far / len(b), own_without / (len(b) - 1)
        lengths = np.sqrt(np.einsum("ij,ij->i", a, a, dtype=np.float64))
        rest = np.maximum(total @ total - 2.0 * own + squares, 0.0)  # of B's sum without the query
        return (
            _ratio(far, lengths * np.sqrt(total @ total)),
            _ratio(own_without, np.sqrt(squares * rest)),
        )


def _times(vectors: Vectors, total: Floats) -> Floats:
    """Products in double precision, without a copy of all vectors in it."""
    step = max(1, 4_000_000 // max(len(total), 1))
    parts = [vectors[at : at + step] @ total for at in range(0, len(vectors), step)]
    return np.concatenate(parts)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
