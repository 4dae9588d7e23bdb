"""The figures of distances between sets of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from farfield import figures
from farfield.errors import InputError
from farfield.indicators import Indicator, Reading

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.distance import Distance, FoldDistances

__all__ = ["draw", "draw_folds"]

Floats = npt.NDArray[np.float64]

_BINS = 40
_DOTS = 1500  # queries of each set on the map
_NAMES = {"r": "similarity to the training queries", "neighbours": "similarity to the nearest one"}


def draw(distance: Distance) -> go.Figure:
    """Draw distributions of similarities, of A's queries and of B's own, and a map of both."""
    from plotly.subplots import make_subplots

    if distance.encoder is None:
        raise InputError(
            "there is nothing to draw: none of the indicators compares vectors. Ask for one that "
            "does, like r or neighbours."
        )
    shown = [pair for pair in distance.readings.items() if pair[1].b is not None]
    figure = figures.new(f"{distance.a.name} and {distance.b.name}", height=480)
    make_subplots(
        rows=1,
        cols=len(shown) + 1,
        horizontal_spacing=0.07,
        subplot_titles=[*(str(indicator) for indicator, _ in shown), "map of the vectors"],
        figure=figure,
    )
    for column, (indicator, reading) in enumerate(shown, start=1):
        _distributions(figure, distance, indicator, reading, column)
    _map(figure, distance, len(shown) + 1, legend=not shown)
    figure.update_layout(
        margin={"t": 120}, legend={"x": 0, "xanchor": "left", "y": 1.1}, barmode="overlay"
    )
    return figure


def draw_folds(folds: FoldDistances) -> go.Figure:
    """Draw the similarity of near and far queries to their training queries, fold by fold."""
    import plotly.graph_objects as go

    figure = figures.new("Near and far queries, and the training queries of their fold")
    first = next(iter(folds.distances.values()))
    shown = next((i for i, reading in first.readings.items() if reading.b is not None), None)
    if shown is None:
        raise InputError(
            "there is nothing to draw: none of the indicators has a value for each query and "
            "for B's own. Ask for r or neighbours."
        )
    for number, role in enumerate(("near", "far")):
        parts = {
            fold: _known(found.readings[shown].a)
            for (fold, of), found in folds.distances.items()
            if of == role
        }
        if not parts:
            continue
        # Five numbers for each box: the values themselves would make the file large.
        edges = [np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]) for values in parts.values()]
        low, first_quarter, median, third_quarter, high = np.array(edges).T.tolist()
        figure.add_trace(
            go.Box(
                x=list(parts),
                name=role,
                lowerfence=low,
                q1=first_quarter,
                median=median,
                q3=third_quarter,
                upperfence=high,
                marker={"color": figures.style(number)["color"]},
            )
        )
    title = _NAMES.get(type(shown).__name__, "value")
    figure.update_layout(boxmode="group", yaxis_title=f"{title} ({shown})", xaxis_title="fold")
    figure.update_xaxes(type="category")
    return figure


def _distributions(
    figure: go.Figure, distance: Distance, indicator: Indicator, reading: Reading, column: int
) -> None:
    import plotly.graph_objects as go

    values = [_known(reading.a), _known(reading.b)]
    edges = np.histogram_bin_edges(np.concatenate(values), _BINS)
    middle = (edges[1:] + edges[:-1]) / 2.0
    for number, (name, of) in enumerate(zip(_names(distance), values, strict=True)):
        style = figures.style(number)
        shares = np.histogram(of, edges)[0] / len(of)
        figure.add_trace(
            go.Scatter(
                x=middle.tolist(),
                y=shares.tolist(),
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                mode="lines",
                line={"color": style["color"], "dash": style["dash"], "shape": "hvh"},
                fill="tozeroy",
                opacity=0.6,
            ),
            row=1,
            col=column,
        )
    title = _NAMES.get(type(indicator).__name__, str(indicator))
    figure.update_xaxes(title=title, row=1, col=column)
    figure.update_yaxes(title="share of queries", tickformat=".0%", row=1, col=column)


def _map(figure: go.Figure, distance: Distance, column: int, *, legend: bool) -> None:
    import plotly.graph_objects as go

    sides = distance.sides
    rows = sides.rows(_DOTS)
    drawn = [v[i].astype(np.float64) for v, i in zip(sides.vectors("the map"), rows, strict=True)]
    places, explained = _plane(np.concatenate(drawn))
    ends = [len(drawn[0])]
    texts = [
        side.texts.gather(i).to_list() for side, i in zip((sides.a, sides.b), rows, strict=True)
    ]
    for number, (name, at) in enumerate(zip(_names(distance), np.split(places, ends), strict=True)):
        style: dict[str, Any] = figures.style(number)
        figure.add_trace(
            go.Scattergl(
                x=at[:, 0].round(4).tolist(),
                y=at[:, 1].round(4).tolist(),
                text=texts[number],
                name=name,
                legendgroup=name,
                showlegend=legend,
                mode="markers",
                marker={
                    "color": style["color"],
                    "symbol": style["symbol"],
                    "size": 5,
                    "opacity": 0.5,
                },
                hovertemplate="%{text}<extra>%{fullData.name}</extra>",
            ),
            row=1,
            col=column,
        )
    for number, update in enumerate((figure.update_xaxes, figure.update_yaxes)):
        title = f"principal component {number + 1} ({explained[number]:.0%} of the variance)"
        update(title=title, row=1, col=column)


def _plane(vectors: Floats) -> tuple[Floats, Floats]:
    """Places on the two first principal components, and their shares of the variance."""
    centred = vectors - vectors.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(vectors), 2))
    shares = np.zeros(2)
    width = min(2, len(size))
    places[:, :width] = left[:, :width] * size[:width]
    shares[:width] = size[:width] ** 2 / max(float((size**2).sum()), 1e-300)
    return places, shares


def _names(distance: Distance) -> tuple[str, str]:
    return f"A: {distance.a.name}", f"B: {distance.b.name}"


def _known(values: Floats | None) -> Floats:
    assert values is not None
    return values[~np.isnan(values)]
