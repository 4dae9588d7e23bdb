"""Is more lost, the less similar queries are to what was trained on?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from farfield.experiments.tables import in_short
from farfield.questions._nearfar_figures import draw_bins, draw_points
from farfield.reports.blocks import Block, Figures, Table, Views
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.rundir import RunDirectory

if TYPE_CHECKING:
    from farfield.questions.nearfar import NearFar

__all__ = ["PART", "similarity_sections"]

_READING = (
    "Queries stand in bins of equally many, by how similar each is to what was trained on while "
    "it is far; a bin's relative loss is a ratio of means, and boxes show the losses of single "
    "queries (from the 5th to the 95th percentile). If similarity explains the loss, bins that "
    "are farther lose more; a correlation over few groups says little, whatever it is."
)
_ALT_BINS = "Relative loss in bins of queries by similarity, and boxes of losses of single queries."
_ALT_POINTS = "Relative loss of each group against how similar it is to what was trained on."
_CHANGES = {"rel_loss": "change", "similarity": "number", "relative": "share"}
_LABELS = {"similarity_from": "from", "similarity_to": "to", "rel_loss": "relative loss"}
_LABELS |= {"p_adjusted": "p (Holm)", "n": "points"}


def _of_run(run: RunDirectory) -> list[Section]:
    return similarity_sections(run.tables, [shift.name for shift in run.shifts])


def similarity_sections(tables: Mapping[str, pl.DataFrame], shifts: list[str]) -> list[Section]:
    """Return a section of the tables that loss against similarity left, or none."""
    blocks: list[Block] = []
    bins = tables.get("by_similarity", pl.DataFrame())
    if len(bins):
        choices = {
            name: _bins(*(tables[of].filter(shift=name) for of in ("by_similarity", "boxes")))
            for name in shifts
            if name in bins["shift"]
        }
        blocks.append(Views("Shift", choices))
    points = tables.get("points", pl.DataFrame())
    if len(points):
        blocks.append(Figures(draw_points(points), _ALT_POINTS))
        shown = ["shift", "system", "measure", "group", "indicator", "value", "relative"]
        blocks.append(
            Table(
                "groups",
                "Groups: how similar, and what is lost",
                points,
                shown=[*shown, "rel_loss", "queries"],
                labels=_LABELS,
                kinds=_CHANGES,
                start={"measure": points["measure"][0]},
            )
        )
    found = tables.get("correlations", pl.DataFrame())
    if len(found):
        blocks.append(
            Table(
                "similarity-correlations",
                "Correlations of loss with similarity",
                found,
                labels=_LABELS,
                kinds={"value": "signed"},
                start={"measure": found["measure"][0], "kind": "spearman"},
            )
        )
    if not blocks:
        return []
    title = "Is more lost, the farther queries are?"
    findings = in_short(tables)[1] if len(points) else []
    return [Section("similarity", title, reading=_READING, findings=findings, blocks=blocks)]


def _bins(bins: pl.DataFrame, boxes: pl.DataFrame) -> list[Block]:
    first = {"measure": bins["measure"][0]}
    left = [name for name in bins.columns if name not in ("shift", "nearer", "delta")]
    return [
        Figures(draw_bins(bins, boxes), _ALT_BINS),
        Table(
            "loss-by-similarity",
            "Relative loss in bins of queries",
            bins,
            shown=left,
            labels=_LABELS,
            kinds=_CHANGES,
            start=first,
        ),
        Table(
            "boxes",
            "Losses of single queries in the same bins",
            boxes,
            shown=[name for name in boxes.columns if name not in ("shift", "nearer")],
            labels=_LABELS,
            start=first,
        ),
    ]


def of_answer(answer: NearFar) -> list[Section]:
    """Return a section of an answer that knows how similar queries are, or none."""
    frames = {name: getattr(answer, name) for name in _TABLES}
    named = {
        name: frame.select(pl.lit("the shift").alias("shift"), pl.all())
        for name, frame in frames.items()
        if len(frame)
    }
    return similarity_sections(named, ["the shift"])


_TABLES = ("by_similarity", "boxes", "points", "correlations")

PART = Part(order=50, of_run=_of_run)
