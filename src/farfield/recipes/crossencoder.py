"""Query and document read together."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from farfield.errors import SpecError
from farfield.neural.scoring import prepared_pairs
from farfield.recipes._checking import Checking
from farfield.recipes._contrast import FromLists, ranked_lists
from farfield.recipes.base import Job, Recipe
from farfield.retrievers import Retriever
from farfield.retrievers.bm25 import bm25
from farfield.retrievers.rerank import rerank
from farfield.training.losses import cross_entropy
from farfield.training.order import Order

__all__ = ["crossencoder"]

_CHECKED = 20  # candidates of a query that was held out


@dataclass(frozen=True, kw_only=True)
class crossencoder(Recipe):
    """A cross-encoder learns to score a relevant document above others: softmax cross-entropy.

    ``negatives`` documents for each query, drawn at every step from the ``depth`` best of another
    retriever that are not judged relevant; one of them makes the loss pairwise (Zhan et al. 2022,
    who take BM25's best 1,000). The trained model reranks as many of that retriever.

    Relations: contrastive, splade and multivector encode documents without the query.
    """

    kind = "cross"
    from_scratch = (2, 1e-3)
    from_trained = (1, 5e-5)

    first: Retriever = field(default_factory=bm25)
    negatives: int = 1
    depth: int = 100
    batch: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("negatives", "depth"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 1, 2, 3 …")

    def retriever(self, model: str) -> Retriever:
        """The other retriever, reranked."""
        return rerank(base=self.first, model=model, depth=self.depth)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        corpus = job.collection.corpus
        lists = ranked_lists(job.examples, self.first, corpus, self.depth)
        checked = None
        if job.held_out is not None:
            checked = ranked_lists(job.held_out, self.first, corpus, _CHECKED, keep=True)
        check = Checking(job.held_out, job.seed, checked)
        return _Pairs(self._load(base, job), job, self, FromLists(lists), check)


class _Pairs:
    """Steps over groups of pairs: a query with its positive, then with its negatives."""

    def __init__(
        self, model: Any, job: Job, recipe: crossencoder, lists: FromLists, check: Checking
    ) -> None:
        self.model, self.data, self.seed = model, job.examples, job.seed
        self.negatives, self.lists, self._check = recipe.negatives, lists, check
        both = job.examples.queries, job.examples.documents
        self._made = prepared_pairs(model, both, (np.arange(len(both[0])), np.arange(len(both[1]))))
        letters = np.fromiter(map(len, both[1]), np.int64, count=len(both[1]))
        first = self.data.relevant[self.data.starts[:-1]]
        self.order = Order(letters[first], recipe.batch, job.seed)

    def loss(self, step: int) -> Any:
        import torch

        rows = self.order.rows(step)
        rng = np.random.default_rng([self.seed, 5, step])
        groups = np.empty((len(rows), 1 + self.negatives), dtype=np.int64)
        some = self.data.take(rows)
        groups[:, 0] = some.positives(rng)
        # Where a list is empty, any document will do.
        groups[:, 1:] = rng.integers(0, len(self.data.documents), (len(rows), self.negatives))
        listed = (self.lists.lists[rows, 0] >= 0).nonzero()[0]
        for column in range(1, 1 + self.negatives):
            groups[listed, column] = self.lists.draw(rows[listed], rng)
        pairs = np.stack([np.repeat(rows, 1 + self.negatives), groups.reshape(-1)], axis=1)
        chunk = self._made.chunk(pairs)
        scores = self.model(chunk.features(np.arange(len(pairs))))["scores"]
        table = scores.reshape(groups.shape)
        own = torch.zeros(len(rows), dtype=torch.long, device=table.device)
        return cross_entropy(table, own)

    def examples(self, step: int) -> int:
        return self.order.batch * (1 + self.negatives)

    def check(self) -> float | None:
        return self._check(self.model)
