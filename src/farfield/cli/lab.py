"""``farfield lab``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farfield.cli import show
from farfield.cli.options import Json, Seed


def lab(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to write.", show_default=False)
    ],
    passages: Annotated[int, typer.Option(help="Number of passages.")] = 2000,
    train: Annotated[int, typer.Option(help="Number of training queries.")] = 4000,
    test: Annotated[int, typer.Option(help="Number of test queries.")] = 800,
    duplicates: Annotated[
        float, typer.Option(help="Share of test queries with a near-duplicate in training.")
    ] = 0.15,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write the embedded collection: a generated world in which the truth is known.

    OUT becomes a BEIR folder (corpus.jsonl, queries.jsonl, qrels/train.tsv, qrels/test.tsv) with
    truth.csv, which says of every test query how near to the training queries it was planted.
    """
    from farfield import io
    from farfield import lab as world

    made = world.make(passages=passages, train=train, test=test, duplicates=duplicates, seed=seed)
    io.write_collection(made.collection, out)
    show.write_frame(made.truth, out / "truth.csv")
    kinds = dict(made.truth["kind"].value_counts(sort=True).iter_rows())
    if json:
        show.print_json(
            {
                "out": str(out),
                "passages": passages,
                "train": train,
                "test": test,
                "seed": seed,
                "kinds": kinds,
            }
        )
        return
    print(f"{out}: {passages:,} passages, {train:,} training and {test:,} test queries")
    show.table(["test queries planted as", "number"], [[k, f"{n:,}"] for k, n in kinds.items()])
