"""Write the pages of the documentation that come from the program: commands.md and api.md."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import farfield

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py; run `make docs` after a change. -->"
COMMANDS = [
    "evaluate",
    "audit",
    "compare",
    "diagnose",
    "coverage",
    "shift",
    "distance",
    "train",
    "run",
    "report",
    "nearfar",
    "align",
    "fuse",
    "complement",
    "allocate",
]
COMMANDS += ["multi-source"]
COMMANDS += ["index", "search", "convert", "lab", "demo", "list"]


def help_of(*command: str) -> str:
    """Return a command's help as it looks 88 columns wide, without colours."""
    environment = {**os.environ, "COLUMNS": "88", "TERMINAL_WIDTH": "88", "NO_COLOR": "1"}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-m", "farfield", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "\n".join(lines).strip("\n").replace("python -m farfield", "farfield")


def commands() -> str:
    """Return the page of all commands."""
    parts = [
        "# Commands",
        "",
        NOTE,
        "",
        "Results go to standard output, progress and notes to standard error. `--json` prints one",
        "JSON document and nothing else. Status 0: done; 1: a check did not hold; 2: the input is",
        "wrong.",
        "",
        "```",
        help_of(),
        "```",
    ]
    for command in COMMANDS:
        parts += ["", f"## farfield {command}", "", "```", help_of(command), "```"]
    return "\n".join(parts) + "\n"


def api() -> str:
    """Return the page of all public names of Python."""
    parts = [
        "# Python",
        "",
        NOTE,
        "",
        "Every command is a function of the same name (`nearfar` is `near_far`): tables or paths",
        "in, an answer out, whose tables are polars frames. `import farfield` costs next to",
        "nothing; names are loaded when they are first used.",
    ]
    for title, homes in _sections().items():
        parts += ["", f"## {title}"]
        for name in (name for home in homes for name in _functions_first(home)):
            value = getattr(farfield, name)
            parts += ["", f"### {name}", "", *_entry(name, value, made_by_hand=title == "Tables")]
    parts += ["", "## Modules"]
    for name in farfield._MODULES:
        parts += ["", f"### farfield.{name}", "", *_module(getattr(farfield, name))]
    return "\n".join(parts) + "\n"


def _sections() -> dict[str, list[str]]:
    """Return the modules that hold public names, in the order in which the page has them."""
    sections = {
        "Questions": [home for home in sorted(farfield._HOMES) if home.startswith("questions.")],
        "Training and reports": ["recipes", "reports"],
        "Tables": ["tables", "collection"],
        "Reading and writing": ["io"],
        "Errors": ["errors"],
    }
    missing = set(farfield._HOMES) - {home for homes in sections.values() for home in homes}
    assert not missing, f"give {missing} a section"
    return sections


def _functions_first(home: str) -> list[str]:
    return sorted(farfield._HOMES[home], key=lambda name: inspect.isclass(getattr(farfield, name)))


def _entry(name: str, value: Any, *, made_by_hand: bool) -> list[str]:
    if not inspect.isclass(value):
        return ["```py", _signature(name, value), "```", "", _text(value)]
    parts = ["```py", _signature(name, value), "```", ""] if made_by_hand else []
    parts += [_text(value)]
    fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    if fields and not made_by_hand:
        shown = ", ".join(f"`{field}`" for field in fields if not field.startswith("_"))
        parts += ["", f"Holds {shown}."]
    members = [
        f"- `{member}`: {_summary(found)}"
        for member, found in vars(value).items()
        if not member.startswith("_") and (inspect.isroutine(found) or hasattr(found, "__get__"))
        if _summary(found)
    ]
    return [*parts, "", *members] if members else parts


def _module(module: ModuleType) -> list[str]:
    parts = [_text(module)]
    rows = [
        f"- `{name}`: {summary}"
        for name in module.__all__
        if inspect.isroutine(value := getattr(module, name)) or inspect.isclass(value)
        if (summary := _summary(value))
    ]
    return [*parts, "", *rows] if rows else parts


def _signature(name: str, value: Any) -> str:
    """Write a call as the source does: on one line if it fits, else an argument a line."""
    signature = inspect.signature(value)
    returned = "" if inspect.isclass(value) else f" -> {_type(signature.return_annotation)}"
    keyword, arguments = False, []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            arguments.append("*")
            keyword = True
        text = parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}"
        arguments.append(text)
    line = f"{name}({', '.join(arguments)}){returned}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){returned}"])


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")


def _summary(value: Any) -> str:
    """Return the first sentence of a docstring of ours, on one line."""
    value = getattr(value, "func", value)  # of a cached property
    text = _text(value).split("\n\n")[0]
    return " ".join(text.split())


def _text(value: Any) -> str:
    """Return a docstring as markdown."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


PAGES = {"commands.md": commands, "api.md": api}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())
