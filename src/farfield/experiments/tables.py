"""The tables of an experiment: those of its steps together, and what only all of them can say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from farfield.experiments.kinds import TABLES
from farfield.experiments.steps import Step
from farfield.io.files import replacing
from farfield.questions._nearfar_similarity import comparable, correlate, extremes, in_words

__all__ = ["collect", "in_short", "together"]

#: What stands for the shift where a row is about all of them.
EVERY = "all shifts"


def collect(steps: Sequence[Step], place: Path) -> None:
    """Bring the tables of all shifts together in ``tables/``, with a column that names the shift.

    Correlations over groups are computed anew, over the groups of all shifts.
    """
    sources = [(step, name) for step in steps if step.kind == "nearfar" for name in TABLES]
    sources += [(step, "pictures") for step in steps if step.kind == "picture"]
    parts: dict[str, list[pl.DataFrame]] = {}
    for step, name in sources:
        frame = pl.read_parquet(place / "steps" / step.folder / f"{name}.parquet")
        if len(frame):
            shift = pl.lit(step.needs["shift"].spec["shift"]).alias("shift")
            parts.setdefault(name, []).append(frame.select(shift, pl.all()))
    tables = together({name: pl.concat(of, how="diagonal") for name, of in parts.items()})
    folder = place / "tables"
    folder.mkdir(exist_ok=True)
    for name in {*TABLES, "pictures"} - set(tables):  # what another manifest may have left
        (folder / f"{name}.parquet").unlink(missing_ok=True)
    for name, frame in tables.items():
        with replacing(folder / f"{name}.parquet") as file:
            frame.write_parquet(file)


def together(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Correlate loss with similarity over the groups of all shifts, in place of those of each."""
    found = dict(tables)
    if "points" not in tables:
        return found
    points = comparable(tables["points"])
    shifts = points["shift"].unique()
    name = pl.lit(shifts[0] if len(shifts) == 1 else EVERY).alias("shift")
    over = correlate(points, "groups", level=0.95, resamples=1000, seed=0).select(name, pl.all())
    if "correlations" in tables:
        over = pl.concat([tables["correlations"].filter(over="queries"), over], how="diagonal")
    return found | {"points": points, "correlations": over}


def in_short(tables: Mapping[str, pl.DataFrame]) -> tuple[pl.DataFrame, list[str]]:
    """How loss goes with similarity, in short: over the queries of each shift, and over all groups.

    A table of the farthest and the nearest queries of each shift, and what the groups of all shifts
    say, in plain words.
    """
    if "points" not in tables:
        return pl.DataFrame(), []
    found = tables["correlations"]
    ends = extremes(tables.get("by_similarity", pl.DataFrame()), found)
    groups = tables["points"].select("shift", "group").n_unique()
    return ends, in_words(pl.DataFrame(), found.filter(over="groups"), groups)
