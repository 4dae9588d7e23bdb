"""The figure of a complement: who found what, and what is left to gain."""

from __future__ import annotations

from math import cos, pi, sin
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from farfield import figures

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.complement import Complement

__all__ = ["draw"]

_CIRCLES = 3  # more runs than this are shown as an UpSet
_SETS = 20  # sets that an UpSet shows
_GREY = "#C8C8C8"


def draw(answer: Complement) -> go.Figure:
    """Draw who found what, the headroom, and the breakdown if there is one."""
    from plotly.subplots import make_subplots

    venn = len(answer.runs) <= _CIRCLES
    found = f"{answer.relevant:,} relevant documents: who finds them by rank {answer.depth:,}"
    ways = answer.headroom["system"].n_unique()
    # Of each panel its title, its height and the room for what stands below it, in pixels.
    panels: list[tuple[str, float, float]] = [(found, 420.0, 60.0)]
    if not venn:
        panels = [(found, 280.0, 10.0), ("", 30.0 + 24.0 * len(answer.runs), 70.0)]
    singles = answer.headroom.unique("measure", maintain_order=True).iter_rows(named=True)
    panels += [
        (
            f"{row['measure']}: from {row['best_single']} ({row['single_mean']:.3f}), the best "
            "single run, to the oracle",
            20.0 + 30.0 * ways,
            90.0,
        )
        for row in singles
    ]
    measures = [str(measure) for measure in answer.evaluation.measures]
    if answer.groups is not None:
        panels += [(f"{measure} by {answer.groups.by}", 280.0, 100.0) for measure in measures]
    total = sum(height + below for _, height, below in panels)
    figure = figures.new("How do these runs complement one another?", height=int(total) + 120)
    make_subplots(rows=len(panels), cols=1, vertical_spacing=0.0, figure=figure)
    figures.stack(figure, panels, total)
    if venn:
        _circles(figure, answer)
    else:
        _upset(figure, answer)
    first = 2 if venn else 3
    for number, measure in enumerate(measures):
        _headroom(figure, answer, measure, first + number)
        if answer.groups is not None:
            _breakdown(figure, answer, measure, first + len(measures) + number)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yanchor": "bottom"}
    figure.update_layout(margin={"l": 230, "t": 100, "b": 20}, legend=legend)
    return figure


def _circles(figure: go.Figure, answer: Complement) -> None:
    """Two or three circles with the number of documents in each of their parts."""
    runs = answer.runs
    turn = [pi, 0.0] if len(runs) == 2 else [5 * pi / 6, pi / 6, -pi / 2]
    centres = [(0.62 * cos(angle), 0.62 * sin(angle)) for angle in turn]
    for number, (x, y) in enumerate(centres):
        colour = figures.style(number)["color"]
        figure.add_shape(
            type="circle",
            x0=x - 1,
            x1=x + 1,
            y0=y - 1,
            y1=y + 1,
            row=1,
            col=1,
            line={"color": colour, "width": 2},
            fillcolor=colour,
            opacity=0.16,
        )
    counts = dict(zip(answer.sets.tolist(), answer.found.sum(axis=0).tolist(), strict=True))
    xs, ys, texts = [], [], []
    for chosen, count in counts.items():
        inside = [r for r in range(len(runs)) if chosen >> r & 1]
        if not inside:
            continue
        # The middle of what is in all of them, pushed away from those it is not in.
        x, y = np.mean([centres[r] for r in inside], axis=0)
        reach = {1: 1.75, 2: 2.1}.get(len(inside), 1.0)
        xs.append(float(x) * reach)
        ys.append(float(y) * reach)
        texts.append(f"{count:,}")
    for number, ((x, y), angle) in enumerate(zip(centres, turn, strict=True)):
        xs.append(x + (1.12 if abs(sin(angle)) < 0.9 else 0.0) * (1 if cos(angle) > 0 else -1))
        ys.append(y + (1.12 if sin(angle) > 0.4 else -1.12 if sin(angle) < -0.4 else 0.95))
        texts.append(f"<b>{runs[number]}</b>")
    _texts(figure, xs, ys, texts)
    nobody = f"found by none of them: {counts[0]:,}"
    _texts(figure, [1.9], [-1.55], [nobody])
    figure.update_xaxes(visible=False, range=[-3.4, 3.4], row=1, col=1)
    figure.update_yaxes(visible=False, range=[-1.85, 1.6], scaleanchor="x", row=1, col=1)


def _texts(
    figure: go.Figure, xs: list[float], ys: list[float], texts: list[str], row: int = 1
) -> None:
    import plotly.graph_objects as go

    figure.add_trace(
        go.Scatter(x=xs, y=ys, text=texts, mode="text", showlegend=False, hoverinfo="skip"),
        row=row,
        col=1,
    )


