"""A per-query table, checked and turned into an array of systems, measures and queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError, TableError, did_you_mean
from farfield.stats.checks import Bools, Floats, Integers

if TYPE_CHECKING:
    import polars as pl

_COLUMNS = ("query_id", "system", "measure", "value")
_TABLE = "per-query table"


class HasFrame(Protocol):
    """A table that holds its rows in ``frame``."""

    @property
    def frame(self) -> pl.DataFrame:
        """The rows: query_id, system, measure, value."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Pivot:
    """A per-query table as one array; systems and measures as they appear, queries sorted.

    Sorting the queries makes every number independent of the order of the rows.
    """

    systems: list[str]
    measures: list[str]
    queries: pl.Series
    values: Floats  # (systems, measures, queries), 0 where there is none
    present: Bools  # the same shape

    def baseline(self, name: str) -> int:
        """Return the number of a system that has the very queries of all others."""
        if name not in self.systems:
            raise InputError(
                f"the baseline {name!r} is not among the systems {', '.join(self.systems)}. Name "
                f"one of them.{did_you_mean(name, self.systems)}"
            )
        if len(self.systems) == 1:
            raise InputError(
                f"the table holds no system but the baseline {name!r}, and nothing to compare it "
                "with. Add the rows of another system."
            )
        base = self.systems.index(name)
        unequal = self.present != self.present[base]
        if unequal.any():
            system, measure, query = np.argwhere(unequal)[0].tolist()
            other = self.systems[system]
            has, lacks = (other, name) if self.present[system, measure, query] else (name, other)
            raise InputError(
                f"system {lacks!r} has no {self.measures[measure]!r} for query "
                f"{self.queries[query]!r}, which {has!r} has; "
                f"{int(unequal[system, measure].sum())} query(ies) differ. Systems are compared "
                "on the same queries: score the missing ones (an empty ranking scores 0), or "
                "leave them out of both."
            )
        return base

    def groups(self, cells: Bools) -> Iterator[Group]:
        """Group those of the (systems, measures) cells that have the very same queries."""
        groups: dict[bytes, list[list[int]]] = {}
        for cell in np.argwhere(cells).tolist():
            groups.setdefault(self.present[tuple(cell)].tobytes(), []).append(cell)
        for group in groups.values():
            system, measure = np.array(group).T
            yield Group(table=self, system=system, measure=measure)

    def named(self, parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Put the frames of groups together, in the order of the table."""
        import polars as pl

        frame = pl.concat(parts).sort("system", "measure")
        return frame.with_columns(
            system=pl.Series(self.systems, dtype=pl.String).gather(frame["system"]),
            measure=pl.Series(self.measures, dtype=pl.String).gather(frame["measure"]),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Cells, each a measure of a system, that have the same queries and share their resamples."""

    table: Pivot
    system: Integers
    measure: Integers

    @property
    def queries(self) -> Bools:
        """Which queries the cells have."""
        mask: Bools = self.table.present[self.system[0], self.measure[0]]
        return mask

    def values(self, of: int | None = None) -> Floats:
        """Return (cells, queries) values; ``of`` takes those of that one system instead."""
        rows = self.table.values[self.system if of is None else of, self.measure]
        return np.compress(self.queries, rows, axis=1)

    def labels(self, clusters: Mapping[str, object] | None) -> npt.NDArray[np.object_] | None:
        """Return the cluster of each query."""
        if clusters is None:
            return None
        names = self.table.queries.filter(self.queries).to_list()
        labels = np.empty(len(names), dtype=object)
        for i, query in enumerate(names):
            if query not in clusters:
                raise InputError(
                    f"clusters has no label for query {query!r}, where one for every query is "
                    "expected. Give a query that belongs to no cluster a label of its own."
                )
            labels[i] = clusters[query]
        return labels

    def frame(self, columns: Mapping[str, Any]) -> pl.DataFrame:
        """Return one row for each cell, which is given by its numbers."""
        import polars as pl

        return pl.DataFrame({"system": self.system, "measure": self.measure, **columns})


def pivot(per_query: pl.DataFrame | HasFrame) -> Pivot:
    """Check a per-query table, and turn it into an array."""
    frame = _frame(per_query)
    values = _values(frame)
    systems, system_codes = _codes(frame, "system")
    measures, measure_codes = _codes(frame, "measure")
    queries, query_codes = _codes(frame, "query_id", ordered=True)
    shape = len(systems), len(measures), len(queries)
    places = np.ravel_multi_index((system_codes, measure_codes, query_codes), shape)
    table, present = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    table.ravel()[places] = values
    present.ravel()[places] = True
    if np.count_nonzero(present) != len(places):
        seen: dict[int, int] = {}
        for row, place in enumerate(places.tolist()):
            first = seen.setdefault(place, row)
            if first != row:
                raise TableError(
                    f"a second value for {_cell(frame, row)}, where one is expected. Remove one "
                    "of the two rows.",
                    row=row,
                    first_row=first,
                    table=_TABLE,
                )
    return Pivot(
        systems=systems.to_list(),
        measures=measures.to_list(),
        queries=queries,
        values=table,
        present=present,
    )


def _frame(per_query: pl.DataFrame | HasFrame) -> pl.DataFrame:
    import polars as pl

    frame = per_query if isinstance(per_query, pl.DataFrame) else getattr(per_query, "frame", None)
    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"the per-query values are a {type(per_query).__name__}, where a polars DataFrame or "
            "a table of farfield is expected. Collect a LazyFrame first."
        )
    for column in _COLUMNS:
        if column not in frame.columns:
            raise TableError(
                f"there is no column {column!r} among {', '.join(frame.columns) or 'none'}; "
                f"{', '.join(_COLUMNS)} are expected. Rename the columns."
                f"{did_you_mean(column, frame.columns)}",
                table=_TABLE,
            )
    if frame.height == 0:
        raise TableError(
            "there are no rows, and a mean of nothing does not exist. Give at least one row.",
            table=_TABLE,
        )
    return frame


