"""A vector for every token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from farfield import neural
from farfield.errors import SpecError
from farfield.neural import TokenVectors
from farfield.neural.encoding import CHUNK
from farfield.neural.models import Kind
from farfield.neural.vectors import ragged_rows, starts_of
from farfield.progress import counting
from farfield.retrievers import _neural_nearby as nearby
from farfield.retrievers._neural import (
    Ints,
    Modelled,
    PassageIndex,
    Passages,
    Ranked,
    check_windows,
    ranked,
    windows_said,
    write_passages,
)
from farfield.retrievers.base import Index
from farfield.tables import Corpus

__all__ = ["colbert"]

# Token vectors up to which every document is scored: a GPU does that sooner than a CPU, on which
# the lists are made, finds candidates.
_SMALL = {"cpu": 2_000_000, "cuda": 100_000_000}
_TOGETHER = 1_024  # queries that are searched together, exactly
_CANDIDATES_TOGETHER = 16  # and by candidates: the tokens of all of theirs are held at once
_SAMPLE = 25  # pretended queries on which recall is measured


@dataclass(frozen=True, kw_only=True)
class colbert(Modelled):
    """A MultiVectorEncoder: each token of a query takes its best token in a document (MaxSim).

    ``search='exact'`` scores every document. ``'candidates'`` finds, for each token of the query,
    the ``near`` tokens of documents that seem nearest (faiss, lists of 8-bit codes, of which
    ``probes`` are looked at) and scores exactly the documents that have them; how many of the exact
    results this keeps is measured and noted in the index. ``'auto'`` is exact up to two million
    tokens, and up to a hundred million where a GPU makes the index. ``window`` and ``stride`` split
    documents as in dense.

    Relations: dense has one vector for a text, rerank reads query and document together.
    """

    model: str
    search: Literal["auto", "exact", "candidates"] = "auto"
    near: int = 1000
    probes: int | None = None
    window: int | None = None
    stride: int | None = None

    def __post_init__(self) -> None:
        check_windows(self.window, self.stride)
        for name in ("near", "probes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} is {value}, expected 1, 2, 3 …")

    @property
    def kind(self) -> Kind:
        """A MultiVectorEncoder."""
        return "multi"

    @property
    def content(self) -> str:
        """Vectors of tokens, and how they are found."""
        split = windows_said(self.window, self.stride)
        return f"tokens({self.model!r}{split}, {self.search})"

    def _index(self, corpus: Corpus, folder: Path | None) -> Index:
        passages = Passages(corpus, self.window, self.stride)
        if folder is None:
            texts = list(passages)
            half = {"task": "document", "dtype": np.float16}
            shards = [neural.encode_multi(self.network, texts, **half)]  # type: ignore[arg-type]
            tokens = Tokens(shards, len(texts))
        else:
            write_passages(passages, folder)
            stored = neural.encode_to(folder / "tokens", self.network, passages, task="document")
            tokens = Tokens(cast(list[TokenVectors], list(stored.shards())), CHUNK)
        given = (passages.documents, passages.owner, tokens, self.network_fingerprint)
        made = ColbertIndex(self, *given)
        if self.search == "candidates" or (self.search == "auto" and self._is_large(tokens)):
            by = nearby.build("ivfpq", tokens.count, tokens.vectors, tokens.dimensions)
            made.approximate(by, passages.pretended()[:_SAMPLE], folder)
        return made

    def _is_large(self, tokens: Tokens) -> bool:
        return tokens.count > _SMALL.get(self.network.device.type, _SMALL["cpu"])

    def _open(self, folder: Path) -> Index:
        stored = neural.open_stored(folder / "tokens")
        tokens = Tokens(cast(list[TokenVectors], list(stored.shards())), CHUNK)
        return ColbertIndex.opened(self, folder, tokens, str(stored.manifest["model"]))


class Tokens:
    """Token vectors of passages in shards of ``size`` passages; the last may have fewer."""

    def __init__(self, shards: list[TokenVectors], size: int) -> None:
        self.shards, self._size = shards, size
        self.dimensions = int(shards[0].vectors.shape[1])
        self.lengths = np.concatenate([shard.lengths for shard in shards])
        self.count = int(self.lengths.sum())

    @property
    def sizes(self) -> dict[str, int]:
        """Tokens and dimensions."""
        return {"tokens": self.count, "dimensions": self.dimensions}

    @cached_property
    def starts(self) -> Ints:
        """Where the tokens of each passage start among all."""
        return starts_of(self.lengths)

    def vectors(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all vectors, shard by shard."""
        for shard in self.shards:
            yield shard.vectors

    def take(self, passages: Ints) -> TokenVectors:
        """Return some passages, whose numbers ascend."""
        found = [np.zeros((0, self.dimensions), self.shards[0].vectors.dtype)]
        for number in np.unique(passages // self._size):
            shard = self.shards[number]
            here = passages[passages // self._size == number] - number * self._size
            rows = ragged_rows(shard.starts[here], shard.lengths[here])
            found.append(shard.vectors[rows])
        return TokenVectors(np.concatenate(found), starts_of(self.lengths[passages]))

    def part(self, passages: Ints) -> Tokens:
        """Return some passages, whose numbers ascend, as they are held."""
        return Tokens([self.take(passages)], max(1, len(passages)))


class ColbertIndex(PassageIndex):
    """Passages as vectors of their tokens."""

    retriever: colbert
    held: Tokens

    def _encoded(self, texts: list[str]) -> TokenVectors:
        return neural.encode_multi(self.retriever.network, texts, task="query")

    def _exact(self, asked: TokenVectors, k: int) -> Ranked:
        """Score all; look further where the last place is shared, or documents have many passages.

        Scores do not depend on how many are asked for, as all are computed either way.
        """
        parts = []
        passages = len(self.owner)
        with counting(len(asked), "searching") as count:
            for first in range(0, len(asked), _TOGETHER):
                open_ = np.arange(first, min(first + _TOGETHER, len(asked)))
                wanted = min(passages, k + 16)
                while len(open_):
                    some = _some(asked, open_)
                    scores, found = neural.search_multi(some, iter(self.held.shards), wanted)
                    best = ranked(
                        np.repeat(np.arange(len(open_)), found.shape[1]),
                        self.owner[found.ravel()],
                        scores.ravel(),
                        k,
                        len(open_),
                    )
                    counts = np.diff(best.bounds)
                    last = np.full(len(open_), -np.inf)
                    last[counts > 0] = best.scores[best.bounds[1:][counts > 0] - 1]
                    settled = (counts >= k) & (scores[:, -1] < last) | (wanted == passages)
                    kept = np.repeat(settled, counts)
                    query = np.repeat(open_, counts)[kept]
                    parts.append((query, best.docs[kept], best.scores[kept]))
                    count(int(settled.sum()))
                    open_, wanted = open_[~settled], min(passages, 4 * wanted)
        return _joined(parts, k, len(asked))

    def _by_candidates(self, asked: TokenVectors, k: int) -> Ranked:
        """Score the documents that have a token near one of the query."""
        retriever, parts = self.retriever, []
        with counting(len(asked), "searching") as count:
            for first in range(0, len(asked), _CANDIDATES_TOGETHER):
                numbers = np.arange(first, min(first + _CANDIDATES_TOGETHER, len(asked)))
                some = _some(asked, numbers)
                vectors = np.ascontiguousarray(some.vectors, dtype=np.float32)
                near = nearby.candidates(self.nearby, vectors, retriever.near, retriever.probes)
                query = np.repeat(np.arange(len(some)), some.lengths)[:, None]
                query = np.broadcast_to(query, near.shape)[near >= 0]
                token = near[near >= 0]
                passage = np.searchsorted(self.held.starts, token, side="right") - 1
                width = len(self.owner)
                query, passage = np.divmod(np.unique(query * width + passage), width)
                used, which = np.unique(passage, return_inverse=True)
                pairs = np.stack([query, which], axis=1)
                scores = neural.maxsim(some, self.held.take(used), pairs)
                parts.append((numbers[query], self.owner[passage], scores.astype(np.float64)))
                count(len(numbers))
        return _joined(parts, k, len(asked))


def _some(vectors: TokenVectors, numbers: Ints) -> TokenVectors:
    """Some of the texts."""
    counts = vectors.lengths[numbers]
    rows = ragged_rows(vectors.starts[numbers], counts)
    return TokenVectors(vectors.vectors[rows], starts_of(counts))


def _joined(parts: list[tuple[Any, Any, Any]], k: int, queries: int) -> Ranked:
    empty = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    query, doc, score = (np.concatenate(column) for column in zip(empty, *parts, strict=True))
    return ranked(query, doc, score, k, queries)
