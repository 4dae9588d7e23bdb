"""Pictures of passages: which are shown, planes that can be compared, groups without a picture."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import farfield as ff
from farfield.errors import InputError
from farfield.questions import _nearfar_pictures
from farfield.questions._nearfar_pictures import draw, pictures

CORPUS = ff.Corpus({"doc_id": [f"d{n:02}" for n in range(40)], "text": [f"{n}" for n in range(40)]})
# Group a: a1 has three relevant passages, a2 two (one of them of a1's too), a3 one. Group b: one.
QRELS = ff.Qrels(
    [
        {"query_id": query, "doc_id": f"d{n:02}", "relevance": 1}
        for query, numbers in {"a1": (0, 1, 2), "a2": (2, 3), "a3": (4,), "b1": (5, 6)}.items()
        for n in numbers
    ]
    + [{"query_id": "a1", "doc_id": "d30", "relevance": 0}]
)
PARTITION = ff.Partition(
    [
        {"fold": fold, "query_id": query, "role": "far" if query[0] == fold else "near"}
        for fold in "ab"
        for query in ("a1", "a2", "a3", "b1")
    ]
)


@pytest.fixture
def places(monkeypatch):
    """The model of fold b sees everything in a mirror."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(40, 6)) * [9, 5, 1, 1, 1, 1]

    def vectors(model: str, texts: list[str]) -> np.ndarray:
        found = seen[[int(text) for text in texts]]
        return -found if model == "mirror" else found

    monkeypatch.setattr(_nearfar_pictures, "_vectors", vectors)
    models = {"a": "plain", "b": "mirror"}
    return pictures(models, CORPUS, PARTITION, QRELS, queries=2, background=20)  # type: ignore[arg-type]


def test_the_passages_of_the_queries_with_the_most_are_shown(places):
    shown = places.filter(group="a", side="far")
    relevant = shown.filter(pl.col("query_id").is_not_null())
    assert relevant["query_id", "doc_id"].rows() == [
        ("a1", "d00"),
        ("a1", "d01"),
        ("a1", "d02"),  # relevant to a2 as well: shown once
        ("a2", "d03"),
    ]
    others = shown.filter(pl.col("query_id").is_null())["doc_id"]
    assert len(others) == 20
    assert not set(others) & {"d00", "d01", "d02", "d03", "d05", "d06"}


def test_far_is_the_fold_that_left_the_group_out(places):
    folds = places.select("group", "side", "fold").unique().sort("group", "side")
    assert folds.rows() == [
        ("a", "far", "a"),
        ("a", "near", "b"),
        ("b", "far", "b"),
        ("b", "near", "a"),
    ]


def test_planes_are_turned_so_that_they_compare(places):
    near, far = (places.filter(group="a", side=side) for side in ("near", "far"))
    assert near["doc_id"].to_list() == far["doc_id"].to_list()
    for name in ("x", "y"):
        assert near[name].to_list() == pytest.approx(far[name].to_list())
    # The axes show most of what was put into two of six directions, the first more than the second.
    assert near["share_x"][0] > near["share_y"][0]
    assert near["share_x"][0] + near["share_y"][0] > 0.85


def test_the_figure_has_two_planes_for_each_group(places):
    drawn = draw(places)
    titles = [note.text for note in drawn.layout.annotations]
    assert titles == [f"{how} group {group}" for group in "ab" for how in ("trained on", "without")]
    assert sum(bool(trace.showlegend) for trace in drawn.data) == 1
    named = draw(places.with_columns(system=pl.lit("dense")))
    assert named.layout.annotations[0].text == "dense trained on group a"


def test_groups_that_are_near_in_no_fold_have_no_picture(places):
    alone = ff.Partition([{"fold": "late", "query_id": "a1", "role": "far"}])
    found = pictures({}, CORPUS, alone, QRELS)
    assert found.columns == places.columns
    assert not len(found)
    with pytest.raises(InputError, match="nothing to draw"):
        draw(found)
