"""What a perfect fusion could do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from farfield.fusions.base import Floats, Fusion, Lists
from farfield.tables import Qrels

__all__ = ["oracle"]


@dataclass(frozen=True, kw_only=True)
class oracle(Fusion):
    """All relevant documents that any run found, the most relevant first; then the others.

    Needs judgements, so it is an upper bound and no system (Chen et al. 2022): with recall, the
    most that any fusion of these runs can reach. Documents of one relevance are ordered as by rrf.
    """

    needs_qrels: ClassVar[bool] = True

    def _points(self, lists: Lists, number: int, k: int | None) -> Floats:
        return np.asarray(1.0 / (60.0 + lists.rank), dtype=np.float64)

    def _informed(self, fused: pl.DataFrame, queries: pl.Series, qrels: Qrels) -> pl.DataFrame:
        judged = qrels.frame.filter(pl.col("relevance") > 0)
        numbers = queries.to_frame("query_id").with_row_index("query")
        judged = judged.join(numbers, on="query_id").select("query", "doc_id", "relevance")
        joined = fused.join(judged, on=["query", "doc_id"], how="left", maintain_order="left")
        # A thousandth of the points never amounts to a step of relevance: they order equals.
        score = pl.col("relevance").fill_null(0) + pl.col("score") / 1000
        return joined.select("query", "doc_id", score.alias("score"))
