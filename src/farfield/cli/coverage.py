"""``farfield coverage``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    from farfield.questions.coverage import Coverage

TABLES = ("table", "pairs", "unsolved", "first", "greedy", "curves")
_SHOWN = 8  # rows of a table that is not the main one


def coverage(
    qrels: QrelsFile,
    runs: RunFiles,
    measure: OneMeasure = "nDCG@10",
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="What counts as there before a run: others (all other runs), earlier (those given "
            "before it, or of an earlier date), or the name of a run (may be repeated).",
            show_default="others",
        ),
    ] = None,
    agg: Annotated[str, typer.Option(help="How prior runs are joined: max or mean.")] = "max",
    dates: Annotated[
        Path | None,
        typer.Option(help="Dates of the runs: csv with columns run and date, or JSON."),
    ] = None,
    date_ties: Annotated[
        str,
        typer.Option(
            help="Runs of one date: earlier (the one given first is), together (neither is prior "
            "to the other) or error."
        ),
    ] = "error",
    solved: Annotated[
        float, typer.Option(help="A query is solved by a value above 0 and at least this.")
    ] = 0.0,
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
    """Does a run solve what others leave unsolved? TaSC, beside what a mere copy would score.

    TaSC is the mean over queries of (1 - best value of the prior runs) x (value of the run).
    """
    one_thread_for_algebra()
    from farfield import progress
    from farfield.questions import coverage as question

    show.check_table(table, TABLES)
    progress.show(not json)
    names = against or ["others"]
    answer = question.coverage(
        qrels,
        runs,
        measure,
        against=names[0] if len(names) == 1 else names,
        agg=agg,
        dates=dates,
        date_ties=date_ties,
        solved=solved,
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


def _print(answer: Coverage) -> None:
    _print_tasc(answer)
    print()
    _print_greedy(answer)
    print()
    _print_solved(answer)
    if len(answer.pairs):
        apart = answer.pairs.sort("distance").row(-1, named=True)
        alike = answer.pairs.sort("distance").row(0, named=True)
        for word, pair in (("Most alike", alike), ("Most different", apart)):
            print(
                f"{word}: {pair['system']} and {pair['other']}, mean |difference| "
                f"{show.number(pair['distance'])}; {pair['wins']} wins, {pair['ties']} ties, "
                f"{pair['losses']} losses."
            )


def _print_tasc(answer: Coverage) -> None:
    measure = answer.evaluation.measures[0]
    rows = []
    for row in answer.table.iter_rows(named=True):
        cells = [row["system"], show.number(row["measure"]), show.number(row["tasc"])]
        cells.append(_interval(row["low"], row["high"]))
        if row["priors"]:
            cells += [show.number(row["clone"]), show.number(row["beyond"], sign=True)]
            cells += [_interval(row["beyond_low"], row["beyond_high"], sign=True)]
            cells += [show.p_value(row["p_adjusted"]), show.number(row["chance"])]
            cells += [show.number(row["gain"])]
        else:
            cells += ["—"] * 6
        rows.append(cells)
    known = {"others": "all other runs", "earlier": "the runs before it"}
    against = known[answer.against] if isinstance(answer.against, str) else answer.against
    against = against if isinstance(against, str) else " and ".join(against)
    missing = {name: n for name, n in answer.evaluation.missing.items() if n}
    notes = [
        f"{answer.evaluation.queries:,} judged queries; {answer.evaluation.level:.0%} intervals. A "
        "run that lacks a query has 0 there"
        + (": " + ", ".join(f"{name} {n:,}" for name, n in missing.items()) if missing else "")
        + ".",
        "clone: the most that a copy of a prior run would score. beyond: TaSC minus clone; p: run "
        f"and copy exchanged at random, corrected ({answer.correction}).",
        "chance: TaSC if the run's values fell on random queries. gain: what it adds to the best "
        "prior value; a copy adds 0.",
    ]
    header = ["run", str(measure), "TaSC", "interval", "clone", "beyond", "interval", "p"]
    title = f"TaSC ({answer.agg}) of {measure} against {against}"
    show.table([*header, "chance", "gain"], rows, title=title, notes=notes)


def _print_greedy(answer: Coverage) -> None:
    rows = [
        [
            f"{row['step']} {row['system']}",
            show.number(row["gain"]),
            _interval(row["low"], row["high"]),
            show.number(row["covered"]),
        ]
        for row in answer.greedy.head(_SHOWN).iter_rows(named=True)
    ]
    show.table(
        ["add", "gain", "interval", "best of all so far"],
        rows,
        title="Which run to add next",
        notes=[
            "best of all so far: with the best run chosen for every query. Chosen for its gain, a "
            "run shows it on the optimistic side."
        ],
    )


def _print_solved(answer: Coverage) -> None:
    least = f"at least {answer.solved:g}" if answer.solved else "above 0"
    total, left = answer.evaluation.queries, answer.unsolved
    print(f"Solved ({answer.evaluation.measures[0]} {least}): {total - len(left):,} of {total:,}.")
    if len(left):
        shown = ", ".join(left["query_id"].head(_SHOWN))
        more = f" … ({len(left) - _SHOWN:,} more)" if len(left) > _SHOWN else ""
        print(f"Solved by nobody: {shown}{more}")
    if answer.against == "earlier":
        counts = dict(answer.first["system"].value_counts().iter_rows())
        first = [f"{name} {counts[name]:,}" for name in answer.evaluation.systems if name in counts]
        print(f"Solved first by: {', '.join(first)}")


def _interval(low: float | None, high: float | None, *, sign: bool = False) -> str:
    if low is None or high is None:  # a single query says nothing about the spread
        return "[—]"
    return show.interval(low, high, sign=sign)
