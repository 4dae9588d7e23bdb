"""Figures: one look for all of them, and one way to save them.

Questions draw themselves (``answer.figure()``) with what is here. Colours are told apart without
colour vision (Okabe and Ito 2008), and every series has its own marker or dash as well.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.errors import FileError
from farfield.io.files import replacing

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["COLOURS", "DASHES", "MARKERS", "load", "new", "save", "stack", "style"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#4D4D4D", "#8C6D00")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def new(title: str, *, x: str = "", y: str = "", height: int = 480) -> go.Figure:
    """Return an empty figure in our style."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        title={"text": title, "x": 0, "xanchor": "left"},
        template="plotly_white",
        colorway=list(COLOURS),
        font={"family": "system-ui, sans-serif", "size": 14},
        height=height,
        margin={"l": 70, "r": 30, "t": 60, "b": 60},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "xanchor": "right", "x": 1},
        xaxis_title=x,
        yaxis_title=y,
    )
    return figure


def style(number: int) -> dict[str, Any]:
    """Return colour, marker and dash of the series with this number."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "symbol": MARKERS[number % len(MARKERS)],
        "dash": DASHES[number % len(DASHES)],
    }


def stack(
    figure: go.Figure, panels: Sequence[tuple[str, float, float]], total: float
) -> list[float]:
    """Give each panel (title, height, gap below) its place and title; return where each begins.

    Heights and gaps are in points, of ``total``; the first panel is at the top.
    """
    tops, top = [], 1.0
    for row, (title, height, below) in enumerate(panels, start=1):
        bottom = max(0.0, top - height / total)
        figure.update_yaxes(domain=[bottom, top], row=row, col=1)
        figure.add_annotation(
            text=title,
            xref="paper",
            yref="paper",
            x=0,
            y=top,
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"size": 15},
        )
        tops.append(top)
        top = bottom - below / total
    return tops


def load(path: str | os.PathLike[str]) -> go.Figure:
    """Read a figure from plotly's JSON."""
    import plotly.io

    return plotly.io.from_json(Path(path).read_text())


def save(figure: go.Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to one HTML file that needs no network, or to plotly's JSON."""
    suffix = Path(path).suffix.lower()
    if suffix == ".html":
        text = figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})
    elif suffix == ".json":
        text = figure.to_json()
    else:
        raise FileError(path, f"the suffix {suffix!r} stands for no figure. Use .html or .json.")
    with replacing(path) as file:
        file.write(text.encode())
