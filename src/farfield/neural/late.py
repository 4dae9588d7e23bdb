"""Late interaction: every token of a query finds its best token in the document, and they add up.

Exact, in padded blocks on any device. A document is padded with its own first vector, which changes
no maximum, and a query with zeros, which add nothing: no mask is needed. A document without vectors
scores 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.neural.models import device_of
from farfield.neural.tokens import batches
from farfield.neural.topk import Found, full_products, keep_best
from farfield.neural.vectors import Ints, TokenVectors

__all__ = ["maxsim", "search_multi"]

_CPU_VALUES, _GPU_VALUES = 1 << 24, 1 << 29  # products of tokens held at a time


def maxsim(
    queries: TokenVectors, documents: TokenVectors, pairs: npt.ArrayLike, *, device: str = "auto"
) -> npt.NDArray[np.float32]:
    """Return the score of every pair (number of the query, number of the document)."""
    import torch

    numbers = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    for column, given, what in ((0, queries, "query"), (1, documents, "document")):
        wrong = (numbers[:, column] < 0) | (numbers[:, column] >= len(given))
        if wrong.any():
            raise InputError(
                f"a pair names {what} {numbers[wrong, column][0]}, expected 0 to {len(given) - 1}."
            )
    there = _There(queries, documents, device)
    scores = np.empty(len(numbers), dtype=np.float32)
    asked, held = queries.lengths[numbers[:, 0]], documents.lengths[numbers[:, 1]]
    with torch.inference_mode(), full_products():
        for rows in batches(np.maximum(asked * held, 1), there.values):
            one = there.queries(numbers[rows, 0])
            two = there.documents(numbers[rows, 1])
            found = torch.bmm(one, two.transpose(1, 2)).amax(2).sum(1)
            scores[rows] = found.cpu().numpy()
    return scores


def search_multi(
    queries: TokenVectors,
    documents: TokenVectors | Iterable[TokenVectors],
    k: int,
    *,
    device: str = "auto",
) -> Found:
    """Return scores and numbers of the ``k`` best documents of every query, best first.

    All documents are scored; they may come in pieces, one of which is on the device at a time.
    Equal scores are in the order of the documents; which of them are the last on the list is open.
    """
    if k < 1:
        raise InputError(f"k is {k}, expected 1, 2, 3 …")
    best: Found = np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64)
    seen = 0
    for piece in [documents] if isinstance(documents, TokenVectors) else documents:
        for scores, numbers in _searched(queries, piece, k, device):
            best = keep_best(best, (scores, numbers + seen), k)
        seen += len(piece)
    return best


def _searched(
    queries: TokenVectors, documents: TokenVectors, k: int, device: str
) -> Iterator[Found]:
    """Yield the best documents of every query, block by block of documents."""
    import torch

    if not len(queries):
        return
    there = _There(queries, documents, device)
    width = int(queries.lengths.max(initial=1))
    tokens = max(1, min(there.values // (32 * width), 1 << 19))
    for rows in batches(np.maximum(documents.lengths, 1), tokens):
        parts = []
        with torch.inference_mode(), full_products():
            # Tokens before documents: maxima are then taken of whole rows at a time.
            block = there.documents(rows).transpose(0, 1).contiguous()
            numbers = torch.from_numpy(rows).to(block.device)
            for some in there.blocks_of_queries(width * block.shape[0] * block.shape[1]):
                asked = there.queries(some)
                products = asked.flatten(0, 1) @ block.flatten(0, 1).T
                sums = products.view(len(some), -1, *block.shape[:2]).amax(2).sum(1)
                scores, order = sums.topk(min(k, len(rows)), dim=1)
                parts.append((scores.cpu().numpy(), numbers[order].cpu().numpy()))
        yield np.concatenate([part[0] for part in parts]), np.concatenate([p[1] for p in parts])


class _There:
    """Both sides on the device, with a row of zeros at the end of each."""

    def __init__(self, queries: TokenVectors, documents: TokenVectors, device: str) -> None:
        import torch

        if queries.vectors.shape[1] != documents.vectors.shape[1]:
            raise InputError(
                f"documents have {documents.vectors.shape[1]} dimensions and queries "
                f"{queries.vectors.shape[1]}; both must come from one model."
            )
        where = device_of(device)
        self.values = _CPU_VALUES if where == "cpu" else _GPU_VALUES
        self._sides = [
            (
                torch.nn.functional.pad(
                    torch.tensor(np.asarray(side.vectors), device=where), (0, 0, 0, 1)
                ),
                side.starts[:-1],
                side.lengths,
            )
            for side in (queries, documents)
        ]

    def queries(self, numbers: Ints) -> Any:
        """Return the vectors of these queries, padded with zeros."""
        return self._padded(0, numbers, repeat=False)

    def documents(self, numbers: Ints) -> Any:
        """Return the vectors of these documents, padded with the first of each."""
        return self._padded(1, numbers, repeat=True)

    def blocks_of_queries(self, values: int) -> Iterator[Ints]:
        """Yield the numbers of all queries, as many at a time as may have so many products each."""
        count = len(self._sides[0][1])
        size = max(1, self.values // max(1, values))
        for start in range(0, count, size):
            yield np.arange(start, min(count, start + size))

    def _padded(self, side: int, numbers: Ints, *, repeat: bool) -> Any:
        import torch

        vectors, starts, lengths = self._sides[side]
        counts = lengths[numbers][:, None]
        places = np.arange(max(1, int(counts.max(initial=1))))[None, :]
        first = starts[numbers][:, None]
        zeros = len(vectors) - 1
        beyond = np.where(counts > 0, first, zeros) if repeat else np.full_like(first, zeros)
        rows = np.where(places < counts, first + places, beyond)
        return vectors[torch.from_numpy(rows).to(vectors.device)].float()
