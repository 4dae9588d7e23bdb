"""Queries that a sequence-to-sequence model thinks a text answers, drawn at random but for good.

Each query is drawn with random numbers of its own, made from the seed, the document's id, the
passage and the number of the query. So what is drawn depends neither on the other documents nor on
batches, up to the rounding of the model. It is the Gumbel trick: the most probable tokens get noise
on their log probabilities, and the largest sum is a draw from the distribution.

Work goes shard by shard, and a shard is a file: what is there is not made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.io.files import replacing
from farfield.neural.models import _library, _not_here, _offline, device_of, local_folder, quietly
from farfield.progress import counting
from farfield.retrievers._neural import Passages

__all__ = ["Draw", "Writer", "load_writer", "write_queries"]

_SHARD = 256  # passages
_LONGEST, _NEW = 512, 64  # tokens read and written, as docTTTTTquery
# Queries that are written at the same time: so many, and so many tokens that they are written from.
_CPU, _GPU = (256, 1 << 14), (4_096, 1 << 18)


class Writer(NamedTuple):
    """A model that writes, with its tokeniser."""

    model: Any
    tokenizer: Any

    @property
    def fingerprint(self) -> str:
        """What names weights, settings and tokeniser."""
        import torch

        digest = blake2b(digest_size=16)
        digest.update(self.model.config.to_json_string().encode())
        digest.update(json.dumps(self.tokenizer.get_vocab(), sort_keys=True).encode())
        for name, weights in sorted(self.model.state_dict().items()):
            array = weights.detach().cpu().contiguous()
            digest.update(f"\n{name} {array.dtype} {tuple(array.shape)}\n".encode())
            digest.update(array.reshape(-1).view(torch.uint8).numpy())
        return digest.hexdigest()


class Draw(NamedTuple):
    """How queries are drawn: how many, from how many tokens at a time, and where chance starts."""

    n: int
    top_k: int
    seed: int

    def noise(self, doc_id: str, passage: int, steps: int) -> npt.NDArray[np.float32]:
        """Gumbel noise of all queries of a passage: (query, step, token by rank)."""
        found = np.empty((self.n, steps, self.top_k), dtype=np.float32)
        for number in range(self.n):
            name = json.dumps([self.seed, doc_id, passage, number]).encode()
            key = int.from_bytes(blake2b(name, digest_size=16).digest(), "little")
            found[number] = np.random.Generator(np.random.Philox(key=key)).gumbel(
                size=found.shape[1:]
            )
        return found


def load_writer(name: str) -> Writer:
    """Load a sequence-to-sequence model from a folder, or by a name; this machine first."""
    torch = _library("torch", f"the model {name}")
    library = _library("transformers", f"the model {name}")
    where, folder = device_of(), local_folder(name)
    if folder is None and _offline():
        raise InputError(_not_here(name, "and this machine works offline"))
    given: dict[str, Any] = {"local_files_only": folder is not None}
    source = name if folder is None else str(folder)
    try:
        with quietly():
            tokenizer = library.AutoTokenizer.from_pretrained(source, **given)
            model = library.AutoModelForSeq2SeqLM.from_pretrained(
                source, dtype=torch.float32, **given
            )
    except Exception as error:  # a broken file, no network, a model of another kind
        reason = f"{type(error).__name__}: {[*str(error).strip().splitlines(), ''][0]}"
        if folder is None:
            raise InputError(_not_here(name, f"and it cannot be fetched ({reason})")) from error
        raise InputError(
            f"the model in {folder} cannot be loaded ({reason}). Expected a sequence-to-sequence "
            "model saved by transformers, like T5, with config.json, weights and tokeniser."
        ) from error
    return Writer(model.to(where).eval(), tokenizer)


def write_queries(
    file: Path, scratch: Path, writer: Writer, passages: Passages, draw: Draw
) -> None:
    """Write rows of doc_id and text (a list of queries) to a file, one for each passage.

    ``scratch`` is the folder of shards; those that are there from an earlier call are kept.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    shards: list[Path] = []
    with counting(len(passages), "writing queries") as count:
        given = _numbered(passages)
        while some := list(islice(given, _SHARD)):
            shard = scratch / f"{len(shards):06}.jsonl"
            if not shard.exists():
                rows = zip(some, _written(writer, some, draw), strict=True)
                with replacing(shard) as out:
                    for (doc_id, _, _), texts in rows:
                        row = {"doc_id": doc_id, "text": texts}
                        out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            shards.append(shard)
            count(len(some))
    with replacing(file) as out:
        for shard in shards:
            out.write(shard.read_bytes())


