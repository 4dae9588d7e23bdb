"""Which relevant documents do systems find alone and together, and what is left to gain?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import fusions as fusion_family
from farfield import stats
from farfield.errors import InputError
from farfield.fusions import Fusion
from farfield.io import read_qrels, read_queries
from farfield.judged import Judgements, ranks_of
from farfield.measures import Measure
from farfield.questions._groups import Groups, group
from farfield.questions.evaluate import Evaluation, PathLike, Runs, evaluate, named_runs, open_runs
from farfield.tables import Qrels, Queries, Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["BEST_RUN", "DEFAULT_MEASURES", "Complement", "complement"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Used when no measure is asked for.
DEFAULT_MEASURES = ("R@1000", "nDCG@10")
#: What the best single run of each query is called: a bound, since it needs the judgements.
BEST_RUN = "best run per query"

_MOST_RUNS = 60  # a set of runs is a number of 64 bits
_NOTHING = 1e-12  # a mean headroom below this is rounding
_ALL_SETS = 3  # of so few runs every set is listed, also those that found nothing


@dataclass(frozen=True)
class Complement:
    """What runs find alone and together, and how much of what is left to gain fusions gain.

    ``found`` counts, for each query and set of runs (a number whose bit r stands for run r), the
    relevant documents that these runs found within ``depth`` and no other did; the first set, 0, is
    what nobody found.
    """

    evaluation: Evaluation
    runs: tuple[str, ...]
    fusions: tuple[str, ...]
    sets: Ints
    found: Ints  # (queries, sets)
    depth: int
    rel: int
    groups: Groups | None = None

    @property
    def relevant(self) -> int:
        """How many relevant documents are judged."""
        return int(self.found.sum())

    @cached_property
    def table(self) -> pl.DataFrame:
        """Sets of runs: the documents that exactly they found, and their share of all relevant.

        ``runs``, ``size`` (of the set), ``count``, ``share``, ``low``, ``high``; the largest count
        first, and last what nobody found. Of up to three runs every set is listed.
        """
        sizes = np.array([int(s).bit_count() for s in self.sets])
        found = self._shares(self.found)
        frame = pl.DataFrame(
            {
                "runs": [" & ".join(self._names(s)) for s in self.sets],
                "size": sizes,
                "count": self.found.sum(axis=0),
                **found,
            }
        )
        order = np.lexsort((self.sets, sizes, -frame["count"].to_numpy(), sizes == 0))
        return frame[order]

    @cached_property
    def systems(self) -> pl.DataFrame:
        """Runs: what each found (found, share, low, high), and what it found alone (alone, …)."""
        bits = (self.sets[:, None] >> np.arange(len(self.runs))) & 1
        alone = (self.sets[:, None] == (1 << np.arange(len(self.runs)))).astype(np.int64)
        every = (self.sets > 0).astype(np.int64)[:, None]
        columns: dict[str, Any] = {"system": [*self.runs, "any of them"]}
        for name, chosen in (("found", bits), ("alone", alone)):
            # What all of them found alone is nothing: no other is left.
            whole = every if name == "found" else np.zeros_like(every)
            counts = self.found @ np.concatenate([chosen, whole], axis=1)
            shares = self._shares(counts)
            prefix = "" if name == "found" else "alone_"
            columns |= {name: counts.sum(axis=0)}
            columns |= {f"{prefix}{part}": values for part, values in shares.items()}
        return pl.DataFrame(columns)

    @cached_property
    def headroom(self) -> pl.DataFrame:
        """For each measure and way to combine: its mean, and the share of the headroom it gains.

        The headroom is what the oracle (all relevant documents first) has over the best single
        run, which is the one with the best mean. ``captured`` is (value - best single) / headroom,
        summed over the queries, with low and high; null where there is no headroom.
        """
        rows: list[dict[str, Any]] = []
        for measure in self.evaluation.measures:
            values = self._values(measure)
            single = _best(values, self.runs, measure)
            values[BEST_RUN] = self._best_run(values, measure)
            names = [*self.fusions, BEST_RUN, "oracle()"]
            sign = 1.0 if measure.higher_is_better else -1.0
            gains = np.stack([sign * (values[name] - values[single]) for name in names], axis=1)
            room = gains[:, -1]
            matrix = np.stack([values[name] for name in (*names, single)], axis=1)
            *means, of_single = stats.means(matrix, **self._options)
            shares = stats.ratios(gains, room, **self._options)
            some = bool(room.sum() > _NOTHING * len(room))
            for name, mean, share in zip(names, means, shares, strict=True):
                rows.append(
                    {
                        "measure": str(measure),
                        "system": name,
                        "mean": mean.value,
                        "best_single": single,
                        "single_mean": of_single.value,
                        "captured": share.value if some else None,
                        "low": share.low if some else None,
                        "high": share.high if some else None,
                    }
                )
        schema = {"captured": pl.Float64, "low": pl.Float64, "high": pl.Float64}
        return pl.DataFrame(rows, schema_overrides=schema)

    @cached_property
    def breakdown(self) -> pl.DataFrame:
        """Means for each kind of query: group, system, measure, mean, low, high, n."""
        if self.groups is None:
            return pl.DataFrame(schema={"group": pl.String})
        ids = self._query_ids
        labels = np.array([self.groups.of[query] for query in ids])
        rows: list[dict[str, Any]] = []
        for name in self.groups.names:
            chosen = labels == name
            if not chosen.any():
                continue
            for measure in self.evaluation.measures:
                values = self._values(measure)
                matrix = np.stack([v[chosen] for v in values.values()], axis=1)
                for system, mean in zip(values, stats.means(matrix, **self._options), strict=True):
                    rows.append(
                        {
                            "group": name,
                            "system": system,
                            "measure": str(measure),
                            "mean": mean.value,
                            "low": mean.low,
                            "high": mean.high,
                            "n": mean.n,
                        }
                    )
        return pl.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield complement --json`` prints."""
        sets = [
            {"runs": row.pop("runs").split(" & ") if row["size"] else [], **_finite(row)}
            for row in self.table.to_dicts()
        ]
        headroom: dict[str, Any] = {}
        for row in self.headroom.iter_rows(named=True):
            entry = headroom.setdefault(
                row["measure"],
                {"best_single": row["best_single"], "single_mean": row["single_mean"], "by": {}},
            )
            kept = {key: row[key] for key in ("mean", "captured", "low", "high")}
            entry["by"][row["system"]] = _finite(kept)
        found = {
            "relevant": self.relevant,
            "depth": self.depth,
            "rel": self.rel,
            "sets": sets,
            "systems": [_finite(row) for row in self.systems.to_dicts()],
            "headroom": headroom,
            **self.evaluation.to_dict(),
        }
        if self.groups is not None:
            rows = [_finite(row) for row in self.breakdown.to_dicts()]
            found["breakdown"] = {"by": self.groups.by, "rows": rows}
        return found

    def figure(self) -> go.Figure:
        """Draw who found what (circles for up to three runs), and the headroom."""
        from farfield.questions._complement_figures import draw

        return draw(self)

    # -- inside -----------------------------------------------------------------------------

    @property
    def _options(self) -> dict[str, Any]:
        evaluation = self.evaluation
        return {
            "level": evaluation.level,
            "resamples": evaluation.resamples,
            "seed": evaluation.seed,
        }

    @cached_property
    def _query_ids(self) -> list[str]:
        frame = self.evaluation.per_query.frame
        return frame["query_id"].head(self.evaluation.queries).to_list()

    def _values(self, measure: Measure) -> dict[str, Floats]:
        """Values of each system, query by query in the order of the evaluation."""
        frame = self.evaluation.per_query.frame.filter(pl.col("measure") == str(measure))
        values = frame["value"].to_numpy().reshape(len(self.evaluation.systems), -1)
        return dict(zip(self.evaluation.systems, values, strict=True))

    def _best_run(self, values: dict[str, Floats], measure: Measure) -> Floats:
        choose = np.max if measure.higher_is_better else np.min
        return np.asarray(choose([values[run] for run in self.runs], axis=0), dtype=np.float64)

    def _names(self, chosen: int) -> list[str]:
        return [run for r, run in enumerate(self.runs) if int(chosen) >> r & 1]

    def _shares(self, counts: Ints) -> dict[str, list[float]]:
        found = stats.ratios(counts, self.found.sum(axis=1), **self._options)
        return {
            "share": [e.value for e in found],
            "low": [e.low for e in found],
            "high": [e.high for e in found],
        }


