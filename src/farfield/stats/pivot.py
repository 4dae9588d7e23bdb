"""A per-query table, checked and turned into an array of systems, measures and queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError, TableError, did_you_mean
from farfield.stats.checks import Bools, Floats, Integers

if TYPE_CHECKING:
    import polars as pl

Cells: TypeAlias = tuple[Integers, Integers]  # systems and measures, by number

_COLUMNS = ("query_id", "system", "measure", "value")
_fault = partial(TableError, table="per-query table")


class HasFrame(Protocol):
    """A table that holds its rows in ``frame``."""

    @property
    def frame(self) -> pl.DataFrame:
        """The rows: query_id, system, measure, value."""
        ...


@dataclass(frozen=True, slots=True)
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

    def groups(self, without: int | None = None) -> Iterator[tuple[Cells, Bools]]:
        """Group the cells that have the very same queries; leave out one system's."""
        groups: dict[bytes, list[list[int]]] = {}
        for system, measure in np.argwhere(self.present.any(axis=2)).tolist():
            if system != without:
                queries = self.present[system, measure].tobytes()
                groups.setdefault(queries, []).append([system, measure])
        for cells in groups.values():
            systems, measures = np.array(cells).T
            yield (systems, measures), self.present[systems[0], measures[0]]

    def labels(
        self, clusters: Mapping[str, object] | None, queries: Bools
    ) -> npt.NDArray[np.object_] | None:
        """Return the cluster of each of these queries."""
        if clusters is None:
            return None
        names = self.queries.filter(queries).to_list()
        labels = np.empty(len(names), dtype=object)
        for i, query in enumerate(names):
            if query not in clusters:
                raise InputError(
                    f"clusters has no label for query {query!r}, where one for every query is "
                    "expected. Give a query that belongs to no cluster a label of its own."
                )
            labels[i] = clusters[query]
        return labels

    def named(self, parts: Iterable[tuple[Cells, dict[str, Any]]]) -> pl.DataFrame:
        """Make a frame of columns for groups of cells, in the order of the table."""
        import polars as pl

        frame = pl.concat(
            [pl.DataFrame({"system": s, "measure": m, **columns}) for (s, m), columns in parts]
        ).sort("system", "measure")
        return frame.with_columns(
            system=pl.Series(self.systems).gather(frame["system"]),
            measure=pl.Series(self.measures).gather(frame["measure"]),
        )


def pivot(per_query: pl.DataFrame | HasFrame) -> Pivot:
    """Check a per-query table, and turn it into an array."""
    frame = _checked(per_query)
    return _from_blocks(frame) or _from_rows(frame)


def _from_blocks(frame: pl.DataFrame) -> Pivot | None:
    """Reshape a table in blocks: system by system, measure by measure, the same sorted queries.

    That is how most tables come, and to see it is many times faster than to look up every row.
    """
    query, system, measure, value = frame.select(_COLUMNS)
    falls = (query.slice(1) <= query.head(-1)).arg_true()
    n = int(falls[0]) + 1 if len(falls) else len(query)
    if len(query) % n or (query.slice(n) != query.head(-n)).any():
        return None
    ends = (system.slice(1) != system.head(-1)) | (measure.slice(1) != measure.head(-1))
    heads = system.gather_every(n), measure.gather_every(n)
    systems, measures = (names.unique(maintain_order=True).to_list() for names in heads)
    if (
        ((ends.arg_true() + 1) % n != 0).any()
        or len(systems) * len(measures) * n != len(query)
        or list(zip(*heads, strict=True)) != list(product(systems, measures))
    ):
        return None
    shape = len(systems), len(measures), n
    values = value.to_numpy().reshape(shape)
    return Pivot(systems, measures, query.head(n), values, np.ones(shape, dtype=np.bool_))


def _from_rows(frame: pl.DataFrame) -> Pivot:
    """Put every row of a table in its place, whatever their order."""
    import polars as pl

    systems, measures = (frame[x].unique(maintain_order=True) for x in ("system", "measure"))
    queries = frame["query_id"].unique().sort()
    # An Enum is a dictionary encoding in an order of our choosing.
    codes = [frame[x.name].cast(pl.Enum(x)).to_physical() for x in (systems, measures, queries)]
    shape = len(systems), len(measures), len(queries)
    places = np.ravel_multi_index(tuple(x.to_numpy().astype(np.intp) for x in codes), shape)
    values, present = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    values.ravel()[places] = frame["value"].to_numpy()
    present.ravel()[places] = True
    if np.count_nonzero(present) != len(places):
        _, first, which = np.unique(places, return_index=True, return_inverse=True)
        row = int(np.argmax(first[which] != np.arange(len(places))))
        raise _fault(
            f"a second value for {_cell(frame, row)}, where one is expected. Remove one of the "
            "two rows.",
            row=row,
            first_row=int(first[which[row]]),
        )
    return Pivot(systems.to_list(), measures.to_list(), queries, values, present)


def _checked(per_query: pl.DataFrame | HasFrame) -> pl.DataFrame:
    """Return the columns as texts and finite numbers, or say what is wrong with them."""
    import polars as pl

    frame = per_query if isinstance(per_query, pl.DataFrame) else getattr(per_query, "frame", None)
    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"the per-query values are a {type(per_query).__name__}, where a polars DataFrame or "
            "a table of farfield is expected. Collect a LazyFrame first."
        )
    for column in _COLUMNS:
        if column not in frame.columns:
            raise _fault(
                f"there is no column {column!r} among {', '.join(frame.columns) or 'none'}; "
                f"{', '.join(_COLUMNS)} are expected. Rename the columns."
                f"{did_you_mean(column, frame.columns)}"
            )
    if frame.height == 0:
        raise _fault(
            "there are no rows, and a mean of nothing does not exist. Give at least one row."
        )
    dtype = frame["value"].dtype
    if not (dtype.is_numeric() or dtype == pl.Boolean):
        raise _fault(f"the column 'value' holds {dtype}, where numbers are expected. Cast it.")
    values = frame["value"].cast(pl.Float64)
    bad = ~values.is_finite().fill_null(value=False)
    if bad.any():
        row = int(bad.arg_true()[0])
        raise _fault(
            f"the value of {_cell(frame, row)} is {frame['value'][row]}, where a finite number is "
            "expected. Score the query or leave it out of every system.",
            row=row,
        )
    names = [frame[name].cast(pl.String) for name in ("system", "measure", "query_id")]
    for name in names:
        if name.null_count():
            raise _fault(
                f"{name.name} is missing, where a name is expected. Name it or remove the row.",
                row=name.is_null().arg_max(),
            )
    return pl.DataFrame([*names, values])


def _cell(frame: pl.DataFrame, row: int) -> str:
    query, system, measure = (frame[name][row] for name in _COLUMNS[:3])
    return f"query {query!r}, system {system!r}, measure {measure!r}"
