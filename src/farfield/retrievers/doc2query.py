"""Documents with the questions they answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from farfield.errors import SpecError
from farfield.retrievers._neural import Passages, check_windows
from farfield.retrievers._neural_queries import Draw, Writer, load_writer, write_queries
from farfield.retrievers._sparse import Around, Searcher, SparseRetriever
from farfield.retrievers.base import UNFINISHED
from farfield.retrievers.expand import expand
from farfield.sparse.building import open_index
from farfield.tables import Corpus

__all__ = ["doc2query"]


@dataclass(frozen=True, kw_only=True)
class doc2query(Around):
    """A model writes queries that documents answer; they are appended before indexing.

    ``model`` is a sequence-to-sequence model (doc2query-T5, Nogueira and Lin 2019) that reads up to
    512 tokens and writes up to 64. It writes ``n`` queries for a document, each token drawn from
    the ``top_k`` most probable. Long documents are split by ``window`` and ``stride`` as in dense,
    with ``n`` queries for each window. What is drawn depends on ``seed`` and the document only. The
    queries stay in the index's folder as queries.jsonl, which expand reads.

    Relations: expand takes queries that are there already.
    """

    neural = True

    base: SparseRetriever
    model: str
    n: int = 40
    top_k: int = 10
    seed: int = 0
    window: int | None = None
    stride: int | None = None

    def __post_init__(self) -> None:
        check_windows(self.window, self.stride)
        for name in ("n", "top_k"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 1, 2, 3 …")

    @property
    def content(self) -> str:
        """That of the other retriever, with these queries."""
        options = ", ".join(f"{key}={value!r}" for key, value in self.spec.options)
        return f"{self.base.content} with doc2query({options})"

    @property
    def inputs(self) -> dict[str, str]:
        """The fingerprint of the model."""
        return {**self.base.inputs, self.model: self._writer.fingerprint}

    @cached_property
    def _writer(self) -> Writer:
        return load_writer(self.model)

    def _index(self, corpus: Corpus, folder: Path | None) -> Searcher:
        if folder is None:
            with TemporaryDirectory() as scratch:
                return self._expanded(corpus, Path(scratch) / "queries.jsonl", Path(scratch), None)
        return self._expanded(corpus, folder / "queries.jsonl", folder / UNFINISHED, folder)

    def _expanded(self, corpus: Corpus, file: Path, scratch: Path, folder: Path | None) -> Searcher:
        passages = Passages(corpus, self.window, self.stride)
        draw = Draw(self.n, self.top_k, self.seed)
        write_queries(file, scratch / "queries", self._writer, passages, draw)
        return expand(base=self.base, file=str(file))._index(corpus, folder)._using(self)

    def _open(self, folder: Path) -> Searcher:
        return Searcher(self, open_index(folder))
