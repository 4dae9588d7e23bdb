"""A vector for every token, learned by telling relevant documents from others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.errors import SpecError
from farfield.recipes._contrast import Contrast, Contrasting, scorer
from farfield.recipes.base import Job
from farfield.retrievers import Retriever
from farfield.retrievers.colbert import colbert

__all__ = ["multivector"]


@dataclass(frozen=True, kw_only=True)
class multivector(Contrasting):
    """A late-interaction model (ColBERT) learns to score a relevant document above others.

    The score is the best product of every query token, added up, divided by ``temperature``;
    negatives are as in contrastive. A projection to 128 dimensions is added to a base without one.

    Relations: contrastive keeps one vector for a text.
    """

    kind = "multi"
    from_scratch = (1.5, 1e-3)
    from_trained = (3, 1e-4)

    temperature: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
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
            negatives=self._negatives(job),
            score=scorer("multi", temperature=self.temperature),
        )
