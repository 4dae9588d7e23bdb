"""``farfield list``."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import Json

FAMILIES = ("measures", "fusions", "indicators", "retrievers", "shifts", "encoders")


def list_(
    family: Annotated[
        str | None, typer.Argument(help=f"One of: {', '.join(FAMILIES)}.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """What is there to choose from? All members of a family, with their options."""
    from importlib import import_module

    from farfield.errors import InputError, did_you_mean

    if family is not None and family not in FAMILIES:
        raise InputError(
            f"no family is called {family!r}.{did_you_mean(family, FAMILIES)} "
            f"There are: {', '.join(FAMILIES)}."
        )
    found: dict[str, list[dict[str, Any]]] = {}
    for name in (family,) if family is not None else FAMILIES:
        kinds = import_module(f"farfield.{name}").family
        members = sorted(kinds, key=lambda kind: kind.__name__.casefold())
        found[name] = [_describe(kind) for kind in members]
    if json:
        show.print_json(found)
        return
    for name, members in found.items():
        show.table(
            ["name", "options", "what it is"],
            [[m["name"], _options(m), m["summary"]] for m in members],
            title=name,
            text_columns=3,
        )
    if "measures" in found:
        print("Other measures are handed to ir_measures, if that is installed.")


def _describe(kind: type[Any]) -> dict[str, Any]:
    options = {
        field.name: None if field.default is MISSING else field.default for field in fields(kind)
    }
    required = [field.name for field in fields(kind) if field.default is MISSING]
    summary = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
    return {
        "name": kind.__name__,
        "summary": summary,
        "options": options,
        "required": required,
        "aliases": list(kind.aliases),
    }


def _options(member: dict[str, Any]) -> str:
    written = []
    for name, default in member["options"].items():
        if name == "cutoff":
            continue
        written.append(name if name in member["required"] else f"{name}={default!r}")
    cutoff = " @k" if "cutoff" in member["required"] else " [@k]"
    return ", ".join(written) + (cutoff if "cutoff" in member["options"] else "")
