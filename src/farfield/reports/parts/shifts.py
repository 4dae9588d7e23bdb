"""What the shifts made of the queries: a map, sizes, what leaks through, distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from farfield import figures
from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Table, Views
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.distances import distance_table
from farfield.reports.rundir import RunDirectory, ShiftRuns

if TYPE_CHECKING:
    from farfield.questions.shift import Shifted

__all__ = ["PART"]

_READING = (
    "A shift leaves groups of queries out of training, one fold for each: far queries are those "
    "of the group left out, near ones the others. The farther the far queries are from training "
    "(lower similarity, more told apart by a test), the harder the test; label overlap that "
    "remains is what still leaks."
)
_MAP = "A map of the queries by group, and how similar each fold's queries are to its training."


def _of_run(run: RunDirectory) -> list[Section]:
    choices = {shift.name: _blocks(shift) for shift in run.shifts}
    findings = [_said(shift.name, shift.frame("overlap")) for shift in run.shifts]
    return [_section(findings, [Views("Shift", choices)])]


def _of_answer(answer: Shifted) -> list[Section]:
    tables = _tables(answer.sizes, answer.overlap, answer.dropped)
    said = _said(str(answer.dealt.shift), answer.overlap)
    return [_section([said], [Figures(answer.figure(), _MAP), *tables])]


def _section(findings: list[str], blocks: list[Block]) -> Section:
    title = "What is near, what is far?"
    return Section("shifts", title, reading=_READING, findings=findings, blocks=blocks)


def _said(name: str, overlap: pl.DataFrame) -> str:
    far = overlap.filter(pl.col("role") == "far")
    folds = words.plural(overlap["fold"].n_unique(), "fold")
    if not len(far):
        return f"{name}: {folds}, none with far queries."
    worst = far.sort("share").row(-1, named=True)
    left = words.with_interval(worst, "share", words.share, ends=("low", "high"))
    return (
        f"{name}: {folds}; of the far queries at most {left} (fold {worst['fold']}) still have a "
        "relevant document that is relevant to a training query."
    )


def _blocks(shift: ShiftRuns) -> list[Block]:
    found: list[Block] = []
    kept = shift.folder / "map.json"
    if kept.exists():  # it is not in directories of earlier versions
        found.append(Figures(figures.load(kept), _MAP))
    found += _tables(*(shift.frame(name) for name in ("sizes", "overlap", "dropped")))
    if shift.distances is not None:
        found.append(distance_table(pl.read_parquet(shift.distances / "table.parquet")))
    return found


def _tables(sizes: pl.DataFrame, overlap: pl.DataFrame, dropped: pl.DataFrame) -> list[Block]:
    labels = {"train_judgements": "training judgements", "shared": "share a document"}
    found: list[Block] = [
        Table("sizes", "Queries of each fold", sizes, labels=labels),
        Table("label-overlap", "Label overlap that remains", overlap, labels=labels),
    ]
    if len(dropped):
        found.append(Table("dropped", "Queries that are in no fold, or not in this one", dropped))
    return found


PART = Part(order=20, answer="Shifted", of_answer=_of_answer, of_run=_of_run)
