"""The human way: a sheet to annotate, and annotators' labels read back.

A row is a pair of a test and a training query. Annotators fill in ``entity`` (full, partial, zero)
and ``intent`` (duplicate, similar, dissimilar), or the numbers 2, 1, 0. Of several annotators the
median counts, and agreement is Cohen's kappa, averaged over pairs of annotators. A test query has
the best label that any of its pairs has (Zhan et al. 2022, Tables 1 and 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike, fspath
from typing import Any

import numpy as np
import polars as pl

from farfield.errors import FileError
from farfield.io.files import load
from farfield.io.records import delimited_line, read_delimited

__all__ = ["LABELS", "Annotation", "kappa", "read_labels", "sheet"]

#: Labels of each question, from none to most: their numbers are 0, 1, 2.
LABELS = {"entity": ("zero", "partial", "full"), "intent": ("dissimilar", "similar", "duplicate")}


@dataclass(frozen=True)
class Annotation:
    """Labels of test queries from annotators, and how far these agree.

    ``labels`` has query_id, question (entity, intent), label; ``kappa`` the mean over pairs of
    annotators for each question (``None`` with one annotator).
    """

    labels: pl.DataFrame
    kappa: dict[str, float | None]
    annotators: int
    pairs: int


def sheet(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the table to annotate, with empty columns entity and intent."""
    return pairs.select(
        "query_id",
        "text",
        "train_id",
        "train_text",
        pl.lit("").alias("entity"),
        pl.lit("").alias("intent"),
    )


def read_labels(paths: Sequence[str | PathLike[str]]) -> Annotation:
    """Read the sheets of one or more annotators; all must hold the same pairs."""
    tables = [_read(path) for path in paths]
    first = tables[0].select("query_id", "train_id")
    for path, table in zip(paths[1:], tables[1:], strict=True):
        if not table.select("query_id", "train_id").equals(first):
            raise FileError(fspath(path), f"its pairs differ from those of {fspath(paths[0])}.")
    labels, agreement = [], {}
    for question, names in LABELS.items():
        values = np.stack([table[question].to_numpy() for table in tables])
        # With an even number of annotators the median may fall between two labels: the lower one.
        median = np.floor(np.median(values, axis=0)).astype(np.int64)
        best = first.with_columns(value=median).group_by("query_id").agg(pl.col("value").max())
        labels.append(
            best.sort("query_id").select(
                "query_id",
                pl.lit(question).alias("question"),
                pl.Series(names).gather(best.sort("query_id")["value"]).alias("label"),
            )
        )
        scores = [kappa(a, b) for a, b in combinations(values, 2)]
        agreement[question] = float(np.mean(scores)) if scores else None
    return Annotation(pl.concat(labels), agreement, len(tables), len(first))


def kappa(one: Any, other: Any) -> float:
    """Cohen's kappa: agreement beyond chance; 1 if both always give one and the same label."""
    a, b = np.asarray(one), np.asarray(other)
    observed = float((a == b).mean())
    expected = sum(float((a == v).mean() * (b == v).mean()) for v in np.union1d(a, b))
    return 1.0 if expected == 1.0 else (observed - expected) / (1.0 - expected)


def _read(path: str | PathLike[str]) -> pl.DataFrame:
    content = load(path)
    frame = read_delimited(content, ",")
    missing = [c for c in ("query_id", "train_id", *LABELS) if c not in frame.columns]
    if missing:
        raise content.error(
            f"no column {missing[0]!r}. Expected a sheet with query_id, train_id, entity, intent."
        )
    columns = {}
    for question, names in LABELS.items():
        numbers = {name: i for i, name in enumerate(names)} | {str(i): i for i in range(len(names))}
        given = frame[question].str.strip_chars().str.to_lowercase()
        values = [numbers.get(text) for text in given]
        if None in values:
            row = values.index(None)
            raise content.error(
                f"{question} is {frame[question][row]!r}. Expected {', '.join(names)} or 0, 1, 2.",
                delimited_line(content, ",", row),
            )
        columns[question] = pl.Series(question, values, dtype=pl.Int64)
    return frame.select("query_id", "train_id").with_columns(**columns).sort("query_id", "train_id")
