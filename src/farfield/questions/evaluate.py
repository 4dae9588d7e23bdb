"""What is each run worth?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import measures as measure_family
from farfield import stats
from farfield.errors import InputError
from farfield.io import name_of, read_qrels, read_run
from farfield.judged import Judgements, judge
from farfield.measures import Measure
from farfield.progress import track
from farfield.tables import PerQuery, Qrels, Run

__all__ = ["DEFAULT_MEASURES", "Evaluation", "Runs", "evaluate"]

#: Used when no measure is asked for.
DEFAULT_MEASURES = ("nDCG@10", "RR@10", "R@1000", "AP")

PathLike = str | os.PathLike[str]
Runs = Run | PathLike | Iterable[Run | PathLike] | Mapping[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """Values of measures for every judged query and run, and what the reader should know.

    ``missing`` counts, for each run, judged queries that it lacks (they count as 0, or as the
    worst value); ``ties`` neighbours of equal score in its rankings; ``unjudged`` queries of the
    run that nobody judged (they are left out).
    """

    per_query: PerQuery
    measures: tuple[Measure, ...]
    systems: tuple[str, ...]
    queries: int
    missing: dict[str, int]
    ties: dict[str, int]
    unjudged: dict[str, int]
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Means with intervals: system, measure, mean, low, high, n."""
        return stats.summarise(
            self.per_query, level=self.level, resamples=self.resamples, seed=self.seed
        )

    @property
    def query_ids(self) -> pl.Series:
        """The judged queries, sorted."""
        return self.per_query.frame["query_id"].head(self.queries)

    def values(self, measure: str | Measure | None = None) -> npt.NDArray[np.float64]:
        """Return the values of a measure (the first by default): systems x judged queries.

        Rows are in the order of ``systems``, columns in that of ``query_ids``.
        """
        labels = [str(m) for m in self.measures]
        at = 0 if measure is None else labels.index(str(measure_family.parse(measure)))
        shape = len(self.systems), len(labels), self.queries
        return self.per_query.frame["value"].to_numpy().reshape(shape)[:, at, :]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield evaluate --json`` prints."""
        values: dict[str, dict[str, Any]] = {system: {} for system in self.systems}
        for row in self.summary.iter_rows(named=True):
            values[row["system"]][row["measure"]] = {
                key: None if np.isnan(row[key]) else row[key] for key in ("mean", "low", "high")
            }
        return {
            "measures": values,
            "queries": self.queries,
            "missing": self.missing,
            "ties": self.ties,
            "unjudged": self.unjudged,
            "level": self.level,
        }


def evaluate(
    qrels: Qrels | PathLike,
    runs: Runs,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    ties: str = "trec",
    drop_self: bool = False,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Evaluation:
    """Evaluate runs, given as tables or as paths, against judgements.

    Every query in the qrels gets a value; one that a run lacks counts as 0. ``ties`` says how runs
    that are read from files are ordered (see :class:`~farfield.tables.Run`). ``drop_self`` leaves
    out documents with the id of their query, as BEIR does. Runs are read one at a time, so that
    many large ones fit in memory.
    """
    chosen = parse_measures(measures)
    judgements = Judgements.of(qrels if isinstance(qrels, Qrels) else read_qrels(qrels))
    counts: dict[str, list[int]] = {"missing": [], "ties": [], "unjudged": []}
    names: list[str] = []
    values: list[Any] = []
    for given in open_runs(named_runs(runs), ties=ties):
        run = given.without_self() if drop_self else given
        judged = judge(judgements, run)
        names.append(run.name)
        missing = int(judged.missing.sum())
        counts["missing"].append(missing)
        counts["ties"].append(run.tied)
        counts["unjudged"].append(len(run.query_ids) - (len(judged.query_ids) - missing))
        values += [measure.values(judged) for measure in chosen]
    return Evaluation(
        per_query=_per_query(judgements.query_ids, names, chosen, values),
        measures=chosen,
        systems=tuple(names),
        queries=len(judgements.query_ids),
        missing=dict(zip(names, counts["missing"], strict=True)),
        ties=dict(zip(names, counts["ties"], strict=True)),
        unjudged=dict(zip(names, counts["unjudged"], strict=True)),
        level=level,
        resamples=resamples,
        seed=seed,
    )


def parse_measures(measures: Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Make measures from their specs; each may be given once."""
    given = [measures] if isinstance(measures, str | Measure) else measures
    chosen = tuple(measure_family.parse(measure) for measure in given)
    if not chosen:
        raise InputError("no measure was given. Give at least one, like nDCG@10.")
    for i, measure in enumerate(chosen):
        if str(measure) in map(str, chosen[:i]):
            raise InputError(f"the measure {measure} is given twice.")
    return chosen


def named_runs(runs: Runs) -> list[tuple[str, Run | PathLike]]:
    """Return (name, run or path) of each run; a file's run is called after the file."""
    if isinstance(runs, Mapping):
        items = list(runs.items())
    else:
        given = [runs] if isinstance(runs, Run | str | os.PathLike) else list(runs)
        items = [(run.name if isinstance(run, Run) else name_of(run), run) for run in given]
    if not items:
        raise InputError("no run was given. Give at least one.")
    seen: dict[str, Any] = {}
    for name, source in items:
        if name in seen:
            raise InputError(
                f"two runs are called {name!r}: {_origin(seen[name])} and {_origin(source)}. "
                "Rename one of the files, or pass a mapping {name: run}."
            )
        seen[name] = source
    return items


def open_runs(named: Sequence[tuple[str, Run | PathLike]], *, ties: str = "trec") -> Iterator[Run]:
    """Yield runs one by one, reading those that are given as paths."""
    for name, source in track(named, "reading runs"):
        if isinstance(source, Run):
            yield source.named(name)
        else:
            yield read_run(source, ties=ties, name=name)


def _origin(source: Any) -> str:
    return repr(source) if isinstance(source, Run) else str(source)


def _per_query(
    query_ids: pl.Series, names: list[str], measures: Sequence[Measure], values: list[Any]
) -> PerQuery:
    queries, columns = len(query_ids), len(values)
    labels = [str(measure) for measure in measures]
    return PerQuery.trusted(
        pl.DataFrame(
            {
                "query_id": pl.concat([query_ids] * columns),
                "system": _repeat(names, queries * len(labels)),
                "measure": pl.concat([_repeat(labels, queries)] * len(names)),
                "value": np.concatenate(values),
            }
        )
    )


def _repeat(texts: list[str], times: int) -> pl.Series:
    """Each text so many times in a row."""
    return pl.Series(texts, dtype=pl.String).gather(np.repeat(np.arange(len(texts)), times))
