"""How near and far are drawn: two points for each system, and the losses of the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from farfield.figures import new, style

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.nearfar import NearFar

__all__ = ["draw"]


def draw(answer: NearFar) -> go.Figure:
    """Draw near and far of every system above, relative losses by group below."""
    from plotly.subplots import make_subplots

    measure = str(answer.measures[0])
    losses = answer.losses
    losses = losses.filter(pl.col("measure") == measure) if len(losses) else losses
    down = 2 if len(losses) else 1
    titles = [f"{measure}: near and far, means over the same queries"]
    titles += ["Relative loss of each group when it is left out of training"] * (down - 1)
    figure = make_subplots(down, 1, subplot_titles=titles, vertical_spacing=0.18)
    base = new("Near and far", height=420 * down)
    figure.update_layout(base.layout)
    rows = answer.table.filter((pl.col("measure") == measure) & (pl.col("average") == "micro"))
    for number, side in enumerate(("near", "far")):
        look = style(number)
        figure.add_scatter(
            x=rows["system"].to_list(),
            y=rows[side].to_numpy(),
            error_y=_bars(rows, side),
            mode="markers",
            name=side,
            marker={"color": look["color"], "symbol": look["symbol"], "size": 10},
            row=1,
            col=1,
        )
    figure.update_yaxes(title_text=measure, row=1, col=1)
    if down == 2:
        for number, system in enumerate(answer.systems):
            part = losses.filter(pl.col("system") == system)
            look = style(number)
            figure.add_scatter(
                x=part["group"].to_list(),
                y=part["rel_loss"].to_numpy(),
                error_y=_bars(part, "rel_loss"),
                mode="markers",
                name=system,
                marker={"color": look["color"], "symbol": look["symbol"], "size": 8},
                row=2,
                col=1,
            )
        figure.add_hline(y=0, line={"color": "#888", "width": 1}, row=2, col=1)
        figure.update_yaxes(title_text="relative loss", tickformat=".0%", row=2, col=1)
        figure.update_xaxes(title_text="group", type="category", row=2, col=1)
        figure.update_layout(scattermode="group")
    figure.update_layout(
        margin={"t": 90},
        legend={"orientation": "h", "yanchor": "top", "y": -0.1, "xanchor": "left", "x": 0},
    )
    figure.update_annotations(x=0, xanchor="left", font_size=14)
    return figure


def _bars(rows: pl.DataFrame, name: str) -> dict[str, Any]:
    value = rows[name].to_numpy()
    up, down = rows[f"{name}_high"].to_numpy() - value, value - rows[f"{name}_low"].to_numpy()
    return {"type": "data", "array": np.maximum(up, 0), "arrayminus": np.maximum(down, 0)}
