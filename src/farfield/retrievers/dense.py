"""A vector for every text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from farfield import neural
from farfield.errors import InputError, SpecError
from farfield.neural.encoding import CHUNK
from farfield.neural.models import Kind
from farfield.retrievers import _neural_nearby as nearby
from farfield.retrievers._neural import (
    Ints,
    Modelled,
    PassageIndex,
    Passages,
    Ranked,
    check_windows,
    windows_said,
    write_passages,
)
from farfield.retrievers._neural_products import Matrix, Rows, best_products, rescored, unit
from farfield.retrievers.base import Index
from farfield.tables import Corpus

__all__ = ["dense"]


@dataclass(frozen=True, kw_only=True)
class dense(Modelled):
    """A SentenceTransformer turns texts into vectors; the nearest documents of a query are found.

    ``similarity`` is ``dot`` (inner product) or ``cos`` (cosine), by default what the model says
    of itself. ``window`` splits documents into windows of so many sentences, the next ``stride``
    sentences further on (by default half a window), each behind the title; a document is as good as
    its best window. Chen et al. (2022) take 10 and 5.

    ``search`` is ``exact``, or finds ``candidates`` roughly and scores those exactly: ``hnsw`` (a
    graph) or ``ivfpq`` (lists, of which ``probes`` are looked at, and 8 times less memory). How
    many of the exact results they keep is measured and noted in the index.

    Relations: colbert keeps a vector for every token, splade weighs words; rerank reads query and
    document together.
    """

    model: str
    similarity: Literal["dot", "cos"] | None = None
    window: int | None = None
    stride: int | None = None
    search: Literal["exact", "hnsw", "ivfpq"] = "exact"
    candidates: int = 2000
    probes: int | None = None

    def __post_init__(self) -> None:
        check_windows(self.window, self.stride)
        if self.candidates < 1:
            raise SpecError(f"candidates is {self.candidates}, expected 1, 2, 3 …")
        if self.probes is not None and self.probes < 1:
            raise SpecError(f"probes is {self.probes}, expected 1, 2, 3 …")

    @property
    def kind(self) -> Kind:
        """A SentenceTransformer."""
        return "dense"

    @property
    def content(self) -> str:
        """Vectors of passages, and what finds them roughly, if anything does."""
        split = windows_said(self.window, self.stride)
        rough = "" if self.search == "exact" else f", {self.search} by {self.similarity}"
        return f"vectors({self.model!r}{split}{rough})"

    @property
    def units(self) -> bool:
        """Is it the direction only that counts?"""
        said = self.similarity or str(self.network.similarity_fn_name or "cosine")
        if said not in ("dot", "cos", "cosine"):
            raise InputError(
                f"the model {self.model} compares by {said}, which cannot be searched here. Give "
                "similarity='dot' or similarity='cos'."
            )
        return said != "dot"

    def _index(self, corpus: Corpus, folder: Path | None) -> Index:
        passages = Passages(corpus, self.window, self.stride)
        vectors: list[Matrix]
        if folder is None:
            texts = list(passages)
            whole = neural.encode(self.network, texts, task="document", dtype=np.float16)
            vectors = [whole[first : first + CHUNK] for first in range(0, len(whole), CHUNK)]
        else:
            write_passages(passages, folder)
            stored = neural.encode_to(folder / "vectors", self.network, passages, task="document")
            vectors = cast(list[Matrix], list(stored.shards()))
        rows = Rows(vectors)
        made = DenseIndex(self, passages.documents, passages.owner, rows, self.network_fingerprint)
        if self.search != "exact":
            pieces = partial(rows.pieces, units=self.units)
            by = nearby.build(self.search, len(rows), pieces, rows.dimensions)
            made.approximate(by, passages.pretended(), folder)
        return made

    def _open(self, folder: Path) -> Index:
        stored = neural.open_stored(folder / "vectors")
        rows = Rows(cast(list[Matrix], list(stored.shards())))
        return DenseIndex.opened(self, folder, rows, str(stored.manifest["model"]))


class DenseIndex(PassageIndex):
    """Passages as vectors."""

    retriever: dense
    held: Rows

    def _encoded(self, texts: list[str]) -> npt.NDArray[np.float32]:
        found = neural.encode(self.retriever.network, texts, task="query")
        return unit(found) if self.retriever.units else found.astype(np.float32)

    def _exact(self, asked: npt.NDArray[np.float32], k: int) -> Ranked:
        return best_products(asked, self.held, self.owner, k, units=self.retriever.units)

    def _by_candidates(self, asked: npt.NDArray[np.float32], k: int) -> Ranked:
        retriever = self.retriever
        number = max(k, retriever.candidates)

        def candidates(some: slice) -> Ints:
            return nearby.candidates(self.nearby, asked[some], number, retriever.probes)

        return rescored(asked, self.held, self.owner, candidates, k, units=retriever.units)
