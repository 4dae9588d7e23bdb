"""Negatives that the model itself takes for relevant, found once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from farfield.errors import SpecError
from farfield.recipes._contrast import Contrast, FromLists, ranked_lists, scorer
from farfield.recipes.base import Job, Recipe
from farfield.recipes.contrastive import contrastive
from farfield.retrievers import Retriever
from farfield.retrievers.dense import dense
from farfield.training.losses import cross_entropy, pairwise

__all__ = ["hard"]


@dataclass(frozen=True, kw_only=True)
class hard(Recipe):
    """Static hard negatives (STAR): a warmed-up model says which documents it finds hard to tell.

    ``first`` trains the model; each query's ``depth`` best documents that are not judged relevant
    are its hard negatives, of which one is drawn at every step beside those of the batch. The
    ``loss`` is ``pairwise`` (the published one) or ``softmax``.

    Relations: dynamic finds negatives anew at every step; contrastive(negatives=bm25) takes those
    of BM25.
    """

    from_scratch = (1, 3e-4)
    from_trained = (1, 2e-5)

    first: contrastive = field(default_factory=contrastive)
    depth: int = 200
    loss: Literal["pairwise", "softmax"] = "pairwise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 1:
            raise SpecError(f"depth is {self.depth}, expected 1, 2, 3 …")

    def retriever(self, model: str) -> Retriever:
        """A dense retriever."""
        return dense(model=model)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        warmed = self.first.stage(base, job, folder / "first")
        lists = ranked_lists(job.examples, warmed.retriever, job.collection.corpus, self.depth)
        cosine = self.first.similarity == "cos"
        return Contrast(
            self._load(str(warmed.model), job),
            job,
            batch=self.batch,
            negatives=FromLists(lists),
            score=scorer("dense", cosine=cosine, temperature=self.first.temperature),
            loss=pairwise if self.loss == "pairwise" else cross_entropy,
        )
