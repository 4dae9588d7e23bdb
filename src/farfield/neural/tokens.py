"""Texts become batches of tokens, ahead of the model and with little padding.

A tokeniser written for batches pads and copies more than it tokenises. Here its compiled core gives
plain token numbers, many texts at once and on all cores; they lie one after the other in a single
array on the model's device, and a batch is cut out of it there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.neural.models import Task, prompt_of
from farfield.neural.vectors import Ints, starts_of

__all__ = [
    "PROBES",
    "Chunk",
    "CoreTokeniser",
    "ahead",
    "batches",
    "check_text",
    "chunked",
    "core_of",
    "cut",
    "longest_of",
    "own_features",
    "prepared",
    "rounded",
    "same_features",
    "sent",
    "tokenised",
]

T = TypeVar("T")
R = TypeVar("R")

_NO_LIMIT = 1_000_000  # tokenisers without a longest length say 1e30
_PIECE, _PIECES_AHEAD = 1_024, 24  # texts tokenised at a time, and how far ahead
# What tells tokenisers apart: nothing, case, accents, other scripts, marks, space at the ends.
PROBES = ("", "a", "Ünïcode, CASE and 12.5 %: (marks)!", "  東京 tower 🙂\tspaces  ", "[SEP] <s>")


class Chunk(Protocol):
    """Some texts, ready for the model."""

    lengths: Ints  # how many tokens each text has, at least about

    def features(self, rows: Ints) -> dict[str, Any]:
        """Return a batch of them as the model's modules take it, on the model's device."""


def prepared(model: Any, task: Task | None, chunks: Iterable[list[str]]) -> Iterator[Chunk]:
    """Yield every list of texts ready for the model, the next ones being prepared meanwhile.

    The fast way is taken if it agrees with the model's own preprocessing on texts that tell
    tokenisers apart. Chat templates, expanded queries or several encoders in one take their own.
    """
    fast = CoreTokeniser.of(model, task)
    if fast is not None and fast.agrees():
        return fast.chunks(chunks)
    return (_TextChunk(model, task, texts) for texts in chunks)


class CoreTokeniser:
    """The compiled core of a model's tokeniser, without padding, and without Python in between."""

    def __init__(self, model: Any, task: Task | None, core: Any, longest: int | None) -> None:
        self.model, self.task, self.core, self.longest = model, task, core, longest
        self.prompt = prompt_of(model, task) or ""
        tokenizer = model[0].tokenizer
        self.pad, self.left = tokenizer.pad_token_id or 0, tokenizer.padding_side == "left"
        self.extra: dict[str, Any] = {"modality": "text"}
        self.typed = "token_type_ids" in tokenizer.model_input_names
        self.multiple = 8 if model.device.type == "cuda" else 1  # widths that matrix units like

    @classmethod
    def of(cls, model: Any, task: Task | None) -> CoreTokeniser | None:
        """Return the core of this model's tokeniser, if it has one of its own."""
        core, longest = core_of(model, task)
        if core is None:
            return None
        made = cls(model, task, core, longest)
        if made.prompt:
            kept = made.features_of_model().get("prompt_length")
            made.extra |= {} if kept is None else {"prompt_length": kept}
        return made

    def chunks(self, chunks: Iterable[list[str]]) -> Iterator[_TokenChunk]:
        """Tokenise every list of texts, ahead of who asks for them."""
        for flat, lengths in tokenised(self.core, self._prompted(chunks)):
            yield _TokenChunk(self, flat, lengths)

    def _prompted(self, chunks: Iterable[list[str]]) -> Iterable[list[str]]:
        if not self.prompt:
            return chunks
        return ([self.prompt + text for text in texts] for texts in chunks)

    @property
    def probes(self) -> list[str]:
        """Texts that tell tokenisers apart, one of them too long."""
        return [*PROBES, "far field " * ((self.longest or 100) + 1)]

    def agrees(self) -> bool:
        """Does the model make the same of the probes?"""
        (chunk,) = self.chunks([self.probes])
        found = chunk.features(np.arange(len(chunk.lengths)), multiple=1)
        return same_features(found, self.features_of_model())

    def features_of_model(self) -> dict[str, Any]:
        """Return the features of the probes as the model makes them."""
        return own_features(self.model, self.task, self.probes)


class _TokenChunk:
    """Texts as token numbers, on the model's device from the first batch on."""

    def __init__(self, made_by: CoreTokeniser, flat: npt.NDArray[np.int32], lengths: Ints) -> None:
        self.made_by, self.lengths = made_by, lengths
        self._flat, self._starts = flat, starts_of(lengths)
        self._there: Any = None

    def features(self, rows: Ints, multiple: int | None = None) -> dict[str, Any]:
        import torch

        by = self.made_by
        device = by.model.device
        if self._there is None:
            arrays = self._flat, self._starts, self.lengths
            self._there = [torch.from_numpy(array).to(device) for array in arrays]
        flat, starts, lengths = self._there
        width = rounded(int(self.lengths[rows].max()), multiple or by.multiple, by.longest)
        at = sent(rows, device)
        ids, mask = cut(flat, starts[at], lengths[at], width, pad=by.pad, left=by.left)
        features = {"input_ids": ids, "attention_mask": mask, **by.extra}
        if by.typed:
            features["token_type_ids"] = torch.zeros_like(ids)
        return features


