"""How near and far are drawn: systems, groups, and loss against similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from farfield.figures import new, style

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.nearfar import NearFar

__all__ = ["draw", "draw_bins", "draw_points"]

_ROW = 400  # pixels


def draw(answer: NearFar) -> go.Figure:
    """Draw near and far, what each group loses, and below it loss against similarity."""
    measure = str(answer.measures[0])
    losses = _of(answer.losses, measure=measure)
    panels = _Panels("Near and far", answer.systems)
    rows = _of(answer.table, measure=measure, average="micro")
    title = f"{measure}: near and far, means over the same queries"
    panels.add(title, _near_and_far, rows, wide=True)
    if len(losses):
        title = "Relative loss of each group when it is left out of training"
        panels.add(title, _groups, losses, wide=True)
    _add_bins(panels, answer.by_similarity, answer.boxes)
    _add_points(panels, _of(answer.points, measure=measure), measure)
    return panels.drawn()


def draw_points(points: pl.DataFrame) -> go.Figure:
    """Draw the relative loss of groups against their similarity, a panel for each indicator.

    For tables that hold the groups of several shifts, as ``farfield run`` collects them.
    """
    measure = points["measure"][0]
    panels = _Panels("Loss against similarity", points["system"].unique(maintain_order=True))
    _add_points(panels, _of(points, measure=measure), measure)
    return panels.drawn()


def draw_bins(bins: pl.DataFrame, boxes: pl.DataFrame) -> go.Figure:
    """Draw losses against similarity for the queries of one shift, in bins and as boxes."""
    panels = _Panels("Loss against similarity", bins["system"].unique(maintain_order=True))
    _add_bins(panels, bins, boxes)
    return panels.drawn()


class _Panels:
    """Panels below one another, over the whole width or half of it, and one legend for all."""

    def __init__(self, title: str, systems: Any) -> None:
        self.title = title
        self.looks = {system: style(number) for number, system in enumerate(systems)}
        self.panels: list[tuple[str, Any, pl.DataFrame, bool]] = []
        self.told: set[str] = set()

    def add(self, title: str, paint: Any, frame: pl.DataFrame, *, wide: bool = False) -> None:
        """Add a panel that ``paint`` draws of a frame."""
        self.panels.append((title, paint, frame, wide))

    def drawn(self) -> go.Figure:
        """Draw all panels."""
        from plotly.subplots import make_subplots

        places, specs = self._places()
        down = len(specs)
        figure = make_subplots(
            down,
            2,
            specs=specs,
            subplot_titles=[title for title, *_ in self.panels],
            vertical_spacing=0.32 / max(down, 2),
            horizontal_spacing=0.1,
            figure=new(self.title, height=_ROW * down + 60),
        )
        for (_, paint, frame, _), (row, col) in zip(self.panels, places, strict=True):
            paint(_Panel(self, figure, row, col), frame)
        above = 1.0 + 45.0 / (_ROW * down)
        figure.update_layout(
            margin={"t": 110},
            scattermode="group",
            boxmode="group",
            legend={"y": above},
        )
        figure.update_xaxes(title_font_size=13, tickangle=0)
        figure.update_yaxes(title_font_size=13)
        figure.update_annotations(font_size=14)
        return figure

    def _places(self) -> tuple[list[tuple[int, int]], list[list[Any]]]:
        """Where each panel goes, and what plotly wants to know of every row."""
        places: list[tuple[int, int]] = []
        specs: list[list[Any]] = []
        for _, _, _, wide in self.panels:
            beside = not wide and bool(specs) and specs[-1] == [{}, None]
            if beside:
                specs[-1] = [{}, {}]
            else:
                specs.append([{"colspan": 2}, None] if wide else [{}, None])
            places.append((len(specs), 2 if beside else 1))
        return places, specs


class _Panel:
    """One panel to paint on."""

    def __init__(self, panels: _Panels, figure: go.Figure, row: int, col: int) -> None:
        self.panels, self.figure, self.at = panels, figure, {"row": row, "col": col}

    def series(self, name: str, look: dict[str, Any] | None = None) -> dict[str, Any]:
        """What all that is drawn of one series shares; the legend names it once."""
        first = name not in self.panels.told
        self.panels.told.add(name)
        look = look or self.panels.looks[name]
        marker = {"color": look["color"], "symbol": look["symbol"], "size": 9}
        return {"name": name, "legendgroup": name, "showlegend": first, "marker": marker, **self.at}

    def loss_axes(self, x: str, y: str, *, percent: bool) -> None:
        """Name the axes, and draw where nothing is lost."""
        self.figure.add_hline(y=0, line={"color": "#888", "width": 1}, **self.at)
        self.figure.update_yaxes(title_text=y, tickformat=".2~p" if percent else None, **self.at)
        self.figure.update_xaxes(title_text=x, **self.at)


def _near_and_far(panel: _Panel, rows: pl.DataFrame) -> None:
    for number, side in enumerate(("near", "far")):
        look = style(len(panel.panels.looks) + number)
        panel.figure.add_scatter(
            x=rows["system"].to_list(),
            y=rows[side].to_numpy(),
            error_y=_bars(rows, side),
            mode="markers",
            **panel.series(side, look),
        )
    panel.figure.update_yaxes(title_text=rows["measure"][0], **panel.at)
    panel.figure.update_xaxes(type="category", **panel.at)


def _groups(panel: _Panel, losses: pl.DataFrame) -> None:
    for (system,), part in losses.group_by("system", maintain_order=True):
        panel.figure.add_scatter(
            x=part["group"].to_list(),
            y=part["rel_loss"].to_numpy(),
            error_y=_bars(part, "rel_loss"),
            mode="markers",
            **panel.series(str(system)),
        )
    panel.loss_axes("group", "relative loss", percent=True)
    panel.figure.update_xaxes(type="category", **panel.at)


def _bins(panel: _Panel, bins: pl.DataFrame) -> None:
    for (system,), part in bins.group_by("system", maintain_order=True):
        panel.figure.add_scatter(
            x=_ranges(part),
            y=part["rel_loss"].to_numpy(),
            error_y=_bars(part, "rel_loss"),
            mode="markers",
            **panel.series(str(system)),
        )
    panel.loss_axes(_named(bins), "relative loss", percent=True)


def _boxes(panel: _Panel, boxes: pl.DataFrame) -> None:
    # Five numbers for each box: the values themselves would make the file large.
    for (system,), part in boxes.group_by("system", maintain_order=True):
        shared = panel.series(str(system))
        shared["marker"] = {"color": shared["marker"]["color"]}
        panel.figure.add_box(
            x=_ranges(part),
            lowerfence=part["p5"].to_list(),
            q1=part["q1"].to_list(),
            median=part["median"].to_list(),
            mean=part["mean"].to_list(),
            q3=part["q3"].to_list(),
            upperfence=part["p95"].to_list(),
            **shared,
        )
    panel.loss_axes(_named(boxes), "near less far, as a loss", percent=False)


def _points(panel: _Panel, points: pl.DataFrame) -> None:
    shift = points["shift"] + ", " if "shift" in points.columns else pl.Series([""])
    points = points.with_columns((shift + points["group"]).alias("label"))
    for (system,), part in points.group_by("system", maintain_order=True):
        panel.figure.add_scatter(
            x=part["similarity"].to_numpy(),
            y=part["rel_loss"].to_numpy(),
            error_y=_bars(part, "rel_loss"),
            text=part["label"].to_list(),
            hovertemplate="%{text}: %{y:.1%}<extra>%{fullData.name}</extra>",
            mode="markers",
            offsetgroup="where it is",  # not side by side: x is a number here
            **panel.series(str(system)),
        )
    compared = points["similarity"].equals(points["relative"])
    name = _named(points) + (", of what it would be without a shift" if compared else "")
    panel.loss_axes(name, "relative loss", percent=True)
    if compared:
        panel.figure.update_xaxes(tickformat=".2~p", **panel.at)


def _add_bins(panels: _Panels, bins: pl.DataFrame, boxes: pl.DataFrame) -> None:
    if not len(bins):
        return
    for indicator, of in bins.select("indicator", "measure").unique(maintain_order=True).rows():
        mine = {"indicator": indicator, "measure": of}
        panels.add(f"{of}: relative loss, by {indicator}", _bins, _of(bins, **mine))
        panels.add(f"{of}: losses of single queries", _boxes, _of(boxes, **mine))


def _add_points(panels: _Panels, points: pl.DataFrame, measure: str) -> None:
    if not len(points):
        return
    for (indicator,), part in points.group_by("indicator", maintain_order=True):
        panels.add(f"{measure}: groups by {indicator}", _points, part)


def _of(frame: pl.DataFrame, **wanted: str) -> pl.DataFrame:
    return frame.filter(*(pl.col(k) == v for k, v in wanted.items())) if len(frame) else frame


def _named(part: pl.DataFrame) -> str:
    return f"{part['indicator'][0]} (higher is {'nearer' if part['nearer'][0] else 'farther'})"


def _ranges(part: pl.DataFrame) -> list[str]:
    edges = part.select("similarity_from", "similarity_to").rows()
    return [f"{low:.2g}<br>to {high:.2g}" for low, high in edges]


def _bars(rows: pl.DataFrame, name: str) -> dict[str, Any]:
    value = rows[name].to_numpy()
    up, down = rows[f"{name}_high"].to_numpy() - value, value - rows[f"{name}_low"].to_numpy()
    return {"type": "data", "array": np.maximum(up, 0), "arrayminus": np.maximum(down, 0)}
