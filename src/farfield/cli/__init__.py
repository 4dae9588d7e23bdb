"""The command line: one command per question. It parses, calls and prints."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

import typer

from farfield.cli import (
    align,
    allocate,
    audit,
    compare,
    complement,
    convert,
    coverage,
    demo,
    diagnose,
    distance,
    evaluate,
    fuse,
    index,
    lab,
    list_,
    multi_source,
    nearfar,
    report,
    run,
    search,
    shift,
    train,
)
from farfield.errors import CheckFailed, FarfieldError

__all__ = ["app", "main"]

app = typer.Typer(
    name="farfield",
    help="How far does a retriever reach beyond its training data?",
    epilog="Results go to standard output, progress and notes to standard error. "
    "--json prints one JSON document and nothing else.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(evaluate.evaluate)
app.command()(audit.audit)
app.command()(compare.compare)
app.command()(diagnose.diagnose)
app.command()(coverage.coverage)
app.command()(shift.shift)
app.command()(distance.distance)
app.command()(train.train)
app.command()(run.run)
app.command()(report.report)
app.command()(nearfar.nearfar)
app.command()(align.align)
app.command()(fuse.fuse)
app.command()(complement.complement)
app.command()(allocate.allocate)
app.command(name="multi-source")(multi_source.multi_source)
app.command()(index.index)
app.command()(search.search)
app.command()(convert.convert)
app.command()(lab.lab)
app.command()(demo.demo)
app.command(name="list")(list_.list_)


def _version(value: bool) -> None:
    if value:
        import farfield

        print(f"farfield {farfield.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line; mistakes in the input end it with a message and status 2."""
    warnings.showwarning = _note
    try:
        app()
    except SystemExit as done:
        _leave(done.code if isinstance(done.code, int) else int(done.code is not None))
    except CheckFailed as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
    except FarfieldError as error:
        _fail(str(error))
    except BrokenPipeError:
        _leave(0)
    except (KeyboardInterrupt, MemoryError) as stop:
        _fail("interrupted." if isinstance(stop, KeyboardInterrupt) else "out of memory.", 130)
    except Exception as error:
        if os.environ.get("FARFIELD_DEBUG"):
            raise
        _fail(
            f"internal error: {type(error).__name__}: {error}\nThis is a fault of farfield, not "
            "yours. Set FARFIELD_DEBUG=1 to see where it happened, and please report it.",
            70,
        )


def _leave(status: int) -> None:
    """End the process at once: the kernel takes memory back faster than the interpreter does."""
    with contextlib.suppress(BrokenPipeError):  # the reader (head, less) has seen enough
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _fail(message: str, status: int = 2) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)


def _note(message: Warning | str, *_: object, **__: object) -> None:
    print(f"note: {message}", file=sys.stderr)
