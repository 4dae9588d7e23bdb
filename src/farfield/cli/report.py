"""``farfield report``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from farfield.cli import show
from farfield.cli.options import Json, one_thread_for_algebra, page_to_write


def report(
    directory: Annotated[
        Path,
        typer.Argument(metavar="RUN_DIRECTORY", help="What farfield run left.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The page to write, an .html file.", callback=page_to_write
        ),
    ] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option(help="What the page is called.", show_default="the experiment")
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Show the texts of relevant documents.")
    ] = True,
    json: Json = False,
) -> None:
    """Write what an experiment found as one HTML page, which opens anywhere and fetches nothing.

    It leads with the answer in words. What a run directory holds no table of (audit, coverage,
    what systems find together) is computed from its runs.
    """
    one_thread_for_algebra()
    from farfield import progress, reports

    progress.show(not json)
    begin = time.perf_counter()
    page = reports.page_of(directory, texts=texts, title=title)
    size = reports.save(page, output)
    seconds = time.perf_counter() - begin
    if json:
        show.print_json(
            {
                "report": str(output),
                "bytes": size,
                "seconds": seconds,
                "title": page.title,
                "sections": [
                    {"name": one.name, "title": one.title, "findings": list(one.findings)}
                    for one in page.sections
                ],
            }
        )
        return
    for finding in page.sections[0].findings:
        print(finding)
    print(f"\n{output}: {len(page.sections)} sections, {size / 1e6:.1f} MB, {seconds:,.0f} s")
