"""A small experiment with models from scratch, from the manifest to tables and pictures."""

from __future__ import annotations

import json

import polars as pl
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import farfield as ff
from farfield import lab
from farfield.questions._nearfar_figures import draw_points
from farfield.questions._nearfar_pictures import draw

MANIFEST = """
collection = "lab"
shifts = ["resttest(buckets=3)"]
measures = ["RR@10", "ASL"]
validation = 0
pictures = true
device = "cpu"

[systems]
bm25 = "bm25()"
dense = { recipe = "contrastive(epochs=4)", base = "scratch(layers=1, dim=32, vocabulary=600)" }

[systems.sparse]
recipe = "splade(epochs=1)"
base = "scratch(layers=1, dim=16, vocabulary=400)"
most = 70
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory, farfield):
    place = tmp_path_factory.mktemp("trained")
    made = lab.make(passages=120, train=240, test=90, seed=1).collection
    ff.write_collection(made, place / "lab")
    (place / "experiment.toml").write_text(MANIFEST)
    return place, farfield("run", "experiment.toml", "-o", "run", cwd=place)


@pytest.fixture(scope="module")
def tables(shown) -> dict[str, pl.DataFrame]:
    place, _ = shown
    return {path.stem: pl.read_parquet(path) for path in (place / "run" / "tables").glob("*")}


def test_it_runs_and_says_how_loss_goes_with_similarity(shown):
    _, done = shown
    assert done.status == 0, done.err
    assert "picture dense" in done.err
    assert "of the queries farthest from what was trained on" in done.out
    assert "With 3 groups no p can be below 0.33" in done.out


def test_no_more_queries_are_trained_on_than_was_said(shown):
    place, _ = shown
    records = [
        json.loads(path.read_text())
        for path in (place / "run" / "steps").glob("train-*/training/record.json")
    ]
    assert {(r["recipe"][:6], r.get("most"), r["queries"] == 70) for r in records} == {
        ("contra", None, False),
        ("splade", 70, True),
    }


def test_loss_is_held_against_similarity(tables):
    bins = tables["by_similarity"].filter(measure="RR@10")
    assert set(bins["system"]) == {"bm25", "dense", "sparse"}
    assert (bins.filter(system="bm25")["rel_loss"] == 0).all()
    assert bins.filter(system="dense")["queries"].sum() == 90
    assert set(tables["boxes"]["measure"]) == {"RR@10", "ASL"}
    assert set(tables["points"]["indicator"]) == {"jaccard", "r"}
    over = tables["correlations"].group_by("over").agg(pl.col("n").unique().first())
    assert dict(over.rows()) == {"queries": 90, "groups": 3}


def test_pictures_of_both_models(tables):
    places = tables["pictures"]
    assert set(places["system"]) == {"dense", "sparse"}
    for (_, group, side), part in places.group_by("system", "group", "side"):
        assert (part["fold"] == group).all() == (side == "far")
        assert part.select(pl.col("x", "y").std() > 0).row(0) == (True, True)
        assert 0 < part["share_y"][0] <= part["share_x"][0] < 1
    assert draw(places.filter(system="dense")).data
    assert draw_points(tables["points"]).data
