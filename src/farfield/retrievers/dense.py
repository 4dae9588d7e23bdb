"""A vector for every text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import neural
from farfield.errors import InputError, SpecError
from farfield.neural.encoding import CHUNK
from farfield.neural.models import Kind
from farfield.retrievers import _neural_nearby as nearby
from farfield.retrievers._neural import (
    Asking,
    Ints,
    Modelled,
    Passages,
    Ranked,
    check_windows,
    open_array,
    open_strings,
    share_kept,
    write_array,
    write_strings,
)
from farfield.retrievers._neural_products import Matrix, Rows, best_products, rescored, unit
from farfield.retrievers.base import UNFINISHED, Index, Manifest, Retriever, run_of
from farfield.tables import Corpus, Queries, Run

__all__ = ["dense"]

_RECALL = 100  # at which the recall of an approximate search is measured


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
        stride = "" if self.stride is None else f", stride={self.stride}"
        split = "" if self.window is None else f", window={self.window}{stride}"
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
            write_strings(folder / "documents.arrow", passages.documents.to_frame())
            write_array(folder / "owner.npy", passages.owner)
            stored = neural.encode_to(folder / "vectors", self.network, passages, task="document")
            vectors = cast(list[Matrix], list(stored.shards()))
        rows = Rows(vectors)
        made = DenseIndex(self, passages.documents, passages.owner, rows, self.network_fingerprint)
        if self.search != "exact":
            pieces = partial(rows.pieces, units=self.units)
            made.nearby = nearby.build(self.search, len(rows), pieces, rows.dimensions)
            made.recall = made.recall_of(passages.pretended())
            if folder is not None:
                nearby.write(made.nearby, folder / "nearby.faiss", folder / UNFINISHED)
        return made

    def _open(self, folder: Path) -> Index:
        stored = neural.open_stored(folder / "vectors")
        made = DenseIndex(
            self,
            open_strings(folder / "documents.arrow")["doc_id"],
            open_array(folder / "owner.npy"),
            Rows(cast(list[Matrix], list(stored.shards()))),
            str(stored.manifest["model"]),
        )
        if self.search != "exact":
            made.nearby = nearby.open_nearby(folder / "nearby.faiss")
            made.recall = Manifest.read(folder).sizes.get("recall_at_100")
        return made


class DenseIndex(Index):
    """Passages as vectors; ``recall`` says how much of an exact search an approximate one keeps."""

    retriever: dense

    def __init__(
        self, retriever: dense, doc_ids: pl.Series, owner: Ints, rows: Rows, fingerprint: str
    ) -> None:
        self.retriever, self.doc_ids, self.owner = retriever, doc_ids, owner
        self.rows, self.fingerprint = rows, fingerprint
        self.nearby: Any = None
        self.recall: float | None = None

    def __len__(self) -> int:
        return len(self.doc_ids)

    @property
    def sizes(self) -> dict[str, Any]:
        """Documents, passages, dimensions and, unless the search is exact, its recall."""
        found: dict[str, Any] = {
            "documents": len(self),
            "passages": len(self.rows),
            "dimensions": self.rows.dimensions,
        }
        return found if self.recall is None else {**found, f"recall_at_{_RECALL}": self.recall}

    def recall_of(self, texts: list[str], k: int = _RECALL) -> float:
        """What share of the exact best ``k`` documents of these queries is found."""
        asked = self._encoded(texts)
        return share_kept(self._exact(asked, k), self._found(asked, k))

    def _using(self, retriever: Retriever) -> DenseIndex:
        assert isinstance(retriever, dense)  # it has the same content
        given = (self.doc_ids, self.owner, self.rows, self.fingerprint)
        other = DenseIndex(retriever, *given)
        other.nearby, other.recall = self.nearby, self.recall
        return other

    def _search(self, queries: Queries, k: int, name: str) -> Run:
        self.retriever.check_model(self.fingerprint)
        asking = Asking.of(queries)
        best = self._found(self._encoded(asking.texts), k)
        if self.recall is not None:
            self.report = {f"recall_at_{_RECALL}": self.recall}
        return run_of(
            queries, asking.spread(best.bounds), self.doc_ids.gather(best.docs), best.scores, name
        )

    def _encoded(self, texts: list[str]) -> npt.NDArray[np.float32]:
        found = neural.encode(self.retriever.network, texts, task="query")
        return unit(found) if self.retriever.units else found.astype(np.float32)

    def _found(self, asked: npt.NDArray[np.float32], k: int) -> Ranked:
        retriever = self.retriever
        if retriever.search == "exact":
            return self._exact(asked, k)
        number = max(k, retriever.candidates)

        def candidates(some: slice) -> Ints:
            return nearby.candidates(self.nearby, asked[some], number, retriever.probes)

        units = retriever.units
        return rescored(asked, self.rows, self.owner, candidates, k, units=units)

    def _exact(self, asked: npt.NDArray[np.float32], k: int) -> Ranked:
        return best_products(asked, self.rows, self.owner, k, units=self.retriever.units)
