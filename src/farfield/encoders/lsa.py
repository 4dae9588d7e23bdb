"""Latent semantic analysis: vectors without a model to download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.encoders._remembered import remembered
from farfield.encoders.base import Encoder
from farfield.errors import SpecError
from farfield.tables import Queries

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["lsa"]

# Queries from which on it takes longer to make the vectors than to read them.
_MANY = 100_000
# A word's company is counted among so many of the commonest words.
_COMPANY = 20_000


@dataclass(frozen=True, kw_only=True)
class lsa(Encoder):
    """Words by the company they keep, reduced by singular value decomposition.

    Two words are alike if the same words stand beside them in queries more often than chance has it
    (positive pointwise mutual information); a query is the sum of its words' vectors, weighted by
    rarity (TF-IDF). Fitted on all sets together, in any language, without a download. A word is not
    its own company: plain TF-IDF with SVD, where it is, spends its dimensions on single names, and
    finds a third as many queries with the same answer on real questions (docs/shifts.md).

    Relations: sentence uses a trained model, vectors reads what another program encoded.
    """

    dimensions: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dimensions < 2:
            raise SpecError(f"dimensions is {self.dimensions}, expected 2, 3, 4 …")

    def _encode(self, sets: list[Queries]) -> list[npt.NDArray[np.floating]]:
        texts = [queries.frame["text"] for queries in sets]
        if sum(map(len, texts)) < _MANY:
            made = self._vectors(texts)
        else:
            made = remembered(
                {"lsa": 2, "dimensions": self.dimensions, "seed": self.seed},
                ["scikit-learn", "scipy"],
                texts,
                lambda: self._vectors(texts),
            )
        return list(np.split(made, np.cumsum([len(part) for part in texts])[:-1]))

    def _vectors(self, texts: list[pl.Series]) -> npt.NDArray[np.float32]:
        from scipy.sparse import diags_array, vstack

        from farfield.similarity.terms import word_counts

        counts, _ = word_counts(*texts)
        together = vstack(counts).tocsr()
        together.data = np.ones_like(together.data)  # a word counts once in a query
        spread = np.bincount(together.indices, minlength=together.shape[1])
        rarity = np.log(together.shape[0] / np.maximum(spread, 1)).astype(np.float32)
        found: npt.NDArray[np.float32] = together @ (
            diags_array(rarity) @ self._words(together, spread)
        )
        return found

    def _words(self, texts: csr_matrix, spread: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """A vector of length 1 for every word."""
        from sklearn.decomposition import TruncatedSVD

        company = _company(texts, spread)
        size = min(self.dimensions, *(n - 1 for n in company.shape))
        made = np.zeros((texts.shape[1], max(size, 2)), dtype=np.float32)
        if size >= 2 and company.nnz:
            made = TruncatedSVD(size, n_iter=4, random_state=self.seed).fit_transform(company)
        # Words that stand alone are like no other: random directions are nearly orthogonal.
        alone = ~made.any(axis=1)
        random = np.random.default_rng(self.seed).standard_normal((int(alone.sum()), made.shape[1]))
        made[alone] = random
        found: npt.NDArray[np.float32] = made / np.linalg.norm(made, axis=1, keepdims=True)
        return found


def _company(texts: csr_matrix, spread: npt.NDArray[np.int64]) -> csr_matrix:
    """How much more often than by chance words stand beside common words: ln(p(a,b)/p(a)p(b))."""
    from scipy.sparse import csr_matrix

    common = np.sort(np.argsort(-spread, kind="stable")[:_COMPANY])
    beside = (texts.T.tocsr() @ texts[:, common]).tocoo()
    other = beside.row != common[beside.col]
    rows, columns, data = beside.row[other], beside.col[other], beside.data[other]
    of_word = np.bincount(rows, data, minlength=beside.shape[0])
    of_company = np.bincount(columns, data, minlength=beside.shape[1])
    surprise = np.log(data * (data.sum(dtype=np.float64) / (of_word[rows] * of_company[columns])))
    kept = surprise > 0
    values = surprise[kept].astype(np.float32)
    return csr_matrix((values, (rows[kept], columns[kept])), shape=beside.shape)
