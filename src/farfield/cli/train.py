"""``farfield train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import Json, Seed

if TYPE_CHECKING:
    from farfield.recipes import Trained


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help='A recipe, like "contrastive(negatives=bm25)"; farfield list recipes shows all.',
            show_default=False,
        ),
    ],
    collection: Annotated[
        str,
        typer.Argument(metavar="COLLECTION", help="A BEIR folder, or ir:NAME.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for the model.", show_default=False),
    ],
    base: Annotated[
        str,
        typer.Option(help="What to start from: a folder, a name, or scratch(layers=2, dim=128)."),
    ] = "scratch()",
    partition: Annotated[
        Path | None,
        typer.Option(help="A partition that farfield shift wrote; train on one fold of it."),
    ] = None,
    fold: Annotated[str | None, typer.Option(help="With --partition: the fold.")] = None,
    validation: Annotated[
        str,
        typer.Option(
            help="How many training queries to hold out, to choose the best checkpoint; or a "
            "split of the collection for it."
        ),
    ] = "200",
    most: Annotated[
        int | None,
        typer.Option(
            help="Train on no more than so many of the training queries, drawn by the seed; fewer "
            "are among more.",
            show_default="all",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Train a model by a recipe, on all training queries or on those of one fold.

    If it is stopped, even by a crash, the same command continues where it was; if the model is
    there already, it says so and does nothing.
    """
    from farfield import progress
    from farfield.questions import train as question
    from farfield.training.memory import keep_freed_memory

    keep_freed_memory()
    progress.show(not json)
    trained = question.train(
        recipe,
        collection,
        output,
        base=base,
        partition=partition,
        fold=fold,
        validation=int(validation) if validation.lstrip("-").isdecimal() else validation,
        most=most,
        device=device,
        seed=seed,
    )
    retriever = _retriever(trained)
    if json:
        show.print_json({"out": str(output), "retriever": retriever, **trained.record})
        return
    _print(trained, output, retriever)


def _retriever(trained: Trained) -> str | None:
    from farfield.errors import InputError

    try:
        return str(trained.retriever)
    except InputError:  # a recipe that makes a base for others
        return None


def _print(trained: Trained, output: Path, retriever: str | None) -> None:
    record: dict[str, Any] = trained.record
    first, last = record["losses"][0][1], record["losses"][-1][1]
    print(
        f"{output}: {record['recipe']} from {record['base']}, {record['queries']:,} queries, "
        f"{record['steps']:,} steps, {record['seconds']:,.1f} s "
        f"({record['examples_per_second'] or 0:,.0f} examples/s), loss {first:.3f} to {last:.3f}"
    )
    for step, value in record["checks"]:
        kept = " (kept)" if step == record["best"] else ""
        print(f"  after {step:,} steps: {value:.4f} on queries held out{kept}")
    print(f"use it as: {retriever or trained.model}")
