"""The nearest documents of every query by inner product: exact, and fast on a GPU.

On a GPU the product is taken in half precision, which is quick but coarse, and finding the best of
a million scores costs more than computing them. So documents are grouped: the maximum of every
group is taken, the best groups are found among the maxima (the best documents are in them, one
group each at worst), and then the best documents within those. What is found is scored again in
single precision. A bound on the rounding tells whether a document that was left out could belong to
the best; for those queries, few if any, all is done in single precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.neural.models import device_of
from farfield.neural.vectors import Ints, Matrix

__all__ = ["Found", "full_products", "keep_best", "search", "top_products"]

Scores = npt.NDArray[np.float32]
Found = tuple[Scores, Ints]

_GROUP = 16  # documents of which the maximum is taken first
_ROUNDING = 2.0**-11  # half precision, relative
_CPU_ROWS, _GPU_ROWS = 1 << 16, 1 << 20  # documents at a time
_GPU_BYTES = 1 << 32  # for scores


def search(
    queries: Matrix, documents: Matrix | Iterable[Matrix], k: int, *, device: str = "auto"
) -> Found:
    """Return scores and row numbers of the ``k`` best documents of every query, best first.

    ``documents`` may be a matrix or come in pieces, which are read one after the other: memory is
    that of one block, whatever their number. Equal scores are in the order of their rows; which of
    them are the last on the list is open. With fewer than ``k`` documents there are fewer columns.
    """
    if k < 1:
        raise InputError(f"k is {k}, expected 1, 2, 3 …")
    where = device_of(device)
    asked = np.ascontiguousarray(queries, dtype=np.float32)
    if asked.ndim != 2 or not np.isfinite(asked).all():
        raise InputError("queries must be a matrix of finite numbers, a row for each of them.")
    pieces = [documents] if isinstance(documents, np.ndarray) else documents
    finder = _on_cpu if where == "cpu" else _on_gpu(asked, where)
    best: Found = np.zeros((len(asked), 0), np.float32), np.zeros((len(asked), 0), np.int64)
    seen = 0
    for block in _blocks(pieces, _CPU_ROWS if where == "cpu" else _GPU_ROWS):
        if block.shape[1] != asked.shape[1]:
            raise InputError(
                f"documents have {block.shape[1]} dimensions and queries {asked.shape[1]}; "
                "both must come from one model."
            )
        scores, rows = finder(asked, block, min(k, len(block)))
        best = keep_best(best, (scores, rows + seen), k)
        seen += len(block)
    return best


def keep_best(one: Found, other: Found, k: int) -> Found:
    """Return the ``k`` best of two lists for every query, equals in the order of their rows."""
    scores = np.concatenate([one[0], other[0]], axis=1)
    rows = np.concatenate([one[1], other[1]], axis=1)
    unsorted = (scores[:, 1:] >= scores[:, :-1]).any(axis=1)  # few, where one list is empty
    order = np.lexsort((rows[unsorted], -scores[unsorted]), axis=1)
    scores[unsorted] = np.take_along_axis(scores[unsorted], order, axis=1)
    rows[unsorted] = np.take_along_axis(rows[unsorted], order, axis=1)
    return scores[:, :k], rows[:, :k]


def _blocks(pieces: Iterable[Matrix], size: int) -> Iterator[Matrix]:
    """Yield blocks of ``size`` rows, from pieces of any size."""
    held: list[Matrix] = []
    count = 0
    for given in pieces:
        if given.ndim != 2:
            raise InputError(f"documents have the shape {given.shape}, expected a matrix.")
        piece = given
        while count + len(piece) >= size:
            cut = size - count
            yield np.concatenate([*held, piece[:cut]]) if held else piece[:cut]
            held, count, piece = [], 0, piece[cut:]
        if len(piece):
            held.append(piece)
            count += len(piece)
    if held:
        yield np.concatenate(held) if len(held) > 1 else held[0]


def _not_finite() -> InputError:
    return InputError("documents hold a value that is no finite number. Encode them again.")


# -- CPU ------------------------------------------------------------------------------------------


def _on_cpu(queries: Scores, documents: Matrix, k: int) -> Found:
    import faiss

    block = np.ascontiguousarray(documents, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        whole = block.sum(dtype=np.float64)  # finite if, and only if, all of them are
    if not np.isfinite(whole):
        raise _not_finite()
    scores, rows = faiss.knn(queries, block, k, metric=faiss.METRIC_INNER_PRODUCT)
    return scores, rows.astype(np.int64)


# -- GPU ------------------------------------------------------------------------------------------


def _on_gpu(queries: Scores, device: str) -> Any:
    import torch

    there = torch.from_numpy(queries).to(device)

    def find(_: Scores, documents: Matrix, k: int) -> Found:
        array = np.ascontiguousarray(documents)
        if not array.flags.writeable:  # torch warns of memory it must not write to
            array = array.copy()
        scores, rows = top_products(there, torch.from_numpy(array).to(device), k)
        return scores.cpu().numpy(), rows.cpu().numpy()

    return find


def top_products(queries: Any, documents: Any, k: int) -> tuple[Any, Any]:
    """Return scores and rows of the ``k`` best documents of every query, all of them torch tensors.

    Exact in single precision, up to the order of equals; made for a GPU, right anywhere.
    """
    import torch

    with torch.inference_mode(), full_products():
        asked = queries.float()
        count = len(documents)
        k = min(k, count)
        norms = torch.linalg.vector_norm(documents, dim=1, dtype=torch.float32)
        longest = float(norms.max()) if count else 0.0
        if not np.isfinite(longest):
            raise _not_finite()
        # Queries of length 1 and documents of about that: no product leaves half precision.
        unit = asked / torch.linalg.vector_norm(asked, dim=1, keepdim=True).clamp_min(1e-30)
        scale = 1.0 if 1e-2 < longest < 1e4 else max(longest, 1e-30)
        coarse, lost = _halved(documents, scale)
        coarse_unit = unit.half()
        lost_of_queries = torch.linalg.vector_norm(unit - coarse_unit.float(), dim=1)
        error = lost_of_queries * (longest / scale) + lost + 1e-5 * longest / scale
        take = min(count, k + max(32, k // 4))
        scores = torch.empty((len(asked), k), device=asked.device)
        rows = torch.empty((len(asked), k), dtype=torch.int64, device=asked.device)
        unsure = torch.zeros(len(asked), dtype=torch.bool, device=asked.device)
        select = _Selection(coarse, take)
        for start in range(0, len(asked), select.queries):
            at = slice(start, start + select.queries)
            lowest, candidates = select(coarse_unit[at])
            exact = _products_of(asked[at], documents, candidates)
            scores[at], order = exact.topk(k, dim=1)
            rows[at] = candidates.gather(1, order)
            if take < count:
                worst = _products_of(unit[at], documents, rows[at][:, -1:])[:, 0] / scale
                bound = lowest + lowest.abs() * _ROUNDING + 1e-7 + error[at]
                unsure[at] = worst < bound
        again = unsure.nonzero()[:, 0]
        for part in torch.split(again, max(1, _room(documents.device) // (4 * max(1, count)))):
            scores[part], rows[part] = (asked[part] @ documents.float().T).topk(k, dim=1)
        return scores, rows


def _halved(documents: Any, scale: float) -> tuple[Any, float]:
    """Return documents in half precision, and the most that rounding moves one of them."""
    import torch

    if documents.dtype == torch.float16 and scale == 1.0:
        return documents, 0.0
    coarse = torch.empty(documents.shape, dtype=torch.float16, device=documents.device)
    lost = torch.zeros((), device=documents.device)
    for start in range(0, len(documents), _CPU_ROWS):
        part = documents[start : start + _CPU_ROWS].float() / scale
        coarse[start : start + _CPU_ROWS] = part
        moved = part - coarse[start : start + _CPU_ROWS].float()
        lost = torch.maximum(lost, torch.linalg.vector_norm(moved, dim=1).max())
    return coarse, float(lost)


class _Selection:
    """The best documents of a block of queries by coarse scores, through maxima of groups.

    A group is not of neighbours but of documents a stride apart, so that maxima are taken of whole
    rows at a time; the columns of the product are padded to a multiple of the groups' sizes.
    """

    def __init__(self, documents: Any, take: int) -> None:
        count = len(documents)
        self.take, self.count, self.transposed = take, count, documents.T
        # Few columns need no groups; with many, groups of groups cost least at this size.
        self.sizes: list[int] = []
        if count > 4 * _GROUP * take:
            outer = 1 << round(np.log2(max(1.0, np.sqrt(count / _GROUP / take))))
            self.sizes = [_GROUP, outer] if outer > 1 else [_GROUP]
        whole = int(np.prod(self.sizes)) * 8  # rows that start where the matrix units like it
        self.width = -(-count // whole) * whole
        # As many queries at a time as there is room for their scores, and for what they find.
        room = _room(documents.device)
        rows = min(room // (2 * max(1, self.width)), room // (6 * take * documents.shape[1] + 1))
        self.queries = int(max(1, rows // 128 * 128 if rows >= 128 else rows))
        self._scores: Any = None

    def __call__(self, queries: Any) -> tuple[Any, Any]:
        import torch

        if self._scores is None or len(self._scores) < len(queries):
            shape = len(queries), self.width  # columns beyond the documents stay at the bottom
            self._scores = queries.new_full(shape, -torch.inf)
        scores = self._scores[: len(queries)]
        torch.mm(queries, self.transposed, out=scores[:, : self.count])
        levels = [scores]
        for size in self.sizes:
            finer = levels[-1]
            levels.append(finer.view(len(finer), size, -1).amax(1))
        best, found = levels[-1].topk(self.take, dim=1, sorted=False)
        for size, finer in zip(self.sizes[::-1], levels[-2::-1], strict=True):
            stride = finer.shape[1] // size
            members = torch.arange(size, device=found.device) * stride
            members = (found[:, :, None] + members).flatten(1)
            best, order = finer.gather(1, members).topk(self.take, dim=1, sorted=False)
            found = members.gather(1, order)
        return best.amin(1).float(), found.clamp_max(self.count - 1)


def _room(device: Any) -> int:
    """Return how many bytes scores may take."""
    import torch

    if device.type != "cuda":
        return _GPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    return int(min(_GPU_BYTES, free // 4))


def _products_of(queries: Any, documents: Any, rows: Any) -> Any:
    """Return the products of every query with documents of its own, in single precision."""
    return (documents[rows].float() @ queries[:, :, None])[:, :, 0]


@contextmanager
def full_products() -> Iterator[None]:
    """No product in single precision is rounded meanwhile, nor a sum of halves kept in halves."""
    import torch

    flags = torch.backends.cuda.matmul
    kept = flags.allow_tf32, flags.allow_fp16_reduced_precision_reduction
    flags.allow_tf32, flags.allow_fp16_reduced_precision_reduction = False, False
    try:
        yield
    finally:
        flags.allow_tf32, flags.allow_fp16_reduced_precision_reduction = kept
