"""A vector for every text, learned by telling relevant documents from others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from farfield.errors import SpecError
from farfield.recipes._contrast import Contrast, Contrasting, scorer
from farfield.recipes.base import Job
from farfield.retrievers import Retriever
from farfield.retrievers.dense import dense

__all__ = ["contrastive"]


@dataclass(frozen=True, kw_only=True)
class contrastive(Contrasting):
    """A dense model learns to score a relevant document above others: softmax cross-entropy.

    ``negatives`` are the relevant documents of the other queries in the batch (``in_batch``),
    these and one for each query from the ``depth`` best of BM25 (``bm25``), or ``count`` random
    documents for each batch (``random``; Zhan et al. 2022 take 1,024). Documents that are
    judged relevant to a query are never its negatives. ``similarity`` is ``cos`` or ``dot``; scores
    are divided by ``temperature``.

    Relations: hard and dynamic go on from it with harder negatives, distil learns from a teacher.
    """

    similarity: Literal["cos", "dot"] = "cos"
    temperature: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.temperature > 0:
            raise SpecError(f"temperature is {self.temperature}, expected a number above 0.")

    def retriever(self, model: str) -> Retriever:
        """A dense retriever; the model knows its similarity."""
        return dense(model=model)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        model = self._load(base, job)
        model.similarity_fn_name = "cosine" if self.similarity == "cos" else "dot"
        return Contrast(
            model,
            job,
            batch=self.batch,
            negatives=self._negatives(job),
            score=scorer("dense", cosine=self.similarity == "cos", temperature=self.temperature),
        )
