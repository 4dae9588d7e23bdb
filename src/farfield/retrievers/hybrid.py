"""A fusion of retrievers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from farfield.errors import InputError, SpecError
from farfield.fusions import Fusion
from farfield.retrievers.base import Index, Retriever, divided
from farfield.tables import Corpus, Queries, Run

__all__ = ["hybrid"]


@dataclass(frozen=True, kw_only=True)
class hybrid(Retriever):
    """Several retrievers answer, and a fusion makes one ranking of theirs.

    ``hybrid(rrf(k=60), bo1(bm25()), dense(model='all-MiniLM-L6-v2'))``. Each of them is asked for
    ``depth`` documents, or for as many as are wanted in the end, if that is more. Retrievers with
    the same content (bm25 and bo1(bm25)) share an index.

    Relations: farfield fuse does the same with runs.
    """

    fusion: Fusion
    retrievers: tuple[Retriever, ...]
    depth: int = 1000

    def __post_init__(self) -> None:
        if len(self.retrievers) < 2:
            raise SpecError(f"{len(self.retrievers)} retriever to fuse, expected at least 2.")
        if self.fusion.needs_qrels:
            raise SpecError(f"{self.fusion} needs judgements, which a retriever does not have.")
        if self.depth < 1:
            raise SpecError(f"depth is {self.depth}, expected 1, 2, 3 …")
        try:
            self.fusion.check(self.retrievers)
        except InputError as error:
            raise SpecError(str(error)) from None

    @property
    def content(self) -> str:
        """What the retrievers hold, each once."""
        return " and ".join(self._different)

    @property
    def inputs(self) -> dict[str, str]:
        """All that goes into them."""
        return {name: value for one in self.retrievers for name, value in one.inputs.items()}

    @property
    def _different(self) -> dict[str, Retriever]:
        """One retriever for each content, in order."""
        found: dict[str, Retriever] = {}
        for one in self.retrievers:
            found.setdefault(one.content, one)
        return found

    def _index(self, corpus: Corpus, folder: Path | None) -> Index:
        made = [
            one.index(corpus, None if folder is None else folder / str(number))
            for number, one in enumerate(self._different.values(), start=1)
        ]
        return HybridIndex(self, made)

    def _open(self, folder: Path) -> Index:
        opened = [
            one.open(folder / str(number))
            for number, one in enumerate(self._different.values(), start=1)
        ]
        return HybridIndex(self, opened)


class HybridIndex(Index):
    """An index for each content that the retrievers have."""

    retriever: hybrid

    def __init__(self, retriever: hybrid, held: Sequence[Index]) -> None:
        self.retriever, self.held = retriever, tuple(held)
        by_content = {one.retriever.content: one for one in held}
        self.parts = [by_content[one.content].using(one) for one in retriever.retrievers]

    def __len__(self) -> int:
        return len(self.held[0])

    @property
    def sizes(self) -> dict[str, Any]:
        """The number of documents, and the other sizes of each index by its number."""
        found: dict[str, Any] = {"documents": len(self)}
        for number, one in enumerate(self.held, start=1):
            own = {name: value for name, value in one.sizes.items() if name != "documents"}
            found |= {f"{name}_in_{number}": value for name, value in own.items()}
        return found

    def _using(self, retriever: Retriever) -> HybridIndex:
        assert isinstance(retriever, hybrid)  # it has the same content
        return HybridIndex(retriever, self.held)

    def _search(self, queries: Queries, k: int, name: str) -> Run:
        depth = max(k, self.retriever.depth)
        runs = [part.search(queries, depth) for part in self.parts]
        self.report = {str(part.retriever): dict(part.report) for part in self.parts if part.report}
        return self.retriever.fusion.fuse(runs, k=k, name=name)

    def _search_parts(
        self, queries: Queries, parts: Mapping[str, pl.Series], k: int
    ) -> dict[str, Run]:
        """Each retriever ranks its results of all parts together before they are fused.

        Ranks within parts could not be compared. The parts share ``depth``, with ``k`` at least.
        """
        depth = max(k, -(-self.retriever.depth // len(parts)))
        runs = []
        for one in self.parts:
            found = one.search_parts(queries, parts, depth).values()
            rows = [run.frame.with_columns(pl.col("query_id").cast(pl.String)) for run in found]
            runs.append(Run(pl.concat(rows), name=str(one.retriever)))
        fused = self.retriever.fusion.fuse(runs, k=None, name=str(self.retriever))
        return divided(fused, parts, k)