def _numbered(passages: Passages) -> Iterator[tuple[str, int, str]]:
    """(doc_id, number of the passage within it, text)."""
    ids, first = passages.documents.to_list(), np.searchsorted(passages.owner, passages.owner)
    for at, text in enumerate(passages):
        yield ids[passages.owner[at]], int(at - first[at]), text


def _written(writer: Writer, some: list[tuple[str, int, str]], draw: Draw) -> list[list[str]]:
    """The queries of each passage."""
    import torch

    model, tokenizer = writer
    device = model.device
    texts = [text for _, _, text in some]
    given = tokenizer(texts, truncation=True, max_length=_LONGEST)["input_ids"]
    lengths = np.array([len(ids) for ids in given], dtype=np.int64)
    found: list[list[str]] = [[] for _ in some]
    half = torch.autocast("cuda", dtype=torch.bfloat16, enabled=device.type == "cuda")
    for rows in _batches(lengths, draw.n, *(_GPU if device.type == "cuda" else _CPU)):
        padded = tokenizer.pad({"input_ids": [given[at] for at in rows]}, return_tensors="pt")
        mask = padded["attention_mask"].to(device)
        noise = np.concatenate([draw.noise(some[at][0], some[at][1], _NEW) for at in rows])
        with torch.inference_mode(), half:
            read = model.get_encoder()(
                input_ids=padded["input_ids"].to(device), attention_mask=mask
            )
            read["last_hidden_state"] = read[0].repeat_interleave(draw.n, dim=0)
            drawn = model.generate(
                encoder_outputs=read,
                attention_mask=mask.repeat_interleave(draw.n, dim=0),
                max_new_tokens=_NEW,
                do_sample=False,
                num_beams=1,
                logits_processor=[_Drawing(torch.from_numpy(noise).to(device))],
            )
        words = tokenizer.batch_decode(drawn, skip_special_tokens=True)
        for place, at in enumerate(rows):
            own = (text.strip() for text in words[place * draw.n : (place + 1) * draw.n])
            found[at] = [text for text in own if text]
    return found


def _batches(
    lengths: npt.NDArray[np.int64], n: int, queries: int, tokens: int
) -> Iterator[npt.NDArray[np.int64]]:
    """Passages of like length, the longest first, of which ``n`` queries each are written at once.

    The model keeps what it has read for every query, so long passages allow fewer.
    """
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        allowed = min(queries, tokens // max(1, int(lengths[order[0]])))
        size = max(1, allowed // n)
        yield order[:size]
        order = order[size:]


class _Drawing:
    """Leaves one token at each step: the one with the largest sum of score and noise."""

    def __init__(self, noise: Any) -> None:
        self._noise, self._before = noise, -1

    def __call__(self, written: Any, scores: Any) -> Any:
        import torch

        if self._before < 0:
            self._before = written.shape[1]  # what every text begins with
        noise = self._noise[:, written.shape[1] - self._before]
        best = scores.float().topk(min(noise.shape[1], scores.shape[1]), dim=1)
        drawn = (best.values + noise[:, : best.values.shape[1]]).argmax(1, keepdim=True)
        only = torch.full_like(scores, -torch.inf)
        return only.scatter_(1, best.indices.gather(1, drawn), 0.0)
