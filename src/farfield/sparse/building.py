"""Build an index in one pass over the documents, block by block.

A block is made of nothing but its own documents, so blocks can be made by several threads, in any
order, and those that were finished before a crash are used again. At the end only vocabularies
are brought together. Memory holds a few blocks at a time, whatever the number of documents.

A folder holds ``documents.arrow`` (ids) and ``terms.arrow`` (sorted), ``lengths.npy``, ``df.npy``,
``cf.npy``, ``bounds.npy`` (where blocks of documents start), and for each block, in ``blocks``,
``terms`` (numbers), ``starts``, ``docs`` and ``weights``: see :class:`~farfield.sparse.Inverted`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import FileError
from farfield.io.files import first_sentence, replacing
from farfield.progress import counting
from farfield.sparse.index import Block, Postings, SparseIndex
from farfield.sparse.inverted import BLOCK, Inverted
from farfield.tables import Corpus

__all__ = ["Invert", "build", "open_index"]

Ints = npt.NDArray[np.int64]
Invert = Callable[[pl.DataFrame], Inverted]

# What reading a damaged file may raise.
_FAULTS = (OSError, ValueError, pl.exceptions.PolarsError)

# Fewer documents than this are one block; more are at least four, so that several cores help.
_FEW = 8_192
# Vocabularies of so many blocks are numbered together.
_TOGETHER = 16


def build(
    corpus: Corpus, invert: Invert, folder: Path | None = None, scratch: Path | None = None
) -> SparseIndex:
    """Index documents; ``invert`` makes an :class:`Inverted` of a frame of some of them.

    With a ``folder`` the index is written there, and in ``scratch`` what is needed only until it
    is finished; blocks that are there already are not made again.
    """
    order = corpus.frame["doc_id"].arg_sort(descending=True)
    bounds = _bounds(len(order))
    store = _Memory() if folder is None or scratch is None else _Folder(folder, scratch)

    with (
        counting(len(order), "indexing") as count,
        ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as threads,
    ):

        def make(number: int) -> None:
            first, last = int(bounds[number]), int(bounds[number + 1])
            if not store.has(number):
                store.put(number, invert(corpus.frame[order.slice(first, last - first)]))
            count(last - first)

        for _ in threads.map(make, range(len(bounds) - 1)):
            pass
    return store.finish(corpus.frame["doc_id"].gather(order), bounds)


def open_index(folder: Path) -> SparseIndex:
    """Open an index that :func:`build` wrote; arrays are mapped, not read."""
    try:
        array = partial(np.load, allow_pickle=False)
        bounds = array(folder / "bounds.npy")
        return SparseIndex(
            partial(_read_strings, folder / "documents.arrow"),
            array(folder / "lengths.npy", mmap_mode="r"),
            partial(_read_strings, folder / "terms.arrow"),
            array(folder / "df.npy", mmap_mode="r"),
            array(folder / "cf.npy", mmap_mode="r"),
            _blocks(bounds, partial(_open_postings, folder)),
        )
    except _FAULTS as error:
        raise _damaged(folder, error) from error


def _damaged(folder: Path, error: Exception) -> FileError:
    reason = first_sentence(error)
    return FileError(folder, f"this index is damaged ({reason}). Remove it and index again.")


def _bounds(documents: int) -> Ints:
    """Where blocks of about the same size start; they depend on nothing but the number."""
    blocks = -(-documents // BLOCK)
    if documents > _FEW:
        blocks = -(-blocks // 4) * 4
    return np.linspace(0, documents, blocks + 1).astype(np.int64)


def _blocks(bounds: Ints, load: Callable[[int], Postings]) -> list[Block]:
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return [Block(a, b, partial(load, number)) for number, (a, b) in enumerate(pairs)]


# -- where blocks go ----------------------------------------------------------------------------


class _Memory:
    """Blocks that stay in memory."""

    def __init__(self) -> None:
        self._made: dict[int, Inverted] = {}

    def has(self, number: int) -> bool:
        return number in self._made

    def put(self, number: int, block: Inverted) -> None:
        self._made[number] = block

    def finish(self, doc_ids: pl.Series, bounds: Ints) -> SparseIndex:
        made = [self._made[number] for number in range(len(bounds) - 1)]
        terms, df, cf, numbers = _bring_together([_vocabulary(block) for block in made])
        postings = [
            Postings(number, block.starts, block.docs, block.weights)
            for number, block in zip(numbers, made, strict=True)
        ]
        lengths = np.concatenate([block.lengths for block in made])
        blocks = _blocks(bounds, postings.__getitem__)
        return SparseIndex(lambda: doc_ids, lengths, lambda: terms, df, cf, blocks)


class _Folder:
    """Blocks that go to files; a block counts as made when its vocabulary is there."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder, self._scratch = folder, scratch
        for path in (folder / "blocks", scratch):
            path.mkdir(parents=True, exist_ok=True)

    def has(self, number: int) -> bool:
        return self._vocabulary(number).exists()

    def put(self, number: int, block: Inverted) -> None:
        for name in ("starts", "docs", "weights"):
            _save(_block_file(self._folder, number, name), getattr(block, name))
        _save(self._lengths(number), block.lengths)
        with replacing(self._vocabulary(number)) as file:
            _vocabulary(block).write_ipc(file)

    def finish(self, doc_ids: pl.Series, bounds: Ints) -> SparseIndex:
        folder, numbers = self._folder, range(len(bounds) - 1)
        found = [pl.read_ipc(self._vocabulary(number)) for number in numbers]
        terms, df, cf, coded = _bring_together(found)
        for number, codes in enumerate(coded):
            _save(_block_file(folder, number, "terms"), codes)
        lengths = np.concatenate([np.load(self._lengths(number)) for number in numbers])
        arrays = {"lengths": lengths, "df": df, "cf": cf, "bounds": bounds}
        for name, array in arrays.items():
            _save(folder / f"{name}.npy", array)
        for name, column in (("documents", doc_ids), ("terms", terms)):
            with replacing(folder / f"{name}.arrow") as file:
                column.to_frame().write_ipc(file)
        return open_index(folder)

    def _vocabulary(self, number: int) -> Path:
        return self._scratch / f"{number:05}.terms.arrow"

    def _lengths(self, number: int) -> Path:
        return self._scratch / f"{number:05}.lengths.npy"


