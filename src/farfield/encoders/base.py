"""What all encoders share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.spec import Member
from farfield.tables import Queries

__all__ = ["Encoder", "Vectors"]

Vectors = npt.NDArray[np.float32]

# Rows that are scaled at a time: they stay in the cache.
_ROWS = 1024


@dataclass(frozen=True, kw_only=True)
class Encoder(Member):
    """Queries become vectors of length 1, so that inner products are cosines."""

    def encode(self, *sets: Queries) -> list[Vectors]:
        """Return a matrix for each set of queries, all of them in one space.

        A query of which an encoder knows nothing has a vector of zeros.
        """
        made = self._encode(list(sets))
        return [self._unit(found, queries) for found, queries in zip(made, sets, strict=True)]

    def _encode(self, sets: list[Queries]) -> list[npt.NDArray[np.floating]]:
        """Make new matrices, of any length: they are scaled in place where that is possible."""
        raise NotImplementedError(f"{type(self).__name__} defines no _encode")

    def _unit(self, vectors: npt.NDArray[np.floating], queries: Queries) -> Vectors:
        fits = vectors.dtype == np.float32 and vectors.flags.carray  # to be changed in place
        unit = vectors if fits else np.empty(vectors.shape, dtype=np.float32)
        precision = np.result_type(vectors.dtype, np.float32)
        for start in range(0, len(vectors), _ROWS):
            rows = vectors[start : start + _ROWS]
            squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)[:, None]
            with np.errstate(over="ignore"):
                lengths = np.sqrt(squares).astype(precision)
            if not np.isfinite(lengths).all():
                bad = start + int(np.flatnonzero(~np.isfinite(lengths))[0])
                raise InputError(
                    f"{self}: the vector of query {queries.frame['query_id'][bad]!r} holds NaN, "
                    "infinity or numbers too large. Encode it again, or leave it out."
                )
            lengths[lengths == 0] = 1.0
            np.divide(rows, lengths, out=unit[start : start + _ROWS], casting="same_kind")
        return unit
