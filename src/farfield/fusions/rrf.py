"""Reciprocal rank fusion, in the dialects that engines speak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from farfield.errors import SpecError
from farfield.fusions.base import Floats, Fusion, Lists

__all__ = ["DIALECTS", "Dialect", "rrf"]


class Dialect(NamedTuple):
    """What an engine takes for granted. In none of them does an absent document count."""

    k: int
    first_rank: int
    window: int | None = None  # how deep it looks; 0: as deep as the results asked for
    weigh_rank: bool = False  # does a weight divide the rank, in place of multiplying the score?


DIALECTS = {
    "cormack": Dialect(60, 1),
    "pyserini": Dialect(60, 1, window=1000),
    "elasticsearch": Dialect(60, 1, window=0),
    "chroma": Dialect(60, 0),
    "qdrant": Dialect(2, 0, weigh_rank=True),
}


@dataclass(frozen=True, kw_only=True)
class rrf(Fusion):
    """Sum of weight / (k + rank) over the lists that have the document.

    ``dialect`` sets the constant, the first rank and the window as an engine does: ``cormack``
    (Cormack et al. 2009: 60, ranks from 1, whole lists), ``pyserini`` (1,000 of each list),
    ``elasticsearch`` (as many of each list as results are asked for; OpenSearch and Pinecone count
    the same way), ``chroma`` (ranks from 0), ``qdrant`` (k = 2, ranks from 0, and weights that
    divide the rank: 1 / ((rank + 1) / weight + k - 1)). ``k`` and ``depth`` override it.

    A document that a list lacks gets nothing from it (``absent='zero'``, all of the engines);
    ``absent='last'`` ranks it right behind the list's last, as sentence-transformers did until
    July 2026 (with the ranks of ``chroma``).

    Relations: interpolate uses scores as well, and can be tuned; rrf needs neither scores nor
    labels.
    """

    k: int | None = None
    dialect: Literal["cormack", "pyserini", "elasticsearch", "chroma", "qdrant"] = "cormack"
    absent: Literal["zero", "last"] = "zero"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None and self.k < 1:
            raise SpecError(f"k is {self.k}, expected 1, 2, 3 …")

    @property
    def constant(self) -> int:
        """The k that counts."""
        return DIALECTS[self.dialect].k if self.k is None else self.k

    def window(self, k: int | None) -> int | None:
        """How much of each list is looked at: ``depth``, or what the dialect says."""
        window = DIALECTS[self.dialect].window
        return self.depth if self.depth is not None else k if window == 0 else window

    def weighted(self, weights: Sequence[float]) -> Fusion:
        """The same fusion with these shares; where a weight divides the rank, their mean is 1."""
        scale = len(weights) if DIALECTS[self.dialect].weigh_rank else 1
        return super().weighted([weight * scale for weight in weights])

    def choices(self) -> dict[str, tuple[Any, ...]]:
        """Values of ``k`` worth trying, unless it is given."""
        others = tuple(k for k in (1, 2, 5, 10, 20, 40, 60, 80, 100) if k != self.constant)
        return {"k": others} if self.k is None else {}

    def _points(self, lists: Lists, weight: float) -> Floats:
        return self._worth(lists.rank.astype(np.float64), weight)

    def _absent(self, lists: Lists, weight: float) -> Floats | None:
        if self.absent == "zero":
            return None
        behind = self._worth(lists.lengths.astype(np.float64) + 1.0, weight)
        return np.where(lists.lengths > 0, behind, 0.0)

    def _worth(self, rank: Floats, weight: float) -> Floats:
        """Points of documents at these ranks, which count from 1."""
        spoken = DIALECTS[self.dialect]
        if weight == 0:
            return np.zeros(len(rank))
        if spoken.weigh_rank:
            return 1.0 / (rank / weight + (self.constant - 1.0))
        return weight / (self.constant + (rank + (spoken.first_rank - 1.0)))
