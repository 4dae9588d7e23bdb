"""``farfield fuse``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.compare import print_comparison
from farfield.cli.evaluate import print_evaluation
from farfield.cli.options import (
    FigureFile,
    HtmlFile,
    Json,
    Level,
    Measures,
    Resamples,
    RunFiles,
    Seed,
    Ties,
    keep_freed_memory,
    one_thread_for_algebra,
    run_to_write,
)

if TYPE_CHECKING:
    from farfield.fusions import Snippet
    from farfield.questions.fuse import FusionReport
    from farfield.questions.tune import Tuning


def fuse(
    fusion: Annotated[
        str,
        typer.Argument(
            metavar="FUSION",
            help='A fusion, like "rrf(k=60)"; farfield list fusions shows all.',
            show_default=False,
        ),
    ],
    runs: RunFiles,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the fused run: .trec, .tsv, .jsonl, .parquet …, also .gz.",
            callback=run_to_write,
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("--results", "-k", help="Keep this many results per query.", min=1)
    ] = 1000,
    qrels: Annotated[
        str | None,
        typer.Option(help="Judgements: evaluate the fusion, and compare every run with it."),
    ] = None,
    measure: Measures = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", help="Search for what FUSION leaves open: its weights, and k of rrf."
        ),
    ] = False,
    steps: Annotated[int, typer.Option(help="With --tune: steps from weight 0 to 1.")] = 10,
    folds: Annotated[int, typer.Option(help="With --tune: folds of queries.")] = 5,
    export: Annotated[
        str | None,
        typer.Option(help="Print the request for qdrant, elasticsearch or opensearch."),
    ] = None,
    test: Annotated[str, typer.Option(help="t, wilcoxon or randomisation; all are paired.")] = "t",
    correction: Annotated[
        str, typer.Option(help="For several comparisons: holm, bonferroni, bh or none.")
    ] = "holm",
    figure: FigureFile = None,
    html: HtmlFile = None,
    json: Json = False,
    ties: Ties = "trec",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """Make one run out of several, and say whether it was worth it.

    With --qrels the fusion and all runs are evaluated and compared. With --tune the weights are
    searched for by the first measure, and valued on queries that they were not chosen on; -o and
    --export then take the best setting.
    """
    one_thread_for_algebra()
    keep_freed_memory()
    from farfield import figures, fusions, io, progress
    from farfield.questions import fuse as question
    from farfield.questions.evaluate import DEFAULT_MEASURES, named_runs

    _check(
        output=output,
        qrels=qrels,
        export=export,
        tune=tune,
        figure=figure,
        html=html,
        measure=measure,
    )
    member, names = fusions.parse(fusion), [name for name, _ in named_runs(runs)]
    if export is not None:  # an engine that lacks the words costs no time
        some = range(1, len(names) + 1)  # weights that the search might end with
        asked = member.weighted([n / sum(some) for n in some]) if tune else member
        fusions.export(asked, export, names, k=k)
    progress.show(not json)
    report, fused, depth = None, None, None
    if qrels is not None:
        report = question.fuse_and_compare(
            member,
            runs,
            qrels,
            measure or DEFAULT_MEASURES,
            k=k,
            search=tune,
            folds=folds,
            steps=steps,
            test=test,
            correction=correction,
            ties=ties,
            level=level,
            resamples=resamples,
            seed=seed,
        )
        member, fused, depth = report.fusion, report.run, report.depth
    elif output is not None:
        fused = question.fuse(member, runs, k=k, ties=ties)
    document: dict[str, Any] = {"fusion": str(member), "runs": names}
    document |= report.to_dict() if report is not None else {}
    if figure is not None and report is not None and report.tuning is not None:
        figures.save(report.tuning.figure(), figure)
    if output is not None and fused is not None:
        io.write(fused, output)
        document |= {"out": str(output), "queries": len(fused.query_ids), "rows": len(fused)}
    snippet = None
    if export is not None:
        snippet = fusions.export(member, export, names, k=k, depth=depth)
        document["export"] = snippet.to_dict()
    show.write_report(report, html)
    if json:
        show.print_json(document)
    else:
        _print(document, report, snippet)


def _check(
    *,
    output: Path | None,
    qrels: str | None,
    export: str | None,
    tune: bool,
    figure: Path | None,
    html: Path | None,
    measure: list[str] | None,
) -> None:
    """Refuse options that have no meaning together."""
    from farfield.errors import InputError

    if output is None and qrels is None and export is None:
        raise InputError(
            "nothing to do with the fused run. Give -o FILE to write it, --qrels FILE to evaluate "
            "it, or --export ENGINE to print it as a request."
        )
    if qrels is None and (tune or measure or html):
        what = "--tune" if tune else "--measure" if measure else "--html"
        raise InputError(f"{what} needs judgements. Give --qrels FILE.")
    if figure is not None and not tune:
        raise InputError("--figure draws the search for weights. Give --tune with it.")


def _print(document: dict[str, Any], report: FusionReport | None, snippet: Snippet | None) -> None:
    if report is not None:
        print_evaluation(report.comparison.evaluation)
        print()
        print_comparison(report.comparison)
        print()
        for measure, verdict in report.verdicts.items():
            print(f"{measure}: {verdict}.")
        if report.tuning is not None:
            print()
            _print_tuning(report.tuning)
    if "out" in document:
        s = "y" if document["queries"] == 1 else "ies"
        print(
            f"{document['out']}: {document['fusion']}, {document['queries']:,} quer{s}, "
            f"{document['rows']:,} rows"
        )
    if snippet is not None:
        for note in snippet.notes:
            show.note(note)
        if len(document) > 3:  # something stands above it
            print()
        print(snippet)


def _print_tuning(tuning: Tuning) -> None:
    """Print what the search found, and what it is worth."""
    said = {
        str(tuning.fusion): "as given",
        "tuned": "tuned, on queries not used for it",
        "best per query": "best setting of each query (a bound)",
    }
    rows = [
        [said[row["system"]], show.number(row["mean"]), show.interval(row["low"], row["high"])]
        for row in tuning.summary.iter_rows(named=True)
    ]
    gain = tuning.gain
    chosen = dict(tuning.folds["fusion"].value_counts(sort=True).iter_rows())
    show.table(
        [str(tuning.fusion), str(tuning.measure), "interval"],
        rows,
        title=f"Tuned over {len(tuning.settings):,} settings, {len(tuning.choices)} folds",
        notes=[
            f"Tuned against given: {show.number(gain['difference'], sign=True)} "
            f"{show.interval(gain['low'], gain['high'], sign=True)}, p {show.p_value(gain['p'])}.",
            "Chosen: "
            + ", ".join(f"{name} ({n} of {len(tuning.choices)})" for name, n in chosen.items()),
            f"Best on all queries: {tuning.best}, {_mean_of_best(tuning)} (chosen on these very "
            "queries, so on the optimistic side).",
        ],
    )


def _mean_of_best(tuning: Tuning) -> str:
    return show.number(tuning.curve.filter(tuning.curve["best"])["mean"][0])
