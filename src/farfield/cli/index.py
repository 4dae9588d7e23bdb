"""``farfield index``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farfield.cli import show
from farfield.cli.options import Device, Json, on_device, one_thread_for_algebra


def index(
    retriever: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help='A retriever, like "bm25(k1=0.9)"; farfield list retrievers shows all.',
            show_default=False,
        ),
    ],
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="Documents: a file, a collection's folder, or ir:NAME.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for the index.", show_default=False),
    ],
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Index documents, to search them as often as you like.

    If it is stopped, even by a crash, the same command continues where it was; if the index is
    there already, it says so and does nothing.
    """
    one_thread_for_algebra()
    on_device(device)
    from time import perf_counter

    from farfield import io, progress, retrievers
    from farfield.retrievers import Manifest

    progress.show(not json)
    member = retrievers.parse(retriever)
    documents = io.read_corpus(corpus)
    start = perf_counter()
    member.index(documents, output)
    seconds = perf_counter() - start
    manifest = Manifest.read(output)
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    if json:
        show.print_json(
            {
                "out": str(output),
                "spec": manifest.spec,
                "corpus": manifest.corpus,
                **manifest.sizes,
                "bytes": size,
                "seconds": seconds,
            }
        )
        return
    what = ", ".join(_said(name, value) for name, value in manifest.sizes.items())
    print(f"{output}: {manifest.spec}, {what}, {size / 1e6:,.1f} MB, {seconds:,.1f} s")


def _said(name: str, value: object) -> str:
    words = name.replace("_", " ")
    if isinstance(value, float):
        return f"{words} {value:,.4g}"
    return f"{value:,} {words}" if isinstance(value, int) else f"{words} {value}"
