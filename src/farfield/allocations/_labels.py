"""What is relevant among the results of several sources."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from farfield.allocations._lists import Bools, Floats, Ints, Lists
from farfield.allocations._picks import Picks
from farfield.judged import Judgements, ranks_of
from farfield.tables import Qrels

__all__ = ["Labels", "label"]


@dataclass(frozen=True, eq=False)
class Labels:
    """Which results of some queries are relevant.

    ``hits`` has the shape of the scores; ``relevant`` is how many documents are relevant to each
    query, found or not. ``asked`` says which sources a query was asked of: a title that stands in
    for a query is asked of its own source only.
    """

    lists: Lists
    hits: Bools
    relevant: Ints
    asked: Bools

    def __len__(self) -> int:
        return len(self.relevant)

    def take(self, rows: Ints) -> Labels:
        """Return the labels of some queries."""
        return replace(
            self,
            lists=self.lists.take(rows),
            hits=self.hits[rows],
            relevant=self.relevant[rows],
            asked=self.asked[rows],
        )

    def within(self, depth: int) -> Labels:
        """Return the labels of lists that are cut at this depth."""
        cut = replace(self.lists, scores=self.lists.scores[:, :, :depth])
        return replace(self, lists=cut, hits=self.hits[:, :, :depth])

    def recall(self, picks: Picks) -> Floats:
        """The share of the relevant documents of each query that it gets; 0 where none is."""
        found = self._flags(picks).sum(axis=1)
        return np.asarray(found / np.maximum(self.relevant, 1), dtype=np.float64)

    def precision(self, picks: Picks) -> Floats:
        """The average precision of what each query gets, in the order in which it is shown."""
        flags = self._flags(picks)
        places = np.arange(1, flags.shape[1] + 1)
        at_each = np.where(flags, np.cumsum(flags, axis=1) / places, 0.0)
        return np.asarray(at_each.sum(axis=1) / np.maximum(self.relevant, 1), dtype=np.float64)

    def _flags(self, picks: Picks) -> Bools:
        rows = np.arange(len(picks.source))[:, None]
        return self.hits[rows, picks.source, picks.rank] & (picks.source >= 0)


def label(lists: Lists, qrels: Qrels, rel: int = 1) -> Labels:
    """Find what is judged ``rel`` or more among the results; nothing of queries nobody judged."""
    numbers = lists.query_ids.to_frame("query_id").with_row_index("at")
    judged = qrels.frame.join(numbers, on="query_id").filter(pl.col("relevance") >= rel)
    hits = np.zeros(lists.scores.shape, dtype=np.bool_)
    relevant = np.bincount(judged["at"].to_numpy(), minlength=len(lists.query_ids))
    if len(judged):
        judgements = Judgements.of(Qrels.trusted(judged.drop("at")))
        names = judgements.query_ids.to_frame("query_id")
        row = names.join(numbers, on="query_id", how="left", maintain_order="left")["at"].to_numpy()
        for number, run in enumerate(lists.runs):
            rank, _ = ranks_of(judgements, run)
            found = rank <= lists.depth
            hits[row[judgements.query[found]], number, rank[found] - 1] = True
    return Labels(lists, hits, relevant, np.ones(hits.shape[:2], dtype=np.bool_))
