"""The figure of a diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield import figures

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.diagnose import Diagnosis

__all__ = ["draw"]


def draw(diagnosis: Diagnosis) -> go.Figure:
    """Draw the measure from near to far, and the drops with their intervals."""
    from plotly.subplots import make_subplots

    systems = len(diagnosis.evaluation.systems)
    figure = figures.new(
        "Near to training and far from it<br><sup>observational: strata differ in more than "
        "proximity</sup>",
        height=max(520, 260 + 26 * systems),
    )
    measure = str(diagnosis.evaluation.measures[0])
    make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.62, 0.38],
        horizontal_spacing=0.2,  # names of runs stand between
        subplot_titles=[f"{measure} by stratum, the nearest first", "drop from near to far"],
        figure=figure,
    )
    _strata(figure, diagnosis)
    _drops(figure, diagnosis.drops, measure)
    figure.update_layout(
        legend={"orientation": "v", "x": 1.02, "xanchor": "left", "y": 1, "yanchor": "top"},
        margin={"r": 200, "t": 110},
    )
    return figure


def _strata(figure: go.Figure, diagnosis: Diagnosis) -> None:
    import plotly.graph_objects as go

    strata = list(diagnosis.strata)
    systems = diagnosis.evaluation.systems
    for number, system in enumerate(systems):
        rows = diagnosis.table.filter(pl.col("system") == system)
        # Side by side, so that intervals do not hide one another.
        shift = 0.6 * ((number + 0.5) / len(systems) - 0.5)
        style = figures.style(number)
        figure.add_trace(
            go.Scatter(
                x=[at + shift for at in range(len(strata))],
                y=rows["mean"].to_list(),
                name=system,
                mode="lines+markers",
                line={"color": style["color"], "dash": style["dash"], "width": 1},
                marker={"symbol": style["symbol"], "size": 8},
                error_y={
                    "array": (rows["high"] - rows["mean"]).to_list(),
                    "arrayminus": (rows["mean"] - rows["low"]).to_list(),
                    "thickness": 1,
                    "width": 2,
                },
                text=[f"{name}, {n} queries" for name, n in zip(strata, rows["n"], strict=True)],
                hovertemplate="%{fullData.name}<br>%{text}: %{y:.4f}<extra></extra>",
            ),
            row=1,
            col=1,
        )
    places = diagnosis.places
    labels = [f"{name}<br>n={n}" for name, n in zip(strata, places["queries"], strict=True)]
    figure.update_xaxes(tickvals=list(range(len(strata))), ticktext=labels, row=1, col=1)
    figure.update_yaxes(title=str(diagnosis.evaluation.measures[0]), row=1, col=1)
    for at, group in enumerate(places["group"]):
        if group != "between":
            colour = figures.COLOURS[1] if group == "near" else figures.COLOURS[0]
            figure.add_vrect(
                x0=at - 0.5,
                x1=at + 0.5,
                fillcolor=colour,
                opacity=0.06,
                line_width=0,
                annotation_text=group,
                annotation_position="top left",
                row=1,
                col=1,
            )


def _drops(figure: go.Figure, drops: pl.DataFrame, measure: str) -> None:
    import plotly.graph_objects as go

    if not len(drops):
        return
    numbers = range(len(drops))
    figure.add_trace(
        go.Scatter(
            x=drops["drop"].to_list(),
            y=drops["system"].to_list(),
            mode="markers",
            marker={
                "size": 9,
                "color": [figures.style(n)["color"] for n in numbers],
                "symbol": [figures.style(n)["symbol"] for n in numbers],
            },
            error_x={
                "array": (drops["high"] - drops["drop"]).to_list(),
                "arrayminus": (drops["drop"] - drops["low"]).to_list(),
                "color": figures.COLOURS[6],
                "thickness": 1,
                "width": 3,
            },
            showlegend=False,
            hovertemplate="%{y}: %{x:+.4f}<extra></extra>",
        ),
        row=1,
        col=2,
    )
    figure.add_vline(x=0, line_width=1, line_dash="dot", row=1, col=2)
    figure.update_yaxes(autorange="reversed", automargin=True, row=1, col=2)
    figure.update_xaxes(title=f"{measure} on near queries minus far", row=1, col=2)
