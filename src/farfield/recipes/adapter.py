"""One linear map on top of an encoder that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from farfield import neural
from farfield.errors import SpecError
from farfield.neural.models import quietly
from farfield.recipes._checking import Checking
from farfield.recipes._contrast import Encoded, scorer
from farfield.recipes.base import Job, Recipe
from farfield.retrievers import Retriever
from farfield.retrievers.dense import dense
from farfield.training.examples import Examples
from farfield.training.loop import fit
from farfield.training.losses import cross_entropy
from farfield.training.order import Order

__all__ = ["adapter"]


@dataclass(frozen=True, kw_only=True)
class adapter(Recipe):
    """A matrix is learned that all vectors of a frozen dense model go through.

    Texts are encoded once; then a step costs no more than a product of matrices, so that training
    takes seconds on a CPU. The matrix starts as the identity, and ``decay`` pulls it back there. As
    in contrastive, a relevant document is told from those of the other queries in the batch, by
    the softmax of cosines over ``temperature``. Only documents that are relevant to a query are
    looked at, also when the model is checked.

    Relations: contrastive trains the whole model, which can learn more and costs a thousand times
    as much.
    """

    from_scratch = (30, 1e-3)
    from_trained = (30, 1e-3)

    temperature: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.temperature > 0:
            raise SpecError(f"temperature is {self.temperature}, expected a number above 0.")

    def retriever(self, model: str) -> Retriever:
        """A dense retriever."""
        return dense(model=model)

    def _task(self, base: str, job: Job, folder: Path) -> _Mapping:
        return _Mapping(self._load(base, job), _narrowed(job), self.batch, self.temperature)

    def _train(self, base: str, job: Job, folder: Path) -> dict[str, Any]:
        task = self._task(base, job, folder)
        plan = self._plan(job, task)
        trace = fit(task, plan, folder)
        with quietly():
            self._save(task.adapted(), folder / "model")
        return {"steps_planned": plan.steps, "lr": plan.lr, **trace.to_dict()}


class _Mapping:
    """Steps of the matrix: ``model`` is what it adds to the identity."""

    def __init__(self, encoder: Any, job: Job, batch: int, temperature: float) -> None:
        import torch

        self._encoder, self._data = encoder, job.examples
        dimensions = int(encoder.get_embedding_dimension())
        self.model = torch.nn.Linear(dimensions, dimensions, bias=False, device=encoder.device)
        torch.nn.init.zeros_(self.model.weight)
        self._asked = self._vectors(job.examples.queries, "query")
        self._held = self._vectors(job.examples.documents, "document")
        self._score = scorer("dense", cosine=True, temperature=temperature)
        self._positives = lru_cache(maxsize=1)(
            lambda epoch: job.examples.positives(np.random.default_rng([job.seed, 6, epoch]))
        )
        # Vectors have no lengths to go by.
        self.order = Order(np.zeros(len(job.examples), np.int64), batch, job.seed)
        self._check = Checking(job.held_out, job.seed)
        held_out = [] if job.held_out is None else job.held_out.queries
        self._to_check = self._vectors(held_out, "query") if held_out else None

    def loss(self, step: int) -> Any:
        """Score all queries of the batch with the relevant documents of all of them."""
        import torch

        rows = self.order.rows(step)
        columns = self._positives(self.order.epoch(step))[rows]
        asked, held = self._mapped(self._asked[rows]), self._mapped(self._held[columns])
        table = self._score(Encoded(asked), Encoded(held))
        query, document = self._data.false_negatives(rows, columns)
        other = query != document
        table[query[other], document[other]] = -torch.inf
        return cross_entropy(table, torch.arange(len(rows), device=table.device))

    def examples(self, step: int) -> int:
        """Return the number of queries."""
        return self.order.batch

    def check(self) -> float | None:
        """Say how good the map is on queries that were held out."""
        import torch

        if self._to_check is None:
            return None
        with torch.inference_mode():
            pool = self._held[self._check.pool]
            asked, held = (self._mapped(v).cpu().numpy() for v in (self._to_check, pool))
        return self._check.of_vectors(asked, held, cosine=True, device=str(self._encoder.device))

    def adapted(self) -> Any:
        """The encoder, and after it the matrix."""
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Dense

        size = self.model.in_features
        mapping = Dense(size, size, bias=False, activation_function=torch.nn.Identity())
        with torch.no_grad():
            mapping.linear.weight.copy_(torch.eye(size) + self.model.weight.cpu())
        return SentenceTransformer(
            modules=[*self._encoder, mapping],
            device=str(self._encoder.device),
            prompts=self._encoder.prompts,
            default_prompt_name=self._encoder.default_prompt_name,
            similarity_fn_name="cosine",
        )

    def _mapped(self, vectors: Any) -> Any:
        return vectors + self.model(vectors)

    def _vectors(self, texts: list[str], task: Any) -> Any:
        import torch

        found = neural.encode(self._encoder, texts, task=task)
        return torch.from_numpy(found).to(self._encoder.device).float()


def _narrowed(job: Job) -> Job:
    """The same job with only those documents that are relevant to a query."""
    parts = [job.examples] if job.held_out is None else [job.examples, job.held_out]
    used = np.unique(np.concatenate([part.relevant for part in parts]))

    def narrowed(part: Examples) -> Examples:
        return replace(
            part,
            doc_ids=part.doc_ids.gather(used),
            documents=[part.documents[row] for row in used],
            relevant=np.searchsorted(used, part.relevant),
        )

    held_out = None if job.held_out is None else narrowed(job.held_out)
    return replace(job, examples=narrowed(job.examples), held_out=held_out)
