"""Nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farfield.errors import SpecError
from farfield.indicators._nearest import nearest, nearest_own
from farfield.indicators.base import Floats, Indicator, Reading, Sides, estimate, spread

__all__ = ["neighbours"]

_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, kw_only=True)
class neighbours(Indicator):
    """How similar the nearest query of B is, for A's queries and for B's own.

    The value is the mean similarity of A's queries to the nearest one in B; ``same`` the mean for
    B's own queries, each without itself. ``farther`` is the share of A's queries that have no
    neighbour as near as all but the last 5 % of B's own have (1 - ``beyond``): 5 % is what one
    expects if A is like B. Quantiles of both are given. The nearest of many is nearer than that of
    few: values against sets of different sizes cannot be compared, ``farther`` can.

    Every pair is compared, so no more than ``size`` queries of A and of B's own are looked at
    (``None``: all), in all of B.
    """

    beyond: float = 0.95
    size: int | None = 5000

    def __post_init__(self) -> None:
        self._at_least(2, "size")
        if not 0.0 < self.beyond < 1.0:
            raise SpecError(f"beyond is {self.beyond}, expected a share between 0 and 1.")

    def compare(self, sides: Sides) -> Reading:
        """Compare the neighbours that A's queries have in B with those that B's own have."""
        a, b = sides.vectors(self)
        rows = sides.rows(self.size)
        far = nearest(np.ascontiguousarray(a[rows[0]]), b, 1)[:, 0]
        own = nearest_own(b, rows[1], 1)[:, 0]
        edge = float(np.quantile(own, 1.0 - self.beyond))
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
                # Copies are equally near up to rounding.
                **estimate("farther", sides.mean((far < edge - 1e-6).astype(np.float64))),
                "quantiles": {"a": _quantiles(far), "b": _quantiles(own)},
                "queries": len(far),
                "own_queries": len(own),
            },
            a=spread(far, len(a), rows[0]),
            b=spread(own, len(b), rows[1]),
        )

    def explain(self, reading: Reading) -> str:
        """Say how many of A's queries are farther than B's own."""
        return (
            f"similarity to the nearest query of B; {reading.details['farther']:.1%} of A's have "
            f"none as near as {self.beyond:.0%} of B's own have (expected: {1 - self.beyond:.0%})."
        )


def _quantiles(values: Floats) -> dict[str, float]:
    return {f"{share:.0%}": float(np.quantile(values, share)) for share in _SHARES}
