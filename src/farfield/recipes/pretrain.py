"""Read the documents before learning what to find in them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from farfield.recipes.base import Job, Recipe
from farfield.recipes.contrastive import contrastive
from farfield.recipes.mlm import mlm
from farfield.retrievers import Retriever
from farfield.retrievers._neural_sentences import sentences
from farfield.training.examples import Examples
from farfield.training.scratch import making

__all__ = ["pretrain"]

_SENTENCES = 4  # of a document, at most


@dataclass(frozen=True, kw_only=True)
class pretrain(Recipe):
    """Another recipe, on a base that first learns from the documents themselves.

    ``objective`` is ``mlm`` (guess covered words) or ``cloze`` (find the document that a sentence
    was taken out of, the inverse cloze task of Lee et al. 2019: an objective for encoders of
    texts). No queries are used for it. Epochs, batch and lr are those of this stage; the other
    recipe has its own.

    Relations: mlm is the first objective alone.
    """

    from_scratch = (2, 1e-3)
    from_trained = (1, 5e-5)

    then: Recipe
    objective: Literal["mlm", "cloze"] = "mlm"

    def retriever(self, model: str) -> Retriever:
        """That of the other recipe."""
        return self.then.retriever(model)

    def _train(self, base: str, job: Job, folder: Path) -> dict[str, Any]:
        options = {
            name: getattr(self, name)
            for name in ("batch", "warmup", "decay", "clip", "checks", "compiled")
        }
        epochs, lr = self.from_scratch if job.from_scratch else self.from_trained
        options |= {"epochs": self.epochs or epochs, "lr": self.lr or lr}
        kind = mlm if self.objective == "mlm" else contrastive
        reading = job if self.objective == "mlm" else _cloze(job)
        read = kind(**options).stage(base, reading, folder / "read")
        tuned = self.then.stage(str(read.model), job, folder / "tuned")
        with making(folder / "model") as place:
            shutil.copytree(tuned.model, place, dirs_exist_ok=True)
        kept = ("recipe", "steps", "examples", "seconds", "examples_per_second", "losses", "checks")
        return {
            "pretraining": {name: read.record[name] for name in kept},
            **{name: tuned.record[name] for name in (*kept[1:], "best", "peak_memory")},
        }


def _cloze(job: Job) -> Job:
    """Sentences for queries, and what is left of their documents; no judgements."""
    queries, documents = [], []
    for text in job.examples.documents:
        parts = sentences(text)
        if len(parts) < 2:
            continue
        for at in range(min(len(parts), _SENTENCES)):
            queries.append(parts[at])
            documents.append(" ".join(parts[:at] + parts[at + 1 :]))
    ids = pl.Series([str(number) for number in range(len(queries))], dtype=pl.String)
    made = Examples.of(
        pl.DataFrame({"query_id": ids, "text": queries}),
        ids,
        documents,
        pl.DataFrame({"query_id": ids, "doc_id": ids, "relevance": np.ones(len(ids), np.int64)}),
    )
    return replace(job, examples=made)
