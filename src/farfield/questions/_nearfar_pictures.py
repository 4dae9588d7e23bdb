"""Where models put passages: relevant ones of far queries, by a model trained near and one far.

Zhan et al. (2022) draw such pictures: where a model has seen queries like these in training, the
passages that are relevant to one query lie together; where it has not they may be scattered. A
picture needs one vector for each passage. Dense models have that, and sparse ones, a long one; late
interaction has many vectors for a passage and a cross-encoder none, so there is no picture of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import figures, neural
from farfield.errors import InputError
from farfield.retrievers import Retriever
from farfield.retrievers._sparse import full_text
from farfield.tables import Corpus, Partition, Qrels

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["draw", "pictures"]

Floats = npt.NDArray[np.float64]

_SIDES = ("near", "far")
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(["group", "side", "fold", "query_id", "doc_id"], pl.String),
    **dict.fromkeys(["x", "y", "share_x", "share_y"], pl.Float64),
}


def pictures(
    models: Mapping[str, Retriever],
    corpus: Corpus,
    partition: Partition,
    qrels: Qrels,
    *,
    queries: int = 8,
    passages: int = 30,
    background: int = 300,
    seed: int = 0,
) -> pl.DataFrame:
    """Place passages in a plane, by the model that left a group out and one that trained on it.

    ``models`` has a retriever for each fold. For every group (the far queries of a fold) there are
    two planes, each of the two first principal components of what its model makes of the same
    passages: the first ``passages`` relevant ones of those ``queries`` that have the most, and a
    ``background`` of others, drawn at random. Far is the fold that left the group out, near the
    first in which its queries are near. Axes have no direction of their own: those of far are
    turned so that they go with those of near.

    group, side (near, far), fold, query_id (null: background), doc_id, x, y, share_x, share_y (the
    shares of the variance that the axes show). Groups that are near in no fold have no picture.
    """
    groups = list(_groups(partition))
    known = qrels.relevant().frame.join(corpus.frame, on="doc_id", how="semi")
    relevant = {group: _relevant(known, members, queries, passages) for group, _, members in groups}
    used = pl.concat([pl.Series(dtype=pl.String), *(of["doc_id"] for of in relevant.values())])
    if not len(used):
        return pl.DataFrame(schema=_COLUMNS)
    others = corpus.frame.filter(~pl.col("doc_id").is_in(used.implode()))
    others = others.sample(min(background, len(others)), seed=seed).select("doc_id")
    wanted = pl.concat([used.to_frame("doc_id"), others])
    documents = corpus.frame.join(wanted, on="doc_id", how="semi", maintain_order="left")
    texts = full_text(documents).to_list()
    rows = documents.select("doc_id").with_row_index("row")
    folds = dict.fromkeys(fold for group, near, _ in groups for fold in (near, group))
    vectors = {fold: _vectors(models[fold], texts) for fold in folds}
    made = [pl.DataFrame(schema=_COLUMNS)]
    for group, near, _ in groups:
        points = pl.concat([relevant[group], others], how="diagonal")
        points = points.join(rows, on="doc_id", maintain_order="left")
        at = points["row"].to_numpy()
        planes = [_plane(vectors[fold][at]) for fold in (near, group)]
        along = np.sign((planes[0][0] * planes[1][0]).sum(axis=0))
        planes[1] = planes[1][0] * np.where(along < 0, -1.0, 1.0), planes[1][1]
        for side, fold, (places, shares) in zip(_SIDES, (near, group), planes, strict=True):
            columns = {"x": places[:, 0], "y": places[:, 1]}
            named = {"group": group, "side": side, "fold": fold}
            named |= {"share_x": shares[0], "share_y": shares[1]}
            literals = {name: pl.lit(value) for name, value in named.items()}
            made.append(points.with_columns(**columns, **literals).select(list(_COLUMNS)))
    return pl.concat(made)


def draw(places: pl.DataFrame) -> go.Figure:
    """Draw a row of two planes, near and far, for each group (of each shift and system)."""
    from plotly.subplots import make_subplots

    keys = [name for name in ("shift", "system", "group") if name in places.columns]
    parts = places.partition_by(keys, maintain_order=True)
    if not parts:
        raise InputError("there is nothing to draw: no group is near in one fold and far in one.")
    titles = [
        f"{', '.join(str(part[name][0]) for name in keys[:-1])} "
        f"{'trained on' if side == 'near' else 'without'} group {part['group'][0]}".strip()
        for part in parts
        for side in _SIDES
    ]
    height = 420 * len(parts) + 60
    figure = figures.new("Passages by a model trained near, and by one trained far", height=height)
    make_subplots(
        len(parts), 2, subplot_titles=titles, vertical_spacing=0.25 / len(parts), figure=figure
    )
    for row, part in enumerate(parts, start=1):
        # Each query has its colour in both planes.
        looks = {None: {"color": "#BBBBBB", "symbol": "circle-open"}}
        asked = part["query_id"].drop_nulls().unique(maintain_order=True)
        looks |= {query: figures.style(number) for number, query in enumerate(asked)}
        for col, side in enumerate(_SIDES, start=1):
            mine = part.filter(pl.col("side") == side)
            for query, look in looks.items():
                these = mine.filter(pl.col("query_id").eq_missing(query))
                figure.add_scatter(
                    x=these["x"].round(4).to_list(),
                    y=these["y"].round(4).to_list(),
                    text=these["doc_id"].to_list(),
                    mode="markers",
                    name=f"relevant to {query}" if query else "others; a colour for each query",
                    showlegend=query is None and row == col == 1,
                    marker={"color": look["color"], "symbol": look["symbol"], "size": 7},
                    hovertemplate="%{text}<extra>%{fullData.name}</extra>",
                    row=row,
                    col=col,
                )
            for name, update in (("x", figure.update_xaxes), ("y", figure.update_yaxes)):
                share = mine[f"share_{name}"][0]
                update(title_text=f"{share:.0%} of the variance", row=row, col=col)
    figure.update_layout(margin={"t": 110}, legend={"y": 1.0 + 45.0 / height})
    figure.update_xaxes(title_font_size=12)
    figure.update_yaxes(title_font_size=12)
    figure.update_annotations(font_size=14)
    return figure


# -- inside -------------------------------------------------------------------------------------


def _groups(partition: Partition) -> Iterator[tuple[str, str, pl.Series]]:
    """Each group by the fold that leaves it out, a fold that trains on it, and its queries."""
    roles = partition.frame
    for (group,), part in roles.filter(pl.col("role") == "far").group_by(
        "fold", maintain_order=True
    ):
        members = part["query_id"]
        near = roles.filter(
            (pl.col("role") == "near") & pl.col("query_id").is_in(members.implode())
        )
        if len(near):
            yield str(group), str(near["fold"][0]), members


def _relevant(known: pl.DataFrame, members: pl.Series, queries: int, passages: int) -> pl.DataFrame:
    """Relevant passages of the queries that have the most: query_id, doc_id, each passage once."""
    mine = known.filter(pl.col("query_id").is_in(members.implode())).sort("query_id", "doc_id")
    counts = mine.group_by("query_id").len().sort(["len", "query_id"], descending=[True, False])
    chosen = mine.join(counts.head(queries), on="query_id", how="semi", maintain_order="left")
    first = chosen.group_by("query_id", maintain_order=True).head(passages)
    return first.unique("doc_id", keep="first", maintain_order=True).select("query_id", "doc_id")


def _vectors(retriever: Any, texts: list[str]) -> Floats:
    """What a retriever compares: a row for each text."""
    if retriever.kind == "dense":
        found = neural.encode(retriever.network, texts, task="document").astype(np.float64)
        if not retriever.units:
            return found
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        units: Floats = np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0)
        return units
    sparse = neural.encode_sparse(retriever.network, texts, task="document")
    # Words that no passage has are left out: a vocabulary is wide.
    words, columns = np.unique(sparse.indices, return_inverse=True)
    dense: Floats = np.zeros((len(sparse), max(len(words), 1)))
    dense[np.repeat(np.arange(len(sparse)), sparse.nonzeros), columns] = sparse.weights
    return dense


def _plane(vectors: Floats) -> tuple[Floats, Floats]:
    """Places on the two first principal components, and their shares of the variance."""
    from sklearn.decomposition import PCA

    axes = min(2, *vectors.shape)
    found = PCA(axes, svd_solver="full").fit(vectors)
    places, shares = np.zeros((len(vectors), 2)), np.zeros(2)
    places[:, :axes] = found.transform(vectors)
    shares[:axes] = np.nan_to_num(found.explained_variance_ratio_)  # all passages in one place
    return places, shares
