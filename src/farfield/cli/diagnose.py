"""``farfield diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import (
    DropSelf,
    FigureFile,
    HtmlFile,
    Json,
    Level,
    OneMeasure,
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
    from farfield.questions.diagnose import Diagnosis

TABLES = ("table", "drops", "pairs", "places", "placement")
_SHOWN = 10  # swapping pairs


def diagnose(
    qrels: QrelsFile,
    runs: RunFiles,
    measure: OneMeasure = "nDCG@10",
    queries: Annotated[
        str | None, typer.Option(help="Test queries: a file, a BEIR folder or ir:NAME.")
    ] = None,
    train_queries: Annotated[str | None, typer.Option(help="Training queries, likewise.")] = None,
    train_qrels: Annotated[
        str | None,
        typer.Option(help="Training judgements: for shared labels, and to tell whose queries."),
    ] = None,
    strata: Annotated[
        Path | None,
        typer.Option(help="Where each query lies: a file with columns query_id and stratum."),
    ] = None,
    near: Annotated[
        list[str] | None,
        typer.Option(
            help="A stratum that is near; may be repeated.", show_default="exact, near_duplicate"
        ),
    ] = None,
    far: Annotated[
        list[str] | None,
        typer.Option(
            help="A stratum that is far; may be repeated.", show_default="similarity_1, 2 …"
        ),
    ] = None,
    bins: Annotated[int, typer.Option(help="Strata of queries that training has not touched.")] = 4,
    threshold: Annotated[
        float, typer.Option(help="N-gram similarity from which queries are near-duplicates.")
    ] = 0.75,
    relevance: Annotated[int, typer.Option(help="Least relevance of a shared label.")] = 1,
    min_shared: Annotated[int, typer.Option(help="Shared passages that make a shared label.")] = 1,
    baseline: Annotated[
        str | None, typer.Option(help="A run without training, like BM25: who drops more than it?")
    ] = None,
    test: Annotated[str, typer.Option(help="welch or permutation; near and far differ.")] = "welch",
    correction: Annotated[
        str, typer.Option(help="For several tests: holm, bonferroni, bh or none.")
    ] = "holm",
    table: Annotated[
        str, typer.Option(help=f"What --output writes: {', '.join(TABLES)}.")
    ] = "table",
    output: Output = None,
    figure: FigureFile = None,
    per_query: PerQueryFile = None,
    html: HtmlFile = None,
    json: Json = False,
    ties: Ties = "trec",
    drop_self: DropSelf = False,
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """Do runs hold up on queries unlike those of training? Near and far, without retraining.

    Every test query is placed by its proximity to the training queries: exact, near_duplicate,
    shared_label, and the others by similarity. Observational: strata differ in more than proximity.
    """
    one_thread_for_algebra()
    from farfield import progress
    from farfield.questions import diagnose as question

    show.check_table(table, TABLES)
    progress.show(not json)
    answer = question.diagnose(
        qrels,
        runs,
        measure,
        queries=queries,
        train_queries=train_queries,
        train_qrels=train_qrels,
        strata=strata,
        near=near or None,
        far=far or None,
        bins=bins,
        threshold=threshold,
        relevance=relevance,
        min_shared=min_shared,
        baseline=baseline,
        test=test,
        correction=correction,
        ties=ties,
        drop_self=drop_self,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    show.deliver(
        answer,
        _print,
        json=json,
        table=table,
        output=output,
        per_query=per_query,
        figure=figure,
        html=html,
    )


def _print(answer: Diagnosis) -> None:
    from farfield.questions.diagnose import OBSERVATIONAL

    _print_strata(answer)
    print()
    if not len(answer.drops):
        lacking = "near" if not answer.near else "far"
        print(f"No query is {lacking}, so nothing can be compared. Name strata with --{lacking}.")
    else:
        _print_drops(answer)
        print()
        _print_ranking(answer)
    print()
    print(OBSERVATIONAL)


def _print_strata(answer: Diagnosis) -> None:
    measure = answer.evaluation.measures[0]
    show.table(
        ["stratum", "side", "queries", "similarity"],
        [
            [row["stratum"], row["group"], f"{row['queries']:,}", _range(row)]
            for row in answer.places.iter_rows(named=True)
        ],
        title="Where the test queries lie, the nearest to training first",
        text_columns=2,
    )
    print()
    rows = {system: [system] for system in answer.evaluation.systems}
    for row in answer.table.iter_rows(named=True):
        rows[row["system"]].append(_with_margin(row))
    show.table(
        ["run", *answer.strata],
        rows.values(),
        title=f"{measure} by stratum",
        notes=[f"±: half of the {answer.evaluation.level:.0%} bootstrap interval."],
    )


def _print_drops(answer: Diagnosis) -> None:
    drops = answer.drops
    ranks = [drops[side].rank("min", descending=True).to_list() for side in ("near", "far")]
    if not answer.evaluation.measures[0].higher_is_better:
        ranks = [drops[side].rank("min").to_list() for side in ("near", "far")]
    with_excess = "excess" in drops.columns
    rows = []
    for row, *rank in zip(drops.iter_rows(named=True), *ranks, strict=True):
        cells = [row["system"], show.number(row["near"]), show.number(row["far"])]
        cells += [f"{rank[0]} → {rank[1]}", show.number(row["drop"], sign=True)]
        cells += [_interval(row["low"], row["high"]), show.p_value(row["p_adjusted"])]
        size = row["effect_size"]
        cells += ["—" if size is None else f"{size:+.2f}"]
        if with_excess and row["excess"] is None:
            cells += ["—"] * 3
        elif with_excess:
            cells += [show.number(row["excess"], sign=True)]
            cells += [_interval(row["excess_low"], row["excess_high"])]
            cells += [show.p_value(row["p_excess"])]
        rows.append(cells)
    header = ["run", "near", "far", "rank", "drop", "interval", "p", "effect"]
    notes = [
        f"p: {'Welch t test' if answer.test == 'welch' else 'permutation test'} of two sets of "
        f"queries, corrected ({answer.correction}). effect: Hedges' g.",
    ]
    if with_excess:
        header += ["excess", "interval", "p"]
        notes += [f"excess: how much more a run drops than {answer.baseline}, query by query."]
    sides = [
        f"{' + '.join(names)} ({drops[count][0]:,} queries)"
        for names, count in ((answer.near, "n_near"), (answer.far, "n_far"))
    ]
    show.table(header, rows, title=f"near: {sides[0]}\nfar: {sides[1]}", notes=notes)


def _print_ranking(answer: Diagnosis) -> None:
    found = answer.agreement
    if found is None:
        return
    print(
        f"Order of the systems, near against far: Kendall's tau {found.tau:.3f} "
        f"[{found.low:.3f}, {found.high:.3f}]; noise alone would leave {found.expected:.3f}. Do "
        f"the differences between systems change? p {show.p_value(found.p)}."
    )
    swaps = answer.pairs.filter(answer.pairs["swaps"]).sort("p_swap")
    alpha = 1.0 - answer.evaluation.level
    clear = swaps.filter(swaps["p_swap_adjusted"] <= alpha)
    print(
        f"Of {len(answer.pairs):,} pairs {len(swaps):,} change their order, {len(clear):,} of them "
        "clearly (significant on both sides)."
    )
    for row in clear.head(_SHOWN).iter_rows(named=True):
        ahead, behind = row["system"], row["other"]
        if row["near"] < 0:
            ahead, behind = behind, ahead
        print(f"  near {ahead} by {abs(row['near']):.4f}, far {behind} by {abs(row['far']):.4f}")


def _range(row: dict[str, Any]) -> str:
    if row["similarity_low"] is None:
        return "—"
    return f"{row['similarity_low']:.2f} to {row['similarity_high']:.2f}"


def _with_margin(row: dict[str, Any]) -> str:
    if row["low"] is None:
        return f"{row['mean']:.4f} ±  — "
    return f"{row['mean']:.4f} ±{(row['high'] - row['low']) / 2:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    return "[—]" if low is None or high is None else show.interval(low, high, sign=True)
