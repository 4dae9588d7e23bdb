"""Retrievers: an index over documents that answers queries with a run.

``parse("rm3(bm25(k1=0.9))")`` makes one from its spec, ``names()`` lists them, ``@add`` adds one;
``retriever.index(corpus)`` gives an index, ``index.search(queries, k=1000)`` a run, and
``open(folder)`` opens an index that was written before.
"""

from __future__ import annotations

from pathlib import Path

from farfield.io.files import PathLike
from farfield.registry import Family
from farfield.retrievers._sparse import SparseRetriever
from farfield.retrievers.base import Index, Manifest, Retriever

__all__ = [
    "Index",
    "Manifest",
    "Retriever",
    "SparseRetriever",
    "add",
    "get",
    "names",
    "open",
    "parse",
]

family: Family[Retriever] = Family("retrievers", Retriever)

add = family.add
get = family.get
names = family.names
parse = family.parse


def open(folder: PathLike) -> Index:
    """Open the index in a folder with the retriever that made it."""
    return parse(Manifest.read(Path(folder)).spec).open(folder)
