"""How alignment is drawn: a scatter plot for each predictor and target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farfield.figures import new, style

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from farfield.questions.align import Alignment

__all__ = ["draw"]

# Panels: more are too small to read.
_MOST, _ACROSS = 12, 3


def draw(answer: Alignment) -> go.Figure:
    """Draw target against predictor, a point for each system, with the correlations above."""
    from plotly.subplots import make_subplots

    pairs = list(
        answer.table.select("target", "predictor").unique(maintain_order=True).iter_rows()
    )[:_MOST]
    across = min(_ACROSS, len(pairs)) if answer.each else len(answer.predictors)
    across = min(across, _ACROSS)
    down = -(-len(pairs) // across)
    titles = [_title(answer, *pair) for pair in pairs]
    shown = "" if len(pairs) == len(answer.table) // 2 else f", the first {len(pairs)} pairs"
    figure = make_subplots(
        down,
        across,
        subplot_titles=titles,
        vertical_spacing=0.32 / down,
        horizontal_spacing=0.1,
        figure=new(f"{len(answer.scores):,} systems{shown}", height=320 * down + 80),
    )
    names = answer.scores[answer.system].to_list()
    for number, (target, predictor) in enumerate(pairs):
        x, y = answer.points(target, predictor)
        look = style(answer.predictors.index(predictor) if not answer.each else 0)
        place = {"row": number // across + 1, "col": number % across + 1}
        figure.add_scatter(
            x=x,
            y=y,
            text=names,
            mode="markers",
            marker={"color": look["color"], "symbol": look["symbol"], "size": 6, "opacity": 0.7},
            hovertemplate="%{text}<br>%{x:.3f}, %{y:.3f}<extra></extra>",
            showlegend=False,
            **place,
        )
        figure.update_xaxes(title_text=predictor, **place)
        figure.update_yaxes(title_text="mean of the others" if answer.each else target, **place)
    figure.update_annotations(font_size=13)
    return figure


def _title(answer: Alignment, target: str, predictor: str) -> str:
    rows = answer.table.filter(
        (answer.table["target"] == target) & (answer.table["predictor"] == predictor)
    )
    values = dict(rows.select("kind", "value").iter_rows())
    return f"rho {values['spearman']:.2f}, tau {values['kendall']:.2f}"
