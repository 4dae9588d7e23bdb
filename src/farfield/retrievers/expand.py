"""Documents with more to say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import polars as pl

from farfield.io import read_texts
from farfield.io.files import load
from farfield.retrievers._sparse import Around, SparseRetriever
from farfield.sparse import Inverted

__all__ = ["expand"]


@dataclass(frozen=True, kw_only=True)
class expand(Around):
    """Texts from a file are appended to the documents before they are indexed.

    ``file`` has rows of doc_id and text (jsonl, tsv, csv or parquet), as many for a document as
    there are, for instance queries that a model thinks it answers (Nogueira and Lin 2019). A
    text may be a list of texts.

    Relations: rm3 and bo1 expand queries instead.
    """

    base: SparseRetriever
    file: str

    @property
    def content(self) -> str:
        """That of the other retriever, with these texts."""
        return f"{self.base.content} with {self.file}"

    @property
    def inputs(self) -> dict[str, str]:
        """The fingerprint of the file."""
        digest = blake2b(load(self.file).data, digest_size=16).hexdigest()
        return {**self.base.inputs, self.file: digest}

    def invert(self, documents: pl.DataFrame) -> Inverted:
        """As the other does, with the texts."""
        joined = documents.join(self._texts, on="doc_id", how="left", maintain_order="left")
        both = pl.concat_str("text", "appended", separator=" ", ignore_nulls=True)
        return self.base.invert(joined.with_columns(text=both).drop("appended"))

    @cached_property
    def _texts(self) -> pl.DataFrame:
        """All texts of each document, in the order of the file."""
        rows = read_texts(self.file)
        return rows.group_by("doc_id", maintain_order=True).agg(
            appended=pl.col("text").str.join(" ")
        )
