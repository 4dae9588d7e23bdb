"""Does a run solve what others leave unsolved?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import measures as measure_family
from farfield import stats
from farfield.errors import InputError, did_you_mean
from farfield.measures import Measure
from farfield.questions._priors import Bools, Integers, before, dates_of, turns
from farfield.questions.evaluate import Evaluation, PathLike, Runs, evaluate, named_runs
from farfield.tables import Qrels

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["AGGREGATIONS", "Coverage", "coverage"]

AGGREGATIONS = ("max", "mean")

Floats = npt.NDArray[np.float64]

_TIE = 1e-9  # two values closer than this are the same
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Coverage:
    """Task subspace coverage (TaSC) of runs, and who solves what.

    TaSC weighs a run's value on a query by what its priors leave to be done there, 1 minus their
    best (or mean) value. A query that no prior run touches counts in full, one that a prior run
    solves completely not at all. Runs are in order, the earliest first.
    """

    evaluation: Evaluation
    prior: Bools  # is the run of the column prior to the run of the row?
    turn: Integers  # runs of the same turn are equally early
    against: str
    agg: str = "max"
    solved: float = 0.0
    correction: str = "holm"
    dates: dict[str, str] | None = None

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per run: TaSC with interval, what a copy would score, what it adds …

        ``tasc``, ``low``, ``high``. ``clone``: the most that a copy of a prior run (``clone_of``)
        would score; ``beyond``: what the run scores more, with its interval and ``p``, of a test
        that exchanges run and copy on each query, and ``p_adjusted``. ``chance``: what it would
        score if its values were dealt out to the queries at random, and ``p_chance`` of that.
        ``gain``: what it adds to the best value of the prior runs (a copy adds 0). ``priors``
        counts them; without any TaSC is the measure, and the rest is null.
        """
        evaluation = self.evaluation
        values = self._values
        covered = self._room * values
        columns: dict[str, Any] = {
            "system": list(evaluation.systems),
            "priors": self.prior.sum(axis=1),
            "measure": self._plain(values),
            **self._estimates(covered, "tasc", "low", "high"),
        }
        copied = self._copies()
        copies = np.array([self._room[i] * values[at] for i, at in enumerate(copied)])
        columns["clone"] = self._plain(copies)
        columns["clone_of"] = [evaluation.systems[at] for at in copied]
        columns |= self._estimates(covered - copies, "beyond", "beyond_low", "beyond_high")
        columns["p"] = [self._exchanged(*pair) for pair in zip(covered, copies, strict=True)]
        columns["chance"] = np.array(self._plain(self._room)) * self._plain(values)
        dealt = stats.correlation_tests(values.T, self._room.T, seed=evaluation.seed)
        columns["p_chance"] = [test.p for test in dealt]
        gains = np.maximum(values - self._best_prior, 0.0)
        columns |= self._estimates(gains, "gain", "gain_low", "gain_high")
        return self._without_priors_null(pl.DataFrame(columns))

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """How differently any two runs answer: system, other, distance, low, high, difference …

        ``distance`` is the mean absolute difference of their values; ``difference`` the mean of
        system - other; ``wins``, ``ties`` and ``losses`` count queries.
        """
        values, systems = self._values, self.evaluation.systems
        one, two = np.triu_indices(len(systems), k=1)
        if not len(one):
            return pl.DataFrame(schema=_PAIRS)
        gaps = values[one] - values[two]
        wins, losses = (np.count_nonzero(x > _TIE, axis=1) for x in (gaps, -gaps))
        return pl.DataFrame(
            {
                "system": [systems[i] for i in one],
                "other": [systems[i] for i in two],
                **self._estimates(np.abs(gaps), "distance", "low", "high"),
                **self._estimates(gaps, "difference", "difference_low", "difference_high"),
                "wins": wins,
                "ties": gaps.shape[1] - wins - losses,
                "losses": losses,
            },
            schema=_PAIRS,
        )

    @cached_property
    def unsolved(self) -> pl.DataFrame:
        """Queries that no run solves, the hardest first: query_id, best, system (the best one)."""
        best = self._values.max(axis=0)
        which = pl.Series(self.evaluation.systems).gather(self._values.argmax(axis=0))
        frame = pl.DataFrame(
            {"query_id": self.evaluation.query_ids, "best": best, "system": which}
        ).with_columns(system=pl.when(pl.col("best") > 0).then("system"))
        return frame.filter(pl.Series(~self._is_solved.any(axis=0))).sort("best", "query_id")

    @cached_property
    def first(self) -> pl.DataFrame:
        """Who solved each query first: query_id, system, value, solvers (runs that solve it).

        Runs that share a turn and solve a query that none did before have a row each.
        """
        solved = self._is_solved
        turn = np.where(solved, self.turn[:, None], len(self.turn))
        query, system = np.nonzero((solved & (turn == turn.min(axis=0))).T)
        return pl.DataFrame(
            {
                "query_id": self.evaluation.query_ids.gather(query),
                "system": pl.Series(self.evaluation.systems).gather(system),
                "value": self._values[system, query],
                "solvers": solved.sum(axis=0)[query],
            }
        )

    @cached_property
    def greedy(self) -> pl.DataFrame:
        """Which run to add next: step, system, gain, low, high, covered.

        ``covered`` is the mean over queries of the best value of all runs so far, which is what a
        perfect choice of run for each query would score. Runs named in ``against`` are there from
        the start. Each step takes the run that adds most; as it was chosen for that, its gain is
        on the optimistic side.
        """
        values = self._values
        fixed = self.against not in ("others", "earlier")
        best = self._start if fixed else np.zeros(values.shape[1])
        left = [i for i in range(len(values)) if not (fixed and self._named[i])]
        chosen, gains, levels = [], [], []
        while left:
            grown = np.maximum(values[left], best)
            take = int(np.argmax(grown.sum(axis=1)))
            chosen.append(left.pop(take))
            gains.append(grown[take] - best)
            best = grown[take]
            levels.append(best)
        if not chosen:
            return pl.DataFrame(schema=_GREEDY)
        return pl.DataFrame(
            {
                "step": np.arange(1, len(chosen) + 1),
                "system": [self.evaluation.systems[i] for i in chosen],
                **self._estimates(np.array(gains), "gain", "low", "high"),
                "covered": self._plain(np.array(levels)),
            },
            schema=_GREEDY,
        )

    @cached_property
    def curves(self) -> pl.DataFrame:
        """The values of each run from best to worst: system, place, query_id, value."""
        evaluation = self.evaluation
        order = np.argsort(-self._values, axis=1, kind="stable")
        queries = evaluation.queries
        return pl.DataFrame(
            {
                "system": np.repeat(evaluation.systems, queries),
                "place": np.tile(np.arange(1, queries + 1), len(order)),
                "query_id": evaluation.query_ids.gather(order.ravel()),
                "value": np.take_along_axis(self._values, order, axis=1).ravel(),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield coverage --json`` prints."""
        tasc: dict[str, Any] = {}
        for row in self.table.iter_rows(named=True):
            system = row.pop("system")
            tasc[system] = {"value": row.pop("tasc"), **row}
            if self.dates is not None:
                tasc[system]["date"] = self.dates[system]
        return {
            "tasc": tasc,
            "measure": str(self.evaluation.measures[0]),
            "against": self.against,
            "agg": self.agg,
            "solved": self.solved,
            "correction": self.correction,
            "pairs": self.pairs.to_dicts(),
            "unsolved": self.unsolved.to_dicts(),
            "first": self.first.to_dicts(),
            "greedy": self.greedy.to_dicts(),
            **self.evaluation.to_dict(),
        }

    def figure(self) -> go.Figure:
        """Draw TaSC with intervals and copies, sorted curves, distances and who to add next."""
        from farfield.questions import _coverage_figures

        return _coverage_figures.draw(self)
