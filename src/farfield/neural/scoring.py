"""Cross-encoders over many pairs: every query and text is tokenised once, however often it is used.

Pairs are put together from token numbers on the model's device, the way its tokeniser would (its
special tokens, the longer of the two cut first), and go through the model in batches of like
length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.neural.encoding import Precision, computing, forward, tokens_per_batch
from farfield.neural.models import KINDS, kind_of, prompt_of
from farfield.neural.tokens import (
    PROBES,
    batches,
    check_text,
    chunked,
    core_of,
    own_features,
    rounded,
    same_features,
    sent,
    tokenised,
)
from farfield.neural.vectors import Ints, starts_of
from farfield.progress import track

__all__ = ["prepared_pairs", "score_pairs"]

_TEXTS = 8_192  # tokenised at a time
_PAIRS = 1 << 18  # scored at a time: what is on the device does not grow with their number


def score_pairs(
    model: Any,
    queries: Sequence[str],
    texts: Sequence[str],
    pairs: npt.ArrayLike,
    *,
    precision: Precision = "auto",
    tokens: int | None = None,
) -> npt.NDArray[np.float32]:
    """Return what a CrossEncoder says of every pair (number of the query, number of the text).

    Scores are the model's plain output, before any activation, in the order of the pairs.
    """
    if (kind := kind_of(model)) != "cross":
        raise InputError(f"this model is {kind}, expected a {KINDS['cross']}.")
    if model.num_labels != 1:
        raise InputError(f"the model has {model.num_labels} outputs, expected one score.")
    numbers = _checked(pairs, len(queries), len(texts))
    used = np.unique(numbers[:, 0]), np.unique(numbers[:, 1])
    for given, some, what in ((queries, used[0], "query"), (texts, used[1], "text")):
        if isinstance(given, str):
            raise InputError(f"expected a list for each {what}, got one text.")
        for number in some:
            check_text(given[number], number, what)
    budget = tokens_per_batch(model, tokens)
    scores = np.empty(len(numbers), dtype=np.float32)
    made = prepared_pairs(model, (queries, texts), used)
    for start in track(range(0, len(numbers), _PAIRS), "scoring"):
        chunk = made.chunk(numbers[start : start + _PAIRS])
        found = scores[start : start + _PAIRS]
        with computing(model, precision):
            taken = [
                part
                for batch in batches(chunk.lengths, budget)
                for part in forward(model, chunk, batch, None, _take)
            ]
            _place(found, taken)
    return scores


def _take(model: Any, out: dict[str, Any]) -> Any:
    return out["scores"].float().reshape(-1)


def _place(scores: npt.NDArray[np.float32], taken: list[tuple[Ints, Any]]) -> None:
    import torch

    if taken:
        found = torch.cat([part for _, part in taken]).cpu().numpy()
        scores[np.concatenate([rows for rows, _ in taken])] = found


def _checked(pairs: npt.ArrayLike, queries: int, texts: int) -> Ints:
    numbers = np.asarray(pairs)
    if numbers.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or numbers.dtype.kind not in "iu":
        raise InputError(
            f"pairs are {numbers.dtype} of shape {numbers.shape}, expected whole numbers in two "
            "columns: of the query and of the text."
        )
    for column, size, what in ((0, queries, "query"), (1, texts, "text")):
        low, high = int(numbers[:, column].min()), int(numbers[:, column].max())
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise InputError(f"a pair names {what} {wrong}, expected 0 to {size - 1}.")
    return numbers.astype(np.int64)


def prepared_pairs(
    model: Any, given: tuple[Sequence[str], Sequence[str]], used: tuple[Ints, Ints]
) -> Any:
    """Tokenise what the pairs use; by the model itself where only it knows how pairs are made."""
    template = _Template.of(model)
    if template is None:
        return _OwnPairs(model, *given)
    sides = []
    for texts, some in zip(given, used, strict=True):
        flat, lengths = _tokenised(template, [texts[at] for at in some])
        starts, all_lengths = np.zeros((2, len(texts)), dtype=np.int64)
        starts[some], all_lengths[some] = starts_of(lengths)[:-1], lengths
        sides.append(_Side(flat, starts, all_lengths))
    return _TokenPairs(model, template, *sides)


def _tokenised(template: _Template, texts: list[str]) -> tuple[npt.NDArray[np.int32], Ints]:
    parts = list(tokenised(template.core, chunked(texts, _TEXTS), special=False))
    if not parts:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    return np.concatenate([flat for flat, _ in parts]), np.concatenate([n for _, n in parts])


class _Side(NamedTuple):
    """Token numbers of all queries, or of all texts."""

    flat: npt.NDArray[np.int32]
    starts: Ints
    lengths: Ints


@dataclass(frozen=True)
class _Template:
    """How a tokeniser joins two texts: what stands before, between and after, and of which type."""

    core: Any
    longest: int | None
    fixed: tuple[list[int], list[int], list[int]]
    types: tuple[int, int, int, int, int]  # before, first text, between, second text, after
    pad: int
    pad_type: int
    left: bool
    typed: bool

    @classmethod
    def of(cls, model: Any) -> _Template | None:
        """Find it by tokenising a pair; none where that is not how the model makes its pairs."""
        core, longest = core_of(model, None)
        if core is None or prompt_of(model, None):
            return None
        core.no_truncation()
        one, two = (core.encode(text, add_special_tokens=False).ids for text in ("far", "field"))
        pair = core.encode("far", "field")
        ids, types = pair.ids, pair.type_ids
        first = _position(ids, one, 0)
        second = -1 if first < 0 else _position(ids, two, first + len(one))
        if second < 0 or (longest is not None and longest <= len(ids)):
            return None
        if longest is not None:  # one more than fits tells that a text is too long
            core.enable_truncation(longest + 1)
        ends = first + len(one), second + len(two)
        tokenizer = model[0].tokenizer
        found = cls(
            core,
            longest,
            (ids[:first], ids[ends[0] : second], ids[ends[1] :]),
            (types[0], types[first], types[ends[0]], types[second], types[-1]),
            tokenizer.pad_token_id or 0,
            tokenizer.pad_token_type_id,
            tokenizer.padding_side == "left",
            "token_type_ids" in tokenizer.model_input_names,
        )
        return found if found._agrees(model) else None

    def _agrees(self, model: Any) -> bool:
        """Does the model make the same of pairs that tell tokenisers apart?"""
        many = (self.longest or 100) + 1
        short, half, long = ("far field " * n for n in (1, many // 3, many))
        probes = [*PROBES, short, half, long]
        pairs = [(a, b) for a in probes for b in probes]
        flat, lengths = _tokenised(self, probes)
        side = _Side(flat, starts_of(lengths)[:-1], lengths)
        numbers = np.indices((len(probes), len(probes))).reshape(2, -1).T
        made = _TokenPairs(model, self, side, side).chunk(numbers, multiple=1)
        own = own_features(model, None, pairs)
        return same_features(made.features(np.arange(len(pairs))), own)

    def kept(self, one: Ints, two: Ints) -> tuple[Ints, Ints]:
        """Return how many tokens of each text stay: the longer is cut first, then both alike."""
        if self.longest is None:
            return one, two
        room = self.longest - sum(map(len, self.fixed))
        short, long = np.minimum(one, two), np.maximum(one, two)
        fits = short + long <= room
        alone = np.maximum(short, room - short)  # what stays of the longer one
        both = short + alone > room  # cutting it alone is not enough
        new_short = np.where(fits, short, np.where(both, room // 2, short))
        new_long = np.where(fits, long, np.where(both, room // 2 + room % 2, alone))
        swapped = one > two
        return np.where(swapped, new_long, new_short), np.where(swapped, new_short, new_long)


def _position(ids: list[int], part: list[int], start: int) -> int:
    for at in range(start, len(ids) - len(part) + 1):
        if ids[at : at + len(part)] == part:
            return at
    return -1


class _TokenPairs:
    """All queries and texts as tokens on the model's device."""

    def __init__(self, model: Any, template: _Template, one: _Side, two: _Side) -> None:
        import torch

        self.model, self.template, self.sides = model, template, (one, two)
        # One array: both sides, then what stands before, between and after them.
        fixed = [np.array(part, dtype=np.int32) for part in template.fixed]
        parts = [one.flat, two.flat, *fixed]
        self.starts = starts_of(np.array([len(part) for part in parts]))
        self.flat = torch.from_numpy(np.concatenate(parts)).to(model.device)

    def chunk(self, numbers: Ints, multiple: int | None = None) -> _PairChunk:
        """Make these pairs ready."""
        return _PairChunk(self, numbers, multiple)


