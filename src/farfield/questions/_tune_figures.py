"""The figure of a search for weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farfield import figures

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import polars as pl

    from farfield.questions.tune import Tuning

__all__ = ["draw"]

_SETTINGS = 25  # settings that are shown where there is no curve
_GREY = "#C8C8C8"
_SAID = {"tuned": "tuned, out of fold", "best per query": "best setting of each query"}


def draw(tuning: Tuning) -> go.Figure:
    """Draw the mean of every setting, and as lines the tuned and the best of each query."""
    import plotly.graph_objects as go

    two = len(tuning.runs) == 2 and not tuning.fusion.weights
    first = f"weight of {tuning.runs[0]}"
    options = list(tuning.fusion.choices())
    shown = tuning.curve
    best = shown.sort("mean", descending=tuning.measure.higher_is_better).head(_SETTINGS)
    labels = [_label(row, options) for row in best.iter_rows(named=True)]
    figure = figures.new(
        f"{tuning.fusion}: {tuning.measure} of {'every setting' if two else 'the best settings'}",
        x=f"{first} (the rest is that of {tuning.runs[1]})"
        if two
        else f"weights of {', '.join(tuning.runs)}; best first",
        y=f"mean {tuning.measure}",
        height=520,
    )
    figure.update_layout(legend={"orientation": "v", "x": 1.02, "xanchor": "left", "y": 1})
    figure.update_layout(legend={"yanchor": "top"}, margin={"r": 300})
    if two and options:
        # One line for each value of the other option, without intervals: they would overlap.
        for number, ((value,), part) in enumerate(shown.group_by(options[0], maintain_order=True)):
            label = f"{options[0]}={_given(tuning, options[0]) if value is None else value}"
            _line(figure, part.sort(first), first, label, number, interval=False)
    elif two:
        label = f"{tuning.measure}, {tuning.level:.0%} interval"
        _line(figure, shown.sort(first), first, label, 0, interval=True)
    else:
        up, down = best["high"] - best["mean"], best["mean"] - best["low"]
        figure.add_trace(
            go.Scatter(
                x=labels,
                y=best["mean"].to_list(),
                error_y={"array": up.to_list(), "arrayminus": down.to_list(), "color": _GREY},
                mode="markers",
                name=f"setting, {tuning.level:.0%} interval",
                marker={"size": 8},
            )
        )
    ends = [0.0, 1.0] if two else [labels[0], labels[-1]]
    for number, row in enumerate(tuning.summary.iter_rows(named=True), start=1):
        style = figures.style(number)
        figure.add_trace(
            go.Scatter(
                x=ends,
                y=[row["mean"]] * 2,
                mode="lines",
                name=f"{_SAID.get(row['system'], row['system'] + ' as given')} {row['mean']:.4f}",
                line={"color": style["color"], "dash": style["dash"], "width": 1.5},
            )
        )
    return figure


def _line(
    figure: go.Figure, part: pl.DataFrame, x: str, label: str, number: int, *, interval: bool
) -> None:
    import plotly.graph_objects as go

    style = figures.style(number)
    if interval:
        xs = [*part[x], *reversed(part[x].to_list())]
        ys = [*part["high"], *reversed(part["low"].to_list())]
        band = {"color": "rgba(0,114,178,0.12)", "width": 0}
        figure.add_trace(
            go.Scatter(
                x=xs,
                y=ys,
                fill="toself",
                mode="lines",
                line=band,
                hoverinfo="skip",
                showlegend=False,
                fillcolor="rgba(0,114,178,0.12)",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=part[x].to_list(),
            y=part["mean"].to_list(),
            text=part["fusion"].to_list(),
            hovertemplate="%{text}<br>%{y:.4f}<extra></extra>",
            name=label,
            mode="lines+markers",
            line={"color": style["color"], "dash": style["dash"]},
            marker={"color": style["color"], "symbol": style["symbol"]},
        )
    )


def _label(row: dict[str, Any], options: list[str]) -> str:
    """A setting in few characters: its weights, and what else was searched."""
    weights = " / ".join(f"{v:.2g}" for k, v in row.items() if k.startswith("weight of "))
    others = [f"{name}={row[name]}" for name in options if row[name] is not None]
    return ", ".join([weights, *others])


def _given(tuning: Tuning, option: str) -> Any:
    return getattr(tuning.fusion, "constant", None) if option == "k" else "as given"
