"""``ir:NAME``: collections of ir_datasets, when that is installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

import polars as pl

from farfield.collection import Card, Collection
from farfield.errors import InputError, MissingDependency, did_you_mean
from farfield.io.files import PathLike
from farfield.tables import Corpus, Qrels, Queries

__all__ = ["collection", "corpus", "is_name", "qrels", "queries"]


def is_name(path: PathLike) -> bool:
    """Is this a name for ir_datasets rather than a path?"""
    return os.fspath(path).startswith("ir:")


def corpus(name: str) -> Corpus:
    """Read all documents of a data set."""
    return Corpus(_frame(name, "docs", "doc_id"))


def queries(name: str) -> Queries:
    """Read all queries of a data set."""
    return Queries(_frame(name, "queries", "query_id"))


def qrels(name: str) -> Qrels:
    """Read the judgements of a data set."""
    return Qrels(_frame(name, "qrels", "query_id").select("query_id", "doc_id", "relevance"))


def collection(name: str) -> Collection:
    """Bundle a data set; its split is called after the last part of its name, or ``test``."""
    dataset = _load(name)
    last = name.rpartition("/")[2]
    split = last if last in ("train", "dev", "test", "validation") else "test"
    documentation = dataset.documentation() if hasattr(dataset, "documentation") else {}
    return Collection(
        name.removeprefix("ir:"),
        corpus=partial(corpus, name),
        queries=partial(queries, name),
        qrels={split: partial(qrels, name)},
        card=Card(description=str(documentation.get("desc", "")).strip()),
    )


def _load(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise MissingDependency("ir_datasets", name, extra="datasets") from None
    try:
        return ir_datasets.load(name.removeprefix("ir:"))
    except KeyError:
        known = [str(key) for key in ir_datasets.registry]
        wanted = name.removeprefix("ir:")
        raise InputError(
            f"ir_datasets has no data set {wanted!r}.{did_you_mean(wanted, known)}"
        ) from None


def _frame(name: str, part: str, id_column: str) -> pl.DataFrame:
    dataset = _load(name)
    if not getattr(dataset, f"has_{part}")():
        raise InputError(f"{name} has no {part}. Try one of its subsets, or the set above it.")
    try:
        return _to_frame(getattr(dataset, f"{part}_iter")(), id_column)
    except InputError:
        raise
    except Exception as error:  # downloads fail in as many ways as there are hosts
        raise InputError(
            f"ir_datasets could not provide the {part} of {name}: {type(error).__name__}: {error}. "
            "Without a network, put its files into the folder that ir_datasets names."
        ) from error


def _to_frame(records: Iterable[Any], id_column: str) -> pl.DataFrame:
    rows = [record._asdict() for record in records]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    if "text" in frame.columns or "relevance" in frame.columns or not rows:
        return frame
    # Data sets without a text have several fields that together are one (title, abstract …).
    texts = [n for n, t in frame.schema.items() if t == pl.String and n != id_column]
    return frame.with_columns(text=pl.concat_str(texts, separator=" ", ignore_nulls=True))