class _PairChunk:
    """Pairs, cut to length."""

    def __init__(self, made_by: _TokenPairs, numbers: Ints, multiple: int | None) -> None:
        by, template = made_by, made_by.template
        one, two = by.sides
        first, second = template.kept(one.lengths[numbers[:, 0]], two.lengths[numbers[:, 1]])
        before, between, after = map(len, template.fixed)
        # Five pieces of a pair: where each is found in the array of all tokens, and its end.
        count = len(numbers)
        sources = np.empty((count, 5), dtype=np.int64)
        sources[:, 0], sources[:, 2], sources[:, 4] = by.starts[2:5]
        sources[:, 1] = one.starts[numbers[:, 0]]
        sources[:, 3] = by.starts[1] + two.starts[numbers[:, 1]]
        sizes = np.empty((count, 5), dtype=np.int64)
        sizes[:, 0], sizes[:, 2], sizes[:, 4] = before, between, after
        sizes[:, 1], sizes[:, 3] = first, second
        ends = np.cumsum(sizes, axis=1)
        self._by, self.lengths = by, ends[:, 4]
        device = by.model.device
        self._ends = sent(ends, device)
        self._shifts = sent(sources - (ends - sizes), device)
        self._multiple = multiple or (8 if device.type == "cuda" else 1)

    def features(self, rows: Ints) -> dict[str, Any]:
        import torch

        by, template = self._by, self._by.template
        device = by.model.device
        width = rounded(int(self.lengths[rows].max()), self._multiple, template.longest)
        at = sent(rows, device)
        ends, shifts = self._ends[at], self._shifts[at]
        place = torch.arange(width, device=device).expand(len(rows), -1)
        if template.left:
            place = place - (width - ends[:, 4:])
        piece = (place[:, :, None] >= ends[:, None, :]).sum(2)
        real = (piece < 5) & (place >= 0)
        piece = piece.clamp_(max=4)
        source = torch.where(real, place + shifts.gather(1, piece), 0)
        ids = by.flat[source].long().masked_fill_(~real, template.pad)
        features = {"input_ids": ids, "attention_mask": real.long(), "modality": "text"}
        if template.typed:
            types = torch.tensor(template.types, device=device)[piece]
            features["token_type_ids"] = types.masked_fill_(~real, template.pad_type)
        return features


class _OwnPairs:
    """Pairs that the model prepares itself, batch by batch."""

    def __init__(self, model: Any, queries: Sequence[str], texts: Sequence[str]) -> None:
        self.model, self.queries, self.texts = model, queries, texts

    def chunk(self, numbers: Ints) -> _OwnPairChunk:
        """Make these pairs ready."""
        pairs = [(self.queries[one], self.texts[two]) for one, two in numbers]
        return _OwnPairChunk(self.model, pairs)


class _OwnPairChunk:
    def __init__(self, model: Any, pairs: list[tuple[str, str]]) -> None:
        self._model, self._pairs = model, pairs
        lengths = np.fromiter((len(a) + len(b) for a, b in pairs), np.int64, count=len(pairs))
        longest = min(model.max_seq_length or 1_000_000, 1_000_000)
        self.lengths: Ints = np.clip(lengths // 3, 3, longest)

    def features(self, rows: Ints) -> dict[str, Any]:
        from sentence_transformers.util import batch_to_device

        made = own_features(self._model, None, [self._pairs[row] for row in rows])
        return dict(batch_to_device(made, self._model.device))
