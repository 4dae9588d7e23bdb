"""Which weights would have been best, and do they hold up on queries they were not chosen on?"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import fusions, stats
from farfield import measures as measure_family
from farfield.errors import InputError
from farfield.fusions import Fusion
from farfield.fusions._pool import Pool, Rankings, blocks, gather
from farfield.io import read_qrels
from farfield.judged import NEVER, Judgements, by_rank
from farfield.measures import Measure
from farfield.questions._choosing import check_folds, choose
from farfield.questions.compare import _finite as finite
from farfield.questions.evaluate import PathLike, Runs, named_runs, open_runs
from farfield.tables import PerQuery, Qrels, Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["BEST", "TUNED", "Tuning", "tune"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: What the tuned setting is called among the systems: each query by a choice made without it.
TUNED = "tuned"
#: What the best setting for each query is called: a bound, since it needs the judgements.
BEST = "best per query"

_MOST_SETTINGS = 2_000


@dataclass(frozen=True)
class Tuning:
    """A search for the best setting of a fusion.

    ``best`` is the best on all queries, and what one would use. What it is worth on other queries
    is said by the system ``tuned`` of ``per_query``: there every query is fused with the setting
    that was best on the other folds. ``choices`` has that setting for each fold.
    """

    fusion: Fusion
    best: Fusion
    measure: Measure
    runs: tuple[str, ...]
    settings: tuple[Fusion, ...]
    query_ids: pl.Series
    values: Floats  # (queries, settings)
    fold: Ints  # of each query
    choices: tuple[int, ...]  # the setting chosen without each fold
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    @cached_property
    def per_query(self) -> PerQuery:
        """Values of the fusion as given, tuned (out of fold), and with the best of each query."""
        rows = np.arange(len(self.query_ids))
        tuned = self.values[rows, np.array(self.choices)[self.fold]]
        systems = [str(self.fusion), TUNED, BEST]
        columns = [self.values[:, 0], tuned, self.per_query_best["value"].to_numpy()]
        return PerQuery.trusted(
            pl.DataFrame(
                {
                    "query_id": pl.concat([self.query_ids] * len(systems)),
                    "system": np.repeat(systems, len(rows)),
                    "measure": [str(self.measure)] * (len(rows) * len(systems)),
                    "value": np.concatenate(columns),
                }
            )
        )

    @cached_property
    def per_query_best(self) -> pl.DataFrame:
        """The best setting of each query, an upper bound: query_id, fusion, value."""
        sign = 1 if self.measure.higher_is_better else -1
        at = np.argmax(sign * self.values, axis=1)
        names = pl.Series([str(setting) for setting in self.settings])
        return pl.DataFrame(
            {
                "query_id": self.query_ids,
                "fusion": names.gather(at),
                "value": self.values[np.arange(len(at)), at],
            }
        )

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Means with intervals: system, measure, mean, low, high, n."""
        return stats.summarise(
            self.per_query, level=self.level, resamples=self.resamples, seed=self.seed
        )

    @cached_property
    def gain(self) -> dict[str, Any]:
        """The tuned fusion against the one that was given: difference, interval, p …"""
        table = stats.contrasts(
            self.per_query.frame.filter(pl.col("system") != BEST),
            str(self.fusion),
            level=self.level,
            resamples=self.resamples,
            seed=self.seed,
            lower_is_better=[] if self.measure.higher_is_better else [str(self.measure)],
        )
        return table.row(0, named=True)

    @cached_property
    def curve(self) -> pl.DataFrame:
        """Every setting: fusion, the weight of each run, other options, mean, low, high, best."""
        found = stats.means(self.values, level=self.level, resamples=self.resamples, seed=self.seed)
        shares = np.array([_shares(setting, len(self.runs)) for setting in self.settings])
        columns: dict[str, Any] = {"fusion": [str(setting) for setting in self.settings]}
        columns |= {f"weight of {run}": shares[:, i] for i, run in enumerate(self.runs)}
        columns |= {
            name: [getattr(setting, name) for setting in self.settings]
            for name in self.fusion.choices()
        }
        columns |= {part: [getattr(e, part) for e in found] for part in ("value", "low", "high")}
        columns["best"] = [setting == self.best for setting in self.settings]
        return pl.DataFrame(columns).rename({"value": "mean"})

    @cached_property
    def folds(self) -> pl.DataFrame:
        """What was chosen without each fold: fold, queries, fusion."""
        return pl.DataFrame(
            {
                "fold": np.arange(1, len(self.choices) + 1),
                "queries": np.bincount(self.fold, minlength=len(self.choices)),
                "fusion": [str(self.settings[choice]) for choice in self.choices],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield fuse --tune --json`` prints under ``tuning``."""
        found = {
            row["system"]: {part: finite(row[part]) for part in ("mean", "low", "high")}
            for row in self.summary.iter_rows(named=True)
        }
        gain = {key: finite(value) for key, value in self.gain.items()}
        return {
            "fusion": str(self.fusion),
            "measure": str(self.measure),
            "best": str(self.best),
            "untuned": found[str(self.fusion)],
            "tuned": found[TUNED],
            "best_per_query": found[BEST],
            "gain": {key: gain[key] for key in ("difference", "low", "high", "p")},
            "folds": self.folds.to_dicts(),
            "settings": len(self.settings),
            "queries": len(self.query_ids),
            "curve": [
                {key: finite(value) for key, value in row.items()} for row in self.curve.to_dicts()
            ],
        }

    def figure(self) -> go.Figure:
        """Draw the mean of every setting, with the tuned and the best per query as lines."""
        from farfield.questions._tune_figures import draw

        return draw(self)


def tune(
    qrels: Qrels | PathLike,
    runs: Runs,
    fusion: str | Fusion = "interpolate()",
    measure: str | Measure = "nDCG@10",
    *,
    k: int | None = 1000,
    folds: int = 5,
    steps: int = 10,
    ties: str = "trec",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Tuning:
    """Search for the best weights of a fusion, and say what they are worth on other queries.

    What the spec says stays; what it leaves open is searched: the weights, in ``steps`` steps
    from 0 to 1 that share one whole, and the constant of rrf. Queries are dealt into ``folds`` by
    ``seed``; each is valued with the setting that is best on all other folds. Of equally good
    settings the one as given wins, then the earlier.
    """
    member, chosen = fusions.parse(fusion), measure_family.parse(measure)
    judgements = Judgements.of(qrels if isinstance(qrels, Qrels) else read_qrels(qrels))
    check_folds(folds, len(judgements.query_ids))
    named = named_runs(runs)
    settings = _grid(member, len(named), steps)
    opened = list(open_runs(named, ties=ties))
    values = _values(judgements, opened, settings, chosen, k)
    best, fold, choices = choose(values, chosen, folds, seed)
    return Tuning(
        fusion=member,
        best=settings[best],
        measure=chosen,
        runs=tuple(run.name for run in opened),
        settings=settings,
        query_ids=judgements.query_ids,
        values=values,
        fold=fold,
        choices=choices,
        level=level,
        resamples=resamples,
        seed=seed,
    )


# -- the settings -------------------------------------------------------------------------------


def _grid(fusion: Fusion, runs: int, steps: int) -> tuple[Fusion, ...]:
    """All settings to try; first the one that was given."""
    fusion.check([None] * runs, qrels=None)
    if steps < 1:
        raise InputError(f"steps is {steps}, expected 1, 2, 3 … steps from weight 0 to 1.")
    options = fusion.choices()
    shares = [()] if fusion.weights else _simplex(runs, steps)
    size = len(shares) * int(np.prod([len(values) + 1 for values in options.values()]))
    if size > _MOST_SETTINGS:
        raise InputError(
            f"steps={steps} for {runs} runs makes {size:,} settings of {fusion}, more than "
            f"{_MOST_SETTINGS:,}. Take fewer steps or fewer runs"
            + (f", or say {' and '.join(options)} in the spec." if options else ".")
        )
    found: list[Fusion] = []
    for share in shares:
        weighted = fusion if len(set(share)) <= 1 else fusion.weighted(share)
        for chosen in product(*((None, *values) for values in options.values())):
            given = {n: v for n, v in zip(options, chosen, strict=True) if v is not None}
            found.append(replace(weighted, **given))
    if len(found) < 2:
        raise InputError(
            f"{fusion} leaves nothing open. Leave out its weights, and they are searched."
        )
    return (fusion, *(setting for setting in found if setting != fusion))


def _simplex(runs: int, steps: int) -> list[tuple[float, ...]]:
    """All ways to share a whole in so many steps among the runs."""
    if comb(steps + runs - 1, runs - 1) > _MOST_SETTINGS:
        # Only their number matters: it will be refused.
        return [()] * comb(steps + runs - 1, runs - 1)
    parts = [share for share in product(range(steps + 1), repeat=runs - 1) if sum(share) <= steps]
    return [tuple(p / steps for p in (*share, steps - sum(share))) for share in parts]


def _shares(setting: Fusion, runs: int) -> Floats:
    weights = np.array(setting.shares(runs))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


# -- the values ---------------------------------------------------------------------------------


def _values(
    judgements: Judgements,
    runs: Sequence[Run],
    settings: Sequence[Fusion],
    measure: Measure,
    k: int | None,
) -> Floats:
    """The value of every judged query under every setting.

    Documents are brought together once for all settings, and of each ranking only the places of
    judged documents are kept.
    """
    rankings = Rankings(runs, settings[0].window(k), judgements.query_ids)
    ranks = np.full((len(settings), len(judgements.query)), NEVER)
    retrieved = np.zeros(len(judgements.query_ids), dtype=np.int64)

    def look(block: tuple[int, int]) -> None:
        pool = gather(rankings, *block)
        rows, at, number = _judged_in(pool, judgements)
        lengths = np.diff(pool.bounds)
        retrieved[number] = lengths if k is None else np.minimum(lengths, k)
        for setting, found in zip(settings, ranks, strict=True):
            rank = pool.ranks(setting.scores(pool), at)
            found[rows] = rank if k is None else np.where(rank <= k, rank, NEVER)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(look, blocks(rankings)))
    columns = [measure.values(by_rank(judgements, rank, retrieved)) for rank in ranks]
    return np.stack(columns, axis=1)


def _judged_in(pool: Pool, judgements: Judgements) -> tuple[Ints, Ints, Ints]:
    """Rows of the judgements, the pool's documents that they are, and the pool's queries."""
    names = judgements.query_ids.to_frame("id").with_row_index("number")
    wanted = pool.queries.to_frame("id")
    number = wanted.join(names, on="id", how="left", maintain_order="left")["number"].to_numpy()
    bounds = np.searchsorted(judgements.query, np.stack((number, number + 1)))
    rows = np.concatenate([np.arange(low, high) for low, high in bounds.T])
    judged = pl.DataFrame(
        {"query": judgements.query[rows], "doc": judgements.doc_ids.gather(rows), "row": rows}
    )
    pooled = pl.DataFrame({"query": number[pool.query].astype(np.int64), "doc": pool.doc_ids()})
    met = pooled.with_row_index("at").join(judged, on=["query", "doc"], maintain_order="left")
    return met["row"].to_numpy(), met["at"].to_numpy(), number.astype(np.int64)
