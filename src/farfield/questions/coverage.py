"""Does a run solve what others leave unsolved?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import measures as measure_family
from farfield import stats
from farfield.errors import InputError
from farfield.measures import Measure
from farfield.questions._priors import Bools, Integers, before, dates_of, turns
from farfield.questions.evaluate import Evaluation, PathLike, Runs, evaluate, named_runs
from farfield.stats.checks import choice
from farfield.tables import Qrels

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["AGGREGATIONS", "Coverage", "coverage"]

AGGREGATIONS = ("max", "mean")

Floats = npt.NDArray[np.float64]

_TIE = 1e-9  # two values closer than this are the same
_NOTHING = 1e-15
_DEALS = 2000  # of values over queries; thousands of queries make each costly
_NEED_PRIORS = ["clone", "clone_of", "beyond", "beyond_low", "beyond_high", "p", "p_adjusted"]
_NEED_PRIORS += ["chance", "p_chance", "gain", "gain_low", "gain_high"]


@dataclass(frozen=True)
class Coverage:
    """Task subspace coverage (TaSC) of runs, and who solves what.

    TaSC weighs a run's value on a query by what its priors leave to be done there: 1 minus their
    best (or mean) value. A query that no prior run touches counts in full, one that a prior run
    solves completely not at all. Runs are in order, the earliest first.
    """

    evaluation: Evaluation
    prior: Bools  # is the run of the column prior to the run of the row?
    turn: Integers  # runs of the same turn are equally early
    against: str | tuple[str, ...] = "others"
    agg: str = "max"
    solved: float = 0.0
    correction: str = "holm"
    dates: dict[str, str] | None = None

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per run: TaSC with interval, what a copy would score, what the run adds …

        ``tasc``, ``low``, ``high``. ``clone``: the most that a copy of a prior run (``clone_of``)
        would score; ``beyond``: what the run scores more, with interval, and ``p`` of a test that
        exchanges run and copy on each query. ``chance``: what it would score if its values were
        dealt out to the queries at random, with ``p_chance``. ``gain``: what it adds to the best
        value of the prior runs (a copy adds 0). ``priors`` counts them; without any TaSC is the
        measure, and what needs them is null.
        """
        systems, seed = self.evaluation.systems, self.evaluation.seed
        values, room = self._values, self._room
        covered, copied = room * values, self._copied
        copies = room * values[copied]
        tests = [
            stats.paired_test(*rows, test="randomisation", seed=seed).p
            for rows in zip(covered, copies, strict=True)
        ]
        dealt = stats.correlation_tests(values.T, room.T, resamples=_DEALS, seed=seed)
        some = self.prior.any(axis=1)
        adjusted = np.full(len(systems), np.nan)
        adjusted[some] = stats.adjust(np.array(tests)[some], self.correction)
        frame = pl.DataFrame(
            {
                "system": list(systems),
                "priors": self.prior.sum(axis=1),
                "measure": _means(values),
                **self._estimates(covered, "tasc", "low", "high"),
                "clone": _means(copies),
                "clone_of": [systems[at] for at in copied],
                **self._estimates(covered - copies, "beyond", "beyond_low", "beyond_high"),
                "p": tests,
                "p_adjusted": adjusted,
                "chance": _means(room) * _means(values),
                "p_chance": [test.p for test in dealt],
                **self._estimates(
                    np.maximum(values - self._best_prior, 0.0), "gain", "gain_low", "gain_high"
                ),
            }
        ).fill_nan(None)
        return frame.with_columns(pl.when(pl.col("priors") > 0).then(pl.col(_NEED_PRIORS)))

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """How differently any two runs answer: system, other, distance, low, high, difference …

        ``distance`` is the mean absolute difference of their values; ``difference`` the mean of
        system - other; ``wins``, ``ties`` and ``losses`` count queries.
        """
        values, systems = self._values, self.evaluation.systems
        one, two = np.triu_indices(len(systems), k=1)
        if not len(one):
            return pl.DataFrame({"system": [], "other": [], "distance": []})
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
            }
        ).fill_nan(None)

    @cached_property
    def unsolved(self) -> pl.DataFrame:
        """Queries that no run solves, the hardest first: query_id, best, system (the best one)."""
        best, which = self._values.max(axis=0), self._values.argmax(axis=0)
        frame = pl.DataFrame(
            {
                "query_id": self.evaluation.query_ids,
                "best": best,
                "system": pl.Series(self.evaluation.systems).gather(which),
            }
        ).with_columns(system=pl.when(pl.col("best") > 0).then("system"))
        return frame.filter(pl.Series(~self._solves.any(axis=0))).sort("best", "query_id")

    @cached_property
    def first(self) -> pl.DataFrame:
        """Who solved each query first: query_id, system, value, solvers (how many solve it).

        Runs that share a turn and solve a query that nobody did before have a row each.
        """
        solves = self._solves
        turn = np.where(solves, self.turn[:, None], len(self.turn))
        query, system = np.nonzero((solves & (turn == turn.min(axis=0))).T)
        return pl.DataFrame(
            {
                "query_id": self.evaluation.query_ids.gather(query),
                "system": pl.Series(self.evaluation.systems).gather(system),
                "value": self._values[system, query],
                "solvers": solves.sum(axis=0)[query],
            }
        )

    @cached_property
    def greedy(self) -> pl.DataFrame:
        """Which run to add next: step, system, gain, low, high, covered.

        ``covered`` is the mean over queries of the best value of all runs so far, which is what a
        perfect choice of run for each query would score. Runs that were named in ``against`` are
        there from the start (step 0). Each step takes the run that adds most; because it is chosen
        for that, its gain is on the optimistic side.
        """
        values, systems = self._values, self.evaluation.systems
        held = [] if isinstance(self.against, str) else [systems.index(n) for n in self.against]
        best = values[held].max(axis=0, initial=0.0)
        left = [i for i in range(len(systems)) if i not in held]
        steps, gains, levels = ([0], [best], [best]) if held else ([], [], [])
        names = ["+".join(self.against)] if held else []
        while left:
            grown = np.maximum(values[left], best)
            take = int(np.argmax(grown.sum(axis=1)))
            names.append(systems[left.pop(take)])
            steps.append(len(gains) + (0 if held else 1))
            gains.append(grown[take] - best)
            best = grown[take]
            levels.append(best)
        return pl.DataFrame(
            {
                "step": steps,
                "system": names,
                **self._estimates(np.array(gains), "gain", "low", "high"),
                "covered": _means(np.array(levels)),
            }
        ).fill_nan(None)

    @cached_property
    def curves(self) -> pl.DataFrame:
        """The values of each run from best to worst: system, place, query_id, value."""
        evaluation, order = self.evaluation, np.argsort(-self._values, axis=1, kind="stable")
        return pl.DataFrame(
            {
                "system": np.repeat(evaluation.systems, evaluation.queries),
                "place": np.tile(np.arange(1, evaluation.queries + 1), len(order)),
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

    # -- inside -----------------------------------------------------------------------------

    @cached_property
    def _values(self) -> Floats:
        """Values between 0 and 1, runs x queries."""
        return np.clip(self.evaluation.values(), 0.0, 1.0)

    @cached_property
    def _best_prior(self) -> Floats:
        return np.array([self._values[rows].max(axis=0, initial=0.0) for rows in self.prior])

    @cached_property
    def _room(self) -> Floats:
        """What the priors of each run leave to be done on each query."""
        if self.agg == "max":
            return 1.0 - self._best_prior
        count = self.prior.sum(axis=1, keepdims=True)
        room: Floats = 1.0 - self.prior @ self._values / np.maximum(count, 1)
        return room

    @cached_property
    def _copied(self) -> Integers:
        """For each run the prior run of which a copy would score most (itself, if it has none)."""
        score = np.where(self.prior, self._room @ self._values.T, -1.0)
        return np.where(self.prior.any(axis=1), score.argmax(axis=1), np.arange(len(score)))

    @cached_property
    def _solves(self) -> Bools:
        return (self._values > 0.0) & (self._values >= self.solved - _TIE)

    def _estimates(self, rows: Floats, *names: str) -> dict[str, list[float]]:
        """Means of rows with their intervals, as three columns with these names."""
        evaluation = self.evaluation
        found = stats.means(
            rows.T,
            level=evaluation.level,
            resamples=evaluation.resamples,
            seed=evaluation.seed,
        )
        parts = [[e.value for e in found], [e.low for e in found], [e.high for e in found]]
        # Bounds of what is often 0 come out as 1e-19 or less; nobody should read -0.0000.
        return {
            name: [0.0 if abs(x) < _NOTHING else x for x in part]
            for name, part in zip(names, parts, strict=True)
        }


def coverage(
    qrels: Qrels | PathLike,
    runs: Runs,
    measure: str | Measure = "nDCG@10",
    *,
    against: str | Sequence[str] = "others",
    agg: str = "max",
    dates: Mapping[str, Any] | PathLike | None = None,
    date_ties: str = "error",
    solved: float = 0.0,
    correction: str = "holm",
    ties: str = "trec",
    drop_self: bool = False,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Coverage:
    """Say how far each run covers queries that its priors leave uncovered.

    ``against`` says which runs are prior to a run: ``"others"``, all others; ``"earlier"``, those
    before it in the order given, or by ``dates`` (a mapping or a file of run and date); or the
    names of runs, what one has already. Of runs with the same date, ``date_ties="earlier"`` makes
    the one given first the earlier, ``"together"`` neither; without either it is an error.

    ``agg`` (``"max"`` or ``"mean"``) joins the values of the priors. The ``measure`` must lie
    between 0 and 1. A query counts as solved by a run if its value is above 0 and at least
    ``solved``. Everything else is as for :func:`~farfield.evaluate`.
    """
    chosen = _checked(measure, agg, solved)
    choice("correction", correction, stats.CORRECTIONS)
    priors = against if against in ("others", "earlier") else _names(against)
    named = named_runs(runs)
    when = dates_of(dates, [name for name, _ in named])
    if when is not None:
        named = sorted(named, key=lambda item: when[item[0]])
    names = [name for name, _ in named]
    # Where the order decides only who was first, runs of one date may well be first together.
    loose = date_ties == "error" and priors != "earlier"
    turn = turns(names, when, "together" if loose else date_ties)
    prior = before(names, priors, turn)
    evaluation = evaluate(
        qrels,
        dict(named),
        [chosen],
        ties=ties,
        drop_self=drop_self,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    _check_values(evaluation)
    return Coverage(evaluation, prior, turn, priors, agg, solved, correction, when)


def _checked(measure: str | Measure, agg: str, solved: float) -> Measure:
    chosen = measure_family.parse(measure)
    if not (chosen.bounded and chosen.higher_is_better):
        raise InputError(
            f"the measure {chosen} does not lie between 0 and 1, which coverage needs: it takes 1 "
            "minus the value for what is left to be done. Choose one like nDCG@10 or RR@10."
        )
    choice("agg", agg, AGGREGATIONS)
    if not 0.0 <= solved <= 1.0:
        raise InputError(f"solved is {solved}, expected a value of the measure, from 0 to 1.")
    return chosen


def _names(against: str | Sequence[str]) -> tuple[str, ...]:
    names = (against,) if isinstance(against, str) else tuple(dict.fromkeys(against))
    if not names:
        raise InputError("against names no run. Give others, earlier or the names of runs.")
    return names


def _check_values(evaluation: Evaluation) -> None:
    """Refuse values outside 0 to 1: a measure from elsewhere may not keep what it promises."""
    values = evaluation.values()
    bad = (values < -_TIE) | (values > 1.0 + _TIE)
    if bad.any():
        system, query = np.argwhere(bad)[0]
        raise InputError(
            f"{evaluation.measures[0]} of query {evaluation.query_ids[int(query)]!r} in "
            f"{evaluation.systems[system]!r} is {values[system, query]}, where a value between 0 "
            "and 1 is expected. Choose another measure."
        )


def _means(rows: Floats) -> Floats:
    """Means of rows, without intervals."""
    return np.array([estimate.value for estimate in stats.means(rows.T, method="t")])
