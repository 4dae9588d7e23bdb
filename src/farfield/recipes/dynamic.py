"""Negatives that the model itself takes for relevant, found anew at every step."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from farfield import neural
from farfield.errors import SpecError
from farfield.neural.tokens import sent
from farfield.recipes._contrast import Contrast, FromBatch, encoded, scorer
from farfield.recipes.base import Job, Recipe
from farfield.recipes.contrastive import contrastive
from farfield.recipes.hard import hard
from farfield.retrievers import Retriever
from farfield.retrievers.dense import dense
from farfield.training.losses import lambda_rank
from farfield.training.scratch import making

__all__ = ["dynamic"]


@dataclass(frozen=True, kw_only=True)
class dynamic(Recipe):
    """The documents' vectors stay, and only the encoder of queries learns (ADORE).

    ``first`` (contrastive or hard) trains the model that encodes the documents. Then, at every
    step, each query retrieves its ``depth`` best documents, and those that are relevant should come
    before those that are not: LambdaRank, weighted by what a swap would change of 1 / rank. The
    model that comes out has two encoders.

    Relations: hard finds negatives once, and trains both sides.
    """

    from_scratch = (1, 3e-4)
    from_trained = (2, 5e-6)

    first: Recipe = field(default_factory=contrastive)
    depth: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.first, contrastive | hard):
            raise SpecError(f"first is {self.first}, expected contrastive(…) or hard(…).")
        if self.depth < 2:
            raise SpecError(f"depth is {self.depth}, expected 2, 3, 4 …")

    def retriever(self, model: str) -> Retriever:
        """A dense retriever whose queries have an encoder of their own."""
        return dense(model=model)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        warmed = self.first.stage(base, job, folder / "first")
        inner = self.first.first if isinstance(self.first, hard) else self.first
        assert isinstance(inner, contrastive)
        task = _Retrieving(
            self._load(str(warmed.model), job),
            job,
            batch=self.batch,
            negatives=FromBatch(),
            score=scorer("dense", cosine=inner.similarity == "cos", temperature=inner.temperature),
        )
        task.freeze(self._load(str(warmed.model), job), self.depth, inner)
        return task

    def _save(self, model: Any, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Router

        first = neural.load(str(folder.parent / "first" / "model"), device=str(model.device))
        routed = Router.for_query_document(
            query_modules=list(model), document_modules=list(first), default_route="document"
        )
        both = SentenceTransformer(
            modules=[routed],
            device=str(model.device),
            similarity_fn_name=model.similarity_fn_name,
        )
        with making(folder) as place:
            both.save_pretrained(str(place), create_model_card=False)


class _Retrieving(Contrast):
    """Steps of the encoder of queries alone."""

    def freeze(self, model: Any, depth: int, recipe: contrastive) -> None:
        """Encode all documents, for good."""
        import torch

        vectors = neural.encode(model, self.data.documents, task="document")
        held = torch.from_numpy(vectors).to(self.model.device)
        if recipe.similarity == "cos":
            held = torch.nn.functional.normalize(held, dim=1)
        self._cosine, self._temperature = recipe.similarity == "cos", recipe.temperature
        self._held, self._depth = held, min(depth, len(held))
        pairs = np.repeat(np.arange(len(self.data)), np.diff(self.data.starts))
        self._relevant = np.sort(pairs * len(held) + self.data.relevant)

    def loss(self, step: int) -> Any:
        import torch

        rows = self.order.rows(step)
        asked = encoded(self.model, self.queries.features(rows), "query").vectors.float()
        if self._cosine:
            asked = torch.nn.functional.normalize(asked, dim=1)
        with torch.no_grad():
            found = (asked @ self._held.T).topk(self._depth, dim=1).indices.cpu().numpy()
        relevant = self._is_relevant(rows, found)
        none = ~relevant.any(1)  # nothing relevant was retrieved: put one at the end
        found[none, -1] = self._positives_of(self.order.epoch(step))[rows][none]
        relevant[none, -1] = True
        device = asked.device
        vectors = self._held[sent(found, device)]
        scores = (vectors @ asked[:, :, None])[:, :, 0] / self._temperature
        return lambda_rank(scores, sent(relevant, device))

    def check(self) -> float | None:
        """As elsewhere, with the documents' vectors as they are."""
        pool = getattr(self._check, "pool", None)
        if pool is None:
            return None
        return self._check(self.model, held=self._held[sent(pool, self._held.device)].cpu().numpy())

    def _is_relevant(self, rows: Any, found: Any) -> Any:
        keys = rows[:, None] * len(self._held) + found
        at = np.minimum(np.searchsorted(self._relevant, keys), len(self._relevant) - 1)
        return self._relevant[at] == keys
