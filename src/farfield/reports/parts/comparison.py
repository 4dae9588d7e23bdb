"""Do runs differ from a baseline, by how much?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield.figures import new, style
from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Table
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.evaluation import by_query, summary_table

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.compare import Comparison

__all__ = ["PART", "comparison_blocks"]

_READING = (
    "Each point is the mean difference from the baseline over the same queries; where its "
    "interval leaves out 0 the run differs. p-values are corrected over all comparisons made "
    "here."
)


def _of_answer(answer: Comparison) -> list[Section]:
    findings = []
    for (measure,), rows in answer.table.group_by("measure", maintain_order=True):
        clear = rows.filter(pl.col("p_adjusted") < 1.0 - answer.evaluation.level)
        told = [
            f"{row['system']} {words.with_interval(row, 'difference', ends=('low', 'high'))}"
            for row in clear.iter_rows(named=True)
        ]
        said = f"clearly differs from {answer.baseline}"
        said += f": {words.listed(told)}" if told else ": no run"
        findings.append(f"{measure} {said}.")
    title = f"Do runs differ from {answer.baseline}?"
    blocks = comparison_blocks(answer)
    return [Section("comparison", title, reading=_READING, findings=findings, blocks=blocks)]


def comparison_blocks(answer: Comparison) -> list[Block]:
    """Return the differences, the means, and the values of every query."""
    start = {"measure": str(answer.evaluation.measures[0])}
    return [
        Figures(_differences(answer), "Mean differences from the baseline with their intervals."),
        Table(
            "differences",
            f"Differences from {answer.baseline}",
            answer.table,
            kinds={"difference": "signed", "effect_size": "signed"},
            start=start,
        ),
        summary_table(answer.evaluation),
        by_query(answer.evaluation),
    ]


def _differences(answer: Comparison) -> go.Figure:
    from plotly.subplots import make_subplots

    groups = list(answer.table.group_by("measure", maintain_order=True))
    across = min(2, len(groups))
    down = -(-len(groups) // across)
    height = 90 + 26 * max(len(rows) for _, rows in groups)
    figure = make_subplots(
        down,
        across,
        subplot_titles=[f"{key[0]}: difference from {answer.baseline}" for key, _ in groups],
        figure=new("", height=height * down + 120),
    )
    for number, (_, rows) in enumerate(groups):
        place = {"row": number // across + 1, "col": number % across + 1}
        figure.add_scatter(
            x=rows["difference"].to_list(),
            y=rows["system"].to_list(),
            error_x={
                "array": (rows["high"] - rows["difference"]).fill_nan(0.0).to_list(),
                "arrayminus": (rows["difference"] - rows["low"]).fill_nan(0.0).to_list(),
            },
            mode="markers",
            showlegend=False,
            marker={"color": style(0)["color"], "size": 9},
            **place,
        )
        figure.add_vline(x=0, line={"color": "#888", "width": 1}, **place)
    figure.update_yaxes(autorange="reversed")
    return figure


PART = Part(order=6, answer="Comparison", of_answer=_of_answer)
