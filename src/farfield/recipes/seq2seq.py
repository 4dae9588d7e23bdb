"""A model that writes the queries a document answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from farfield.errors import InputError, SpecError
from farfield.neural.models import local_folder, quietly
from farfield.neural.tokens import cut, sent, tokenised
from farfield.neural.vectors import Ints, starts_of
from farfield.recipes.base import Job, Recipe
from farfield.retrievers import Retriever
from farfield.retrievers.bm25 import bm25
from farfield.retrievers.doc2query import doc2query
from farfield.training.examples import Examples
from farfield.training.order import Order
from farfield.training.scratch import making, untouched

__all__ = ["seq2seq"]


@dataclass(frozen=True, kw_only=True)
class seq2seq(Recipe):
    """A sequence-to-sequence model learns to write a query from a document relevant to it.

    It reads up to ``reads`` tokens and writes up to ``writes_up_to``. The base is any such model
    (T5), a small one from scratch, or an encoder (BERT, MiniLM): that becomes both halves, and what
    the half that writes has more of starts at random (Rothe et al. 2020). The trained model writes
    ``n`` queries for each document, which are appended to it (doc2query, Nogueira and Lin 2019).

    Relations: the retriever doc2query uses it.
    """

    kind = None
    writes = True
    from_scratch = (4, 2e-3)
    from_trained = (2, 1e-3)
    #: The same for a base that is made of encoders.
    from_encoder: ClassVar[tuple[float, float]] = (8, 2e-4)

    reads: int = 512
    writes_up_to: int = 64
    n: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n < 1:
            raise SpecError(f"n is {self.n}, expected 1, 2, 3 … queries.")
        for name in ("reads", "writes_up_to"):
            if getattr(self, name) < 2:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 2, 3, 4 …")

    def retriever(self, model: str) -> Retriever:
        """BM25 over documents with the queries that the model writes for them."""
        return doc2query(base=bm25(), model=model, n=self.n)

    def _task(self, base: str, job: Job, folder: Path) -> Any:
        from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

        source = str(local_folder(base) or base)
        try:
            with quietly():
                tokenizer = AutoTokenizer.from_pretrained(source)
                if AutoConfig.from_pretrained(source).is_encoder_decoder:
                    model = AutoModelForSeq2SeqLM.from_pretrained(source, dtype="float32")
                else:
                    model = untouched(lambda: _of_encoders(source, tokenizer), job.seed)
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(
                f"{base} cannot learn to write ({reason}). Expected a sequence-to-sequence model, "
                "such as T5, an encoder, such as BERT, or scratch()."
            ) from error
        model.farfield_tokenizer = tokenizer
        return _Writing(model.to(job.device), tokenizer, job, self)

    def _suiting(self, job: Job, model: Any) -> tuple[float, float]:
        if model.config.model_type == "encoder-decoder":
            return self.from_encoder
        return super()._suiting(job, model)

    def _save(self, model: Any, folder: Path) -> None:
        with making(folder) as place:
            model.save_pretrained(place)
            model.farfield_tokenizer.save_pretrained(place)


def _of_encoders(source: str, tokenizer: Any) -> Any:
    """Let an encoder read, and the same one, with attention to what is read, write."""
    import transformers

    library: Any = transformers
    model = library.EncoderDecoderModel.from_encoder_decoder_pretrained(source, source).float()
    marks = {
        "decoder_start_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if None in marks.values():
        raise ValueError("its tokeniser has no marks for where a text begins and ends")
    for name, mark in marks.items():
        setattr(model.config, name, mark)
        setattr(model.generation_config, name, mark)
    return model


class _Writing:
    """Steps over documents and queries."""

    def __init__(self, model: Any, tokenizer: Any, job: Job, recipe: seq2seq) -> None:
        self.model, self.data, self.seed = model, job.examples, job.seed
        self._held_out, self._pad = job.held_out, tokenizer.pad_token_id or 0
        longest = min(recipe.reads, tokenizer.model_max_length)
        device = model.device
        self.documents = _Tokens(tokenizer, job.examples.documents, longest, self._pad, device)
        first = self.data.relevant[self.data.starts[:-1]]
        self.order = Order(self.documents.lengths[first], recipe.batch, job.seed)

        def queries(examples: Examples) -> _Tokens:
            return _Tokens(tokenizer, examples.queries, recipe.writes_up_to, -100, device)

        self.queries = queries(self.data)
        self._checked = None if self._held_out is None else queries(self._held_out)

    def loss(self, step: int) -> Any:
        rows = self.order.rows(step)
        rng = np.random.default_rng([self.seed, 5, step])
        return self._loss(self.data.take(rows).positives(rng), self.queries, rows)

    def _loss(self, documents: Ints, queries: _Tokens, rows: Ints) -> Any:
        import torch

        ids, mask = self.documents.cut(documents)
        labels, _ = queries.cut(rows)
        before = labels.roll(1, dims=1).clamp_min(0)  # what follows the end does not count
        before[:, 0] = self.model.config.decoder_start_token_id
        given = {"attention_mask": mask, "decoder_input_ids": before, "use_cache": False}
        logits = self.model(input_ids=ids, **given).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def examples(self, step: int) -> int:
        return self.order.batch

    def check(self) -> float | None:
        """Return minus the loss on queries that were held out."""
        import torch

        if self._held_out is None or self._checked is None:
            return None
        rows = np.arange(len(self._held_out))
        first = self._held_out.relevant[self._held_out.starts[:-1]]
        parts = np.array_split(rows, max(1, len(rows) // self.order.batch))
        with torch.inference_mode():
            values = [float(self._loss(first[part], self._checked, part)) for part in parts]
        return -float(np.mean(values))


class _Tokens:
    """Texts as token numbers on the device."""

    def __init__(self, tokenizer: Any, texts: list[str], longest: int, pad: int, device: Any):
        import torch
        from tokenizers import Tokenizer

        core = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        core.no_padding()
        core.enable_truncation(longest)
        ((flat, self.lengths),) = tokenised(core, [texts])
        arrays = flat, starts_of(self.lengths)[:-1], self.lengths
        self._there = [torch.from_numpy(array).to(device) for array in arrays]
        self._pad = pad

    def cut(self, rows: Ints) -> tuple[Any, Any]:
        """Return a padded batch, and where it is real."""
        flat, starts, lengths = self._there
        at = sent(rows, flat.device)
        width = int(self.lengths[rows].max())
        found: tuple[Any, Any] = cut(flat, starts[at], lengths[at], width, pad=self._pad)
        return found
