"""How it was done: the manifest, versions, seeds, fingerprints, what to cite."""

from __future__ import annotations

import json
from importlib.resources import files

import polars as pl

from farfield.reports.blocks import Block, Code, Table, Words
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.rundir import RunDirectory

__all__ = ["PART", "citations"]

_READING = (
    "Means have percentile bootstrap intervals over queries (95% unless said otherwise), tests "
    "are two-sided and paired where the queries are the same, and p-values are corrected by "
    "Holm's method. Every random choice has a seed, so the same files and the same version give "
    "the same numbers."
)


_KINDS = dict.fromkeys(["seconds", "MB", "peak_memory_MB"], "tenth")


def _of_run(run: RunDirectory) -> list[Section]:
    resolved = json.dumps(run.resolved, indent=2, ensure_ascii=False)
    blocks: list[Block] = [
        Code("The experiment as given", (run.path / "experiment.toml").read_text()),
        Code("The experiment as resolved: every default, version and seed", resolved),
        Table("systems", "Systems", _listed(run.systems, "system", "what it is")),
        Table("fingerprints", "Fingerprints of the data", _fingerprints(run)),
        Table("versions", "Versions", _listed(run.resolved["versions"], "package", "version")),
        Table("steps", "Steps, and what each took", run.records(), kinds=_KINDS),
        citations(),
    ]
    card = run.collection.card.to_dict()
    if card:
        blocks.insert(2, Words("; ".join(f"{key}: {value}" for key, value in card.items())))
    title = "Method and provenance"
    return [Section("method", title, reading=_READING, blocks=blocks)]


def citations() -> Code:
    """Return the papers that the methods come from, to copy."""
    text = files("farfield.reports").joinpath("assets", "papers.bib").read_text("utf-8")
    return Code("To cite", text)


def _fingerprints(run: RunDirectory) -> pl.DataFrame:
    rows = {"collection": _known(run), "queries": run.queries.fingerprint}
    for shift in run.shifts:
        manifest = json.loads((shift.folder / "partition.manifest.json").read_text())
        rows[f"partition of {shift.name}"] = manifest["partition"]
        rows |= {f"{side} judgements": of for side, of in manifest["judgements"].items()}
    return _listed(rows, "what", "fingerprint")


def _known(run: RunDirectory) -> str:
    (step,) = (step for step in run.steps if step.kind == "collection")
    return str(step.spec["content"])


def _listed(entries: dict[str, str], *names: str) -> pl.DataFrame:
    return pl.DataFrame(list(entries.items()), schema=dict.fromkeys(names, pl.String), orient="row")


PART = Part(order=100, of_run=_of_run)
