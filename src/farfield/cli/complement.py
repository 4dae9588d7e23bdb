"""``farfield complement``."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Annotated

import typer

from farfield.cli import show
from farfield.cli.evaluate import print_evaluation
from farfield.cli.options import (
    FigureFile,
    HtmlFile,
    Json,
    Level,
    Output,
    PerQueryFile,
    QrelsFile,
    Resamples,
    RunFiles,
    Seed,
    Ties,
    keep_freed_memory,
    one_thread_for_algebra,
)

if TYPE_CHECKING:
    from farfield.questions.complement import Complement

TABLES = ("table", "systems", "headroom", "breakdown")
_SHOWN = 15  # sets of runs
_NAMED = 3  # runs of a set that are named


def complement(
    qrels: QrelsFile,
    runs: RunFiles,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            help='A measure, like R@1000 or "R(rel=2)@100"; may be given several times.',
            show_default="R@1000, nDCG@10",
        ),
    ] = None,
    fusion: Annotated[
        list[str] | None,
        typer.Option(
            "--fusion",
            "-f",
            help='A fusion, like "rrf(k=60)"; may be given several times.',
            show_default="rrf()",
        ),
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="The queries, for --by: a file, a BEIR folder or ir:NAME.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Break measures down by length (words), content (words that are no stop words), "
            "wh (what, how, who …) or any column of the queries."
        ),
    ] = None,
    edges: Annotated[
        str | None, typer.Option(help="Where buckets of numbers start: 1,4,8 for 1-3, 4-7 and 8+.")
    ] = None,
    depth: Annotated[int, typer.Option(help="Found is what is ranked so high.")] = 1000,
    rel: Annotated[int, typer.Option(help="The least relevance that counts.")] = 1,
    table: Annotated[
        str, typer.Option(help=f"What --output writes: {', '.join(TABLES)}.")
    ] = "table",
    output: Output = None,
    figure: FigureFile = None,
    per_query: PerQueryFile = None,
    html: HtmlFile = None,
    json: Json = False,
    ties: Ties = "trec",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """What do runs find alone and together, and how much of what is left does a fusion gain?

    The headroom is what the oracle, with all relevant documents first, has over the best run.
    """
    one_thread_for_algebra()
    keep_freed_memory()
    from farfield import progress
    from farfield.errors import InputError
    from farfield.questions import complement as question

    show.check_table(table, TABLES)
    if table == "breakdown" and by is None:
        raise InputError("--table breakdown needs --by, like --queries FILE --by length.")
    progress.show(not json)
    answer = question.complement(
        qrels,
        runs,
        measure or question.DEFAULT_MEASURES,
        fusions=fusion or ["rrf()"],
        queries=queries,
        by=by,
        edges=None if edges is None else _numbers(edges),
        depth=depth,
        rel=rel,
        ties=ties,
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


def _numbers(text: str) -> list[float]:
    from farfield.errors import InputError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--edges is {text!r}, expected numbers like 1,4,8.") from None


def _print(answer: Complement) -> None:
    _print_found(answer)
    print()
    print_evaluation(answer.evaluation)
    print()
    _print_headroom(answer)
    if answer.groups is not None:
        for measure in answer.evaluation.measures:
            print()
            _print_breakdown(answer, str(measure))


def _print_found(answer: Complement) -> None:
    rows = [
        [
            row["system"],
            f"{row['found']:,}",
            _share(row, ""),
            f"{row['alone']:,}",
            _share(row, "alone_"),
        ]
        for row in answer.systems.iter_rows(named=True)
    ]
    rows[-1][3:] = ["", ""]
    show.table(
        ["run", "found", "share", "alone", "share"],
        rows,
        title=f"{answer.relevant:,} relevant documents, found by rank {answer.depth:,}",
    )
    print()
    sets = answer.table
    rows = [
        [_called(row["runs"], answer.runs), f"{row['count']:,}", _share(row, "")]
        for row in sets.head(_SHOWN).iter_rows(named=True)
    ]
    if len(sets) > _SHOWN:
        last = sets.row(-1, named=True)
        rows.append(["none of them", f"{last['count']:,}", _share(last, "")])
    notes = [
        "Shares of all relevant documents (judged "
        f"{answer.rel} or more); intervals of {answer.evaluation.level:.0%} over queries."
    ]
    if len(sets) > _SHOWN + 1:
        notes.insert(0, f"{len(sets) - _SHOWN - 1:,} smaller sets are left out; -o writes all.")
    show.table(["found by exactly", "documents", "share"], rows, notes=notes)


def _print_headroom(answer: Complement) -> None:
    rows = [
        [
            row["measure"],
            row["system"],
            show.number(row["mean"]),
            show.number(row["mean"] - row["single_mean"], sign=True),
            "—" if row["captured"] is None else f"{row['captured']:.1%}",
            "" if row["captured"] is None else _percent(row["low"], row["high"]),
        ]
        for row in answer.headroom.iter_rows(named=True)
    ]
    singles = answer.headroom.unique("measure", maintain_order=True)
    best = "; ".join(
        f"{m} {s} {show.number(v)}"
        for m, s, v in singles.select("measure", "best_single", "single_mean").iter_rows()
    )
    notes = [f"Best single run: {best}."]
    none = singles.filter(singles["captured"].is_null())["measure"].to_list()
    if none:
        notes.append(
            f"The oracle is no better than the best run: no headroom in {', '.join(none)}."
        )
    notes.append("captured: share of the way from the best single run to the oracle.")
    show.table(
        ["measure", "way to combine", "mean", "gain", "captured", "interval"],
        rows,
        title="How much of the headroom is gained?",
        text_columns=2,
        notes=notes,
    )


def _print_breakdown(answer: Complement, measure: str) -> None:
    table = answer.breakdown.filter(answer.breakdown["measure"] == measure)
    rows = []
    for (name,), part in table.group_by("group", maintain_order=True):
        cells = [
            f"{show.number(row['mean'])} {show.interval(row['low'], row['high'])}"
            for row in part.iter_rows(named=True)
        ]
        rows.append([str(name), f"{part['n'][0]:,}", *cells])
    assert answer.groups is not None
    show.table(
        [answer.groups.by, "n", *answer.evaluation.systems],
        rows,
        title=f"{measure} by kind of query",
    )


def _called(joined: str, runs: tuple[str, ...]) -> str:
    """A set of runs in few words."""
    inside = joined.split(" & ") if joined else []
    without = [run for run in runs if run not in inside]
    if not inside:
        return "none of them"
    if len(inside) <= _NAMED:
        return joined
    if len(without) <= _NAMED:
        return f"all but {' & '.join(without)}" if without else f"all {len(runs)} runs"
    return f"{len(inside)} of the {len(runs)} runs"


def _share(row: dict[str, float], prefix: str) -> str:
    share, low, high = (row[f"{prefix}{part}"] for part in ("share", "low", "high"))
    return f"{share:.1%} {_percent(low, high)}"


def _percent(low: float, high: float) -> str:
    if isnan(low) or isnan(high):  # a single query says nothing about the spread
        return "[—]"
    return f"[{low:.1%}, {high:.1%}]"
