"""Documents with more to say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from warnings import warn

import polars as pl

from farfield.errors import FarfieldWarning, InputError
from farfield.io import read_texts
from farfield.io.files import load
from farfield.retrievers._sparse import Around, SparseRetriever
from farfield.sparse import Inverted
from farfield.tables import Corpus

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

    def check(self, corpus: Corpus) -> None:
        """See whether the file is about these documents."""
        self.base.check(corpus)
        self.__dict__.pop("_texts", None)  # what was read for another index may be out of date
        ids = self._texts.select("doc_id")
        strange = ids.join(corpus.frame.select("doc_id"), on="doc_id", how="anti")
        if len(strange) == len(ids):
            raise InputError(
                f"{self.file}: none of its {len(ids):,} documents is among those to index (the "
                f"first is {ids['doc_id'][0]!r}). Give a file of texts for these documents."
            )
        if len(strange):
            warn(
                f"{self.file}: {len(strange):,} of {len(ids):,} documents are not among those to "
                f"index, like {strange['doc_id'][0]!r}; their texts are left out.",
                FarfieldWarning,
                stacklevel=2,
            )

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
