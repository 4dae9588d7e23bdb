"""``farfield multi-source``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farfield.cli import show
from farfield.cli.options import Json, Seed

if TYPE_CHECKING:
    from farfield.questions.multi_source import MultiSource

_COLUMNS = 4  # sources that have a column each


def multi_source(
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="Tables of records (csv with any separator, jsonl, parquet), or one collection.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the collection to this folder.")
    ] = None,
    matches: Annotated[
        Path | None,
        typer.Option(help="A table of matching records: a column of ids for each source."),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="Names of the sources, like walmart,amazon.", show_default="the files'"),
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="The column of ids.", show_default="id, or the first")
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            help="The column of titles; of several, like name,title, the first that a table has.",
            show_default="title or name",
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="The columns that make the document, like brand,description.",
            show_default="description, text",
        ),
    ] = None,
    halves: Annotated[
        bool,
        typer.Option(
            "--halves",
            help="For records without descriptions: every other word of the title is the query, "
            "the words between go to the document.",
        ),
    ] = False,
    words: Annotated[
        int, typer.Option(help="Leave out records whose text has fewer words than this.")
    ] = 3,
    by: Annotated[
        str | None,
        typer.Option(help="Of a collection: the column of documents or queries with the source."),
    ] = None,
    largest: Annotated[
        int | None, typer.Option(help="With --by: keep so many of the largest sources.")
    ] = None,
    most: Annotated[
        int | None, typer.Option(help="With --by: draw at most so many documents of a source.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Make a collection of several sources: from tables of records and matches, or by a column.

    Titles of matched records are the queries, from whichever source; what else is said about a
    thing are the documents. Whatever is left out is counted. Without --output it only says what
    would be made.
    """
    from farfield.errors import InputError
    from farfield.questions import multi_source as question

    if by is None:
        if largest is not None or most is not None:
            raise InputError("--largest and --most go with --by COLUMN.")
        answer = question.multi_source(
            tables,
            matches,
            names=_listed(names),
            id=id,
            title=_listed(title),
            text=_listed(text),
            halves=halves,
            words=words,
        )
    else:
        if len(tables) != 1 or matches is not None or names is not None or halves:
            raise InputError("--by goes with one collection, without --matches, --names, --halves.")
        answer = question.by_source(tables[0], by, largest=largest, most=most, seed=seed)
    document = answer.to_dict()
    if output is not None:
        answer.write(output)
        document["out"] = str(output)
    if json:
        show.print_json(document)
    else:
        _print(answer, output)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _print(answer: MultiSource, output: Path | None) -> None:
    total = sum(len(q.query_ids) for q in answer.collection.qrels.values())
    notes = []
    if answer.matches is not None:
        notes.append(f"{answer.matches[1]:,} of {answer.matches[0]:,} matches are used.")
    if answer.undecidable:
        notes.append(
            f"{answer.undecidable:.1%} of the test queries have a relevant text that its source "
            "has more than once (repeated)."
        )
    show.table(
        ["source", "records", "documents", "repeated", "queries", "training"],
        [
            [row["source"], *(f"{value:,}" for name, value in row.items() if name != "source")]
            for row in answer.sizes.iter_rows(named=True)
        ],
        title=f"{answer.collection.name}: {len(answer.given)} sources, {total:,} queries",
        notes=notes,
    )
    if len(answer.dropped):
        print()
        _print_dropped(answer)
    if output is not None:
        splits = ", ".join(f"{split} {len(q):,}" for split, q in answer.collection.qrels.items())
        print(f"written: {output} (judgements: {splits})")


def _print_dropped(answer: MultiSource) -> None:
    sources = list(answer.given) if len(answer.given) <= _COLUMNS else []
    rows = []
    for (what,), part in answer.dropped.group_by("what", maintain_order=True):
        by_source = dict(part.select("source", "count").iter_rows())
        each = [f"{by_source[name]:,}" if name in by_source else "" for name in sources]
        rows.append([str(what), f"{part['count'].sum():,}", *each])
    show.table(["left out", "number", *sources], rows)
