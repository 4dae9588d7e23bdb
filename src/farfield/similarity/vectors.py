"""Rankings of vectors by their inner product: the best of every query, the best rank of every item.

Every pair is compared. Similarities are made in blocks, by as many threads as there are processors,
and looked at while they are in the cache; the matrix of all pairs is never held. Equals are ordered
by their number, so that the result is one and the same however the work was shared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError, MissingDependency

__all__ = ["best_ranks", "in_threads", "top_k"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
T = TypeVar("T")

# Items in a block, and queries that are compared with it: 4,096 x 1,024 similarities take 16 MB.
# (A query's number within a block has 16 bits.)
_ITEMS = 4096
_QUERIES = 1024
_ITEMS_ON_GPU = 1 << 17
# Similarities held at once where whole rankings are needed: 256 MB.
_HELD = 64_000_000
# Multiplications from which a second thread pays.
_MANY = 100_000_000


def top_k(
    queries: Floats, items: Floats, k: int, *, device: str | None = None
) -> tuple[Ints, Floats]:
    """The ``k`` items with the largest inner product for every query, best first.

    Returns their numbers and the products, a row for each query (shorter than ``k`` where there are
    fewer items). With ``device`` ("cuda", "cpu") torch does the work; which of several equals at
    the end of a list are kept is then left to it.
    """
    queries, items = _checked(queries, items)
    if k < 1:
        raise InputError(f"k is {k}, expected 1, 2, 3 …")
    k = min(k, len(items))
    if device is not None:
        return _top_by_torch(queries, items, k, device)
    rows = np.empty((len(queries), k), dtype=np.int64)
    values = np.empty((len(queries), k), dtype=np.float32)
    if rows.size == 0:
        return rows, values
    step = min(len(items), max(_ITEMS, 4 * k))
    # Parts of equal size: a last one of a few queries would take as long as a whole one.
    most = max(1, min(_QUERIES, _ITEMS * _QUERIES // step))
    ends = np.linspace(0, len(queries), -(-len(queries) // most) + 1).round().astype(int)
    for first, end in pairwise(ends):
        rows[first:end], values[first:end] = _top_of_some(queries[first:end], items, k, step)
    return rows, values


def best_ranks(queries: Floats, items: Floats) -> tuple[npt.NDArray[np.int32], Floats]:
    """For every item the best rank (from 1) that it has with any query, and its largest product.

    Each query ranks all items; equals by their number.
    """
    queries, items = _checked(queries, items)
    if not len(queries):
        raise InputError("no queries: without one the items have no rank.")
    count = len(items)
    ranks = np.full(count, count, dtype=np.int32)
    values = np.full(count, -np.inf, dtype=np.float32)
    step = min(len(queries), max(1, _HELD // max(count, 1)))
    similar = np.empty((step, count), dtype=np.float32)
    for first in range(0, len(queries), step):
        asked = queries[first : first + step]
        _rank(asked, items, similar[: len(asked)], ranks, values)
    return ranks, values


def in_threads(work: Callable[[Iterator[int]], T], tasks: range, multiplications: int) -> list[T]:
    """Let threads call ``work`` with tasks to take; small work is done by the calling thread.

    Every thread takes the next task when it has finished one, so each gets its tasks in order. The
    threads multiply matrices alone, whatever the library of algebra was told.
    """
    threads = min(_processors(), len(tasks)) if multiplications >= _MANY else 1
    if threads <= 1:
        return [work(iter(tasks))]
    from concurrent.futures import ThreadPoolExecutor

    shared = _Shared(tasks)
    with _one_thread_each(), ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(work, [iter(shared)] * threads))
        finally:
            shared.clear()  # after a fault, or when the user interrupts, nothing more is begun


class _Shared:
    """Tasks of which each is handed out once: two threads may ask at the same time."""

    def __init__(self, tasks: range) -> None:
        self._left = list(reversed(tasks))

    def __iter__(self) -> _Shared:
        return self

    def __next__(self) -> int:
        try:
            return self._left.pop()
        except IndexError:
            raise StopIteration from None

    def clear(self) -> None:
        self._left.clear()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1, user_api="blas"):
        yield


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checked(queries: Floats, items: Floats) -> tuple[Floats, Floats]:
    queries, items = (np.ascontiguousarray(v, dtype=np.float32) for v in (queries, items))
    if queries.ndim != 2 or items.ndim != 2 or queries.shape[1] != items.shape[1]:
        raise InputError(
            f"vectors of shapes {queries.shape} and {items.shape} cannot be compared. Expected two "
            "matrices with equally many columns."
        )
    if not np.isfinite(queries).all():
        raise InputError("a query's vector holds NaN or infinity. Encode it again.")
    return queries, items


def _check_finite(products: Floats, first: int) -> None:
    """Stop at items that hold NaN or infinity: so do their products with any query."""
    bad = np.flatnonzero(~np.isfinite(products))
    if len(bad):
        raise InputError(
            f"the vector of item {first + bad[0]} (counted from 0) holds NaN, infinity or numbers "
            "too large to multiply. Encode it again."
        )


# -- full rankings ------------------------------------------------------------------------------


def _rank(
    queries: Floats,
    items: Floats,
    similar: Floats,
    ranks: npt.NDArray[np.int32],
    values: Floats,
) -> None:
    """Improve the ranks and values of items by some queries; ``similar`` is room to work in."""

    def compare(starts: Iterator[int]) -> None:
        for start in starts:
            block = slice(start, start + _ITEMS)
            np.matmul(queries, items[block].T, out=similar[:, block])
            _check_finite(similar[0, block], start)
            np.maximum(values[block], similar[:, block].max(axis=0), out=values[block])

    places = np.arange(1, len(items) + 1, dtype=np.int32)

    def rank(rows: Iterator[int]) -> npt.NDArray[np.int32]:
        best, own = ranks.copy(), np.empty_like(ranks)
        for row in rows:
            own[_ranking(similar[row])] = places
            np.minimum(best, own, out=best)
        return best

    work = len(queries) * items.size
    in_threads(compare, range(0, len(items), _ITEMS), work)
    for best in in_threads(rank, range(len(queries)), work):
        np.minimum(ranks, best, out=ranks)


def _ranking(values: Floats) -> Ints:
    """The order of numbers from the largest, equals by their place."""
    keys = _keys(values, np.arange(len(values), dtype=np.uint64))
    keys.sort()  # the processor's vector units do it, in half the time of an argsort
    return _places(keys)


def _keys(values: Floats, places: npt.NDArray[np.uint64]) -> Keys:
    """Numbers whose order is that of a ranking: above, the value, turned; below, its place."""
    bits = (values + np.float32(0)).view(np.uint32)  # adding 0 turns -0 into 0
    return (_turned(bits).astype(np.uint64) << np.uint64(32)) | places


def _places(keys: Keys) -> Ints:
    return (keys & np.uint64(0xFFFFFFFF)).view(np.int64)


def _values(keys: Keys) -> Floats:
    return _turned((keys >> np.uint64(32)).astype(np.uint32)).view(np.float32)


def _turned(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The bits of numbers such that larger numbers come first; turned twice they are as before."""
    return np.where(bits >> 31, bits, ~bits & np.uint32(0x7FFFFFFF))