def _open_postings(folder: Path, number: int) -> Postings:
    names = ("terms", "starts", "docs", "weights")
    paths = (_block_file(folder, number, name) for name in names)
    try:
        return Postings(*(np.load(path, mmap_mode="r", allow_pickle=False) for path in paths))
    except _FAULTS as error:
        raise _damaged(folder, error) from error


def _block_file(folder: Path, number: int, name: str) -> Path:
    return folder / "blocks" / f"{number:05}.{name}.npy"


def _save(path: Path, array: npt.NDArray[Any]) -> None:
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def _read_strings(path: Path) -> pl.Series:
    try:
        return pl.read_ipc(path).to_series()
    except _FAULTS as error:
        raise _damaged(path.parent, error) from error


# -- vocabularies -------------------------------------------------------------------------------


def _vocabulary(block: Inverted) -> pl.DataFrame:
    """The terms of a block: term, df (how many documents have it), cf (sum of its weights)."""
    sums = np.add.reduceat(block.weights, block.starts[:-1], dtype=np.float64)
    return pl.DataFrame(
        {"term": block.terms, "df": np.diff(block.starts).astype(np.int64), "cf": sums}
    )


def _bring_together(
    vocabularies: list[pl.DataFrame],
) -> tuple[pl.Series, Ints, npt.NDArray[np.float64], list[npt.NDArray[np.int32]]]:
    """All terms, sorted; df and cf over all blocks; for each block the numbers of its terms."""
    terms = pl.concat([frame["term"] for frame in vocabularies]).unique().sort()
    numbered = terms.to_frame().with_row_index("number")
    df, cf = np.zeros(len(terms), np.int64), np.zeros(len(terms))
    numbers: list[npt.NDArray[np.int32]] = []
    for first in range(0, len(vocabularies), _TOGETHER):
        some = vocabularies[first : first + _TOGETHER]
        joined = pl.concat([frame.select("term") for frame in some]).join(
            numbered, on="term", how="left", maintain_order="left"
        )
        ends = np.cumsum([len(frame) for frame in some])[:-1]
        for frame, codes in zip(some, np.split(joined["number"].to_numpy(), ends), strict=True):
            number = codes.astype(np.int32)
            df[number] += frame["df"].to_numpy()
            cf[number] += frame["cf"].to_numpy()
            numbers.append(number)
    return terms, df, cf, numbers
