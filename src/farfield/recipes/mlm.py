"""Guess the words that were covered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from farfield.errors import SpecError
from farfield.neural.tokens import prepared, sent
from farfield.recipes._words import with_head
from farfield.recipes.base import Job, Recipe
from farfield.training.order import Order
from farfield.training.scratch import making

__all__ = ["mlm"]

_CHECKED = 256  # documents


@dataclass(frozen=True, kw_only=True)
class mlm(Recipe):
    """An encoder learns to guess words of the documents that were covered (BERT).

    Of all tokens the share ``covered`` is guessed: 80 % of these are covered, 10 % are changed to
    a random token, 10 % stay. No queries are used. It makes a base for other recipes, with the head
    that splade needs.

    Relations: pretrain runs it before another recipe, splade where a base has no such head.
    """

    kind = "sparse"
    from_scratch = (1, 1e-3)
    from_trained = (1, 5e-5)

    covered: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.covered < 1:
            raise SpecError(f"covered is {self.covered}, expected a share between 0 and 1.")

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        model = self._load(with_head(base, folder / "headed", job.seed), job)
        return _Guessing(model, job, self.batch, self.covered)

    def _save(self, model: Any, folder: Path) -> None:
        with making(folder) as place:
            model[0].auto_model.save_pretrained(place)
            model.tokenizer.save_pretrained(place)


class _Guessing:
    """Steps over documents with covered tokens."""

    def __init__(self, model: Any, job: Job, batch: int, covered: float) -> None:
        self.model, self.seed, self.covered = model, job.seed, covered
        (self.documents,) = prepared(model, None, [job.examples.documents])
        self.order = Order(self.documents.lengths, batch, job.seed)
        tokenizer = model.tokenizer
        self._mask, self._size = tokenizer.mask_token_id, len(tokenizer)
        self._special = np.array(sorted(tokenizer.all_special_ids))
        count = len(job.examples.documents)
        self._checked = np.random.default_rng([job.seed, 7]).permutation(count)[:_CHECKED]

    def loss(self, step: int) -> Any:
        return self._loss(self.order.rows(step), np.random.default_rng([self.seed, 5, step]))

    def _loss(self, rows: Any, rng: np.random.Generator) -> Any:
        import torch

        features = self.documents.features(rows)
        ids = features["input_ids"]
        special = torch.isin(ids, sent(self._special, ids.device))
        draws = sent(rng.random((2, *ids.shape), dtype=np.float32), ids.device)
        others = sent(rng.integers(0, self._size, ids.shape), ids.device)
        guessed = (draws[0] < self.covered) & ~special & features["attention_mask"].bool()
        shown = torch.where(draws[1] < 0.8, self._mask, torch.where(draws[1] < 0.9, others, ids))
        features["input_ids"] = torch.where(guessed, shown, ids)
        logits = self.model[0](features)["token_embeddings"]
        targets = torch.where(guessed, ids, -100)
        sums = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), targets.flatten(), reduction="sum"
        )
        return sums / guessed.sum().clamp_min(1)

    def examples(self, step: int) -> int:
        return self.order.batch

    def check(self) -> float | None:
        """Return minus the loss on some documents, covered in the same way at every check."""
        import torch

        rng = np.random.default_rng([self.seed, 8])
        parts = np.array_split(self._checked, max(1, len(self._checked) // self.order.batch))
        with torch.inference_mode():
            return -float(np.mean([float(self._loss(part, rng)) for part in parts]))
