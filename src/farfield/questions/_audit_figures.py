"""The figure of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield import figures

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.audit import Audit

__all__ = ["draw"]

_NAMES = {"ngram": "letters and words (Jaccard)", "cosine": "vectors (cosine)"}


def draw(audit: Audit) -> go.Figure:
    """Draw the leak curve or, without query texts, the label overlap."""
    if audit.leak_curve is not None:
        return _curve(audit.leak_curve)
    if audit.label_overlap is not None:
        return _labels(audit.label_overlap)
    return figures.new("Nothing to draw: the audit has labels of annotators only")


def _curve(curve: pl.DataFrame) -> go.Figure:
    import plotly.graph_objects as go

    figure = figures.new(
        "Test queries with a training query at least so similar",
        x="similarity to the nearest training query",
        y="share of test queries",
    )
    for number, ((method,), rows) in enumerate(curve.group_by("method", maintain_order=True)):
        style = figures.style(number)
        band = [*rows["high"].fill_null(0), *rows["low"].fill_null(0).reverse()]
        figure.add_trace(
            go.Scatter(
                x=[*rows["threshold"], *rows["threshold"].reverse()],
                y=band,
                fill="toself",
                fillcolor=style["color"],
                opacity=0.15,
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
            )
        )
        figure.add_trace(
            go.Scatter(
                x=rows["threshold"].to_list(),
                y=rows["share"].to_list(),
                name=_NAMES[str(method)],
                mode="lines+markers",
                line={"color": style["color"], "dash": style["dash"]},
                marker={"symbol": style["symbol"]},
            )
        )
    figure.update_yaxes(range=[0, 1], tickformat=".0%")
    return figure


def _labels(overlap: pl.DataFrame) -> go.Figure:
    import plotly.graph_objects as go

    figure = figures.new(
        "Test queries that share relevant passages with training",
        x="least relevance that counts on the test side",
        y="share of test queries",
    )
    for number, ((least,), rows) in enumerate(overlap.group_by("min_shared", maintain_order=True)):
        upper = (rows["high"] - rows["share"]).to_list()
        lower = (rows["share"] - rows["low"]).to_list()
        figure.add_trace(
            go.Bar(
                x=[str(relevance) for relevance in rows["relevance"]],
                y=rows["share"].to_list(),
                name=f"at least {least} shared",
                marker={
                    "color": figures.COLOURS[number],
                    "pattern": {"shape": ["", "/", "x"][number % 3]},
                },
                error_y={"array": upper, "arrayminus": lower},
            )
        )
    figure.update_layout(barmode="group")
    figure.update_yaxes(range=[0, 1], tickformat=".0%")
    return figure
