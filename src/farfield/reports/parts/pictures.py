"""Where models put passages, trained near and trained far."""

from __future__ import annotations

from farfield.questions._nearfar_pictures import draw
from farfield.reports.blocks import Block, Figures, Table, Views
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.rundir import RunDirectory

__all__ = ["PART"]

_READING = (
    "Each picture has the passages that are relevant to a few queries, by a model that was "
    "trained on such queries (left) and by one that was not (right), in the plane of the two "
    "first principal components. Where a model has seen the like, passages of one query (one "
    "colour and symbol) lie together; a picture is no measurement."
)
_ALT = "Relevant passages of a few queries in a plane, by a model trained near and one trained far."


def _of_run(run: RunDirectory) -> list[Section]:
    places = run.tables.get("pictures")
    if places is None or not len(places):
        return []
    choices: dict[str, list[Block]] = {
        f"{system}, {shift}": [
            Figures(draw(part), _ALT),
            Table("pictures", "Places of the passages", part),
        ]
        for (shift, system), part in places.group_by("shift", "system", maintain_order=True)
    }
    title = "Where models put passages"
    blocks = [Views("Model", choices)]
    return [Section("pictures", title, reading=_READING, blocks=blocks)]


PART = Part(order=55, of_run=_of_run)
