"""``farfield search``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import (
    Device,
    Json,
    OneMeasure,
    Seed,
    on_device,
    one_thread_for_algebra,
    run_to_write,
)

if TYPE_CHECKING:
    from farfield.questions.search import RetrieverTuning


def search(
    retriever: Annotated[
        str,
        typer.Argument(
            metavar="SPEC_OR_DIR",
            help='The folder of an index, or a retriever like "rm3(bm25())".',
            show_default=False,
        ),
    ],
    queries: Annotated[
        str,
        typer.Argument(
            metavar="QUERIES",
            help="Queries: a file, a collection's folder, or ir:NAME.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write the run: .trec, .tsv, .jsonl, .parquet …, also .gz.",
            show_default=False,
            callback=run_to_write,
        ),
    ],
    k: Annotated[
        int, typer.Option("--results", "-k", help="Find this many documents per query.", min=1)
    ] = 1000,
    corpus: Annotated[
        str | None,
        typer.Option(help="With a retriever: its documents; by default the collection's."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="With a retriever: an index that it, or another like it, has made."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Of a collection: only the queries judged in this split.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The name of the run.")] = None,
    tune: Annotated[
        str | None,
        typer.Option(
            help="With a retriever: search with the setting that is best by these judgements, a "
            "file or a split of the collection."
        ),
    ] = None,
    measure: OneMeasure = "nDCG@10",
    folds: Annotated[int, typer.Option(help="With --tune: folds of queries.")] = 5,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Find documents for queries, with an index or straight from the documents.

    farfield search "bm25()" scifact --split test -o bm25.trec.gz
    """
    one_thread_for_algebra()
    on_device(device)
    from time import perf_counter

    from farfield import io, progress
    from farfield.questions import search as question
    from farfield.retrievers import Retriever

    progress.show(not json)
    collection = io.read_collection(queries) if split is not None else None
    asked = io.read_queries(queries) if collection is None else collection.queries_of(split or "")
    made = question.open_or_make(retriever, queries, corpus, index)
    document: dict[str, Any] = {}
    tuning = None
    if tune is not None:
        tuning = question.tune_retriever(
            made.retriever,
            made,
            io.read_queries(queries),
            _judgements(tune, queries),
            measure,
            k=k,
            folds=folds,
            seed=seed,
        )
        chosen: Retriever = tuning.best
        made = made.using(chosen)
        document["tuning"] = tuning.to_dict()
    start = perf_counter()
    run = made.search(asked, k, name=name)
    seconds = perf_counter() - start
    io.write(run, output)
    document = {
        "retriever": str(made.retriever),
        "out": str(output),
        "queries": len(asked),
        "without_results": len(asked) - len(run.query_ids),
        "rows": len(run),
        "seconds": seconds,
        **({"report": made.report} if made.report else {}),
        **document,
    }
    if json:
        show.print_json(document)
        return
    if tuning is not None:
        _print_tuning(tuning)
    print(
        f"{output}: {document['retriever']}, {len(asked):,} queries, {len(run):,} rows, "
        f"{seconds:,.2f} s"
    )
    for what, value in made.report.items():
        shown = f"{value:,.4g}" if isinstance(value, float) else str(value)
        print(f"{what.replace('_', ' ')}: {shown}")
    if document["without_results"]:
        show.note(f"nothing was found for {document['without_results']:,} queries.")


def _judgements(given: str, queries: str) -> Any:
    """A file, or a split of the collection."""
    from farfield import io
    from farfield.io import beir

    if Path(given).exists() or not Path(queries).is_dir() or not beir.is_beir(Path(queries)):
        return io.read_qrels(given)
    return io.read_collection(queries).qrels[given]


def _print_tuning(tuning: RetrieverTuning) -> None:
    gain = tuning.gain
    best = tuning.table.filter(tuning.table["best"]).row(0, named=True)
    given = tuning.table.row(0, named=True)
    show.table(
        ["setting", str(tuning.measure), "interval"],
        [
            [f"{what}: {row['retriever']}", show.number(row["mean"]), _interval(row)]
            for what, row in (("as given", given), ("best", best))
        ],
        title=f"Tuned over {len(tuning.settings):,} settings, {len(tuning.choices)} folds",
        notes=[
            "Tuned against given, on queries not used for it: "
            f"{show.number(gain['difference'], sign=True)} "
            f"{show.interval(gain['low'], gain['high'], sign=True)}, p {show.p_value(gain['p'])}.",
        ],
    )


def _interval(row: dict[str, Any]) -> str:
    return show.interval(row["low"], row["high"])
