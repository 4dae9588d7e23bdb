"""A dense model learns from one that sees more."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from farfield import neural
from farfield.errors import SpecError
from farfield.neural.encoding import computing
from farfield.neural.scoring import prepared_pairs
from farfield.neural.tokens import prepared
from farfield.recipes._contrast import Contrast, FromLists, encoded, ranked_lists, scorer
from farfield.recipes.base import Job, Recipe
from farfield.recipes.crossencoder import crossencoder
from farfield.recipes.multivector import multivector
from farfield.retrievers import Retriever
from farfield.retrievers.bm25 import bm25
from farfield.retrievers.dense import dense
from farfield.training.losses import margin_error, teacher_divergence

__all__ = ["distil"]


@dataclass(frozen=True, kw_only=True)
class distil(Recipe):
    """A dense model learns the scores of a ``teacher``; judgements choose positives, no more.

    A multivector teacher gives scores to all documents of the batch, positives and one of BM25's
    ``depth`` best for each query; the student's should be distributed alike: KL divergence, the
    teacher's scores divided by ``temperature`` (TCT-ColBERT). A crossencoder teacher gives the
    margin between the positive and the negative, which the student's should equal (MarginMSE). The
    student's scores are plain products of vectors of any length. ``model`` is a teacher that is
    trained already.

    Relations: contrastive learns from judgements alone.
    """

    teacher: Recipe = field(default_factory=multivector)
    model: str | None = None
    temperature: float = 0.25
    depth: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.teacher, multivector | crossencoder):
            raise SpecError(
                f"teacher is {self.teacher}, expected multivector(…) or crossencoder(…)."
            )
        if not self.temperature > 0:
            raise SpecError(f"temperature is {self.temperature}, expected a number above 0.")
        if self.depth < 1:
            raise SpecError(f"depth is {self.depth}, expected 1, 2, 3 …")

    def retriever(self, model: str) -> Retriever:
        """A dense retriever that compares by products."""
        return dense(model=model)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        teacher = self.model
        if teacher is None:
            teacher = str(self.teacher.stage(base, job, folder / "teacher").model)
        lists = ranked_lists(job.examples, bm25(), job.collection.corpus, self.depth)
        student = self._load(base, job)
        student.similarity_fn_name = "dot"
        if type(student[-1]).__name__ == "Normalize":
            # Products of unit vectors lie between -1 and 1, where no teacher's scores do.
            del student[len(student) - 1]
        kind = _Margins if isinstance(self.teacher, crossencoder) else _Distributions
        task = kind(
            student, job, batch=self.batch, negatives=FromLists(lists), score=scorer("dense")
        )
        assert self.teacher.kind is not None
        task.learn_from(neural.load(teacher, self.teacher.kind, device=job.device), self)
        return task


class _Distributions(Contrast):
    """All documents of the batch, scored by late interaction."""

    def learn_from(self, teacher: Any, recipe: distil) -> None:
        self._teacher, self._temperature = teacher, recipe.temperature
        (self._asked,) = prepared(teacher, "query", [self.data.queries])
        (self._held,) = prepared(teacher, "document", [self.data.documents])
        self._teach = scorer("multi")

    def loss(self, step: int) -> Any:
        rows, columns = self.batch_of(step)
        with computing(self._teacher):
            wanted = self._teach(
                encoded(self._teacher, self._asked.features(rows), "query"),
                encoded(self._teacher, self._held.features(columns), "document"),
            )
        asked = encoded(self.model, self.queries.features(rows), "query")
        held = encoded(self.model, self.documents.features(columns), "document")
        return teacher_divergence(self.score(asked, held), wanted.clone(), self._temperature)


class _Margins(Contrast):
    """A positive and a negative for each query, scored by a cross-encoder."""

    def learn_from(self, teacher: Any, recipe: distil) -> None:
        self._teacher = teacher
        both = self.data.queries, self.data.documents
        used = np.arange(len(both[0])), np.arange(len(both[1]))
        self._pairs = prepared_pairs(teacher, both, used)

    def loss(self, step: int) -> Any:
        import torch

        rows = self.order.rows(step)
        rng = np.random.default_rng([self.seed, 5, step])
        groups = np.empty((len(rows), 2), dtype=np.int64)
        groups[:, 0] = self._positives_of(self.order.epoch(step))[rows]
        groups[:, 1] = rng.integers(0, len(self.data.documents), len(rows))
        assert isinstance(self.negatives, FromLists)
        listed = (self.negatives.lists[rows, 0] >= 0).nonzero()[0]
        groups[listed, 1] = self.negatives.draw(rows[listed], rng)
        chunk = self._pairs.chunk(np.stack([np.repeat(rows, 2), groups.reshape(-1)], axis=1))
        with computing(self._teacher):
            wanted = self._teacher(chunk.features(np.arange(2 * len(rows))))["scores"]
        asked = encoded(self.model, self.queries.features(rows), "query").vectors
        held = encoded(self.model, self.documents.features(groups.reshape(-1)), "document").vectors
        scores = torch.einsum("qd,qnd->qn", asked, held.reshape(len(rows), 2, -1))
        return margin_error(scores, wanted.clone().float().reshape(-1, 2))