def _upset(figure: go.Figure, answer: Complement) -> None:
    """Bars for the sets of runs, and below each bar dots for the runs of its set."""
    import plotly.graph_objects as go

    order = np.argsort(-answer.found.sum(axis=0), kind="stable")
    order = order[answer.sets[order] > 0][:_SETS]
    counts = answer.found.sum(axis=0)[order]
    places = np.arange(len(order))
    left = int((answer.sets > 0).sum()) - len(order)
    figure.add_trace(
        go.Bar(
            x=places,
            y=counts,
            marker={"color": figures.COLOURS[0]},
            showlegend=False,
            text=[f"{c:,}" for c in counts],
            textposition="outside",
            cliponaxis=False,
        ),
        row=1,
        col=1,
    )
    names = list(reversed(answer.runs))
    member = np.array([[int(s) >> r & 1 for s in answer.sets[order]] for r in range(len(names))])
    for number, run in enumerate(answer.runs):
        y = names.index(run)
        inside = member[number].astype(bool)
        for there, colour in ((~inside, "#E4E4E4"), (inside, "#333333")):
            figure.add_trace(
                go.Scatter(
                    x=places[there],
                    y=np.full(int(there.sum()), y),
                    mode="markers",
                    marker={"size": 11, "color": colour},
                    showlegend=False,
                    hoverinfo="skip",
                ),
                row=2,
                col=1,
            )
    for place, column in zip(places.tolist(), member.T, strict=True):
        inside = np.flatnonzero(column)
        ends = [names.index(answer.runs[r]) for r in (inside.min(), inside.max())]
        figure.add_trace(
            go.Scatter(
                x=[place, place],
                y=ends,
                mode="lines",
                line={"color": "#333333", "width": 2},
                showlegend=False,
                hoverinfo="skip",
            ),
            row=2,
            col=1,
        )
    for row in (1, 2):
        figure.update_xaxes(visible=False, range=[-0.7, len(order) - 0.3], row=row, col=1)
    figure.update_yaxes(title_text="documents", row=1, col=1)
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        showgrid=False,
        zeroline=False,
        range=[-0.6, len(names) - 0.4],
        row=2,
        col=1,
    )
    if left > 0:
        figure.add_annotation(
            text=f"{left:,} smaller sets are not shown",
            showarrow=False,
            xref="x domain",
            yref="y domain",
            x=1,
            y=0.98,
            xanchor="right",
        )


def _headroom(figure: go.Figure, answer: Complement, measure: str, row: int) -> None:
    """Bars from 0 (best single run) to 1 (oracle): how much of the way each combination goes."""
    import plotly.graph_objects as go

    shown = answer.headroom.filter(pl.col("measure") == measure)
    if shown["captured"].null_count():
        figure.update_xaxes(visible=False, row=row, col=1)
        figure.update_yaxes(visible=False, row=row, col=1)
        _texts(figure, [0.0], [0.0], ["the oracle is no better: there is no headroom"], row)
        return
    labels = [
        f"{system} {mean:.3f}, {share:.0%}"
        for system, mean, share in shown.select("system", "mean", "captured").iter_rows()
    ]
    bars = shown["system"].to_list()
    figure.add_trace(
        go.Bar(
            y=labels,
            x=shown["captured"].to_list(),
            orientation="h",
            showlegend=False,
            error_x={
                "array": (shown["high"] - shown["captured"]).fill_nan(0.0).to_list(),
                "arrayminus": (shown["captured"] - shown["low"]).fill_nan(0.0).to_list(),
                "color": "#333333",
                "thickness": 1.5,
            },
            marker={
                "color": [figures.COLOURS[0] if name in answer.fusions else _GREY for name in bars]
            },
        ),
        row=row,
        col=1,
    )
    figure.update_xaxes(title_text="share of the way", tickformat=".0%", row=row, col=1)
    figure.update_yaxes(autorange="reversed", row=row, col=1)


def _breakdown(figure: go.Figure, answer: Complement, measure: str, row: int) -> None:
    """Means of each system, with intervals, one place for each kind of query."""
    import plotly.graph_objects as go

    shown = answer.breakdown.filter(pl.col("measure") == measure)
    names = shown["group"].unique(maintain_order=True).to_list()
    systems = shown["system"].unique(maintain_order=True).to_list()
    for number, system in enumerate(systems):
        part = shown.filter(pl.col("system") == system)
        style = figures.style(number)
        at = np.array([names.index(name) for name in part["group"]])
        shift = (number - (len(systems) - 1) / 2) * 0.5 / len(systems)
        figure.add_trace(
            go.Scatter(
                x=at + shift,
                y=part["mean"].to_list(),
                error_y={
                    "array": (part["high"] - part["mean"]).fill_nan(0.0).to_list(),
                    "arrayminus": (part["mean"] - part["low"]).fill_nan(0.0).to_list(),
                    "thickness": 1,
                    "width": 2,
                },
                mode="markers",
                name=system,
                legendgroup=system,
                showlegend=measure == str(answer.evaluation.measures[0]),
                marker={"color": style["color"], "symbol": style["symbol"], "size": 8},
            ),
            row=row,
            col=1,
        )
    counts = dict(shown.select("group", "n").unique().iter_rows())
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=[f"{name}<br>n={counts[name]}" for name in names],
        row=row,
        col=1,
    )
