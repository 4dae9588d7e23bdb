"""``farfield nearfar``."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import FigureFile, Json, Level, Output, Resamples, Seed, Ties

if TYPE_CHECKING:
    from farfield.questions.nearfar import NearFar

TABLES = ("table", "losses", "matrix", "by_memory")


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
    table: Annotated[
        str, typer.Option(help=f"What --output writes: {', '.join(TABLES)}.")
    ] = "table",
    output: Output = None,
    figure: FigureFile = None,
    json: Json = False,
    ties: Ties = "trec",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """How much do trained systems lose from near to far? For models trained on a shift's folds.

    Every fold's model ranks all test queries; a query is far in the fold that left its group out.
    """
    from farfield import figures, progress
    from farfield.errors import InputError, did_you_mean
    from farfield.questions import nearfar as question

    if table not in TABLES:
        raise InputError(
            f"--table is {table!r}.{did_you_mean(table, TABLES)} Expected {', '.join(TABLES)}."
        )
    progress.show(not json)
    options: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    if measure:
        options["measures"] = measure
    answer = question.near_far(
        partition, qrels, runs, train_qrels=train_qrels, ties=ties, **options
    )
    if output is not None:
        show.write_frame(getattr(answer, table), output)
    if figure is not None:
        figures.save(answer.figure(), figure)
    if json:
        show.print_json(answer.to_dict())
    else:
        print_near_far(answer)


def print_near_far(answer: NearFar) -> None:
    """Print near, far and delta of every system, then what memory and groups have to do with it."""
    header = ["system", "measure", "average", "near", "far", "delta", "interval", "p"]
    show.table(
        header,
        [_row(row) for row in answer.table.iter_rows(named=True)],
        title="Near and far",
        text_columns=3,
        notes=[
            f"delta: far / near - 1. {answer.level:.0%} intervals over queries (and seeds). micro: "
            "over queries; macro: over groups.",
            "p: far against near on the same queries (paired t), corrected by Holm over systems.",
        ],
    )
    if len(answer.by_memory):
        print()
        show.table(
            ["system", "measure", "relevant document", *header[3:]],
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
                    _percent(row["rel_loss"]),
                    _percents(row["rel_loss_low"], row["rel_loss_high"]),
                    show.p_value(row["p_adjusted"]),
                ]
                for row in answer.losses.iter_rows(named=True)
            ],
            title="What each group loses when it is left out of training",
            text_columns=3,
        )


def _row(row: dict[str, Any], third: str | None = None) -> list[str]:
    return [
        row["system"],
        row["measure"],
        third or row["average"],
        show.number(row["near"]),
        show.number(row["far"]),
        _percent(row["delta"]),
        _percents(row["delta_low"], row["delta_high"]),
        show.p_value(row["p_adjusted"]),
    ]


def _percent(value: float) -> str:
    return f"{value:+.1%}"


def _percents(low: float, high: float) -> str:
    return "[—]" if isnan(low) or isnan(high) else f"[{low:+.1%}, {high:+.1%}]"
