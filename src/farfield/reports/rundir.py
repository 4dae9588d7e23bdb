"""A run directory as a report sees it: shifts, each with its folds, runs, values and judgements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from farfield import measures
from farfield.collection import Collection
from farfield.errors import FileError
from farfield.experiments.kinds import open_collection
from farfield.experiments.record import Recorded, read_resolved, read_steps
from farfield.io import read, read_qrels
from farfield.io.files import PathLike
from farfield.measures import Measure
from farfield.questions.audit import Audit, audit
from farfield.questions.coverage import Coverage, coverage
from farfield.tables import Partition, Qrels, Queries, Run

__all__ = ["RunDirectory", "ShiftRuns"]


@dataclass(frozen=True, eq=False)
class ShiftRuns:
    """One shift of an experiment: its folds, and a run of every system for each of them.

    ``listed`` has (system, fold, seed, file); the fold is ``None`` for a system that is not
    trained. ``distances`` is where distances of queries from training are, if they were measured;
    ``bounded`` is a measure between 0 and 1 of which more is better, which coverage needs.
    """

    name: str
    folder: Path
    compared: Path
    distances: Path | None
    listed: tuple[tuple[str, str | None, int, Path], ...]
    bounded: Measure | None

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order of the manifest."""
        return tuple(dict.fromkeys(system for system, *_ in self.listed))

    @property
    def trained(self) -> tuple[str, ...]:
        """Those that have a model for each fold."""
        found = (system for system, fold, *_ in self.listed if fold is not None)
        return tuple(dict.fromkeys(found))

    @cached_property
    def partition(self) -> Partition:
        """The role of every query in every fold."""
        return read(self.folder / "partition.parquet", Partition)

    @cached_property
    def roles(self) -> pl.DataFrame:
        """Test queries: fold, query_id, role (near, far)."""
        return self.partition.frame.filter(pl.col("role") != "train")

    @cached_property
    def far(self) -> pl.DataFrame:
        """For each query that is ever far the fold in which it is: query_id, fold."""
        far = self.roles.filter(pl.col("role") == "far").unique("query_id", keep="first")
        return far.select("query_id", "fold").sort("query_id")

    @property
    def paired(self) -> bool:
        """Is a query near in one fold and far in another?"""
        near = self.roles.filter(pl.col("role") == "near")
        return len(near.join(self.far, on="query_id", how="semi")) > 0

    @cached_property
    def qrels(self) -> Qrels:
        """Judgements of the queries that are far in some fold."""
        judged = read_qrels(self.folder / "test.parquet").frame
        return Qrels.trusted(judged.join(self.far, on="query_id", how="semi"))

    @cached_property
    def train_qrels(self) -> Qrels:
        """Judgements of the training queries."""
        return read_qrels(self.folder / "train.parquet")

    @cached_property
    def values(self) -> pl.DataFrame:
        """Values of every query: system, measure, fold, seed, query_id, value."""
        return pl.read_parquet(self.compared / "values.parquet")

    def frame(self, name: str) -> pl.DataFrame:
        """Return a table that the shift left behind: sizes, dropped, overlap."""
        return pl.read_parquet(self.folder / f"{name}.parquet")

    def opened(
        self, seed: int | None = None
    ) -> Iterator[tuple[str, str | None, int, pl.DataFrame]]:
        """Yield (system, fold, seed, rows) of every run, one at a time."""
        for system, fold, number, path in self.listed:
            if seed is None or number == seed:
                yield system, fold, number, pl.read_parquet(path)

    def means(self, measure: str, role: str) -> pl.DataFrame:
        """Values of queries while they are near, or far: query_id, system, value.

        A query's value is the mean over the folds in which it has the role, and over seeds.
        """
        part = self.values.filter(pl.col("measure") == measure)
        told = part.join(self.roles.filter(pl.col("role") == role), on=["fold", "query_id"])
        found = told.group_by("query_id", "system").agg(pl.col("value").mean())
        order = pl.col("system").cast(pl.Enum(self.systems))
        return found.sort("query_id", order)

    @cached_property
    def far_runs(self) -> dict[str, Run]:
        """One run for each system: every query by the model that was not trained on its like."""
        first = min(seed for _, _, seed, _ in self.listed)
        parts: dict[str, list[pl.DataFrame]] = {system: [] for system in self.systems}
        for system, fold, _, rows in self.opened(first):
            wanted = self.far if fold is None else self.far.filter(pl.col("fold") == fold)
            kept = rows.join(wanted.select("query_id"), on="query_id", how="semi")
            parts[system].append(kept.select("query_id", "doc_id", "score"))
        # They were written in ranked order, so there is nothing to put in order again.
        return {
            system: Run(pl.concat(some), name=system, ties="file") for system, some in parts.items()
        }

    @cached_property
    def coverage(self) -> Coverage:
        """Who covers what, far from training."""
        assert self.bounded is not None
        return coverage(self.qrels, self.far_runs, self.bounded)


