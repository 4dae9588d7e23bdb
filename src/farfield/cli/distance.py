"""``farfield distance``."""

from __future__ import annotations

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
    PerQueryFile,
    QueryEncoder,
    Seed,
)

if TYPE_CHECKING:
    from farfield.questions.distance import Distance, FoldDistances


def distance(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="What is tested: a file of queries, a BEIR folder, folder:SPLIT or ir:NAME.",
            show_default=False,
        ),
    ],
    b: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="B...",
            help="What was trained on, likewise; several are taken together.",
            show_default=False,
        ),
    ] = None,
    indicator: Annotated[
        list[str] | None,
        typer.Option(
            "--indicator",
            "-i",
            help='An indicator, like jaccard or "r(variant=top, k=5)"; may be repeated. '
            "farfield list indicators shows all.",
            show_default="all five",
        ),
    ] = None,
    encoder: QueryEncoder = "lsa()",
    partition: Annotated[
        Path | None,
        typer.Option(
            help="Folds of a shift (fold, query_id, role): compares the near and the far queries "
            "of each with its training queries. A holds the texts of all, and there is no B."
        ),
    ] = None,
    output: Output = None,
    figure: FigureFile = None,
    per_query: PerQueryFile = None,
    html: HtmlFile = None,
    json: Json = False,
    level: Level = 0.95,
    seed: Seed = 0,
) -> None:
    """How far apart are two sets of queries? Words, vectors, neighbours, and tests.

    Every value stands beside what it would be if A were drawn from what B was drawn from.
    """
    from farfield import progress
    from farfield.errors import InputError
    from farfield.questions import distance as question

    progress.show(not json)
    options: dict[str, Any] = {
        "indicators": indicator or question.DEFAULT,
        "encoder": encoder,
        "level": level,
        "seed": seed,
    }
    answer: Distance | FoldDistances
    if partition is not None:
        if b:
            raise InputError(
                f"--partition says what is compared; {b[0]!r} is one too many. Give one collection."
            )
        answer = question.fold_distances(a, partition, **options)
    elif not b:
        raise InputError("there is nothing to compare with. Give B, what was trained on.")
    else:
        answer = question.distance(a, b, **options)
    show.deliver(
        answer,
        _print if isinstance(answer, question.Distance) else _print_folds,
        json=json,
        output=output,
        per_query=per_query,
        figure=figure,
        html=html,
    )


def _print(answer: Distance) -> None:
    rows = [
        [
            row["indicator"],
            show.number(row["value"]),
            _interval(row),
            show.number(row["same"]),
            "—" if row["relative"] is None else f"{row['relative']:.0%}",
            "—" if row["p"] is None else show.p_value(row["p_adjusted"]),
        ]
        for row in answer.table.iter_rows(named=True)
    ]
    a, b, readings = answer.a, answer.b, answer.readings.items()
    notes = [
        f"{answer.sides.level:.0%} intervals. same: the value if A were drawn from what B was "
        "drawn from; p: of a test of that (permutations, Holm).",
        *(f"{indicator}: {indicator.explain(found)}" for indicator, found in readings),
        f"{answer.shared:,} of A's queries are in B word for word.",
        "",
        answer.verdict,
    ]
    title = f"A: {a.name} ({len(a):,} queries), B: {b.name} ({len(b):,} queries)"
    show.table(
        ["indicator", "value", "interval", "same", "of same", "p"], rows, title=title, notes=notes
    )


def _print_folds(answer: FoldDistances) -> None:
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in answer.table.iter_rows(named=True):
        cells.setdefault((row["fold"], row["indicator"]), {})[row["role"]] = row
    rows = []
    for (fold, indicator), roles in cells.items():
        line = [fold, indicator]
        for role in ("near", "far"):
            found = roles.get(role)
            line += ["—", "", "—"] if found is None else _cells(found)
        rows.append(line)
    level = next(iter(answer.distances.values())).sides.level
    show.table(
        ["fold", "indicator", "near", "interval", "of same", "far", "interval", "of same"],
        rows,
        title="Near and far queries against the training queries of their fold",
        notes=[
            f"{level:.0%} intervals. of same: relative to what queries would have that were drawn "
            "from what the training queries",
            "were drawn from; compare that for jaccard, which grows with the size of the sets.",
        ],
        text_columns=2,
    )


def _cells(row: dict[str, Any]) -> list[str]:
    relative = "—" if row["relative"] is None else f"{row['relative']:.0%}"
    return [show.number(row["value"]), _interval(row), relative]


def _interval(row: dict[str, Any]) -> str:
    if row["low"] is None:
        return "[—]"
    return show.interval(row["low"], row["high"])
