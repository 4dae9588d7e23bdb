"""Approximate neighbours: a faiss index that names candidates, which are then scored exactly.

``hnsw`` is a graph over all vectors, quick and close to exact; it needs them all in memory. It is
built by one thread, so that the same documents give the same graph. ``ivfpq`` puts vectors into
lists and keeps a byte for four dimensions: small, coarser.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from farfield.errors import FileError, InputError
from farfield.io.files import first_sentence
from farfield.progress import counting

__all__ = ["build", "candidates", "open_nearby", "write"]

Ints = npt.NDArray[np.int64]

_LINKS, _BUILDING = 32, 200  # of a graph: links of a vector, candidates for them
_LEAST = 256  # vectors that 8 bits need
_TRAINED_ON = 200_000


def build(
    how: str, rows: int, pieces: Callable[[], Iterator[npt.NDArray[Any]]], dimensions: int
) -> Any:
    """Build an index over the rows of all pieces, which are asked for twice."""
    faiss = _faiss()
    metric = faiss.METRIC_INNER_PRODUCT
    if how == "hnsw":
        made = faiss.IndexHNSWSQ(dimensions, faiss.ScalarQuantizer.QT_fp16, _LINKS, metric)
        made.hnsw.efConstruction = _BUILDING
        threads = 1
    else:
        if rows < _LEAST:
            raise InputError(
                f"lists of codes need at least {_LEAST} vectors, there are {rows}. Search these "
                "documents with search='exact'."
            )
        lists = int(np.clip(4 * np.sqrt(rows), 1, rows / 39))
        parts = next(n for n in range(max(1, dimensions // 4), 0, -1) if dimensions % n == 0)
        coarse = faiss.IndexFlatIP(dimensions)
        made = faiss.IndexIVFPQ(coarse, dimensions, lists, parts, 8, metric)
        made.nprobe = max(1, lists // 8)
        made.cp.seed = made.pq.cp.seed = 0
        made.cp.min_points_per_centroid = made.pq.cp.min_points_per_centroid = 1
        threads = faiss.omp_get_max_threads()
    with _threads(threads), counting(rows, "building") as count:
        made.train(_sample(pieces(), rows))
        for block in pieces():
            for first in range(0, len(block), 4_096):
                part = np.ascontiguousarray(block[first : first + 4_096], dtype=np.float32)
                made.add(part)
                count(len(part))
    return made


def candidates(
    index: Any, asked: npt.NDArray[np.float32], number: int, probes: int | None = None
) -> Ints:
    """Numbers of the rows that seem nearest to each query, -1 where there are fewer."""
    faiss = _faiss()
    number = min(number, index.ntotal)
    if isinstance(index, faiss.IndexHNSW):
        given = faiss.SearchParametersHNSW(efSearch=number)
    else:
        probed = index.nprobe if probes is None else min(probes, index.nlist)
        given = faiss.SearchParametersIVF(nprobe=probed)
    _, rows = index.search(np.ascontiguousarray(asked), number, params=given)
    found: Ints = rows.astype(np.int64)
    return found


def write(index: Any, path: Path, scratch: Path) -> None:
    """Write it to a file that is there only when it is whole."""
    import faiss

    faiss.write_index(index, str(scratch / path.name))
    os.replace(scratch / path.name, path)


def open_nearby(path: Path) -> Any:
    """Read an index that :func:`write` wrote."""
    import faiss

    try:
        return faiss.read_index(str(path))
    except RuntimeError as error:
        reason = first_sentence(error)
        message = f"this index is damaged ({reason}). Remove it and index again."
        raise FileError(path, message) from None


def _sample(blocks: Iterator[npt.NDArray[Any]], rows: int) -> npt.NDArray[np.float32]:
    """Rows to learn from, the same every time."""
    step = max(1, rows // _TRAINED_ON)
    found = [np.asarray(block[::step], dtype=np.float32) for block in blocks]
    return np.ascontiguousarray(np.concatenate(found))


def _faiss() -> Any:
    import faiss

    return faiss  # what it says of its types is not what it takes


@contextmanager
def _threads(number: int) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(number)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
