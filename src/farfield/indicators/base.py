"""What all indicators share: two sides, and a reading of how far they are apart.

A is the set that is asked about (what is tested, what may be far); B is the set that it is held
against (what was trained on). An indicator reads texts, or vectors that somebody else made: it
knows no encoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import stats
from farfield.errors import InputError, SpecError
from farfield.spec import Member

__all__ = ["Floats", "Indicator", "Reading", "Side", "Sides", "Vectors"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

# Of more values than this the bootstrap costs seconds and agrees with Student's t.
_MANY = 5_000


@dataclass(frozen=True, eq=False)
class Side:
    """A set of queries: their texts, and their vectors, a row for each text."""

    texts: pl.Series
    vectors: Vectors | None = None

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False)
class Sides:
    """Two sets of queries, A and B, with the confidence level and the seed of what is drawn."""

    a: Side
    b: Side
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name, side in (("A", self.a), ("B", self.b)):
            if len(side) < 2:
                raise InputError(
                    f"{name} has {len(side)} queries, expected at least 2: a single one says "
                    "nothing about a set."
                )

    def vectors(self, wanted_by: object) -> tuple[Vectors, Vectors]:
        """Return the vectors of both sides, or raise if they have none."""
        if self.a.vectors is None or self.b.vectors is None:
            raise InputError(f"{wanted_by} compares vectors. Give the sides some.")
        return self.a.vectors, self.b.vectors

    @property
    def z(self) -> float:
        """How many standard errors reach from a value to the ends of its interval."""
        return NormalDist().inv_cdf(0.5 + self.level / 2.0)

    def around(self, value: float, error: float) -> tuple[float, float]:
        """Return the normal interval of a value with this standard error."""
        return value - self.z * error, value + self.z * error

    def mean(self, values: Floats) -> stats.Estimate:
        """Return the mean with its interval."""
        method = "bca" if len(values) <= _MANY else "t"
        return stats.mean(values, level=self.level, method=method, seed=self.seed)

    def difference(self, a: Floats, b: Floats) -> stats.Estimate:
        """Return mean(a) - mean(b) of two samples with its interval."""
        method = "bca" if max(len(a), len(b)) <= _MANY else "t"
        return stats.difference(a, b, paired=False, level=self.level, method=method, seed=self.seed)

    def rows(self, size: int | None) -> tuple[Ints, Ints]:
        """Draw at most ``size`` rows of either side, in order; ``None``: all rows."""
        rng = np.random.default_rng(self.seed)
        drawn = []
        for side in (self.a, self.b):
            every = size is None or size >= len(side)
            rows = np.arange(len(side)) if every else rng.choice(len(side), size, replace=False)
            drawn.append(np.sort(rows).astype(np.int64))
        return drawn[0], drawn[1]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What an indicator says about two sets.

    ``value`` with ``low`` and ``high``; ``same``, what it would be if A were drawn from what B was
    drawn from; ``p`` of a test of just that, where the indicator is one; ``details``, whatever else
    belongs to it. ``a`` and ``b`` hold a value for each query of a side (NaN for those that were
    not looked at), or nothing where the indicator is one of sets only.
    """

    value: float
    low: float
    high: float
    same: float
    p: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    a: Floats | None = None
    b: Floats | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all of it that is about the sets, by name; what is not known is ``None``."""
        found = {"value": self.value, "low": self.low, "high": self.high, "same": self.same}
        document: dict[str, Any] = _without_nan({**found, "p": self.p, **self.details})
        return document


@dataclass(frozen=True, kw_only=True)
class Indicator(Member):
    """Says how far apart two sets of queries are."""

    bare = True

    #: Does it compare vectors? Otherwise it reads texts.
    needs_vectors: ClassVar[bool] = True
    #: Does a higher value say that the sets are nearer to one another?
    higher_is_nearer: ClassVar[bool] = True

    def compare(self, sides: Sides) -> Reading:
        """Compare A with B."""
        raise NotImplementedError(f"{type(self).__name__} defines no compare")

    def explain(self, reading: Reading) -> str:
        """Say in a sentence how to read it; the first of the description, unless told better."""
        return (self.__doc__ or "").split("\n\n")[0].strip()

    def _at_least(self, least: int, *names: str) -> None:
        """Refuse options that are lower than this; ``None`` is fine."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value < least:
                raise SpecError(f"{name} is {value}, expected {least}, {least + 1}, {least + 2} …")


def estimate(prefix: str, found: stats.Estimate) -> dict[str, float]:
    """Name the parts of an estimate: ``own``, ``own_low``, ``own_high``."""
    return {prefix: found.value, f"{prefix}_low": found.low, f"{prefix}_high": found.high}


def spread(values: Floats, size: int, rows: Ints) -> Floats:
    """Put the values of some rows into a column of all rows, with NaN elsewhere."""
    column = np.full(size, np.nan)
    column[rows] = values
    return column


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    return None if isinstance(value, float) and np.isnan(value) else value