class _TextChunk:
    """Texts that the model prepares itself, batch by batch."""

    def __init__(self, model: Any, task: Task | None, texts: list[str]) -> None:
        self._model, self._task, self._texts = model, task, texts
        longest = model.max_seq_length or _NO_LIMIT
        lengths = np.fromiter((len(text) for text in texts), dtype=np.int64, count=len(texts))
        self.lengths: Ints = np.clip(lengths // 3, 2, min(longest, _NO_LIMIT))

    def features(self, rows: Ints) -> dict[str, Any]:
        from sentence_transformers.util import batch_to_device

        made = own_features(self._model, self._task, [self._texts[row] for row in rows])
        return dict(batch_to_device(made, self._model.device))


def own_features(model: Any, task: Task | None, texts: list[Any]) -> dict[str, Any]:
    """Return what the model itself makes of a batch of texts or pairs."""
    given = {} if task is None else {"task": task}
    return dict(model.preprocess(texts, prompt=prompt_of(model, task), **given))


def same_features(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Do two batches say the same to the model?"""
    import torch

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            return a.shape == b.shape and bool((a.cpu() == b.cpu()).all())
        return type(a) is type(b) and bool(a == b)

    return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)


def core_of(model: Any, task: Task | None) -> tuple[Any, int | None]:
    """Return the tokeniser's compiled core, set to cut at the longest length, and that length."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None, None
    from tokenizers import Tokenizer

    core = Tokenizer.from_str(backend.to_str())  # a copy: the model's own stays as it is
    longest = longest_of(model, task)
    core.no_padding()
    core.no_truncation()
    if longest is not None:
        core.enable_truncation(longest, direction=tokenizer.truncation_side)
    return core, longest


def longest_of(model: Any, task: Task | None) -> int | None:
    """Return how many tokens the model takes at most, if it says so."""
    longest = None if task is None else getattr(model[0], f"{task}_length", None)
    longest = model[0].tokenizer.model_max_length if longest is None else longest
    return None if longest is None or longest > _NO_LIMIT else int(longest)


def tokenised(
    core: Any, chunks: Iterable[list[str]], *, special: bool = True
) -> Iterator[tuple[npt.NDArray[np.int32], Ints]]:
    """Yield the token numbers of every list of texts in one array, and how many each text has.

    Two threads work ahead, piece by piece: while one is in compiled code, which runs on all cores
    and lets others run, the other turns what it got into arrays.
    """

    def pieces() -> Iterator[tuple[list[str], bool]]:
        for texts in chunks:
            for start in range(0, len(texts), _PIECE):
                yield texts[start : start + _PIECE], start + _PIECE >= len(texts)

    def work(piece: tuple[list[str], bool]) -> tuple[npt.NDArray[np.int32], Ints, bool]:
        texts, last = piece
        ids = [one.ids for one in core.encode_batch_fast(texts, add_special_tokens=special)]
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        flat = np.fromiter(chain.from_iterable(ids), dtype=np.int32, count=int(lengths.sum()))
        return flat, lengths, last

    flats: list[npt.NDArray[np.int32]] = []
    counts: list[Ints] = []
    for flat, lengths, last in ahead(work, pieces(), workers=2, depth=_PIECES_AHEAD):
        flats.append(flat)
        counts.append(lengths)
        if last:
            yield np.concatenate(flats), np.concatenate(counts)
            flats, counts = [], []


def cut(
    flat: Any, starts: Any, lengths: Any, width: int, *, pad: int, left: bool = False
) -> tuple[Any, Any]:
    """Cut runs out of an array as the rows of a padded matrix, and say where they are real."""
    import torch

    at = torch.arange(width, device=flat.device)
    offsets = at - (width - lengths)[:, None] if left else at.expand(len(lengths), -1)
    real = (offsets >= 0) & (offsets < lengths[:, None])
    if not len(flat):  # every text is empty
        return torch.full_like(offsets, pad), real.long()
    ids = flat[torch.where(real, starts[:, None] + offsets, 0)].long()
    return ids.masked_fill_(~real, pad), real.long()


def sent(array: npt.NDArray[Any], device: Any) -> Any:
    """Copy an array to a device, without waiting for what the device is still doing."""
    import torch

    tensor = torch.from_numpy(array)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def rounded(width: int, multiple: int, longest: int | None) -> int:
    """Round a width up to a multiple, but not beyond the model's longest."""
    wide = max(1, -(-width // multiple) * multiple)
    return wide if longest is None else max(width, min(wide, longest))


def batches(lengths: Ints, tokens: int) -> Iterator[Ints]:
    """Yield the rows of batches of at most so many tokens, padding included, longest rows first."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = max(1, tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + rows]
        start += rows


def chunked(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield the texts in lists of this size; anything but text is refused."""
    if isinstance(texts, str):
        raise InputError("expected a list of texts, got one text. Put it into a list.")
    given = iter(texts)
    start = 0
    while chunk := list(islice(given, size)):
        for number, text in enumerate(chunk, start=start):
            check_text(text, number)
        start += len(chunk)
        yield chunk


def check_text(text: object, number: int, what: str = "text") -> None:
    """Refuse what no tokeniser takes."""
    if not isinstance(text, str):
        raise InputError(f"{what} {number} is {text!r}, expected a text.")
    try:
        text.encode()
    except UnicodeEncodeError:
        message = f"{what} {number} is no Unicode: it holds half of a surrogate pair."
        raise InputError(message) from None


def ahead(work: Callable[[T], R], items: Iterable[T], *, workers: int, depth: int) -> Iterator[R]:
    """Yield ``work(item)`` in order, made by threads of their own up to ``depth`` items ahead."""
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= depth:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
