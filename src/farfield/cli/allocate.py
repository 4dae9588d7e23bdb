"""``farfield allocate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli._allocate_tables import print_answer
from farfield.cli.options import (
    Device,
    FigureFile,
    HtmlFile,
    Json,
    Level,
    Output,
    PerQueryFile,
    Resamples,
    Seed,
    Ties,
    on_device,
    one_thread_for_algebra,
    run_to_write,
    table_to_write,
)

if TYPE_CHECKING:
    from farfield.questions.allocate import Allocated

TABLES = (
    *("table", "shares", "fractions", "bridged", "by_budget", "by_seeds"),
    *("by_retriever", "between_retrievers"),
)


def allocate(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=RUN...",
            help="One run file for each source, by its name; or, with --retriever, the folder of a "
            "collection whose documents have a source.",
            show_default=False,
        ),
    ],
    qrels: Annotated[
        str | None,
        typer.Option(help="Judgements, to say what policies are worth: a file, or ir:NAME."),
    ] = None,
    k: Annotated[
        int, typer.Option("--results", "-k", help="The budget: results for each query.", min=1)
    ] = 10,
    need: Annotated[
        str,
        typer.Option(
            help="What a query wants: something from each source, or the answer from any of them."
        ),
    ] = "each",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            help='A policy, like "local()"; may be given several times. farfield list allocations '
            "shows all.",
            show_default="those without labels; with labels also those that learn",
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            "--retriever",
            "-r",
            help='Search a collection with this, like "bm25()"; given several times, also with '
            "names (NAME=SPEC), all are compared, and everything else is about the first.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(help="With --retriever: the column that says the source.")
    ] = "source",
    statistics: Annotated[
        str,
        typer.Option(help="With --retriever: words are counted over all (pooled) or own sources."),
    ] = "pooled",
    split: Annotated[str, typer.Option(help="With --retriever: the judged queries.")] = "test",
    labels: Annotated[
        str | None,
        typer.Option(
            help="Learn from these judgements of other queries; with --retriever also a split, or "
            "titles (of documents that no test query is about)."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Learn from so many of the judged queries, and try on the others."),
    ] = None,
    draws: Annotated[int, typer.Option(help="How often seeds are drawn.")] = 10,
    folds: Annotated[
        int, typer.Option(help="Folds for policies that learn, without --labels and --seeds.")
    ] = 5,
    queries: Annotated[
        str | None, typer.Option(help="The queries of the runs, for what they are about.")
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(
            help="The column of the queries that says what they are about: queries of one item are "
            "resampled together.",
            show_default="item, if there is one",
        ),
    ] = None,
    bridge: Annotated[
        float | None,
        typer.Option(
            help="With --retriever: first rerank each source by how much its results resemble the "
            "best of the others, with this weight (2 is small), and say whether that helps."
        ),
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="With --bridge: makes vectors of documents.")
    ] = "lsa()",
    budgets: Annotated[
        str | None, typer.Option(help="Also with these budgets, like 2,5,10,20,50.")
    ] = None,
    seed_sizes: Annotated[
        str | None, typer.Option(help="Also with so many seeds, like 10,30,100.")
    ] = None,
    rel: Annotated[int, typer.Option(help="The least relevance that counts.")] = 1,
    use: Annotated[
        str | None,
        typer.Option(help="The policy of --run and --allocation.", show_default="recommended"),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", help="Write the results: .trec, .tsv, .parquet …", callback=run_to_write
        ),
    ] = None,
    allocation: Annotated[
        Path | None,
        typer.Option(
            help="Write how many results each source gives to .parquet, .csv or .jsonl.",
            callback=table_to_write,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="With --retriever: write the run of each source into this folder."),
    ] = None,
    table: Annotated[
        str, typer.Option(help=f"What --output writes: {', '.join(TABLES)}.")
    ] = "table",
    output: Output = None,
    per_query: PerQueryFile = None,
    figure: FigureFile = None,
    html: HtmlFile = None,
    json: Json = False,
    device: Device = "auto",
    ties: Ties = "trec",
    level: Level = 0.95,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """A query goes to several sources and k results come back: who gives how many?

    farfield allocate abt=abt.trec buy=buy.trec --qrels test.tsv

    farfield allocate products --retriever "bm25()" --seeds 30
    """
    one_thread_for_algebra()
    on_device(device)
    from farfield import io, progress
    from farfield.errors import InputError
    from farfield.questions import allocate as question

    show.check_table(table, TABLES)
    asked = {
        "by_budget": (budgets, "--budgets 5,10,20"),
        "by_seeds": (seed_sizes, "--seed-sizes 10,30"),
        "bridged": (bridge, "--bridge 2"),
        **dict.fromkeys(
            ("by_retriever", "between_retrievers"),
            (len(retriever or ()) > 1 or None, "--retriever, given twice or more"),
        ),
    }
    if table in asked and asked[table][0] is None:
        raise InputError(f"--table {table} needs an option like {asked[table][1]}.")
    progress.show(not json)
    answer = question.allocate(
        _sources(sources, retriever),
        qrels,
        k=k,
        need=need,  # type: ignore[arg-type]  # checked there
        policies=policy,
        retriever=_retrievers(retriever) if retriever else None,
        by=by,
        statistics=statistics,  # type: ignore[arg-type]  # checked there
        split=split,
        labels=labels,
        seeds=seeds,
        draws=draws,
        folds=folds,
        queries=queries,
        item=item,
        bridge=bridge,
        encoder=encoder,
        budgets=_numbers("--budgets", budgets),
        seed_sizes=_numbers("--seed-sizes", seed_sizes),
        rel=rel,
        ties=ties,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    _print_notes(answer)
    if run is not None:
        io.write(answer.run(use), run)
    if allocation is not None:
        io.write(answer.allocation(use), allocation)
    if runs is not None:
        _write_runs(answer, runs)
    show.deliver(
        answer,
        print_answer,
        json=json,
        table=table,
        output=output,
        per_query=per_query,
        figure=figure,
        html=html,
    )


def _write_runs(answer: Allocated, folder: Path) -> None:
    from farfield import io

    folder.mkdir(parents=True, exist_ok=True)
    for run in answer.lists.runs:
        io.write(run, folder / f"{run.name.replace('/', '-')}.parquet")


def _print_notes(answer: Allocated) -> None:
    """Say what may be wrong, beside the result."""
    if answer.regime.need not in (None, answer.need):
        show.note(f"{answer.regime.text} Asked for was need {answer.need}.")
    missing = int((answer.lists.lengths.sum(axis=1) == 0).sum())
    if missing:
        show.note(f"no source has results for {missing:,} judged queries; they count as 0.")


def _sources(given: list[str], retriever: list[str] | None) -> Any:
    """Runs by the names of their sources, or a collection."""
    from farfield.errors import InputError
    from farfield.io import name_of

    if retriever:
        if len(given) == 1:
            return given[0]
        raise InputError(f"--retriever searches one collection, but {len(given)} were given.")
    parts = [(text, *text.partition("=")) for text in given]
    runs = _by_name(
        "source", "FILE", [(a, c) if b else (name_of(text), text) for text, a, b, c in parts]
    )
    if len(runs) == 1 and Path(next(iter(runs.values()))).is_dir():
        return next(iter(runs.values()))
    return runs


def _retrievers(given: list[str]) -> dict[str, str]:
    """Specs by their names, or by themselves."""
    parts = [(text, *text.partition("=")) for text in given]
    # In a spec without a name, the first sign of equality is inside its brackets.
    pairs = [(a, c) if b and "(" not in a else (text, text) for text, a, b, c in parts]
    return _by_name("retriever", "SPEC", pairs)


def _by_name(what: str, thing: str, pairs: list[tuple[str, str]]) -> dict[str, str]:
    from farfield.errors import InputError

    found: dict[str, str] = {}
    for name, named in pairs:
        if not name or not named:
            text = f"{name}={named}"
            raise InputError(f"{text!r} is no {what}, expected NAME={thing}.")
        if name in found:
            raise InputError(f"two {what}s are called {name!r}. Name them: NAME={thing}.")
        found[name] = named
    return found


def _numbers(option: str, text: str | None) -> list[int]:
    from farfield.errors import InputError

    try:
        return [] if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} is {text!r}, expected whole numbers like 10,30.") from None
