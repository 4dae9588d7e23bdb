"""Which documents does a retriever find, and which of its settings finds the most?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import measures as measure_family
from farfield import retrievers, stats
from farfield.collection import Collection
from farfield.errors import InputError, did_you_mean
from farfield.io import read_corpus, read_qrels, read_queries
from farfield.measures import Measure
from farfield.progress import track
from farfield.questions._choosing import check_folds, choose
from farfield.questions.evaluate import PathLike, evaluate
from farfield.questions.tune import TUNED
from farfield.retrievers import Index, Retriever
from farfield.tables import Corpus, PerQuery, Qrels, Queries, Run

__all__ = ["RetrieverTuning", "index", "search", "tune_retriever"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_SETTINGS = 2_000


def index(
    retriever: str | Retriever,
    corpus: Corpus | Collection | PathLike,
    folder: PathLike | None = None,
) -> Index:
    """Index documents with a retriever, in memory or in a folder.

    ``retriever`` is a member of :mod:`farfield.retrievers` or its spec, like ``"bm25(k1=0.9)"``;
    the documents are a table, a collection or a path. Work that was stopped in a folder is
    continued; if it was finished, it is opened.
    """
    return retrievers.parse(retriever).index(_corpus(corpus), folder)


def search(
    retriever: str | Retriever | Index | Path,
    queries: Queries | Collection | PathLike,
    k: int = 1000,
    *,
    corpus: Corpus | Collection | PathLike | None = None,
    folder: PathLike | None = None,
    name: str | None = None,
) -> Run:
    """Return the best ``k`` documents of each query.

    ``retriever`` is an index, the folder of one, or a retriever (or its spec). A retriever needs
    documents: those of ``corpus``, indexed in memory; or the index in ``folder``, which may have
    been made by another retriever with the same content. If neither is given, ``queries`` must be
    a collection (or its path), whose documents are taken.
    """
    asked = _queries(queries)
    return open_or_make(retriever, queries, corpus, folder).search(asked, k, name=name)


def open_or_make(
    retriever: str | Retriever | Index | Path,
    queries: Queries | Collection | PathLike,
    corpus: Corpus | Collection | PathLike | None = None,
    folder: PathLike | None = None,
) -> Index:
    """Find out what is to be searched."""
    if isinstance(retriever, Index):
        return retriever
    if isinstance(retriever, Path) or (
        isinstance(retriever, str) and "(" not in retriever and Path(retriever).is_dir()
    ):
        if corpus is not None or folder is not None:
            raise InputError(f"{retriever} is an index. Give its folder, or a retriever and more.")
        return retrievers.open(retriever)
    member = retrievers.parse(retriever)
    if folder is not None:
        if corpus is not None:
            raise InputError("give the documents or an index of them, not both.")
        return member.open(folder)
    if corpus is not None:
        return member.index(_corpus(corpus))
    if isinstance(queries, Collection) or (
        not isinstance(queries, Queries) and (Path(queries).is_dir() or _is_name(queries))
    ):
        return member.index(_corpus(queries))
    raise InputError(
        f"{member} needs documents to search. Give corpus (--corpus), the folder of an index "
        "(--index), or a collection for the queries."
    )


@dataclass(frozen=True)
class RetrieverTuning:
    """A search for the best setting of a retriever.

    ``best`` is the best on all queries, and what one would use. What it is worth on other queries
    is said by the system ``tuned`` of ``per_query``: there every query is searched with the
    setting that was best on the other folds. ``choices`` has that setting for each fold.
    """

    retriever: Retriever
    best: Retriever
    measure: Measure
    settings: tuple[Retriever, ...]
    query_ids: pl.Series
    values: Floats  # (queries, settings)
    fold: Ints  # of each query
    choices: tuple[int, ...]
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    @cached_property
    def table(self) -> pl.DataFrame:
        """Every setting: retriever, mean, low, high, best."""
        found = stats.means(self.values, level=self.level, resamples=self.resamples, seed=self.seed)
        return pl.DataFrame(
            {
                "retriever": [str(setting) for setting in self.settings],
                "mean": [estimate.value for estimate in found],
                "low": [estimate.low for estimate in found],
                "high": [estimate.high for estimate in found],
                "best": [setting == self.best for setting in self.settings],
            }
        )

    @cached_property
    def per_query(self) -> PerQuery:
        """Values of the retriever as given, and tuned on other queries."""
        rows = np.arange(len(self.query_ids))
        tuned = self.values[rows, np.array(self.choices)[self.fold]]
        return PerQuery.trusted(
            pl.DataFrame(
                {
                    "query_id": pl.concat([self.query_ids] * 2),
                    "system": np.repeat([str(self.retriever), TUNED], len(rows)),
                    "measure": [str(self.measure)] * (2 * len(rows)),
                    "value": np.concatenate((self.values[:, 0], tuned)),
                }
            )
        )

    @cached_property
    def gain(self) -> dict[str, Any]:
        """Tuned against given: difference, interval, p …"""
        table = stats.contrasts(
            self.per_query.frame,
            str(self.retriever),
            level=self.level,
            resamples=self.resamples,
            seed=self.seed,
            lower_is_better=[] if self.measure.higher_is_better else [str(self.measure)],
        )
        return table.row(0, named=True)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield search --tune --json`` prints under ``tuning``."""
        gain = {key: self.gain[key] for key in ("difference", "low", "high", "p")}
        return {
            "retriever": str(self.retriever),
            "measure": str(self.measure),
            "best": str(self.best),
            "gain": {key: _finite(value) for key, value in gain.items()},
            "queries": len(self.query_ids),
            "settings": [
                {**row, "low": _finite(row["low"]), "high": _finite(row["high"])}
                for row in self.table.iter_rows(named=True)
            ],
        }


