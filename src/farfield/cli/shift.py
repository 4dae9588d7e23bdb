"""``farfield shift``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import FigureFile, HtmlFile, Json, Level, Seed, table_to_write

if TYPE_CHECKING:
    from farfield.questions.shift import Shifted


def shift(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SHIFT",
            help='A shift, like "resttest(buckets=5)"; farfield list shifts shows all.',
            show_default=False,
        ),
    ],
    collection: Annotated[
        str,
        typer.Argument(metavar="COLLECTION", help="A BEIR folder, or ir:NAME.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the partition (fold, query_id, role) to this .parquet, .csv or .jsonl, and "
            "its manifest beside it.",
            callback=table_to_write,
        ),
    ] = None,
    train: Annotated[
        str | None, typer.Option(help="The split to train on.", show_default="train")
    ] = None,
    test: Annotated[
        str | None, typer.Option(help="The split to test with.", show_default="test")
    ] = None,
    share: Annotated[
        float,
        typer.Option(help="Of a single split (or one given for both), test with so much of it."),
    ] = 0.2,
    together: Annotated[
        str | None,
        typer.Option(
            help="Of a single split, keep queries with one value in this column on one side.",
            show_default="the same text",
        ),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            help="Write each fold to a folder of --to: beir (a collection with the splits train, "
            "near, far) or qrels (files as in the released sets of ReSTrain and ReSTTest)."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option(help="The folder for --export.")] = None,
    figure: FigureFile = None,
    method: Annotated[str, typer.Option(help="With --figure: pca or tsne.")] = "pca",
    fold: Annotated[
        str | None, typer.Option(help="With --figure: show the roles in this fold.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="With --figure: makes the vectors.", show_default="that of the shift"),
    ] = None,
    html: HtmlFile = None,
    json: Json = False,
    level: Level = 0.95,
    seed: Seed = 0,
) -> None:
    """Divide queries into what is trained on, what is near it and what is far, fold by fold.

    Whatever is left out is counted, and the label overlap that remains is shown.
    """
    from farfield import figures, progress
    from farfield.errors import InputError
    from farfield.questions import shift as question

    if (export is None) != (to is None):
        raise InputError("--export and --to go together: --export beir --to FOLDER.")
    progress.show(not json)
    answer = question.shift(
        spec,
        collection,
        train=train,
        test=test,
        share=share,
        together=together,
        seed=seed,
        level=level,
    )
    document = answer.to_dict()
    if output is not None:
        document |= {"out": str(output), "manifest": str(answer.write(output))}
    if export is not None and to is not None:
        document["exported"] = [str(path) for path in answer.export(export, to)]
    if figure is not None:
        figures.save(answer.figure(encoder=encoder, method=method, fold=fold), figure)
    show.write_report(answer, html)
    if json:
        show.print_json(document)
    else:
        _print(answer, document)


def _print(answer: Shifted, document: dict[str, Any]) -> None:
    pool = answer.dealt.pool
    shares = {
        (row["fold"], row["role"]): f"{row['share']:.1%} [{row['low']:.1%}, {row['high']:.1%}]"
        for row in answer.overlap.iter_rows(named=True)
    }
    show.table(
        ["fold", "train", "near", "far", "left out", "near: label overlap", "far: label overlap"],
        [
            [
                row["fold"],
                *(f"{row[name]:,}" for name in ("train", "near", "far", "dropped")),
                *(shares.get((row["fold"], role), "—") for role in ("near", "far")),
            ]
            for row in answer.sizes.iter_rows(named=True)
        ],
        title=f"{answer.dealt.shift} on {pool.collection.name}",
        notes=[
            f"{len(pool.train):,} queries to train on and {len(pool.test):,} to test with, of "
            f"{_splits(pool.splits)}. Label overlap: queries of which a relevant document is "
            "relevant in training too.",
        ],
    )
    for name, value in answer.dealt.facts.items():
        print(f"{name[0].upper() + name[1:]}: {_said(value)}.")
    if len(answer.dropped):
        print("Left out:")
        for fold, reason, count in answer.dropped.iter_rows():
            where = "" if fold == "all" else f" (fold {fold})"
            print(f"  {count:,} {reason}{where}")
    for path in (document.get("out"), document.get("manifest"), *document.get("exported", ())):
        if path is not None:
            print(f"written: {path}")


def _splits(splits: tuple[str, str]) -> str:
    one, other = splits
    return f"the split {one}, divided" if one == other else f"the splits {one} and {other}"


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "not proven"
    if isinstance(value, float):
        return f"{value:,.4f}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_said(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