@dataclass(frozen=True, eq=False)
class RunDirectory:
    """What ``farfield run`` left: tables, and for each shift all that they were made from."""

    path: Path
    resolved: dict[str, Any]
    steps: tuple[Recorded, ...]
    texts: bool = True  # may documents be shown?

    @classmethod
    def open(cls, path: PathLike, *, texts: bool = True) -> RunDirectory:
        """Open a directory whose experiment is finished."""
        place = Path(path)
        resolved = read_resolved(place)
        found = cls(place, resolved, tuple(read_steps(place)), texts)
        unfinished = [step.label for step in found.steps if not found._done(step)]
        if unfinished or not found.shifts:
            raise FileError(
                place,
                f"{len(unfinished)} of {len(found.steps)} steps are not finished"
                + (f", the first is: {unfinished[0]}" if unfinished else "")
                + ". Run the experiment again with this directory; it continues.",
            )
        return found

    @cached_property
    def shifts(self) -> tuple[ShiftRuns, ...]:
        """The shifts, in the order of the manifest."""
        by_folder = {step.folder: step for step in self.steps}
        found = []
        for step in self.steps:
            if step.kind != "nearfar":
                continue
            shift = by_folder[step.needs["shift"]]
            runs = tuple(
                (system, fold, seed, self._folder(step.needs[f"run {number}"]) / "run.parquet")
                for number, (system, fold, seed) in enumerate(step.spec["runs"])
            )
            places = self._folder(shift.folder), self._folder(step.folder)
            measured = self._folder(step.needs["distance"]) if "distance" in step.needs else None
            found.append(ShiftRuns(shift.spec["shift"], *places, measured, runs, self.bounded))
        return tuple(found)

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables of all shifts, each with a column ``shift``."""
        folder = self.path / "tables"
        return {path.stem: pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}

    @cached_property
    def collection(self) -> Collection:
        """The collection, as it was copied into the directory."""
        return open_collection(self._collection)

    @cached_property
    def queries(self) -> Queries:
        """All queries."""
        return self.collection.queries

    @cached_property
    def audit(self) -> Audit:
        """What the test queries share with the training queries; all shifts have the same."""
        shift = self.shifts[0]
        return audit(
            train_queries=self.queries,
            test_queries=self.queries,
            train_qrels=shift.train_qrels,
            test_qrels=read_qrels(shift.folder / "test.parquet"),
        )

    @property
    def measures(self) -> list[Measure]:
        """The measures; the first is the one that the report is about."""
        return [measures.parse(spec) for spec in self.resolved["measures"]]

    @property
    def systems(self) -> dict[str, str]:
        """Systems and fusions, each with what it is."""
        found = {
            name: given if isinstance(given, str) else f"{given['recipe']} on {given['base']}"
            for name, given in self.resolved["systems"].items()
        }
        fused = self.resolved["fusions"].items()
        return found | {name: f"{f['fusion']} of {', '.join(f['of'])}" for name, f in fused}

    @property
    def bounded(self) -> Measure | None:
        """The first measure between 0 and 1 of which more is better."""
        fit = (m for m in self.measures if m.bounded and m.higher_is_better)
        return next(fit, None)

    def documents(self, ids: pl.Series) -> pl.DataFrame:
        """Return doc_id and text of some documents; without texts if they are not to be shown."""
        known = pl.scan_parquet(self._collection / "corpus.parquet")
        parts = [c for c in ("title", "text") if c in known.collect_schema()]
        text = pl.concat_str(parts, separator=" — ", ignore_nulls=True).str.strip_prefix(" — ")
        found = known.filter(pl.col("doc_id").is_in(ids.implode())).select("doc_id", text=text)
        none = pl.lit(None, pl.String).alias("text")
        return (found if self.texts else found.with_columns(none)).collect()

    def records(self) -> pl.DataFrame:
        """What every step took: step, seconds, MB of disk, MB of memory, folder."""
        rows = []
        for step in self.steps:
            done = json.loads((self._folder(step.folder) / "done.json").read_text())
            row = {"step": step.label, "seconds": done["seconds"], "MB": done["bytes"] / 1e6}
            row |= {"peak_memory_MB": done.get("peak_memory_mb"), "folder": step.folder}
            rows.append(row)
        return pl.DataFrame(rows)

    @cached_property
    def _collection(self) -> Path:
        (step,) = (step for step in self.steps if step.kind == "collection")
        return self._folder(step.folder)

    def _folder(self, name: str) -> Path:
        return self.path / "steps" / name

    def _done(self, step: Recorded) -> bool:
        return (self._folder(step.folder) / "done.json").exists()
