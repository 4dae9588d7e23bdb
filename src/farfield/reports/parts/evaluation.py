"""What is each run worth, and on which queries?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from farfield.figures import new, style
from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Table
from farfield.reports.page import Section
from farfield.reports.parts import Part

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.evaluate import Evaluation

__all__ = ["PART", "by_query", "means", "summary_table"]

_READING = (
    "A mean over queries is a guess about queries nobody has seen, so each has its interval. Runs "
    "whose intervals overlap may still differ clearly query by query: compare them for that."
)


def _of_answer(answer: Evaluation) -> list[Section]:
    findings = []
    for measure in answer.measures:
        rows = answer.summary.filter(pl.col("measure") == str(measure))
        best = rows.sort("mean", descending=measure.higher_is_better).row(0, named=True)
        mean = words.with_interval(best, "mean", ends=("low", "high"))
        findings.append(f"{measure}: {best['system']} is best with {mean}.")
    lacking = {name: n for name, n in answer.missing.items() if n}
    findings += [
        f"{name} lacks {words.plural(n, 'judged query', 'judged queries')}, which count with the "
        "worst value."
        for name, n in lacking.items()
    ]
    blocks: list[Block] = [
        Figures(means(answer), "The mean of every run with its interval, by measure."),
        summary_table(answer),
        by_query(answer),
    ]
    title = "What is each run worth?"
    return [Section("evaluation", title, reading=_READING, findings=findings, blocks=blocks)]


def summary_table(answer: Evaluation) -> Table:
    """Return the means of an evaluation."""
    first = {"measure": str(answer.measures[0])}
    return Table("means", "Means", answer.summary, labels={"n": "queries"}, start=first)


def by_query(answer: Evaluation) -> Table:
    """Return the values of every query, a column for each run."""
    measure = str(answer.measures[0])
    frame = answer.per_query.frame.filter(pl.col("measure") == measure)
    # A run may be called like a column, or like the end of another's interval.
    named = {system: f"{measure} of {system}" for system in answer.systems}
    wide = frame.with_columns(pl.col("system").replace_strict(named)).pivot(
        "system", index="query_id", values="value", maintain_order=True
    )
    labels = {column: system for system, column in named.items()} | {"query_id": "query"}
    return Table("by-query", f"{measure} of every query", wide, labels=labels)


def means(answer: Evaluation) -> go.Figure:
    """Draw the means with their intervals, a panel for each measure."""
    from plotly.subplots import make_subplots

    labels = [str(measure) for measure in answer.measures]
    across = min(2, len(labels))
    down = -(-len(labels) // across)
    height = 90 + 26 * len(answer.systems)
    base = new("", height=height * down + 120)
    figure = make_subplots(down, across, subplot_titles=labels, figure=base)
    for number, label in enumerate(labels):
        rows = answer.summary.filter(pl.col("measure") == label)
        spread: dict[str, Any] = {
            "array": (rows["high"] - rows["mean"]).fill_nan(0.0).to_list(),
            "arrayminus": (rows["mean"] - rows["low"]).fill_nan(0.0).to_list(),
        }
        figure.add_scatter(
            x=rows["mean"].to_list(),
            y=rows["system"].to_list(),
            error_x=spread,
            mode="markers",
            showlegend=False,
            marker={"color": style(0)["color"], "size": 9},
            row=number // across + 1,
            col=number % across + 1,
        )
    figure.update_yaxes(autorange="reversed")
    return figure


PART = Part(order=5, answer="Evaluation", of_answer=_of_answer)
