"""Who covers what others leave uncovered?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Findings, Table, Views
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.evaluation import by_query
from farfield.reports.rundir import RunDirectory

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.coverage import Coverage

__all__ = ["PART"]

_READING = (
    "TaSC weighs a system's value on a query by what the others leave to be done there; read it "
    "beside the clone, which is what a mere copy of another system would score. Gain is what a "
    "system adds to the best value of the others: a copy adds nothing."
)
_ALT = "TaSC of every system, values of queries from best to worst, and who differs from whom."
_POINTS = 400  # of a curve; more cannot be told apart
_NOTES = {
    "tasc": "mean of (1 - best value of the others) times value",
    "clone": "the most that a copy of another system would score",
    "beyond": "TaSC minus clone",
    "chance": "TaSC if the values fell on random queries",
    "gain": "what it adds to the best value of the others",
}


def _of_run(run: RunDirectory) -> list[Section]:
    if run.bounded is None or len(run.shifts[0].systems) < 2:
        return []
    answers = {shift.name: shift.coverage for shift in run.shifts}
    choices = {name: [Findings(_said(one)), *_blocks(one)] for name, one in answers.items()}
    return [_section([], [Views("Shift", choices)])]


def _of_answer(answer: Coverage) -> list[Section]:
    blocks = [*_blocks(answer), *_solved(answer), by_query(answer.evaluation)]
    return [_section(_said(answer), blocks)]


def _section(findings: list[str], blocks: list[Block]) -> Section:
    title = "Who covers what others leave uncovered?"
    return Section("coverage", title, reading=_READING, findings=findings, blocks=blocks)


def _said(answer: Coverage) -> list[str]:
    known = answer.table.filter(pl.col("priors") > 0)
    if not len(known):
        return []
    best = known.sort("gain", descending=True).row(0, named=True)
    gain = words.with_interval(best, "gain")
    said = {"others": "the others", "earlier": "the runs before it"}
    before = said[answer.against] if isinstance(answer.against, str) else "what is there"
    clear = known.filter((pl.col("p_adjusted") < 0.05) & (pl.col("beyond") > 0))["system"].to_list()
    verb = "cover" if len(clear) > 1 else "covers"
    left, total = len(answer.unsolved), answer.evaluation.queries
    return [
        f"{best['system']} adds most to the best of {before}: {gain}.",
        f"{words.listed(clear) if clear else 'No system'} clearly {verb} more than a copy of "
        "another would.",
        f"{left:,} of {total:,} queries are solved by nobody."
        if left
        else f"Each of the {words.plural(total, 'query', 'queries')} is solved by some system.",
    ]


def _blocks(answer: Coverage) -> list[Block]:
    means = answer.evaluation.summary.select(
        "system", "mean", mean_low=pl.col("low"), mean_high=pl.col("high")
    )
    table = answer.table.drop("measure").join(means, on="system", how="left", maintain_order="left")
    measure = str(answer.evaluation.measures[0])
    found: list[Block] = [
        Figures(_drawn(answer), _ALT),
        Table(
            "tasc",
            "TaSC, and what each system adds",
            table,
            shown=["system", "mean", "tasc", "clone_of", "beyond", "p_adjusted", "gain"],
            labels={"mean": measure, "tasc": "TaSC", "p_adjusted": "p (corrected)"},
            notes=_NOTES,
            kinds={"beyond": "signed"},
        ),
        Table(
            "who-to-add",
            "Which system to add next",
            answer.greedy,
            shown=["step", "system", "gain"],
            note="Each step takes the system that adds most to the best value of every query; "
            "chosen for its gain, it shows it on the optimistic side.",
        ),
    ]
    if len(answer.pairs):
        found.append(
            Table(
                "pairs",
                "How differently two systems answer",
                answer.pairs,
                labels={"distance": "mean |difference|"},
                kinds={"difference": "signed"},
            )
        )
    return found


def _solved(answer: Coverage) -> list[Block]:
    tables: list[Block] = []
    if len(answer.unsolved):
        tables.append(Table("unsolved", "Queries that nobody solves", answer.unsolved))
    if len(answer.first) and answer.against == "earlier":
        tables.append(Table("first", "Who solved each query first", answer.first))
    return tables


def _drawn(answer: Coverage) -> go.Figure:
    """The figure, without most points of the sorted curves: a screen is not so wide."""
    figure = answer.figure()
    for trace in figure.data:
        if trace.type == "scatter" and trace.x is not None and len(trace.x) > _POINTS:
            kept = np.unique(np.linspace(0, len(trace.x) - 1, _POINTS).astype(int))
            some: dict[str, Any] = {
                name: [getattr(trace, name)[at] for at in kept]
                for name in ("x", "y", "text")
                if getattr(trace, name) is not None
            }
            trace.update(some)
    if answer.dates is not None:  # room for the names of the first and the last
        days = np.array(list(answer.dates.values()), dtype="datetime64[D]")
        room = max((days.max() - days.min()) // 4, np.timedelta64(30, "D"))
        ends = [str(days.min() - room), str(days.max() + room)]
        figure.update_xaxes(range=ends, selector={"title.text": "date"})
        sides = [("top center", "bottom center")[at % 2] for at in range(len(days))]
        figure.update_traces(textposition=sides, selector={"mode": "markers+text"})
    return figure


PART = Part(order=60, answer="Coverage", of_answer=_of_answer, of_run=_of_run)
