"""Read and write runs, qrels, queries, corpora and collections.

Formats are recognised by content and written by suffix; ``.gz`` and ``.zst`` work everywhere.
Writing is atomic and round trips are exact.
"""

from __future__ import annotations

from farfield.io.files import name_of
from farfield.io.reading import (
    kind_of,
    read,
    read_collection,
    read_corpus,
    read_qrels,
    read_queries,
    read_run,
    read_texts,
)
from farfield.io.writing import FORMATS, write, write_collection

__all__ = [
    "FORMATS",
    "kind_of",
    "name_of",
    "read",
    "read_collection",
    "read_corpus",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_texts",
    "write",
    "write_collection",
]