# -- the best of a block of queries -------------------------------------------------------------


def _top_of_some(queries: Floats, items: Floats, k: int, step: int) -> tuple[Ints, Floats]:
    def search(starts: Iterator[int]) -> _Best:
        best = _Best(len(queries), k)
        similar = np.empty((step, len(queries)), dtype=np.float32)
        for start in starts:
            block = items[start : start + step]
            found = np.matmul(block, queries.T, out=similar[: len(block)])
            _check_finite(found[:, 0], start)
            best.add(found, start)
        return best

    parts = in_threads(search, range(0, len(items), step), len(queries) * items.size)
    return _Best.of(parts).listed()


class _Best:
    """The best items so far of some queries: candidates, sorted out when there are many.

    A candidate is what beats the k-th best known when it was seen. Sorting them out raises that
    mark, so half of the candidates of all times are seen in the first few blocks.
    """

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self.least = np.full(queries, -np.inf, dtype=np.float32)
        self.parts: list[tuple[npt.NDArray[np.uint16], Keys]] = []
        self.waiting = 0

    @classmethod
    def of(cls, found: list[_Best]) -> _Best:
        """What several have found together."""
        first, *others = found
        for other in others:
            first.parts += other.parts
        return first

    def add(self, similar: Floats, first: int) -> None:
        """Look at the similarities of some items (rows), of which the first has this number."""
        queries = similar.shape[1]
        if not self.parts and len(similar) > self.k:
            at = len(similar) - self.k
            where = np.flatnonzero(similar >= np.partition(similar, at, axis=0)[at])
        else:
            where = np.flatnonzero(similar > self.least)
        item, query = np.divmod(where, queries)
        keys = _keys(similar.ravel()[where], (item + first).astype(np.uint64))
        self.parts.append((query.astype(np.uint16), keys))
        self.waiting += len(where)
        if self.waiting >= queries * self.k:
            self._sort_out()

    def _sort_out(self) -> tuple[npt.NDArray[np.uint16], Keys]:
        query, keys = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        order = np.argsort(keys)
        order = order[np.argsort(query[order], kind="stable")]  # of 16 bits: digit by digit
        query, keys = query[order], keys[order]
        sizes = np.bincount(query, minlength=len(self.least))
        starts = np.cumsum(sizes) - sizes
        kept = np.arange(len(query)) - np.repeat(starts, sizes) < self.k
        full = sizes >= self.k
        self.least[full] = _values(keys[starts[full] + self.k - 1])
        self.parts, self.waiting = [(query[kept], keys[kept])], 0
        return self.parts[0]

    def listed(self) -> tuple[Ints, Floats]:
        """Items and similarities, a row for each query."""
        _, keys = self._sort_out()
        return _places(keys).reshape(-1, self.k), _values(keys).reshape(-1, self.k)


