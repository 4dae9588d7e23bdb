"""The largest logit of every word over a text, without holding those of all its tokens.

The logits of a batch have a number for every token and every word: gigabytes, and as much again for
their gradient. Here a few texts at a time have theirs, twice: to find the largest, and to send
gradients back to the token that had it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["headless", "largest_logits"]

_NUMBERS = 1 << 27  # logits at a time: 256 MB of bfloat16


@contextmanager
def headless(model: Any) -> Iterator[Any]:
    """Give the last layer of a model that guesses words; meanwhile what goes in comes out of it."""
    head = model.get_output_embeddings()
    kept = head.forward
    head.forward = lambda hidden: hidden
    try:
        yield head
    finally:
        head.forward = kept


def largest_logits(hidden: Any, head: Any, mask: Any) -> Any:
    """Return the largest logit of every word in every text: of texts × tokens, texts × words.

    ``mask`` is true for tokens that count; every text has one.
    """
    weight, bias = head.weight, head.bias
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        half = torch.get_autocast_dtype(kind)
        hidden, weight = hidden.to(half), weight.to(half)
        bias = None if bias is None else bias.to(half)
    largest: Any = _Largest.apply
    return largest(hidden, weight, bias, mask)


class _Largest(torch.autograd.Function):
    """What ``linear(hidden, weight, bias).max(dim=1).values`` gives, and its gradients."""

    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, bias: Any, mask: Any) -> Any:
        texts, words = len(hidden), len(weight)
        largest = hidden.new_empty(texts, words)
        token = torch.empty(texts, words, dtype=torch.int16, device=hidden.device)
        for some in _parts(hidden, words):
            logits = torch.nn.functional.linear(hidden[some], weight, bias)
            logits.masked_fill_(~mask[some].unsqueeze(-1), -torch.inf)
            largest[some], place = logits.max(dim=1)
            token[some] = place.to(torch.int16)
        ctx.save_for_backward(hidden, weight, token)
        ctx.has_bias = bias is not None
        return largest

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        hidden, weight, token = ctx.saved_tensors
        of_hidden = torch.empty_like(hidden)
        of_weight = torch.zeros_like(weight, dtype=torch.float32)  # many small numbers are added
        for some in _parts(hidden, len(weight)):
            spread = gradient.new_zeros(len(hidden[some]), hidden.shape[1], len(weight))
            place, value = token[some].long().unsqueeze(1), gradient[some].unsqueeze(1)
            spread = spread.scatter_(1, place, value).flatten(0, 1)
            of_hidden[some] = (spread @ weight).view_as(hidden[some])
            of_weight += spread.T @ hidden[some].flatten(0, 1)
        of_bias = gradient.sum(0) if ctx.has_bias else None
        return of_hidden, of_weight.to(weight.dtype), of_bias, None


def _parts(hidden: Any, words: int) -> Iterator[slice]:
    texts, tokens = hidden.shape[:2]
    size = max(1, _NUMBERS // (tokens * words))
    for start in range(0, texts, size):
        yield slice(start, start + size)
