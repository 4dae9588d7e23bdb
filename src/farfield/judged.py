"""What a measure may know about a run: the judged documents and where the run put them.

Only the ranks of judged documents matter to a measure, so seven million rows shrink to as many
as there are judgements before anything is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.tables import Qrels, Run

__all__ = ["NEVER", "JudgedRun", "Judgements", "by_rank", "judge", "ranks_of"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: The rank of a document that was not retrieved: beyond every cutoff.
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Judgements:
    """Qrels in integer codes, prepared once and used for every run.

    ``query`` holds positions in ``query_ids``, which are sorted; rows are grouped by query.
    """

    query_ids: pl.Series
    query: Ints
    doc_ids: pl.Series
    relevance: Ints

    @classmethod
    def of(cls, qrels: Qrels) -> Judgements:
        """Prepare qrels."""
        frame = qrels.frame.with_columns(
            query=(pl.col("query_id").rank("dense") - 1).cast(pl.Int64)
        ).sort("query", maintain_order=True)
        return cls(
            qrels.query_ids,
            frame["query"].to_numpy(),
            frame["doc_id"],
            frame["relevance"].to_numpy(),
        )


@dataclass(frozen=True)
class JudgedRun:
    """All judged documents, each with its relevance and its rank in one run.

    Rows are sorted by query, then rank; ``query`` counts positions in ``query_ids``, the judged
    queries. A document that was not retrieved has rank :data:`NEVER`. ``retrieved`` is the number
    of documents that the run holds for each query, ``missing`` says for which it holds none.
    """

    query_ids: pl.Series
    query: Ints
    rank: Ints
    relevance: Ints
    retrieved: Ints

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Which judged queries the run does not have."""
        return np.equal(self.retrieved, 0)

    def total(self, of: npt.NDArray[Any]) -> Floats:
        """Sum a value of each judged document over the documents of each query."""
        sums = np.bincount(self.query, weights=of, minlength=len(self.query_ids))
        return sums.astype(np.float64)  # of no judgements at all bincount makes integers

    def within(self, cutoff: int | None) -> npt.NDArray[np.bool_]:
        """Which judged documents were retrieved, at this rank or better."""
        return self.rank <= (NEVER - 1 if cutoff is None else cutoff)

    def counted(self, flags: npt.NDArray[np.bool_]) -> Ints:
        """For each judged document: how many of the flagged ones are ranked up to and with it."""
        running = np.cumsum(flags)
        first = np.searchsorted(self.query, np.arange(len(self.query_ids)))
        before = np.concatenate(([0], running))[first]
        return running - before[self.query]

    @cached_property
    def condensed(self) -> JudgedRun:
        """The same run after removal of all documents that nobody judged."""
        retrieved = self.within(None)
        return JudgedRun(
            self.query_ids,
            self.query,
            np.where(retrieved, self.counted(retrieved), NEVER),
            self.relevance,
            self.total(retrieved).astype(np.int64),
        )


def judge(judgements: Judgements, run: Run) -> JudgedRun:
    """Find the judged documents in a run."""
    return by_rank(judgements, *ranks_of(judgements, run))


def ranks_of(judgements: Judgements, run: Run) -> tuple[Ints, Ints]:
    """The rank of each judged document, and how many documents the run has for each query."""
    queries = len(judgements.query_ids)
    names = run.query_ids.to_frame("id").with_row_index("place")
    place = (
        judgements.query_ids.to_frame("id").join(names, on="id", how="left", maintain_order="left")
    )["place"]
    found = place.is_not_null().to_numpy()
    place_of = place.fill_null(0).to_numpy().astype(np.int64)
    lengths = np.diff(run.bounds)
    retrieved = np.zeros(queries, dtype=np.int64)
    if len(lengths):
        retrieved[found] = lengths[place_of[found]]

    rank = np.full(len(judgements.query), NEVER, dtype=np.int64)
    row, at = _meet(judgements, run, found, place_of)
    rank[row] = at - run.bounds[place_of[judgements.query[row]]] + 1
    return rank, retrieved


def by_rank(judgements: Judgements, rank: Ints, retrieved: Ints) -> JudgedRun:
    """Put judged documents in the order of their ranks."""
    order = np.lexsort((rank, judgements.query))
    return JudgedRun(
        judgements.query_ids,
        judgements.query[order],
        rank[order],
        judgements.relevance[order],
        retrieved,
    )


def _meet(
    judgements: Judgements, run: Run, found: npt.NDArray[np.bool_], place_of: Ints
) -> tuple[Ints, Ints]:
    """Pairs of (row of the judgements, row of the run) that are the same query and document."""
    # Most retrieved documents are judged for no query at all. Asking that first leaves few rows
    # for the exact join on query and document.
    places, docs = run.find(judgements.doc_ids)
    in_run = pl.DataFrame(
        {
            "query": np.searchsorted(run.bounds, places, side="right") - 1,
            "doc": docs,
            "at": places,
        }
    )
    judged = pl.DataFrame(
        {
            "query": np.where(found, place_of, -1)[judgements.query],
            "doc": judgements.doc_ids,
            "row": np.arange(len(judgements.query)),
        }
    )
    met = in_run.join(judged, on=["query", "doc"], how="inner")
    return met["row"].to_numpy(), met["at"].to_numpy()
