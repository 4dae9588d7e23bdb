"""The figure of a coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from farfield import figures

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import polars as pl

    from farfield.questions.coverage import Coverage

__all__ = ["draw"]

_SIDES = ("top center", "bottom center", "middle left", "middle right")


def draw(coverage: Coverage) -> go.Figure:
    """Draw TaSC beside copies, values from best to worst, distances, and who to add next."""
    from plotly.subplots import make_subplots

    measure = coverage.evaluation.measures[0]
    systems = len(coverage.evaluation.systems)
    dated = coverage.dates is not None
    titles = [
        f"TaSC ({coverage.agg}), against {_against(coverage)}",
        f"{measure} of every query, best to worst",
        f"mean |difference| of {measure} per query",
        "who to add next",
    ]
    specs: list[list[Any]] = [[{}, {}], [{}, {}]]
    if dated:
        titles.insert(2, f"TaSC by date; the larger, the higher {measure}")
        specs.insert(1, [{"colspan": 2}, None])
    rows = len(specs)
    height = 150 + rows * max(320, 120 + 24 * systems)
    figure = figures.new("Who covers what others leave uncovered?", height=height)
    make_subplots(
        rows=rows,
        cols=2,
        specs=specs,
        subplot_titles=titles,
        horizontal_spacing=0.36,  # names of runs stand between the columns
        vertical_spacing=0.28 / rows,
        figure=figure,
    )
    _bars(figure, coverage.table)
    _curves(figure, coverage)
    if dated:
        _bubbles(figure, coverage)
    _distances(figure, coverage, rows)
    _steps(figure, coverage.greedy, rows)
    figure.update_layout(
        legend={"orientation": "v", "x": 1.02, "xanchor": "left", "y": 1, "yanchor": "top"},
        margin={"r": 200, "t": 100},
    )
    return figure


def _against(coverage: Coverage) -> str:
    known = {"others": "all others", "earlier": "earlier runs"}
    if isinstance(coverage.against, str):
        return known[coverage.against]
    return ", ".join(coverage.against)


def _bars(figure: go.Figure, table: pl.DataFrame) -> None:
    import plotly.graph_objects as go

    names = table["system"].to_list()
    figure.add_trace(
        go.Bar(
            y=names,
            x=table["tasc"].to_list(),
            orientation="h",
            name="TaSC",
            marker={"color": figures.COLOURS[4]},
            error_x=_whiskers(table, "tasc", "low", "high"),
            legendgroup="tasc",
        ),
        row=1,
        col=1,
    )
    figure.add_trace(
        go.Scatter(
            y=names,
            x=table["clone"].to_list(),
            mode="markers",
            name="a copy of a prior run",
            marker={"symbol": "diamond-open", "size": 10, "color": figures.COLOURS[1]},
            text=[f"copy of {name}" for name in table["clone_of"]],
            legendgroup="tasc",
        ),
        row=1,
        col=1,
    )
    figure.update_yaxes(autorange="reversed", automargin=True, row=1, col=1)
    figure.update_xaxes(rangemode="tozero", title="TaSC", row=1, col=1)


def _curves(figure: go.Figure, coverage: Coverage) -> None:
    import plotly.graph_objects as go

    groups = coverage.curves.group_by("system", maintain_order=True)
    for number, ((system,), rows) in enumerate(groups):
        style = figures.style(number)
        figure.add_trace(
            go.Scatter(
                x=rows["place"].to_list(),
                y=rows["value"].to_list(),
                name=str(system),
                mode="lines",
                line={"color": style["color"], "dash": style["dash"], "width": 1.5},
                text=rows["query_id"].to_list(),
                hovertemplate="%{fullData.name}<br>query %{text}: %{y:.4f}<extra></extra>",
            ),
            row=1,
            col=2,
        )
    figure.update_xaxes(title="queries, each run in its own order", row=1, col=2)
    figure.update_yaxes(range=[0, 1.02], title=str(coverage.evaluation.measures[0]), row=1, col=2)


def _distances(figure: go.Figure, coverage: Coverage, row: int) -> None:
    import plotly.graph_objects as go

    names = list(coverage.evaluation.systems)
    matrix = np.zeros((len(names), len(names)))
    one, two = np.triu_indices(len(names), k=1)
    matrix[one, two] = matrix[two, one] = coverage.pairs["distance"].to_numpy()
    figure.add_trace(
        go.Heatmap(
            x=names,
            y=names,
            z=matrix,
            colorscale="Cividis_r",
            colorbar={
                "title": {"text": "mean |difference|"},
                "len": 0.3,
                "x": 1.02,
                "y": 0,
                "yanchor": "bottom",
                "thickness": 12,
            },
            hovertemplate="%{y}<br>%{x}<br>mean |difference| %{z:.4f}<extra></extra>",
        ),
        row=row,
        col=1,
    )
    figure.update_yaxes(autorange="reversed", automargin=True, row=row, col=1)
    figure.update_xaxes(tickangle=-60, row=row, col=1)


def _steps(figure: go.Figure, greedy: pl.DataFrame, row: int) -> None:
    import plotly.graph_objects as go

    bounds = greedy.with_columns(
        low=greedy["covered"] - greedy["gain"] + greedy["low"],
        high=greedy["covered"] - greedy["gain"] + greedy["high"],
    )
    figure.add_trace(
        go.Scatter(
            y=greedy["system"].to_list(),
            x=greedy["covered"].to_list(),
            mode="lines+markers",
            name="best of all runs so far (interval of the gain)",
            line={"color": figures.COLOURS[2]},
            error_x=_whiskers(bounds, "covered", "low", "high"),
            showlegend=False,
        ),
        row=row,
        col=2,
    )
    figure.update_yaxes(autorange="reversed", automargin=True, row=row, col=2)
    figure.update_xaxes(title="mean of the best value per query", row=row, col=2)


def _bubbles(figure: go.Figure, coverage: Coverage) -> None:
    import plotly.graph_objects as go

    assert coverage.dates is not None
    table = coverage.table
    size = table["measure"].to_numpy()
    figure.add_trace(
        go.Scatter(
            x=[coverage.dates[name] for name in table["system"]],
            y=table["tasc"].to_list(),
            mode="markers+text",
            text=table["system"].to_list(),
            # Runs of about the same date would write over one another.
            textposition=[_SIDES[at % len(_SIDES)] for at in range(len(table))],
            marker={
                "size": 10.0 + 30.0 * size / max(float(size.max()), 1e-9),
                "color": figures.COLOURS[4],
                "opacity": 0.7,
                "line": {"width": 1, "color": figures.COLOURS[6]},
            },
            error_y=_whiskers(table, "tasc", "low", "high"),
            showlegend=False,
        ),
        row=2,
        col=1,
    )
    figure.update_xaxes(title="date", row=2, col=1)
    figure.update_yaxes(title="TaSC", rangemode="tozero", row=2, col=1)


def _whiskers(frame: pl.DataFrame, value: str, low: str, high: str) -> dict[str, Any]:
    return {
        "array": (frame[high] - frame[value]).to_list(),
        "arrayminus": (frame[value] - frame[low]).to_list(),
        "color": figures.COLOURS[6],
        "thickness": 1,
        "width": 3,
    }
