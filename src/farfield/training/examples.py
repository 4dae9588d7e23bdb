"""What is trained on: queries, the documents relevant to each, and all documents, by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import InputError
from farfield.neural.vectors import ragged_rows, starts_of

__all__ = ["Examples", "Ints", "sampled"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Examples:
    """Queries with what is relevant to them; documents of query i are ``relevant[starts[i]: …]``.

    Documents are all there are, and negatives are drawn from them. ``relevance`` is above 0.
    """

    query_ids: pl.Series
    queries: list[str]
    doc_ids: pl.Series
    documents: list[str]
    starts: Ints
    relevant: Ints
    relevance: Ints

    @classmethod
    def of(
        cls, queries: pl.DataFrame, doc_ids: pl.Series, documents: list[str], qrels: pl.DataFrame
    ) -> Examples:
        """Join queries, documents and judgements.

        A query without text or without a relevant document that has text teaches nothing, and is
        left out; judgements of documents that are not there are, too.
        """
        numbered = pl.DataFrame(
            {
                "doc_id": doc_ids,
                "doc": np.arange(len(doc_ids)),
                "blank": pl.Series(documents, dtype=pl.String).str.strip_chars() == "",
            }
        )
        texts = queries.select("query_id", "text").filter(pl.col("text").str.strip_chars() != "")
        kept = (
            qrels.filter(pl.col("relevance") > 0)
            .join(numbered.filter(~pl.col("blank")), on="doc_id", maintain_order="left")
            .join(texts.with_row_index("row"), on="query_id", maintain_order="left")
            .sort("row", maintain_order=True)
        )
        if not len(kept):
            raise InputError(
                "there is nothing to train on: no query has a relevant document among the "
                "documents. Check that judgements, queries and documents belong together."
            )
        rows, counts = np.unique(kept["row"].to_numpy(), return_counts=True)
        return cls(
            texts["query_id"][rows],
            texts["text"][rows].to_list(),
            doc_ids,
            documents,
            starts_of(counts),
            kept["doc"].to_numpy().astype(np.int64),
            kept["relevance"].to_numpy().astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.queries)

    def take(self, rows: Ints) -> Examples:
        """Return some of the queries; the documents stay."""
        counts = np.diff(self.starts)[rows]
        at = ragged_rows(self.starts[rows], counts)
        return replace(
            self,
            query_ids=self.query_ids[rows],
            queries=[self.queries[row] for row in rows],
            starts=starts_of(counts),
            relevant=self.relevant[at],
            relevance=self.relevance[at],
        )

    def drawn(self, count: int, seed: int) -> Examples:
        """Return a random sample of the queries; a smaller one is a part of a larger one."""
        order = np.random.default_rng([seed, 1]).permutation(len(self))
        return self.take(np.sort(order[:count]))

    def positives(self, rng: np.random.Generator) -> Ints:
        """Draw a relevant document for each query, the more relevant the more often."""
        chosen = sampled(self.relevance.astype(np.float64), self.starts, rng)
        return self.relevant[chosen]

    def false_negatives(self, queries: Ints, documents: Ints) -> tuple[Ints, Ints]:
        """Return where (query, document) of a table of these rows and columns is relevant."""
        counts = np.diff(self.starts)[queries]
        judged = self.relevant[ragged_rows(self.starts[queries], counts)]
        row = np.repeat(np.arange(len(queries)), counts)
        order = np.argsort(documents, kind="stable")
        first = np.searchsorted(documents, judged, "left", sorter=order)
        found = np.searchsorted(documents, judged, "right", sorter=order) - first
        return np.repeat(row, found), order[ragged_rows(first, found)]

    @cached_property
    def qrels(self) -> pl.DataFrame:
        """The judgements as a table: query_id, doc_id, relevance."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return pl.DataFrame(
            {
                "query_id": self.query_ids.gather(rows),
                "doc_id": self.doc_ids.gather(self.relevant),
                "relevance": self.relevance,
            }
        )

    def rows_of(self, doc_ids: Sequence[str] | pl.Series) -> Ints:
        """Return the rows of documents by their ids."""
        known = pl.DataFrame({"doc_id": self.doc_ids, "row": np.arange(len(self.doc_ids))})
        asked = pl.DataFrame({"doc_id": pl.Series(doc_ids, dtype=pl.String)})
        found = asked.join(known, on="doc_id", how="left", maintain_order="left")["row"]
        return found.to_numpy().astype(np.int64)


def sampled(weights: Floats, starts: Ints, rng: np.random.Generator) -> Ints:
    """Draw one place of each run of weights, in proportion to them; -1 where all of them are 0."""
    sums = np.concatenate(([0.0], np.cumsum(weights)))
    low, high = sums[starts[:-1]], sums[starts[1:]]
    target = low + rng.random(len(low)) * (high - low)
    at = np.searchsorted(sums, target, "right") - 1
    at = np.clip(at, starts[:-1], np.maximum(starts[1:] - 1, starts[:-1]))
    return np.where(high > low, at, -1)
