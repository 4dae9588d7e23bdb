"""Sentence encoders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.encoders.base import Encoder
from farfield.errors import InputError, MissingDependency
from farfield.tables import Queries

__all__ = ["sentence"]


@dataclass(frozen=True, kw_only=True)
class sentence(Encoder):
    """A sentence-transformers model, by the path of its folder or by its name.

    A name is looked up on this machine; without a network it must have been fetched before. Needs
    the extra ``neural``.
    """

    model: str
    batch: int = 128

    def _encode(self, sets: list[Queries]) -> list[npt.NDArray[np.floating]]:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingDependency("sentence-transformers", str(self), extra="neural") from None
        try:
            model = SentenceTransformer(self.model)
        except Exception as error:  # a missing folder, a broken file, no network
            raise InputError(
                f"{self}: the model cannot be loaded ({type(error).__name__}: {error}). Give the "
                "path of a folder that holds one, or fetch it while there is a network."
            ) from error
        return [
            model.encode(
                queries.frame["text"].to_list(), batch_size=self.batch, show_progress_bar=False
            )
            for queries in sets
        ]
