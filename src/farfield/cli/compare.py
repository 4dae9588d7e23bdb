"""``farfield compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farfield.cli import show
from farfield.cli.evaluate import print_evaluation
from farfield.cli.options import (
    DropSelf,
    HtmlFile,
    Json,
    Level,
    Measures,
    Output,
    PerQueryFile,
    QrelsFile,
    Resamples,
    RunFiles,
    Seed,
    Ties,
    one_thread_for_algebra,
)

if TYPE_CHECKING:
    from farfield.questions.compare import Comparison


def compare(
    qrels: QrelsFile,
    baseline: Annotated[
        Path,
        typer.Argument(metavar="BASELINE", help="The run to compare with.", show_default=False),
    ],
    runs: RunFiles,
    measure: Measures = None,
    test: Annotated[str, typer.Option(help="t, wilcoxon or randomisation; all are paired.")] = "t",
    correction: Annotated[
        str, typer.Option(help="For several comparisons: holm, bonferroni, bh or none.")
    ] = "holm",
    per_query: PerQueryFile = None,
    output: Output = None,
    html: HtmlFile = None,
    json: Json = False,
    ties: Ties = "trec",
    drop_self: DropSelf = False,
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """Do runs differ from a baseline? Differences with intervals, tests, wins and losses."""
    one_thread_for_algebra()
    from farfield import progress
    from farfield.questions import compare as question
    from farfield.questions.evaluate import DEFAULT_MEASURES

    progress.show(not json)
    comparison = question.compare(
        qrels,
        baseline,
        runs,
        measure or DEFAULT_MEASURES,
        test=test,
        correction=correction,
        ties=ties,
        drop_self=drop_self,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    show.deliver(comparison, _print_both, json=json, output=output, per_query=per_query, html=html)


def _print_both(comparison: Comparison) -> None:
    print_evaluation(comparison.evaluation)
    print()
    print_comparison(comparison)


def print_comparison(comparison: Comparison) -> None:
    """Print differences from the baseline, one row per run and measure."""
    rows = [
        [
            row["system"],
            row["measure"],
            show.number(row["difference"], sign=True),
            show.interval(row["low"], row["high"], sign=True),
            show.p_value(row["p_adjusted"]),
            f"{row['effect_size']:+.2f}",
            f"{row['wins']} / {row['ties']} / {row['losses']}",
            show.number(row["detectable"]),
        ]
        for row in comparison.table.iter_rows(named=True)
    ]
    names = {"t": "paired t test", "wilcoxon": "Wilcoxon test", "randomisation": "sign-flip test"}
    corrections = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg"}
    corrected = corrections.get(comparison.correction)
    by = f"corrected by {corrected} over {len(rows)} comparisons" if corrected else "not corrected"
    show.table(
        ["run", "measure", "difference", "interval", "p", "effect", "W / T / L", "detectable"],
        rows,
        title=f"against {comparison.baseline}",
        text_columns=2,
        notes=[
            f"p: {names[comparison.test]}, {by}. effect: mean over standard deviation of the "
            "differences.",
            "detectable: the smallest true difference that so many queries would show in 4 of 5 "
            "tries.",
        ],
    )
