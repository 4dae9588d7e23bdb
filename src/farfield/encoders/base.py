"""What all encoders share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.spec import Member
from farfield.tables import Queries

__all__ = ["Encoder", "Vectors", "unit"]

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Encoder(Member):
    """Queries become vectors of length 1, so that inner products are cosines."""

    def encode(self, *sets: Queries) -> list[Vectors]:
        """Return a matrix for each set of queries, all of them in one space."""
        return [unit(vectors) for vectors in self._encode(list(sets))]

    def _encode(self, sets: list[Queries]) -> list[npt.NDArray[np.floating]]:
        raise NotImplementedError(f"{type(self).__name__} defines no _encode")


def unit(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Scale every row to length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return np.ascontiguousarray(scaled, dtype=np.float32)
