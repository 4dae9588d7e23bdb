"""``farfield run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.nearfar import percent, percents, print_changes
from farfield.cli.options import Json

if TYPE_CHECKING:
    import polars as pl

    from farfield.experiments.engine import Outcome, Planned


def run(
    manifest: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT", help="The experiment, a .toml file.", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The run directory; finished steps in it are not repeated."
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the steps and what they may cost, and stop.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(help='Only steps whose label fits, and what they need: "train dense*".'),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="After a failure, do all that does not depend on it."),
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", help="Work on so many steps at the same time, if memory allows."
        ),
    ] = 1,
    json: Json = False,
) -> None:
    """Train and compare systems near and far: collection, shifts, recipes, retrievers, fusions.

    Stop it at any time; the same command continues.
    """
    from farfield import experiments
    from farfield.errors import CheckFailed
    from farfield.experiments import engine

    experiment = experiments.read(manifest)
    if dry_run:
        planned = engine.survey(experiment, output, only=only)
        if json:
            show.print_json({"steps": [_planned(one) for one in planned]})
        else:
            _print_plan(planned)
        return
    outcome = engine.run(
        experiment,
        output,
        jobs=jobs,
        only=only,
        keep_going=keep_going,
        tell=(lambda _: None) if json else show.note,
    )
    if json:
        tables = {name: frame.fill_nan(None).to_dicts() for name, frame in outcome.tables().items()}
        show.print_json(_outcome(outcome) | {"tables": tables})
    else:
        _print_outcome(outcome)
    if outcome.failed:
        label, problem = next(iter(outcome.failed.items()))
        raise CheckFailed(
            f"error: {len(outcome.failed)} step{'s' * (len(outcome.failed) > 1)} failed, first: "
            f"{label}: {problem}\nIts log is in {outcome.directory / 'logs'}. Run the same command "
            "again to continue; what is finished is kept."
        )


def _planned(one: Planned) -> dict[str, Any]:
    return {
        "label": one.step.label,
        "kind": one.step.kind,
        "key": one.step.key,
        "done": one.done,
        "seconds": one.seconds,
        "bytes": one.bytes,
    }


def _print_plan(planned: list[Planned]) -> None:
    left = [one for one in planned if not one.done]
    show.table(
        ["step", "state", "seconds", "MB"],
        [
            [
                one.step.label,
                "done" if one.done else "to do",
                f"{'' if one.done else '~'}{one.seconds:,.0f}",
                f"{'' if one.done else '~'}{one.bytes / 1e6:,.0f}",
            ]
            for one in planned
        ],
        text_columns=2,
        notes=[
            f"{len(left)} of {len(planned)} steps to do: about "
            f"{sum(one.seconds for one in left) / 60:,.1f} minutes one after the other, and "
            f"{sum(one.bytes for one in left) / 1e6:,.0f} MB.",
            "Guesses come from steps of the same kind that are done, or else from small "
            "collections on two cores. Steps of folds are known once a shift is dealt out.",
        ],
    )


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "directory": str(outcome.directory),
        "done": outcome.done,
        "reused": outcome.reused,
        "failed": outcome.failed,
        "skipped": outcome.skipped,
        "seconds": outcome.seconds,
    }


def _print_outcome(outcome: Outcome) -> None:
    import polars as pl

    from farfield.experiments.tables import in_short
    from farfield.questions._nearfar_differences import who_loses_less

    tables = outcome.tables()
    if "table" in tables:
        for (shift,), part in tables["table"].group_by("shift", maintain_order=True):
            print_changes(part, str(shift))
            found = tables.get("differences", part.clear())
            for line in who_loses_less(part, found.filter(pl.col("shift") == shift)):
                print(line)
        print(
            "delta: far / near - 1, with an interval over queries (and seeds); p corrected by Holm."
        )
    _print_similarity(*in_short(tables))
    done, reused = len(outcome.done), len(outcome.reused)
    print(
        f"{outcome.directory}: {done} steps done, {reused} done before, "
        f"{len(outcome.failed)} failed, {len(outcome.skipped)} skipped; {outcome.seconds:,.0f} s"
    )


def _print_similarity(ends: pl.DataFrame, said: list[str]) -> None:
    if len(ends):
        print()
        show.table(
            [
                *("shift", "indicator", "system"),
                *("farthest", "interval", "nearest", "interval", "Spearman", "p"),
            ],
            [
                [
                    *(row[name] for name in ("shift", "indicator", "system")),
                    *(
                        cell
                        for end in ("farthest", "nearest")
                        for cell in (
                            percent(row[end]),
                            percents(row[f"{end}_low"], row[f"{end}_high"]),
                        )
                    ),
                    f"{row['spearman']:+.2f}",
                    show.p_value(row["p_adjusted"]),
                ]
                for row in ends.iter_rows(named=True)
            ],
            title=f"Relative loss of {ends['measure'][0]}, of the queries farthest from what was "
            "trained on and of the nearest",
            text_columns=3,
        )
    for line in said:
        print(line)
