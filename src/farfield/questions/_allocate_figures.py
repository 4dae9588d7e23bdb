"""The figure of an allocation: what policies are worth, who gives how much, and the sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from farfield import figures
from farfield.questions._allocate_answer import BOUNDS, EQUAL, NAIVE, ORACLE

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions._allocate_answer import Allocated

__all__ = ["draw"]

_GREY = "#8A8A8A"
_LINES = (NAIVE, EQUAL, "local()", "softmax()", ORACLE)  # always drawn in a sweep
_LONGEST = 24  # letters of a retriever's name below its points


def draw(answer: Allocated) -> go.Figure:
    """Draw one panel below the other: recall, shares, and what else was asked for."""
    from plotly.subplots import make_subplots

    rows = len(answer.outcomes)
    # Of each panel its title, its height in pixels, and who draws it.
    panels: list[tuple[str, float, Any]] = []
    if answer.labels is not None:
        title = f"{answer.measures[0]} of every policy, {answer.level:.0%} intervals"
        panels.append((title, 40.0 + 26.0 * rows, _recalls))
    panels.append(("Share of the budget by source", 40.0 + 26.0 * rows, _shares))
    if answer.labels is not None:
        if len(answer.sources) == 2:
            panels.append(("The same share for all queries", 280.0, _fractions))
        if answer.budgets:
            panels.append((f"Recall by budget, {answer.level:.0%} intervals", 300.0, _budgets))
        if answer.seed_sizes:
            said = f"{answer.measures[0]} by labelled queries: mean and deviation of draws"
            panels.append((said, 300.0, _seeds))
        if answer.others:
            said = f"{answer.measures[0]} by retriever (above is {answer.retriever} alone)"
            panels.append((said, 300.0, _retrievers))
    gap = 110.0
    total = sum(height for _, height, _ in panels) + gap * len(panels)
    title = f"{answer.k:,} results from {len(answer.sources)} sources: who gives how many?"
    figure = figures.new(title, height=int(total) + 110)
    make_subplots(rows=len(panels), cols=1, vertical_spacing=0.0, figure=figure)
    tops = figures.stack(figure, [(said, height, gap) for said, height, _ in panels], total)
    for row, (top, (_, _, panel)) in enumerate(zip(tops, panels, strict=True), start=1):
        legend = f"legend{row if row > 1 else ''}"
        place = {"orientation": "v", "x": 1.01, "xanchor": "left", "y": top, "yanchor": "top"}
        figure.update_layout({legend: {**place, "traceorder": "normal"}})
        panel(figure, answer, row, legend)
    figure.update_layout(margin={"l": 210, "r": 190, "t": 100, "b": 20})
    return figure


def _recalls(figure: go.Figure, answer: Allocated, row: int, legend: str) -> None:
    """A point with its interval for every policy; bounds are grey."""
    import plotly.graph_objects as go

    for bound, colour, symbol in ((False, figures.COLOURS[0], "circle"), (True, _GREY, "diamond")):
        shown = answer.table.filter(pl.col("policy").is_in(BOUNDS) == bound)
        figure.add_trace(
            go.Scatter(
                x=shown["recall"].to_list(),
                y=shown["policy"].to_list(),
                mode="markers",
                name="bound" if bound else "policy",
                legend=legend,
                error_x=_errors(shown, "recall"),
                marker={"color": colour, "symbol": symbol, "size": 9},
            ),
            row=row,
            col=1,
        )
    named = dict(answer.table.select("policy", "recall").iter_rows())
    for policy, dash in ((NAIVE, "dot"), (EQUAL, "dash")):
        figure.add_vline(
            x=named[policy], row=row, col=1, line={"color": _GREY, "dash": dash, "width": 1}
        )
    policies = answer.table["policy"].to_list()
    figure.update_yaxes(
        autorange="reversed", categoryorder="array", categoryarray=policies, row=row, col=1
    )
    said = f"{answer.measures[0]} (lines: {NAIVE} dotted, {EQUAL} dashed)"
    figure.update_xaxes(title_text=said, row=row, col=1)


def _shares(figure: go.Figure, answer: Allocated, row: int, legend: str) -> None:
    """A bar for every policy, divided by source."""
    import plotly.graph_objects as go

    for number, source in enumerate(answer.sources):
        shown = answer.shares.filter(pl.col("source") == source)
        shares = shown["share"].to_list()
        figure.add_trace(
            go.Bar(
                x=shares,
                y=shown["policy"].to_list(),
                orientation="h",
                name=source,
                legend=legend,
                text=[f"{share:.0%}" if share > 0.06 else "" for share in shares],
                textposition="inside",
                insidetextanchor="middle",
                marker={
                    "color": figures.style(number)["color"],
                    # Colours come again after eight sources, with another pattern.
                    "pattern": {"shape": ("", "/", "x", "-")[number // len(figures.COLOURS) % 4]},
                    "line": {"color": "white", "width": 1},
                },
            ),
            row=row,
            col=1,
        )
    figure.update_layout(barmode="stack")
    figure.update_yaxes(autorange="reversed", row=row, col=1)
    figure.update_xaxes(tickformat=".0%", range=[0, 1], row=row, col=1)


def _fractions(figure: go.Figure, answer: Allocated, row: int, legend: str) -> None:
    """Recall and precision over the share of the first source."""
    for number, (name, label) in enumerate(
        zip(("recall", "precision"), answer.measures, strict=True)
    ):
        table = answer.fractions
        _line(figure, table, "share", name, label, number, row, legend, _errors(table, name))
    said = f"share of {answer.sources[0]} (the rest is that of {answer.sources[1]})"
    figure.update_xaxes(title_text=said, row=row, col=1)


def _budgets(figure: go.Figure, answer: Allocated, row: int, legend: str) -> None:
    """Recall over the budget, a line for a policy."""
    for number, name in enumerate(_chosen(answer)):
        part = answer.by_budget.filter(pl.col("policy") == name).sort("k")
        _line(figure, part, "k", "recall", name, number, row, legend, _errors(part, "recall"))
    figure.update_xaxes(title_text="results for each query", type="log", row=row, col=1)
    ticks = sorted(answer.budgets)
    figure.update_xaxes(tickvals=ticks, ticktext=[f"{k:,}" for k in ticks], row=row, col=1)
    figure.update_yaxes(title_text="recall", row=row, col=1)


def _seeds(figure: go.Figure, answer: Allocated, row: int, legend: str) -> None:
    """Recall over the number of labelled queries, a line for a policy that learns."""
    table = answer.by_seeds
    names = table["policy"].unique(maintain_order=True).to_list()
    for number, name in enumerate(names):
        part = table.filter(pl.col("policy") == name).sort("seeds")
        spread = {"array": part["spread"].fill_null(0.0).to_list(), "thickness": 1, "width": 3}
        _line(figure, part, "seeds", "recall", name, number, row, legend, spread)
    fixed = dict(answer.table.select("policy", "recall").iter_rows())
    for policy, dash in ((NAIVE, "dot"), (EQUAL, "dash")):
        figure.add_hline(
            y=fixed[policy], row=row, col=1, line={"color": _GREY, "dash": dash, "width": 1}
        )
    ticks = sorted(answer.seed_sizes)
    said = f"labelled queries (lines: {NAIVE} dotted, {EQUAL} dashed)"
    figure.update_xaxes(title_text=said, type="log", row=row, col=1)
    figure.update_xaxes(tickvals=ticks, ticktext=[f"{n:,}" for n in ticks], row=row, col=1)


def _retrievers(figure: go.Figure, answer: Allocated, row: int, legend: str) -> None:
    """Recall of retrievers in the order given, a line for a policy."""
    for number, name in enumerate(_chosen(answer)):
        part = answer.by_retriever.filter(pl.col("policy") == name)
        errors = _errors(part, "recall")
        _line(figure, part, "retriever", "recall", name, number, row, legend, errors)
    names = [answer.retriever, *answer.others]
    short = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names]
    figure.update_xaxes(type="category", tickvals=names, ticktext=short, row=row, col=1)
    figure.update_yaxes(title_text="recall", row=row, col=1)


def _chosen(answer: Allocated) -> list[str]:
    """Policies that have a line."""
    return [name for name in answer.outcomes if name in {*_LINES, answer.recommended}]


def _line(
    figure: go.Figure,
    part: pl.DataFrame,
    x: str,
    y: str,
    name: str,
    number: int,
    row: int,
    legend: str,
    errors: dict[str, Any],
) -> None:
    import plotly.graph_objects as go

    style = figures.style(number)
    figure.add_trace(
        go.Scatter(
            x=part[x].to_list(),
            y=part[y].to_list(),
            name=name,
            legend=legend,
            mode="lines+markers",
            error_y=errors,
            line={"color": style["color"], "dash": style["dash"]},
            marker={"color": style["color"], "symbol": style["symbol"], "size": 8},
        ),
        row=row,
        col=1,
    )


def _errors(frame: pl.DataFrame, name: str) -> dict[str, Any]:
    """Bars from the lower to the upper bound; none where there is a single query."""
    return {
        "array": (frame[f"{name}_high"] - frame[name]).fill_nan(0.0).to_list(),
        "arrayminus": (frame[name] - frame[f"{name}_low"]).fill_nan(0.0).to_list(),
        "thickness": 1,
        "width": 3,
    }
