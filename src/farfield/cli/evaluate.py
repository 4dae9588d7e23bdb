"""``farfield evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farfield.cli import show
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
    from farfield.questions.evaluate import Evaluation


def evaluate(
    qrels: QrelsFile,
    runs: RunFiles,
    measure: Measures = None,
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
    """What is each run worth? Means over all judged queries, with intervals.

    A judged query that a run lacks counts as 0. Runs are TREC, MS MARCO, JSON, csv or parquet
    files, also compressed; a run is called after its file.
    """
    one_thread_for_algebra()
    from farfield import progress
    from farfield.questions import evaluate as question

    progress.show(not json)
    evaluation = question.evaluate(
        qrels,
        runs,
        measure or question.DEFAULT_MEASURES,
        ties=ties,
        drop_self=drop_self,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    show.deliver(
        evaluation,
        print_evaluation,
        json=json,
        table="summary",
        output=output,
        per_query=per_query,
        html=html,
    )


def print_evaluation(evaluation: Evaluation, title: str = "") -> None:
    """Print means with intervals, one row per run."""
    cells: dict[str, list[str]] = {system: [system] for system in evaluation.systems}
    for row in evaluation.summary.iter_rows(named=True):
        text = f"{show.number(row['mean'])} {show.interval(row['low'], row['high'])}"
        cells[row["system"]].append(text)
    s = "" if evaluation.queries == 1 else "s"
    show.table(
        ["run", *(str(measure) for measure in evaluation.measures)],
        cells.values(),
        title=title,
        notes=[
            f"{evaluation.queries:,} judged quer{'y' if not s else 'ies'}; mean and "
            f"{evaluation.level:.0%} bootstrap interval.",
            *_remarks(evaluation),
        ],
    )


def _remarks(evaluation: Evaluation) -> list[str]:
    """What a careful reader should know about the runs."""
    kinds = (
        (evaluation.missing, "judged queries are missing and count as 0"),
        (evaluation.unjudged, "queries are not judged and were left out"),
        (evaluation.ties, "neighbours have equal scores; the tie rule decides their order"),
    )
    return [
        f"{what}: " + ", ".join(f"{name} {n:,}" for name, n in counts.items() if n)
        for counts, what in kinds
        if any(counts.values())
    ]