def tune_retriever(
    retriever: str | Retriever,
    documents: Corpus | Collection | PathLike | Index,
    queries: Queries | Collection | PathLike,
    qrels: Qrels | PathLike,
    measure: str | Measure = "nDCG@10",
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    k: int = 1000,
    folds: int = 5,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> RetrieverTuning:
    """Search for the best setting of a retriever on judged queries, and say what it is worth.

    ``grid`` gives options and values to try, ``{"k1": [0.9, 1.2]}``; by default those that the
    retriever has (:meth:`~farfield.retrievers.Retriever.choices`). Documents are indexed once.
    Queries are dealt into ``folds`` by ``seed``; each is valued with the setting that is best on
    all other folds. Of equally good settings the one as given wins, then the earlier.
    """
    member, chosen = retrievers.parse(retriever), measure_family.parse(measure)
    settings = _settings(member, grid)
    judgements = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    asked = _queries(queries).select(judgements.query_ids)
    check_folds(folds, len(judgements.query_ids))
    if not len(asked):
        raise InputError("none of the judged queries is among the queries. Were files swapped?")
    made = documents if isinstance(documents, Index) else member.index(_corpus(documents))
    columns = []
    cutoff = getattr(chosen, "cutoff", None)
    depth = k if cutoff is None else min(k, cutoff)  # what is below does not count
    for setting in track(settings, "tuning"):
        run = made.using(setting).search(asked, depth)
        columns.append(evaluate(judgements, run, [chosen]).values()[0])
    values = np.stack(columns, axis=1)
    best, fold, choices = choose(values, chosen, folds, seed)
    return RetrieverTuning(
        retriever=member,
        best=settings[best],
        measure=chosen,
        settings=settings,
        query_ids=judgements.query_ids,
        values=values,
        fold=fold,
        choices=choices,
        level=level,
        resamples=resamples,
        seed=seed,
    )


def _settings(member: Retriever, grid: Mapping[str, Sequence[Any]] | None) -> tuple[Retriever, ...]:
    """All settings to try; first the one that was given."""
    options = dict(member.choices() if grid is None else grid)
    known = [field.name for field in fields(member)]
    for name in options:
        if name not in known:
            raise InputError(
                f"{member} has no option {name!r}.{did_you_mean(name, known)} "
                f"It has {', '.join(known)}."
            )
    size = int(np.prod([len(values) for values in options.values()])) if options else 0
    if not 1 <= size <= _MOST_SETTINGS:
        raise InputError(
            f"the grid for {member} has {size:,} settings, expected 1 to {_MOST_SETTINGS:,}. Give "
            "options with values to try, like k1=0.9,1.2."
        )
    found = [
        retrievers.parse(str(replace(member, **dict(zip(options, values, strict=True)))))
        for values in product(*options.values())
    ]
    return (member, *(setting for setting in found if setting != member))


def _corpus(given: Corpus | Collection | PathLike) -> Corpus:
    if isinstance(given, Corpus):
        return given
    return given.corpus if isinstance(given, Collection) else read_corpus(given)


def _queries(given: Queries | Collection | PathLike) -> Queries:
    if isinstance(given, Queries):
        return given
    return given.queries if isinstance(given, Collection) else read_queries(given)


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else value


def _is_name(path: PathLike) -> bool:
    return str(path).startswith("ir:")
