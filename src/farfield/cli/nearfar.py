"""``farfield nearfar``."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import (
    FigureFile,
    HtmlFile,
    Json,
    Level,
    Output,
    QueryEncoder,
    Resamples,
    Seed,
    Ties,
)

if TYPE_CHECKING:
    import polars as pl

    from farfield.questions.nearfar import NearFar

SIMILARITY = ("by_similarity", "boxes", "points", "correlations")
TABLES = ("table", "differences", "losses", "matrix", "by_memory", *SIMILARITY)


_CHANGE = ("near", "far", "delta", "interval", "p")


def nearfar(
    partition: Annotated[
        Path,
        typer.Argument(
            metavar="PARTITION",
            help="What farfield shift wrote: fold, query_id, role.",
            show_default=False,
        ),
    ],
    qrels: Annotated[
        str,
        typer.Argument(metavar="QRELS", help="Judgements of the test queries.", show_default=False),
    ],
    runs: Annotated[
        Path,
        typer.Argument(
            metavar="RUNS",
            help="A table (.csv, .jsonl, .parquet) with the columns system, run (a path, from the "
            "folder of the table), fold, and seed if there are several. A run without a fold "
            "counts for all folds.",
            show_default=False,
        ),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help='A measure, like nDCG@10 or "ASL(bound=100)"; may be given several times.',
            show_default="nDCG@10, RR@10, R@100",
        ),
    ] = None,
    train_qrels: Annotated[
        str | None,
        typer.Option(help="Judgements of the training queries, to tell memorised documents apart."),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(
            help="Texts of all queries of the partition (a BEIR folder, a file, ir:NAME), to hold "
            "loss against similarity to what was trained on."
        ),
    ] = None,
    indicator: Annotated[
        list[str] | None,
        typer.Option(
            "--indicator",
            "-i",
            help='An indicator of similarity, like jaccard or "r(variant=top)"; may be repeated. '
            "farfield list indicators shows all.",
            show_default="jaccard, r",
        ),
    ] = None,
    encoder: QueryEncoder = "lsa()",
    bins: Annotated[
        int, typer.Option(help="Bins of equally many queries, from the farthest to the nearest.")
    ] = 5,
    table: Annotated[
        str, typer.Option(help=f"What --output writes: {', '.join(TABLES)}.")
    ] = "table",
    output: Output = None,
    figure: FigureFile = None,
    html: HtmlFile = None,
    json: Json = False,
    ties: Ties = "trec",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """How much do trained systems lose from near to far? For models trained on a shift's folds.

    Every fold's model ranks all test queries; a query is far in the fold that left its group out.
    """
    from farfield import progress
    from farfield.errors import InputError
    from farfield.questions import nearfar as question

    show.check_table(table, TABLES)
    if collection is None and (indicator or table in SIMILARITY):
        asked = f"--indicator {indicator[0]}" if indicator else f"--table {table}"
        raise InputError(f"{asked} needs the texts of the queries. Give --collection.")
    progress.show(not json)
    options: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed, "bins": bins}
    if measure:
        options["measures"] = measure
    answer = question.near_far(
        partition,
        qrels,
        runs,
        train_qrels=train_qrels,
        collection=collection,
        indicators=indicator or question.INDICATORS,
        encoder=encoder,
        ties=ties,
        **options,
    )
    show.deliver(
        answer,
        print_near_far,
        json=json,
        table=table,
        output=output,
        figure=figure,
        html=html,
    )


def print_near_far(answer: NearFar) -> None:
    """Print near, far and delta of every system, then what memory and groups have to do with it."""
    print_changes(answer.table, "Near and far")
    print(
        f"delta: far / near - 1. {answer.level:.0%} intervals over queries (and seeds). micro: "
        "over queries; macro: over groups.\n"
        "p: far against near on the same queries (paired t), corrected by Holm over systems."
    )
    if len(answer.by_memory):
        print()
        show.table(
            ["system", "measure", "relevant document", *_CHANGE],
            [
                _row(row, "trained on" if row["seen"] else "not trained on")
                for row in answer.by_memory.iter_rows(named=True)
            ],
            title="Apart for queries of which a relevant document was trained on",
            text_columns=3,
        )
    if len(answer.losses):
        print()
        show.table(
            ["system", "measure", "group", "n", "avg in", "out", "rel loss", "interval", "p"],
            [
                [
                    *(row[name] for name in ("system", "measure", "group")),
                    f"{row['queries']:,}",
                    show.number(row["avg_in"]),
                    show.number(row["out"]),
                    percent(row["rel_loss"]),
                    percents(row["rel_loss_low"], row["rel_loss_high"]),
                    show.p_value(row["p_adjusted"]),
                ]
                for row in answer.losses.iter_rows(named=True)
            ],
            title="What each group loses when it is left out of training",
            text_columns=3,
        )

    if answer.similarities is not None:
        _print_similarity(answer)
    if answer.reading:
        print("", *answer.reading, sep="\n")


def print_changes(table: pl.DataFrame, title: str) -> None:
    """Print near, far and delta of every system, measure and average."""
    show.table(
        ["system", "measure", "average", *_CHANGE],
        [_row(row) for row in table.iter_rows(named=True)],
        title=title,
        text_columns=3,
    )


def _print_similarity(answer: NearFar) -> None:
    """Print losses by bin for the first measure, correlations, and what they say."""
    changing = [row for row in answer.by_similarity.iter_rows(named=True) if row["rel_loss"]]
    shown = [row for row in changing if row["measure"] == str(answer.measures[0])]
    if shown:
        print()
        show.table(
            ["indicator", "system", "from", "to", "n", "near", "far", "rel loss", "interval"],
            [
                [
                    row["indicator"],
                    row["system"],
                    show.number(row["similarity_from"]),
                    show.number(row["similarity_to"]),
                    f"{row['queries']:,}",
                    show.number(row["near"]),
                    show.number(row["far"]),
                    percent(row["rel_loss"]),
                    percents(row["rel_loss_low"], row["rel_loss_high"]),
                ]
                for row in shown
            ],
            title=f"Loss of {answer.measures[0]} by similarity to what was trained on",
            text_columns=2,
        )
    if len(answer.correlations):
        print()
        show.table(
            ["over", "system", "measure", "indicator", "kind", "value", "interval", "n", "p"],
            [
                [
                    *(row[name] for name in ("over", "system", "measure", "indicator", "kind")),
                    show.number(row["value"], sign=True),
                    show.interval(row["low"], row["high"], sign=True),
                    f"{row['n']:,}",
                    show.p_value(row["p_adjusted"]),
                ]
                for row in answer.correlations.iter_rows(named=True)
            ],
            title="How loss goes with similarity",
            text_columns=5,
            notes=["p: permutations, corrected by Holm over systems and indicators."],
        )


def _row(row: dict[str, Any], third: str | None = None) -> list[str]:
    return [
        row["system"],
        row["measure"],
        third or row["average"],
        show.number(row["near"]),
        show.number(row["far"]),
        percent(row["delta"]),
        percents(row["delta_low"], row["delta_high"]),
        show.p_value(row["p_adjusted"]),
    ]


def percent(value: float) -> str:
    """Write a relative change."""
    return "—" if isnan(value) else f"{value:+.1%}"


def percents(low: float, high: float) -> str:
    """Write the interval of a relative change, or a dash where there is none."""
    return "[—]" if isnan(low) or isnan(high) else f"[{low:+.1%}, {high:+.1%}]"
