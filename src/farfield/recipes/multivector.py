"""A vector for every token, learned by telling relevant documents from others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from farfield.errors import SpecError
from farfield.recipes._contrast import Contrast, scorer
from farfield.recipes.base import Job, Recipe
from farfield.recipes.contrastive import negatives_of
from farfield.retrievers import Retriever
from farfield.retrievers.colbert import colbert

__all__ = ["multivector"]


@dataclass(frozen=True, kw_only=True)
class multivector(Recipe):
    """A late-interaction model (ColBERT) learns to score a relevant document above others.

    The score is the best product of every query token, added up, divided by ``temperature``;
    negatives are as in contrastive. A projection to 128 dimensions is added to a base without one.

    Relations: contrastive keeps one vector for a text.
    """

    kind = "multi"
    from_scratch = (1.5, 1e-3)
    from_trained = (3, 1e-4)

    negatives: Literal["in_batch", "random", "bm25"] = "in_batch"
    count: int = 1024
    depth: int = 100
    temperature: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("count", "depth"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 1, 2, 3 …")
        if not self.temperature > 0:
            raise SpecError(f"temperature is {self.temperature}, expected a number above 0.")

    def retriever(self, model: str) -> Retriever:
        """Late interaction."""
        return colbert(model=model)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        return Contrast(
            self._load(base, job),
            job,
            batch=self.batch,
            negatives=negatives_of(self.negatives, job, self.count, self.depth),
            score=scorer("multi", temperature=self.temperature),
        )
