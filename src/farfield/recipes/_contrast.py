"""Queries against documents: one positive each, negatives from the batch or from elsewhere.

All recipes for models that encode queries and documents apart share this; they differ in where
negatives come from, in how scores are made, and in the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import SpecError
from farfield.neural.models import kind_of
from farfield.neural.tokens import prepared, sent
from farfield.recipes._checking import Checking
from farfield.recipes.base import Job, Recipe
from farfield.retrievers import Retriever
from farfield.retrievers.bm25 import bm25
from farfield.tables import Corpus, Queries
from farfield.training import losses
from farfield.training.examples import Examples
from farfield.training.order import Order

__all__ = [
    "Contrast",
    "Contrasting",
    "Encoded",
    "FromBatch",
    "FromLists",
    "FromRandom",
    "Negatives",
    "ranked_lists",
    "scorer",
]

Ints = npt.NDArray[np.int64]


class Negatives(Protocol):
    """Where negatives come from."""

    @property
    def in_batch(self) -> bool:
        """Are the positives of other queries negatives, too?"""

    def draw(self, rows: Ints, rng: np.random.Generator) -> Ints:
        """Return documents beside the positives of these queries."""


@dataclass(frozen=True)
class FromBatch:
    """None but the positives of other queries."""

    in_batch: bool = True

    def draw(self, rows: Ints, rng: np.random.Generator) -> Ints:
        return np.zeros(0, np.int64)


@dataclass(frozen=True)
class FromRandom:
    """Random documents, for all queries of a batch the same."""

    documents: int
    count: int
    in_batch: bool = False

    def draw(self, rows: Ints, rng: np.random.Generator) -> Ints:
        return rng.integers(0, self.documents, self.count)


@dataclass(frozen=True)
class FromLists:
    """One document for each query, drawn from a list of its own (-1: no more documents)."""

    lists: Ints
    in_batch: bool = True

    def draw(self, rows: Ints, rng: np.random.Generator) -> Ints:
        some = self.lists[rows]
        counts = (some >= 0).sum(1)
        places = (rng.random(len(rows)) * counts).astype(np.int64)
        found: Ints = some[np.arange(len(rows)), places][counts > 0]
        return found


def ranked_lists(
    examples: Examples, retriever: Retriever, corpus: Corpus, depth: int, *, keep: bool = False
) -> Ints:
    """Return the best documents of each query that are not relevant (all of them with ``keep``).

    Rows of documents, best first; rows that are shorter end in -1.
    """
    names = [str(number) for number in range(len(examples))]
    queries = Queries(pl.DataFrame({"query_id": names, "text": examples.queries}))
    found = retriever.index(corpus).search(queries, depth).frame
    query = found["query_id"].cast(pl.Int64).to_numpy()
    document = examples.rows_of(found["doc_id"].cast(pl.String))
    return as_lists(examples, query, document, depth, keep=keep)


def as_lists(
    examples: Examples, query: Ints, document: Ints, depth: int, *, keep: bool = False
) -> Ints:
    """Put ranked pairs into rows, without those that are relevant."""
    if not keep:
        size = len(examples.documents)
        relevant = np.repeat(np.arange(len(examples)), np.diff(examples.starts)) * size
        wanted = ~np.isin(query * size + document, relevant + examples.relevant)
        query, document = query[wanted], document[wanted]
    order = np.argsort(query, kind="stable")
    query, document = query[order], document[order]
    place = np.arange(len(query)) - np.searchsorted(query, query)
    lists = np.full((len(examples), depth), -1, dtype=np.int64)
    lists[query, place] = document
    return lists


# -- scores ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoded:
    """Texts as a model gives them: vectors, or vectors of tokens with a mask."""

    vectors: Any
    mask: Any = None


def encoded(model: Any, features: dict[str, Any], task: str) -> Encoded:
    """Run a batch through the model, with gradients."""
    kind = kind_of(model)
    if kind == "sparse" and _is_splade_max(model):
        return Encoded(_largest(model, features))
    given = {"task": task} if kind == "multi" or _is_routed(model) else {}
    out = model(features, **given)
    if kind == "multi":
        return Encoded(out["token_embeddings"], out["attention_mask"].bool())
    return Encoded(out["sentence_embedding"])


def _is_routed(model: Any) -> bool:
    return type(model[0]).__name__ == "Router"


def _is_splade_max(model: Any) -> bool:
    pooling = model[-1]
    return (
        len(model) == 2
        and type(pooling).__name__ == "SpladePooling"
        and (pooling.pooling_strategy, pooling.activation_function) == ("max", "relu")
    )


def _largest(model: Any, features: dict[str, Any]) -> Any:
    """What SpladePooling gives, max log(1 + relu), as log(1 + relu(max)).

    The same numbers, but no table of every token and every word: a fraction of the memory.
    """
    import torch

    from farfield.training.heads import headless, largest_logits

    with headless(model[0].auto_model) as head:
        out = model[0](features)
    logits = largest_logits(out["token_embeddings"], head, out["attention_mask"].bool())
    return torch.log1p(torch.relu(logits))


Scorer = Callable[[Encoded, Encoded], Any]


def scorer(kind: str, *, cosine: bool = False, temperature: float = 1.0) -> Scorer:
    """Return what makes a table of scores, a row for each query."""
    import torch

    def table(queries: Encoded, documents: Encoded) -> Any:
        if kind == "multi":
            one, two = (queries.vectors, queries.mask), (documents.vectors, documents.mask)
            return losses.maxsim_table(one, two) / temperature
        asked, held = queries.vectors, documents.vectors
        if cosine:
            asked, held = (torch.nn.functional.normalize(v.float(), dim=1) for v in (asked, held))
        return (asked @ held.T).float() / temperature

    return table


# -- the task -------------------------------------------------------------------------------------


class Contrast:
    """Steps of a model that encodes queries and documents apart."""

    def __init__(
        self,
        model: Any,
        job: Job,
        *,
        batch: int,
        negatives: Negatives,
        score: Scorer,
        loss: Callable[[Any, Any], Any] = losses.cross_entropy,
        extra: Callable[[int, Encoded, Encoded], Any] | None = None,
    ) -> None:
        self.model, self.data, self.seed = model, job.examples, job.seed
        (self.queries,) = prepared(model, "query", [job.examples.queries])
        (self.documents,) = prepared(model, "document", [job.examples.documents])
        # Long documents go together; a query is short whatever its length.
        first = self.data.relevant[self.data.starts[:-1]]
        self.order = Order(self.documents.lengths[first], batch, job.seed)
        self.negatives, self.score, self._loss, self.extra = negatives, score, loss, extra
        self._check = Checking(job.held_out, job.seed)
        self._epoch, self._positives = -1, np.zeros(0, np.int64)

    def loss(self, step: int) -> Any:
        """Score all queries of the batch with all documents of it."""
        rows, columns = self.batch_of(step)
        asked = encoded(self.model, self.queries.features(rows), "query")
        held = encoded(self.model, self.documents.features(columns), "document")
        table = self.masked(self.score(asked, held), rows, columns)
        value = self._loss(table, self.own(len(rows)))
        return value if self.extra is None else value + self.extra(step, asked, held)

    def examples(self, step: int) -> int:
        """Return the number of queries."""
        return self.order.batch

    def check(self) -> float | None:
        """Say how good the model is on queries that were held out."""
        return self._check(self.model)

    def batch_of(self, step: int) -> tuple[Ints, Ints]:
        """Return the queries of a step, and its documents: their positives, then the others."""
        rows = self.order.rows(step)
        positives = self._positives_of(self.order.epoch(step))[rows]
        rng = np.random.default_rng([self.seed, 5, step])
        return rows, np.concatenate([positives, self.negatives.draw(rows, rng)])

    def own(self, count: int) -> Any:
        """The column of each query's positive."""
        import torch

        return torch.arange(count, device=self.model.device)

    def masked(self, table: Any, rows: Ints, columns: Ints) -> Any:
        """Take out what is relevant but not the positive, and so no negative."""
        import torch

        query, document = self.data.false_negatives(rows, columns)
        other = query != document
        device = self.model.device
        at = sent(np.stack([query[other], document[other]]), device)
        table = table.index_put((at[0], at[1]), table.new_tensor(-torch.inf))
        if not self.negatives.in_batch:
            count = len(rows)
            others = ~torch.eye(count, dtype=torch.bool, device=device)
            others = torch.nn.functional.pad(others, (0, len(columns) - count))
            table = table.masked_fill(others, -torch.inf)
        return table

    def _positives_of(self, epoch: int) -> Ints:
        if epoch != self._epoch:
            rng = np.random.default_rng([self.seed, 6, epoch])
            self._epoch, self._positives = epoch, self.data.positives(rng)
        return self._positives


@dataclass(frozen=True, kw_only=True)
class Contrasting(Recipe):
    """A recipe that tells a relevant document from others.

    ``negatives`` are the relevant documents of the other queries in the batch (``in_batch``),
    these and one for each query from the ``depth`` best of BM25 (``bm25``), or ``count`` random
    documents for each batch (``random``; Zhan et al. 2022 take 1,024). Documents that are judged
    relevant to a query are never its negatives.
    """

    negatives: Literal["in_batch", "random", "bm25"] = "in_batch"
    count: int = 1024
    depth: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("count", "depth"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 1, 2, 3 …")

    def _negatives(self, job: Job) -> Negatives:
        if self.negatives == "random":
            return FromRandom(len(job.examples.documents), self.count)
        if self.negatives == "in_batch":
            return FromBatch()
        return FromLists(ranked_lists(job.examples, bm25(), job.collection.corpus, self.depth))
