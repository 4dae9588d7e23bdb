"""Write the pages of the documentation that come from the program: docs/commands.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "commands.md"
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


def page() -> str:
    """Return the whole page."""
    parts = [
        "# Commands",
        "",
        "<!-- Written by docs/generate.py; run `make docs` after a change. -->",
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


if __name__ == "__main__":
    PAGE.write_text(page())
