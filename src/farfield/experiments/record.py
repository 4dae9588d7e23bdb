"""What a run directory tells of its steps: which folder holds what, and what it was made from.

Keys of steps are digests that cannot be read back, so ``steps.json`` lists them. Whoever reads
results (a report, a notebook) needs neither the collection nor the models that were begun with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.errors import FileError
from farfield.experiments.steps import FORMAT, Step
from farfield.io.files import PathLike, write_json

__all__ = ["Recorded", "read_resolved", "read_steps", "write_steps"]

_FILE = "steps.json"


@dataclass(frozen=True)
class Recorded:
    """A step that was planned; ``needs`` names the folders that it reads."""

    kind: str
    label: str
    folder: str
    spec: dict[str, Any]
    needs: dict[str, str]


def write_steps(directory: Path, steps: Iterable[Step]) -> None:
    """List the steps of an experiment in its directory."""
    listed = [
        {
            "kind": step.kind,
            "label": step.label,
            "folder": step.folder,
            "spec": step.spec | step.where,
            "needs": {name: need.folder for name, need in step.needs.items()},
        }
        for step in steps
    ]
    write_json(directory / _FILE, listed)


def read_steps(directory: PathLike) -> list[Recorded]:
    """Read the steps of an experiment from its directory."""
    place = Path(directory)
    read_resolved(place)
    return [Recorded(**entry) for entry in _read(place, _FILE)]


def read_resolved(directory: PathLike) -> dict[str, Any]:
    """Read the experiment as it was resolved: every default, version and seed."""
    place = Path(directory)
    if not place.is_dir():
        raise FileError(place, "there is no such folder. Give the directory of farfield run.")
    found: dict[str, Any] = _read(place, "resolved.json")
    if found.get("format") != FORMAT:
        raise FileError(
            place, f"a run directory of format {found.get('format')!r}, expected {FORMAT}."
        )
    return found


def _read(place: Path, name: str) -> Any:
    try:
        return json.loads((place / name).read_text())
    except OSError:
        raise FileError(
            place,
            f"it has no {name}: this is not the directory of a finished farfield run. Run the "
            "experiment again with this directory; finished steps are not repeated.",
        ) from None
    except ValueError as error:
        raise FileError(place / name, f"this is no JSON ({error}).") from error
