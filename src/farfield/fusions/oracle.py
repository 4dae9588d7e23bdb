"""What a perfect fusion could do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from farfield.errors import SpecError
from farfield.fusions.base import Floats, Fusion, Lists, Pool
from farfield.tables import Qrels

__all__ = ["oracle"]


@dataclass(frozen=True, kw_only=True)
class oracle(Fusion):
    """All relevant documents that any run found, the most relevant first; then the others.

    Needs judgements, so it is an upper bound and no system (Chen et al. 2022): with recall, the
    most that any fusion of these runs can reach. Documents of one relevance are ordered as by rrf.

    Relations: the best single weight for each query (``tune``) is a bound that is less far off.
    """

    needs_qrels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights:
            raise SpecError("the oracle takes no weights: it knows what is relevant.")

    def scores(self, pool: Pool, qrels: Qrels | None = None) -> Floats:
        """The relevance of every document of a pool, and a little of what rrf says."""
        assert qrels is not None  # checked before
        numbers = pool.queries.to_frame("query_id").with_row_index("query")
        judged = qrels.frame.filter(pl.col("relevance") > 0).join(numbers, on="query_id")
        pooled = pl.DataFrame({"query": pool.query.astype(np.uint32), "doc_id": pool.doc_ids()})
        found = pooled.with_row_index("at").join(judged, on=["query", "doc_id"])
        # A thousandth of the points never amounts to a step of relevance: they order equals.
        scores = super().scores(pool) / 1000
        scores[found["at"].to_numpy()] += found["relevance"].to_numpy()
        return scores

    def _points(self, lists: Lists, weight: float) -> Floats:
        return 1.0 / (60.0 + lists.rank.astype(np.float64))
