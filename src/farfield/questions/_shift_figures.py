"""How shifts are drawn: a map of the queries, and their similarity to what is trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.encoders import Encoder
from farfield.errors import InputError, did_you_mean
from farfield.figures import new, style
from farfield.shifts import Dealt, Fold
from farfield.tables import ROLES

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["draw", "positions"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

METHODS = ("pca", "tsne")
# Points on the map: more hide one another, and t-SNE takes minutes.
_POINTS = 4000
_TEXT = 80


def draw(dealt: Dealt, encoder: Encoder, method: str, fold: str | None) -> go.Figure:
    """Draw the map above, the similarities below."""
    from plotly.subplots import make_subplots

    if method not in METHODS:
        raise InputError(
            f"method is {method!r}.{did_you_mean(method, METHODS)} Expected pca or tsne."
        )
    (vectors,) = encoder.encode(dealt.pool.queries)
    labels, names, by = _labels(dealt, fold)
    rows = np.flatnonzero(labels >= 0)
    if len(rows) > _POINTS:
        rows = np.sort(np.random.default_rng(dealt.seed).choice(rows, _POINTS, replace=False))
    place, axes = positions(vectors[rows], method, dealt.seed)
    titles = (
        f"{len(rows):,} of {len(dealt.pool):,} queries by {by} ({encoder})",
        "R: mean similarity to the fold's training queries",
    )
    figure = make_subplots(
        2,
        1,
        row_heights=[0.62, 0.38],
        vertical_spacing=0.12,
        subplot_titles=titles,
        figure=new(f"{dealt.shift} on {dealt.pool.collection.name}", height=900),
    )
    texts = dealt.pool.queries.frame["text"].str.slice(0, _TEXT)
    for number, name in enumerate(names):
        here = labels[rows] == number
        if not here.any():
            continue
        look = style(number)
        figure.add_scatter(
            x=place[here, 0],
            y=place[here, 1],
            mode="markers",
            name=name,
            text=texts.gather(rows[here]).to_list(),
            hovertemplate="%{text}<extra>" + name + "</extra>",
            marker={"color": look["color"], "symbol": look["symbol"], "size": 5, "opacity": 0.6},
            row=1,
            col=1,
        )
    _add_similarities(figure, dealt, vectors)
    figure.update_layout(
        boxmode="group",
        legend={"orientation": "h", "yanchor": "top", "y": -0.06, "xanchor": "left", "x": 0},
        margin={"t": 90},
    )
    figure.update_xaxes(title_text=axes[0], row=1, col=1)
    figure.update_yaxes(title_text=axes[1], row=1, col=1)
    figure.update_xaxes(title_text="fold", type="category", row=2, col=1)
    figure.update_yaxes(title_text="R", row=2, col=1)
    figure.update_annotations(x=0, xanchor="left", font_size=14)
    return figure


def positions(vectors: Floats, method: str, seed: int) -> tuple[npt.NDArray[np.float64], list[str]]:
    """Two coordinates for every vector, and what the axes are."""
    from sklearn.decomposition import PCA

    size = min(50 if method == "tsne" else 2, *vectors.shape)
    pca = PCA(size, random_state=seed)
    reduced = pca.fit_transform(vectors)
    if method == "pca":
        shares = pca.explained_variance_ratio_
        axes = [f"component {n + 1} ({s:.1%} of the variance)" for n, s in enumerate(shares[:2])]
        return np.pad(reduced, ((0, 0), (0, 2 - size))), [*axes, "", ""][:2]
    from sklearn.manifold import TSNE

    # As in MS-Shift: 50 components, perplexity 40.
    perplexity = min(40.0, max(1.0, (len(vectors) - 1) / 3))
    tsne = TSNE(2, perplexity=perplexity, random_state=seed, init="pca")
    return tsne.fit_transform(reduced.astype(np.float32)), ["t-SNE 1", "t-SNE 2"]


def _labels(dealt: Dealt, fold: str | None) -> tuple[Ints, list[str], str]:
    """A number for every query (-1: not on the map), their names, and what they stand for."""
    if fold is None and dealt.groups is not None:
        return dealt.groups.of, [f"group {name}" for name in dealt.groups.names], "group"
    known = {one.name: one for one in dealt.folds}
    if fold is not None and fold not in known:
        raise InputError(
            f"no fold is called {fold!r}.{did_you_mean(fold, known)} There are {', '.join(known)}."
        )
    labels = np.full(len(dealt.pool), -1, dtype=np.int64)
    if fold is not None or len(dealt.folds) == 1:
        chosen = known[fold] if fold is not None else dealt.folds[0]
        for number, role in enumerate(ROLES):
            labels[chosen.rows(role)] = number
        return labels, list(ROLES), f"role in fold {chosen.name}"
    # Without groups the folds differ in what they train on.
    for number, one in enumerate(dealt.folds):
        labels[one.train] = number
    labels[dealt.pool.test] = len(dealt.folds)
    names = [*(f"train of {one.name}" for one in dealt.folds), "test"]
    return labels, names, "what they are used for"


def similarities(vectors: Floats, fold: Fold, role: str) -> Floats:
    """R of the queries with a role: their mean similarity to the fold's training queries."""
    mean = vectors[fold.train].mean(axis=0, dtype=np.float64).astype(np.float32)
    found: Floats = vectors[fold.rows(role)] @ mean
    return found


def _add_similarities(figure: go.Figure, dealt: Dealt, vectors: Floats) -> None:
    for number, role in enumerate(("near", "far")):
        parts = [
            pl.DataFrame({"fold": fold.name, "r": similarities(vectors, fold, role)})
            for fold in dealt.folds
            if len(fold.rows(role))
        ]
        if not parts:
            continue
        frame = pl.concat(parts)
        figure.add_box(
            x=frame["fold"].to_list(),
            y=frame["r"].to_numpy(),
            name=f"{role} queries",
            boxpoints=False,
            marker_color=style(number)["color"],
            line={"width": 1.5},
            fillcolor="rgba(0,0,0,0)" if role == "far" else None,
            row=2,
            col=1,
        )
