"""``farfield align``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farfield.cli import show
from farfield.cli.options import FigureFile, HtmlFile, Json, Level, Output, Resamples, Seed

if TYPE_CHECKING:
    from farfield.questions.align import Alignment


def align(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES",
            help="A table with a row per system and a column per score: .csv, .tsv, .jsonl or "
            ".parquet. For a long table see --rows.",
            show_default=False,
        ),
    ],
    predictor: Annotated[
        list[str] | None,
        typer.Option(
            "--predictor",
            "-p",
            help="A column that predicts; may be repeated: near first, then far. The last is "
            "tested against the others.",
            show_default="each column against the mean of the others",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            help="A column to predict; may be repeated.",
            show_default="all other columns",
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="A column that does not count; may be repeated.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Of a long table, the column that names systems.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Of a long table, the column that names data sets.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(help="Of a long table, the column of scores.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Of a long table, rows to keep: COLUMN=VALUE or COLUMN=VALUE,VALUE."),
    ] = None,
    table: Annotated[
        str, typer.Option(help="What --output writes: correlations or differences.")
    ] = "correlations",
    output: Output = None,
    figure: FigureFile = None,
    html: HtmlFile = None,
    json: Json = False,
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """Do scores far from training predict scores out of domain? Rank correlations over systems.

    Works on any table of scores: your own runs near, far and out of domain, or a leaderboard.
    """
    import polars as pl

    from farfield.errors import InputError
    from farfield.questions import align as question

    show.check_table(table, ("correlations", "differences"))
    given: pl.DataFrame | Path = scores
    long = {"--rows": rows, "--columns": columns, "--value": value}
    if any(long.values()) or where:
        missing = [name for name, found in long.items() if found is None]
        if missing:
            raise InputError(f"a long table needs --rows, --columns and --value; add {missing[0]}.")
        given = question.scores_of(
            scores,
            rows=rows or "",
            columns=columns or "",
            value=value or "",
            where=dict(_condition(text) for text in where or []),
        )
    answer = question.align(
        given,
        predictor or (),
        target or (),
        without=without or (),
        level=level,
        resamples=resamples,
        seed=seed,
    )
    show.deliver(
        answer,
        _print,
        json=json,
        table="table" if table == "correlations" else table,
        output=output,
        figure=figure,
        html=html,
    )


def _condition(text: str) -> tuple[str, list[str]]:
    from farfield.errors import InputError

    name, sign, values = text.partition("=")
    if not sign or not name or not values:
        raise InputError(f"--where is {text!r}, expected COLUMN=VALUE or COLUMN=VALUE,VALUE.")
    return name, values.split(",")


def _print(answer: Alignment) -> None:
    pairs: dict[tuple[str, str], dict[str, str]] = {}
    for row in answer.table.iter_rows(named=True):
        cell = f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        pairs.setdefault((row["target"], row["predictor"]), {})[row["kind"]] = cell
    lacking = f" ({answer.left_out:,} lack a score and are left out)" if answer.left_out else ""
    if answer.each:
        header = ["predictor", "Spearman", "Kendall"]
        body = [[p, found["spearman"], found["kendall"]] for (_, p), found in pairs.items()]
        title = "How well does each score predict the mean of the others?"
    else:
        header = ["target", "predictor", "Spearman", "Kendall"]
        body = [[t, p, found["spearman"], found["kendall"]] for (t, p), found in pairs.items()]
        title = "How well do scores predict others?"
    show.table(
        header,
        body,
        title=title,
        text_columns=len(header) - 2,
        notes=[
            f"{len(answer.scores):,} systems{lacking}; rank correlations with "
            f"{answer.level:.0%} bootstrap intervals over systems."
        ],
    )
    if not len(answer.differences):
        return
    print()
    show.table(
        ["target", "predictor", "against", "kind", "difference", "interval", "p"],
        [
            [
                row["target"],
                row["predictor"],
                row["other"],
                row["kind"],
                show.number(row["difference"], sign=True),
                show.interval(row["low"], row["high"], sign=True),
                show.p_value(row["p_adjusted"]),
            ]
            for row in answer.differences.iter_rows(named=True)
        ],
        title="Is one the better predictor?",
        text_columns=4,
        notes=[
            "p: the two scores of each system exchanged at random, corrected by Holm within a kind."
        ],
    )