# -- the same on a GPU --------------------------------------------------------------------------


def _top_by_torch(queries: Floats, items: Floats, k: int, device: str) -> tuple[Ints, Floats]:
    try:
        import torch
    except ImportError:
        raise MissingDependency("torch", f"device={device!r}", extra="neural") from None
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device is {device!r}, but torch finds no GPU here. Leave it out.")
    asked = torch.from_numpy(queries).to(device)
    value = torch.full((len(queries), k), -torch.inf, device=device)
    item = torch.full((len(queries), k), -1, dtype=torch.int64, device=device)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # the program around us may want speed instead
    try:
        for start in range(0, len(items), _ITEMS_ON_GPU):
            block = torch.from_numpy(items[start : start + _ITEMS_ON_GPU]).to(device)
            for first in range(0, len(queries), _QUERIES):
                part = slice(first, first + _QUERIES)
                found = asked[part] @ block.T
                if first == 0:
                    _check_finite(found[0].cpu().numpy(), start)
                top = found.topk(min(k, len(block)), dim=1)
                both = torch.cat([value[part], top.values], dim=1)
                order = both.argsort(dim=1, descending=True, stable=True)[:, :k]
                value[part] = both.gather(1, order)
                item[part] = torch.cat([item[part], top.indices + start], dim=1).gather(1, order)
    finally:
        torch.set_float32_matmul_precision(precision)
    rows, values = item.cpu().numpy(), value.cpu().numpy()
    equals = np.lexsort((rows, -values))  # these by their number
    return np.take_along_axis(rows, equals, axis=1), np.take_along_axis(values, equals, axis=1)
