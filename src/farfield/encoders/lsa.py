"""Latent semantic analysis: vectors without a model to download."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farfield.encoders.base import Encoder
from farfield.errors import SpecError
from farfield.tables import Queries

__all__ = ["lsa"]


@dataclass(frozen=True, kw_only=True)
class lsa(Encoder):
    """Words weighted by rarity (TF-IDF), reduced by singular value decomposition.

    Fitted on all sets together. It needs no download and sees which words go together; it does not
    know that two words it never saw together mean the same. Relations: sentence uses a trained
    model, vectors reads what another program encoded.
    """

    dimensions: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dimensions < 2:
            raise SpecError(f"dimensions is {self.dimensions}, expected 2, 3, 4 …")

    def _encode(self, sets: list[Queries]) -> list[npt.NDArray[np.floating]]:
        from scipy.sparse import vstack
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        from farfield.similarity.terms import word_counts

        counts, _ = word_counts(*(queries.frame["text"] for queries in sets))
        together = TfidfTransformer(sublinear_tf=True).fit_transform(vstack(counts))
        size = min(self.dimensions, *(n - 1 for n in together.shape))
        if size < 2:
            reduced = together.toarray()
        else:
            svd = TruncatedSVD(size, n_iter=4, random_state=self.seed)
            reduced = svd.fit_transform(together)
        ends = np.cumsum([len(queries) for queries in sets])[:-1]
        return list(np.split(reduced, ends))
