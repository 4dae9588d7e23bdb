"""Sentence encoders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.encoders._remembered import remembered
from farfield.encoders.base import Encoder
from farfield.tables import Queries

__all__ = ["sentence"]


@dataclass(frozen=True, kw_only=True)
class sentence(Encoder):
    """A sentence-transformers model, by the path of its folder or by its name.

    A name is looked up on this machine; without a network it must have been fetched before. Texts
    are encoded as queries, with the prompt that the model has for them, in single precision.
    ``device`` is where: ``auto`` (the GPU if there is one), ``cpu``, ``cuda`` … Vectors are kept
    for the next time (see FARFIELD_CACHE). Needs the extra ``neural``.
    """

    model: str
    device: str = "auto"

    def _encode(self, sets: list[Queries]) -> list[npt.NDArray[np.floating]]:
        from farfield.neural import encode, fingerprint, load

        model = load(self.model, "dense", device=self.device)
        # Where it runs changes no more than the last digits, and is not in the name.
        encoder = {"name": "sentence", "model": fingerprint(model)}

        def vectors(queries: Queries) -> npt.NDArray[np.floating]:
            texts = queries.frame["text"]
            return remembered(
                encoder,
                ["sentence-transformers", "torch", "transformers"],
                [texts],
                lambda: encode(model, texts.to_list(), task="query", precision="float32"),
            )

        return [vectors(queries) for queries in sets]
