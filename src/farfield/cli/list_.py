"""``farfield list``."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import Json
from farfield.spec import Member

FAMILIES = (
    "measures",
    "fusions",
    "allocations",
    "indicators",
    "retrievers",
    "shifts",
    "encoders",
    "recipes",
)


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
    own = sorted(fields(kind), key=lambda field: field.name not in kind.__annotations__)
    defaults = {field.name: _default(field) for field in own}
    summary = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
    return {
        "name": kind.__name__,
        "summary": summary.replace("``", ""),
        "options": {name: None if v is MISSING else v for name, v in defaults.items()},
        "required": [name for name, value in defaults.items() if value is MISSING],
        "aliases": list(kind.aliases),
    }


def _default(field: Field[Any]) -> Any:
    """The default as it is printed: a member by its spec."""
    value = field.default if field.default_factory is MISSING else field.default_factory()
    return str(value) if isinstance(value, Member) else value


def _options(member: dict[str, Any]) -> str:
    written = []
    for name, default in member["options"].items():
        if name == "cutoff":
            continue
        shown = list(default) if isinstance(default, tuple) else default
        shown = shown if str(shown).endswith(")") else repr(shown)  # a member by its spec
        written.append(name if name in member["required"] else f"{name}={shown}")
    cutoff = " @k" if "cutoff" in member["required"] else " [@k]"
    return ", ".join(written) + (cutoff if "cutoff" in member["options"] else "")
