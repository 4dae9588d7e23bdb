"""``farfield convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farfield.cli import show
from farfield.cli.options import Json, Ties


def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A file, or ir:NAME.", show_default=False)
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    kind: Annotated[
        str | None, typer.Option(help="run, qrels, queries or corpus; told from the content.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="trec, msmarco, beir, json, jsonl, csv or parquet; told from OUT."),
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", "-k", help="Keep this many results per query.", min=1)
    ] = None,
    ties: Ties = "trec",
    json: Json = False,
) -> None:
    """Turn a run, qrels, queries or a corpus into another format, exactly.

    Formats are told by content when reading and by the suffix when writing; .gz and .zst work
    everywhere: farfield convert run.trec.gz run.parquet
    """
    from farfield import io
    from farfield.errors import InputError, did_you_mean
    from farfield.tables import Corpus, Qrels, Queries, Run, Table

    kinds: dict[str, type[Table]] = {
        "run": Run,
        "qrels": Qrels,
        "queries": Queries,
        "corpus": Corpus,
    }
    if kind is not None and kind not in kinds:
        raise InputError(
            f"--kind is {kind!r}.{did_you_mean(kind, kinds)} Expected {', '.join(kinds)}."
        )
    chosen = kinds[kind] if kind is not None else io.kind_of(source)
    table = io.read_run(source, ties=ties) if chosen is Run else io.read(source, chosen)
    if depth is not None:
        if not isinstance(table, Run):
            raise InputError(f"--depth is for runs; this file holds {chosen.__name__.lower()}.")
        table = table.head(depth)
    io.write(table, target, format=format)
    if json:
        found = {"kind": chosen.__name__.lower(), "rows": len(table), "out": str(target)}
        show.print_json(found)
    else:
        print(f"{target}: {chosen.__name__.lower()}, {len(table):,} rows")
