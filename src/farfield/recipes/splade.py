"""Weighted words for every text, learned by telling relevant documents from others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.errors import SpecError
from farfield.recipes._contrast import Contrast, Contrasting, Encoded, scorer
from farfield.recipes._words import has_head, settle, with_head
from farfield.recipes.base import Job
from farfield.recipes.mlm import mlm
from farfield.retrievers import Retriever
from farfield.retrievers.splade import splade as sparse_words
from farfield.training.losses import flops, rising

__all__ = ["splade"]


@dataclass(frozen=True, kw_only=True)
class splade(Contrasting):
    """SPLADE-max: weights log(1 + relu(logit)), their largest over the text, few of them above 0.

    The loss is that of contrastive, on plain products, with ``query_flops`` and ``document_flops``
    times FLOPS (the squared mean weight of each word, added up) for queries and documents; both
    rise with the square of the step until the share ``until`` of all steps. What they should be
    depends on the batch (Formal et al. 2021). A base that cannot guess words is given a head that
    passes on what the encoder says, and learns to guess them by ``warm``: by default one that was
    trained before does; one from scratch does not, since what few documents teach of words
    (which are frequent) is the same for every text.

    Relations: contrastive has vectors instead of words.
    """

    kind = "sparse"
    from_scratch = (1.5, 1e-3)
    from_trained = (3, 1e-4)

    query_flops: float = 3e-4
    document_flops: float = 1e-4
    until: float = 0.33
    warm: mlm | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("query_flops", "document_flops"):
            if getattr(self, name) < 0:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 0 or more.")
        if not 0 <= self.until <= 1:
            raise SpecError(f"until is {self.until}, expected a share from 0 to 1.")

    def retriever(self, model: str) -> Retriever:
        """Weighted words in an inverted index."""
        return sparse_words(model=model)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        new_head = not has_head(base)
        if new_head:
            warm = self.warm or (None if job.from_scratch else mlm())
            if warm is None:
                base = with_head(base, folder / "headed", job.seed)
            else:
                base = str(warm.stage(base, job, folder / "warm").model)
        task = Contrast(
            self._load(base, job),
            job,
            batch=self.batch,
            negatives=self._negatives(job),
            score=scorer("sparse"),
        )
        if new_head:
            settle(task.model, task.documents.features(task.batch_of(0)[1]))
        until = round(self.until * self._plan(job, task).steps)

        def few(step: int, asked: Encoded, held: Encoded) -> Any:
            cost = self.query_flops * flops(asked.vectors)
            cost = cost + self.document_flops * flops(held.vectors)
            return rising(step, until) * cost

        task.extra = few
        return task