def _values(frame: pl.DataFrame) -> Floats:
    import polars as pl

    column = frame.get_column("value")
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise TableError(
            f"the column 'value' holds {column.dtype}, where numbers are expected. Cast it.",
            table=_TABLE,
        )
    values: Floats = column.cast(pl.Float64).fill_null(math.nan).to_numpy()
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise TableError(
            f"the value of {_cell(frame, row)} is {column[row]}, where a finite number is "
            "expected. Score the query or leave it out of every system.",
            row=row,
            table=_TABLE,
        )
    return values


def _cell(frame: pl.DataFrame, row: int) -> str:
    query, system, measure = (frame.get_column(name)[row] for name in _COLUMNS[:3])
    return f"query {query!r}, system {system!r}, measure {measure!r}"


def _codes(frame: pl.DataFrame, name: str, *, ordered: bool = False) -> tuple[pl.Series, Integers]:
    """Return the distinct labels of a column, and the number of the label of every row."""
    import polars as pl

    column = frame.get_column(name).cast(pl.String)
    if column.null_count():
        raise TableError(
            f"{name} is missing, where a name is expected. Name it or remove the row.",
            row=column.is_null().arg_max(),
            table=_TABLE,
        )
    # Most tables come in blocks: a name stays for many rows, and the same queries come over and
    # over. To see that takes a fraction of the time of looking up every row.
    changes = np.flatnonzero((column.slice(1) != column.head(-1)).to_numpy()) + 1
    starts = np.concatenate([[0], changes])
    heads = column.gather(starts)
    period = _period(heads)
    once = heads.head(period)
    labels = once.unique().sort() if ordered else once.unique(maintain_order=True)
    # An Enum is a dictionary encoding in an order of our choosing.
    codes = once.cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.intp)
    lengths = np.diff(starts, append=len(column))
    return labels, np.repeat(np.resize(codes, len(heads)), lengths)


def _period(labels: pl.Series) -> int:
    """Return after how many labels they start over, always in the same order."""
    again = (labels == labels[0]).arg_true()
    period = int(again[1]) if len(again) > 1 else len(labels)
    repeats = (labels.slice(period) == labels.head(len(labels) - period)).all()
    return period if repeats else len(labels)
