"""What each kind of step does. A function gets its spec, the folders it needs and its own.

A function may be stopped at any moment and called again: it writes files whole or not at all, and
what takes long continues where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from farfield import figures, fusions, recipes, retrievers
from farfield.collection import Card, Collection
from farfield.errors import InputError
from farfield.io import (
    read,
    read_collection,
    read_corpus,
    read_qrels,
    read_queries,
    read_run,
    write,
)
from farfield.io.files import replacing, write_json
from farfield.questions._nearfar_pictures import pictures
from farfield.questions._nearfar_similarity import Similarities
from farfield.questions.distance import fold_distances
from farfield.questions.nearfar import near_far
from farfield.questions.shift import shift as make_shift
from farfield.retrievers import Retriever
from farfield.tables import Partition

__all__ = ["KINDS", "TABLES", "open_collection"]

Folders = dict[str, Path]

#: The tables of every comparison of near and far.
TABLES = (
    *("table", "differences", "by_memory", "losses", "matrix"),
    *("by_similarity", "boxes", "points", "correlations"),
)


def open_collection(folder: Path) -> Collection:
    """Open the collection that a step has written."""
    about = json.loads((folder / "collection.json").read_text())
    return Collection(
        about["name"],
        corpus=lambda: read_corpus(folder / "corpus.parquet"),
        queries=lambda: read_queries(folder / "queries.parquet"),
        qrels={
            s: _lazy_qrels(folder / f"qrels-{n}.parquet") for n, s in enumerate(about["splits"])
        },
        card=Card(**about["card"]),
    )


def _lazy_qrels(path: Path) -> Callable[[], Any]:
    return lambda: read_qrels(path)


def collection(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Copy the collection, so that everything else depends on files of this directory alone."""
    found = read_collection(spec["source"])
    found.check()
    write(found.corpus, out / "corpus.parquet")
    write(found.queries, out / "queries.parquet")
    for number, split in enumerate(found.qrels):
        write(found.qrels[split], out / f"qrels-{number}.parquet")
    about = {"name": found.name, "splits": list(found.qrels), "card": found.card.to_dict()}
    write_json(out / "collection.json", about)


def shift(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Divide the queries; keep the judgements of both sides, and what is to be searched."""
    answer = make_shift(
        spec["shift"], open_collection(needs["collection"]), seed=spec["seed"], **spec["split"]
    )
    for side, qrels in answer.dealt.pool.qrels.items():
        write(qrels, out / f"{side}.parquet")
    for name in ("sizes", "dropped", "overlap"):
        _write_frame(getattr(answer, name), out / f"{name}.parquet")
    write(answer.dealt.pool.at(answer.dealt.pool.test), out / "queries.parquet")
    write_json(out / "folds.json", [fold.name for fold in answer.dealt.folds])
    figures.save(answer.figure(), out / "map.json")  # while the vectors are at hand
    answer.write(out / "partition.parquet")


def train(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Train a model on a fold."""
    recipes.parse(spec["recipe"]).run(
        spec["base"],
        open_collection(needs["collection"]),
        partition=read(needs["shift"] / "partition.parquet", Partition),
        fold=spec["fold"],
        out=out / "training",
        seed=spec["seed"],
        device=spec.get("device", "auto"),
        validation=spec["validation"],
        most=spec.get("most"),
    )


def index(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Index the documents with a retriever, trained or not."""
    corpus = open_collection(needs["collection"]).corpus
    _retriever(spec, needs).index(corpus, out / "index")


def search(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Rank documents for all test queries."""
    folder = needs["index"] / "index"
    opened = _retriever(spec, needs).open(folder) if "recipe" in spec else retrievers.open(folder)
    run = opened.search(read_queries(needs["shift"] / "queries.parquet"), spec["depth"])
    write(run.named(spec["name"]), out / "run.parquet")


def fuse(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Fuse runs."""
    names = sorted((n for n in needs if n.startswith("run ")), key=lambda n: int(n.split()[1]))
    runs = [read_run(needs[name] / "run.parquet", name=name) for name in names]
    run = fusions.parse(spec["fusion"]).fuse(runs, k=spec["depth"], name=spec["name"])
    write(run, out / "run.parquet")


def distance(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Say how far the far queries of every fold are from what is trained on."""
    try:
        found = fold_distances(
            open_collection(needs["collection"]),
            needs["shift"] / "partition.parquet",
            indicators=spec["indicators"],
            encoder=spec["encoder"],
        )
    except InputError as error:
        raise InputError(f"{error} Or leave this out: indicators = [].") from error
    _write_frame(found.table, out / "table.parquet")
    Similarities.of(found).write(out)


def picture(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Find the places that the models of all folds give to passages."""
    recipe = recipes.parse(spec["recipe"])
    models = {
        fold: recipe.retriever(str(_model(needs[f"model {number}"])))
        for number, fold in enumerate(spec["folds"])
    }
    made = pictures(
        models,
        open_collection(needs["collection"]).corpus,
        read(needs["shift"] / "partition.parquet", Partition),
        read_qrels(needs["shift"] / "test.parquet"),
        seed=spec["seed"],
    )
    system = pl.lit(spec["system"]).alias("system")
    _write_frame(made.select(system, pl.all()), out / "pictures.parquet")


def nearfar(spec: dict[str, Any], needs: Folders, out: Path) -> None:
    """Compare systems near and far, and keep every table."""
    runs = [
        (system, fold, seed, needs[f"run {number}"] / "run.parquet")
        for number, (system, fold, seed) in enumerate(spec["runs"])
    ]
    answer = near_far(
        needs["shift"] / "partition.parquet",
        needs["shift"] / "test.parquet",
        runs,
        spec["measures"],
        train_qrels=needs["shift"] / "train.parquet",
    )
    if "distance" in needs:
        answer = replace(answer, similarities=Similarities.read(needs["distance"]))
    for name in ("values", *TABLES):
        _write_frame(getattr(answer, name), out / f"{name}.parquet")


#: The functions by kind.
KINDS: dict[str, Callable[[dict[str, Any], Folders, Path], None]] = {
    "collection": collection,
    "shift": shift,
    "train": train,
    "index": index,
    "search": search,
    "fuse": fuse,
    "distance": distance,
    "picture": picture,
    "nearfar": nearfar,
}


def _retriever(spec: dict[str, Any], needs: Folders) -> Retriever:
    if "retriever" in spec:
        return retrievers.parse(spec["retriever"])
    return recipes.parse(spec["recipe"]).retriever(str(_model(needs["model"])))


def _model(folder: Path) -> Path:
    return folder / "training" / "model"


def _write_frame(frame: pl.DataFrame, path: Path) -> None:
    with replacing(path) as file:
        frame.write_parquet(file)
