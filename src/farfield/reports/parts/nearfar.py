"""Near and far of every system, and the matrix of what was left out and what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from farfield.figures import new, style
from farfield.questions._nearfar_differences import who_loses_less
from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Table, Views
from farfield.reports.page import Section
from farfield.reports.parts import Part, similarity
from farfield.reports.rundir import RunDirectory

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.nearfar import NearFar

__all__ = ["PART", "dumbbells"]

_READING = (
    "Near is a query asked of models that were trained on its like, far the same query asked of "
    "the model that was not; both average the same queries, so a system that is not trained does "
    "not change. Delta is far / near - 1 with an interval over queries (and training seeds); "
    "micro counts every query alike, macro every group."
)
_READING_LEFT_OUT = (
    "Each group of queries is left out of training once: a row of the matrix is a model, a column "
    "the queries it is asked, and the diagonal what it never saw. Rel Loss = (Avg In - Out) / Avg "
    "In is positive where leaving a group out hurts it."
)
_LABELS = {"avg_in": "Avg In", "out": "Out", "rel_loss": "Rel Loss", "p_adjusted": "p (Holm)"}
_KINDS = {"delta": "change", "rel_loss": "change"}
_TESTED = ["p_adjusted", "queries", "seeds"]
_MATRICES = 8


def _of_run(run: RunDirectory) -> list[Section]:
    tables = run.tables
    names = list(dict.fromkeys(tables["table"]["shift"]))
    chosen = {
        name: {
            key: frame.filter(pl.col("shift") == name).drop("shift")
            for key, frame in tables.items()
            if "shift" in frame.columns
        }
        for name in names
    }
    return _sections(chosen, tables["table"]["measure"][0])


def _of_answer(answer: NearFar) -> list[Section]:
    names = ("table", "differences", "by_memory", "losses", "matrix")
    frames = {name: getattr(answer, name) for name in names}
    sections = _sections({"the shift": frames}, str(answer.measures[0]))
    return [*sections, *similarity.of_answer(answer)]


def _sections(shifts: Mapping[str, Mapping[str, pl.DataFrame]], measure: str) -> list[Section]:
    near_far = {name: _near_far(frames, measure) for name, frames in shifts.items()}
    findings = [
        sentence
        for name, frames in shifts.items()
        for sentence in (
            *_said(name, frames["table"], measure),
            *(
                f"{name}: {said}"
                for said in who_loses_less(
                    frames["table"], frames.get("differences", pl.DataFrame())
                )
            ),
        )
    ]
    found = [
        Section(
            "near-far",
            "Near and far",
            reading=_READING,
            findings=findings,
            blocks=[Views("Shift", near_far)],
        )
    ]
    left_out = {
        name: _left_out(frames, measure)
        for name, frames in shifts.items()
        if len(frames.get("losses", ()))
    }
    if left_out:
        found.append(
            Section(
                "left-out",
                "What leaving a group out costs",
                reading=_READING_LEFT_OUT,
                blocks=[Views("Shift", left_out)],
            )
        )
    return found


# -- near and far -------------------------------------------------------------------------------


def _near_far(frames: Mapping[str, pl.DataFrame], measure: str) -> list[Block]:
    table = frames["table"]
    micro = table.filter(pl.col("average") == "micro")
    parts = {
        f"{name}: near and far": part
        for (name,), part in micro.group_by("measure", maintain_order=True)
    }
    alt = "For every system its mean near and far, with intervals. The numbers are in the table."
    blocks: list[Block] = [Figures(dumbbells(parts), alt)]
    shown = ["system", "measure", "average", "near", "far", "delta", *_TESTED]
    blocks.append(
        Table(
            "near-far",
            "Near, far and delta",
            table,
            shown=shown,
            labels=_LABELS,
            kinds=_KINDS,
            start={"measure": measure, "average": "micro"},
        )
    )
    between = frames.get("differences", table.clear())
    if len(between):
        blocks.append(
            Table(
                "differences",
                "Does one system change more than another?",
                between,
                shown=["system", "other", "measure", "near", "far", "delta", "p_adjusted"],
                labels=_LABELS | {"delta": "difference of deltas"},
                kinds={"near": "signed", "far": "signed", "delta": "change"},
                start={"measure": measure},
                note="The system less the other, on the same queries; p is of the difference of "
                "their deltas.",
            )
        )
    memory = frames.get("by_memory", table.clear())
    if len(memory):
        blocks.append(
            Table(
                "by-memory",
                "Apart for queries of which a relevant document was trained on",
                memory,
                shown=["seen", *(name for name in shown if name != "average")],
                labels=_LABELS | {"seen": "document was trained on"},
                kinds=_KINDS,
                start={"measure": measure},
                note="Part of what is lost are documents that training had seen, not queries that "
                "it had seen the like of.",
            )
        )
    return blocks


def _said(shift: str, table: pl.DataFrame, measure: str) -> list[str]:
    rows = table.filter((pl.col("measure") == measure) & (pl.col("average") == "micro"))
    clear = rows.filter(
        (pl.col("p_adjusted") < 0.05) & ((pl.col("delta_low") > 0) | (pl.col("delta_high") < 0))
    )
    if not len(clear):
        return [f"{shift}: no system changes clearly from near to far in {measure}."]
    told = [
        f"{row['system']} {words.with_interval(row, 'delta', words.change)}"
        for row in clear.sort("delta").iter_rows(named=True)
    ]
    return [f"{shift}: {measure} changes clearly from near to far for {words.listed(told)}."]


def dumbbells(parts: Mapping[str, pl.DataFrame], title: str = "") -> go.Figure:
    """Draw near and far of systems as two points on a line, a panel for each table.

    Near is an open circle around far where nothing changes, so that both are seen.
    """
    from plotly.subplots import make_subplots

    rows = [max(len(part), 1) for part in parts.values()]
    heights = [34.0 + 44.0 * n for n in rows]
    total = sum(heights) + 46.0 * (len(rows) - 1)
    figure = make_subplots(
        len(rows),
        1,
        subplot_titles=list(parts),
        row_heights=heights,
        vertical_spacing=46.0 / total if len(rows) > 1 else 0.0,
        figure=new(title, height=round(total) + 120),
    )
    for at, part in enumerate(parts.values(), start=1):
        labels = [_label(row) for row in part.iter_rows(named=True)]
        sides = part.select("near", "far", gap=None).rows()  # a line for each system, none between
        figure.add_scatter(
            x=[x for row in sides for x in row],
            y=[y for label in labels for y in (label, label, None)],
            mode="lines",
            line={"color": "#888", "width": 2},
            showlegend=False,
            hoverinfo="skip",
            row=at,
            col=1,
        )
        looks = {"near": ("circle-open", 15, 2.5), "far": ("square", 9, 0)}
        for number, (side, (symbol, size, edge)) in enumerate(looks.items()):
            look = {"color": style(number)["color"], "symbol": symbol, "size": size}
            figure.add_scatter(
                x=part[side].to_list(),
                y=labels,
                error_x=_bars(part, side),
                mode="markers",
                name=side,
                showlegend=at == 1,
                marker=look | {"line": {"width": edge}},
                row=at,
                col=1,
            )
        figure.update_yaxes(autorange="reversed", showgrid=False, row=at, col=1)
        figure.update_xaxes(rangemode="tozero", row=at, col=1)
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    return figure


def _label(row: dict[str, Any]) -> str:
    if row["delta"] == row["delta_low"] == row["delta_high"] == 0.0:
        return f"<b>{row['system']}</b><br>no change"
    value, _, interval = words.with_interval(row, "delta", words.change).partition(" ")
    return f"<b>{row['system']}</b> {value}<br>{interval}"


# -- what was left out --------------------------------------------------------------------------


def _left_out(frames: Mapping[str, pl.DataFrame], measure: str) -> list[Block]:
    losses, matrix = frames["losses"], frames["matrix"]
    here = losses.filter(pl.col("measure") == measure)
    alt = "The relative loss of each group when it is left out, by system, with intervals."
    blocks: list[Block] = [Figures(_losses(here, measure), alt)]
    blocks.append(
        Table(
            "left-out",
            "Avg In, Out and Rel Loss of each group",
            losses,
            shown=["system", "measure", "group", "avg_in", "out", "rel_loss", *_TESTED],
            labels=_LABELS,
            kinds=_KINDS,
            start={"measure": measure},
        )
    )
    cells = matrix.filter(pl.col("measure") == measure)
    changing = here.filter(pl.col("rel_loss") != 0)["system"].unique(maintain_order=True)
    if len(changing):
        alt = "Means by the group left out of training (rows) and the group asked (columns)."
        systems = changing.head(_MATRICES).to_list()
        blocks.append(Figures(_matrices(cells, systems, measure), alt))
    blocks.append(
        Table(
            "matrix",
            "Means by what was left out and what was asked",
            matrix,
            shown=["system", "measure", "left_out", "group", "mean", "queries"],
            start={"measure": measure},
        )
    )
    return blocks


def _losses(rows: pl.DataFrame, measure: str) -> go.Figure:
    figure = new(
        f"Relative loss of {measure} when a group is left out of training",
        x="group left out and asked",
        y="relative loss",
        height=440,
    )
    for number, ((system,), part) in enumerate(rows.group_by("system", maintain_order=True)):
        look = style(number)
        figure.add_scatter(
            x=part["group"].to_list(),
            y=part["rel_loss"].to_list(),
            error_y=_bars(part, "rel_loss"),
            mode="markers",
            name=str(system),
            marker={"color": look["color"], "symbol": look["symbol"], "size": 9},
        )
    figure.add_hline(y=0, line={"color": "#888", "width": 1})
    figure.update_layout(scattermode="group")
    figure.update_xaxes(type="category")
    figure.update_yaxes(tickformat=".0%")
    return figure


def _matrices(cells: pl.DataFrame, systems: Sequence[str], measure: str) -> go.Figure:
    from plotly.subplots import make_subplots

    across = min(2, len(systems))
    down = -(-len(systems) // across)
    groups = cells["group"].unique(maintain_order=True).to_list()
    folds = cells["left_out"].unique(maintain_order=True).to_list()
    size = 130 + 40 * len(folds)
    figure = make_subplots(
        down,
        across,
        subplot_titles=[f"{system}: {measure}" for system in systems],
        figure=new("", height=size * down + 120),
    )
    for at, system in enumerate(systems):
        here = cells.filter(pl.col("system") == system)
        found = {(r["left_out"], r["group"]): r["mean"] for r in here.iter_rows(named=True)}
        means = [[found.get((fold, group)) for group in groups] for fold in folds]
        figure.add_heatmap(
            x=groups,
            y=folds,
            z=means,
            text=[[words.number(v) if v is not None else "" for v in row] for row in means],
            texttemplate="%{text}",
            # Light enough for dark numbers, and the page has dark ones for light numbers.
            colorscale=[[0, "#f2f7fb"], [1, "#7db8e0"]],
            textfont={"color": "#333333"},
            showscale=False,
            hovertemplate="left out %{y}, asked %{x}: %{z:.4f}<extra></extra>",
            row=at // across + 1,
            col=at % across + 1,
        )
    figure.update_xaxes(type="category", title_text="asked")
    figure.update_yaxes(type="category", title_text="left out", autorange="reversed")
    return figure


def _bars(rows: pl.DataFrame, name: str) -> dict[str, Any]:
    value = rows[name].to_numpy()
    up, down = rows[f"{name}_high"].to_numpy() - value, value - rows[f"{name}_low"].to_numpy()
    ends = (np.nan_to_num(np.maximum(side, 0)).tolist() for side in (up, down))
    return dict(zip(("array", "arrayminus"), ends, strict=True)) | {"thickness": 1.5, "width": 4}


PART = Part(order=40, answer="NearFar", of_answer=_of_answer, of_run=_of_run)