def complement(
    qrels: Qrels | PathLike,
    runs: Runs,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    fusions: Iterable[str | Fusion] = ("rrf()",),
    queries: Queries | PathLike | None = None,
    by: str | None = None,
    edges: Sequence[float] | None = None,
    depth: int = 1000,
    rel: int = 1,
    ties: str = "trec",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Complement:
    """Ask how runs complement one another: who finds what, and what a fusion gains of it.

    Relevant are documents judged ``rel`` or more, found are those within ``depth``. Every run,
    each of ``fusions`` and the oracle are evaluated. With ``queries`` and ``by`` (``length``,
    ``content``, ``wh`` or a column; ``edges`` for buckets of numbers) every measure is also broken
    down by kinds of queries.
    """
    if depth < 1:
        raise InputError(f"depth is {depth}, expected 1, 2, 3 … documents of each list.")
    judgements = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    groups = _groups(judgements, queries, by, edges)
    named = named_runs(runs)
    if not 2 <= len(named) <= _MOST_RUNS:
        raise InputError(f"{len(named)} run was given, expected 2 to {_MOST_RUNS}.")
    members = [fusion_family.parse(fusion) for fusion in fusions]
    labels = [str(member) for member in members]
    taken = {*(name for name, _ in named), "oracle()"}
    for label in labels:
        if label in taken:
            raise InputError(
                f"{label!r} is there twice. Give each fusion once, and rename the run."
            )
        taken.add(label)
    opened = list(open_runs(named, ties=ties))
    sets, found = _found(judgements, opened, depth, rel)
    ways = [*members, fusion_family.parse("oracle()")]
    combined = (
        replace(way, depth=way.depth or depth).fuse(
            opened, k=depth, name=str(way), qrels=judgements
        )
        for way in ways
    )
    evaluation = evaluate(
        judgements,
        {run.name: run for run in (*opened, *combined)},
        measures,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    names = tuple(run.name for run in opened)
    return Complement(evaluation, names, tuple(labels), sets, found, depth, rel, groups)


def _groups(
    qrels: Qrels, queries: Queries | PathLike | None, by: str | None, edges: Sequence[float] | None
) -> Groups | None:
    if by is None:
        if queries is not None or edges is not None:
            raise InputError("queries are for a breakdown. Say by what: by='length' (--by length).")
        return None
    if queries is None:
        raise InputError(f"a breakdown by {by} needs the queries. Pass queries (--queries FILE).")
    table = queries if isinstance(queries, Queries) else read_queries(queries)
    groups = group(table, by, edges)
    missing = [query for query in qrels.query_ids if query not in groups.of]
    if missing:
        raise InputError(
            f"{len(missing):,} judged queries are not among the queries, like {missing[0]!r}. Give "
            "the queries that were judged."
        )
    return groups


def _found(qrels: Qrels, runs: Sequence[Run], depth: int, rel: int) -> tuple[Ints, Ints]:
    """Sets of runs, and how many relevant documents of each query exactly they found."""
    relevant = qrels.relevant(rel)
    if not len(relevant):
        raise InputError(f"no document is judged {rel} or more. Choose a smaller rel (--rel).")
    judgements = Judgements.of(relevant)
    members = np.zeros(len(judgements.query), dtype=np.int64)
    for number, run in enumerate(runs):
        rank, _ = ranks_of(judgements, run)
        members |= (rank <= depth).astype(np.int64) << number
    few = np.arange(1 << len(runs)) if len(runs) <= _ALL_SETS else np.zeros(1, dtype=np.int64)
    sets = np.union1d(members, few)
    place = np.searchsorted(sets, members)
    cells = judgements.query * len(sets) + place
    counts = np.bincount(cells, minlength=len(judgements.query_ids) * len(sets))
    return sets, counts.reshape(-1, len(sets))


def _best(values: dict[str, Floats], runs: Sequence[str], measure: Measure) -> str:
    totals = {run: values[run].sum() for run in runs}
    choose = max if measure.higher_is_better else min
    return choose(runs, key=lambda run: totals[run])


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in row.items()
    }
