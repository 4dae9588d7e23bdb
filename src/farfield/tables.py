"""The seven tables everything is made of: thin, checked wrappers over polars frames.

A table is checked when it is made and trusted afterwards. Nothing is repaired: a null, a NaN or
a duplicate key raises :class:`~farfield.errors.TableError` with the row it was found in.
Frames are never changed in place, neither those passed in nor those held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import FarfieldWarning, TableError, did_you_mean
from farfield.fingerprint import fingerprint_of
from farfield.ranking import Ranked, check_ties, rank_rows

__all__ = [
    "Allocation",
    "Corpus",
    "Partition",
    "PerQuery",
    "Qrels",
    "Queries",
    "Run",
    "Table",
]

ROLES = ("train", "near", "far")


class Table:
    """A checked frame. Subclasses say which columns they need and which of them are the key."""

    columns: ClassVar[dict[str, Any]]
    key: ClassVar[tuple[str, ...]]
    open: ClassVar[bool] = False  # may other columns ride along?
    _coded: ClassVar[tuple[str, ...]] = ()  # columns that may stay in integer codes

    frame: pl.DataFrame

    def __init__(self, data: Any) -> None:
        self.frame = self._check(self._to_frame(data))

    # -- making -----------------------------------------------------------------------------

    @classmethod
    def trusted(cls, frame: pl.DataFrame) -> Self:
        """Wrap a frame that is known to keep the rules: made here, or rows of a checked table."""
        table = object.__new__(cls)
        table.frame = frame
        return table

    @classmethod
    def _to_frame(cls, data: Any) -> pl.DataFrame:
        if isinstance(data, Table):
            return data.frame
        if isinstance(data, pl.DataFrame):
            return data
        if isinstance(data, pl.LazyFrame):
            return data.collect()
        try:
            return pl.DataFrame(data, infer_schema_length=None)
        except Exception as error:  # polars raises many kinds for data it cannot arrange
            raise TableError(
                f"cannot be made from {type(data).__name__}: {error}. Pass a polars frame, a dict "
                f"of columns or rows with {', '.join(cls.columns)}.",
                table=cls.__name__,
            ) from error

    @classmethod
    def _check(cls, frame: pl.DataFrame) -> pl.DataFrame:
        """Select and type the columns, and make sure that the rows keep the table's rules."""
        frame = cls._conform(frame)
        cls._check_values(frame)
        duplicate = _first_duplicate(frame, cls.key)
        if duplicate is not None:
            earlier, later = duplicate
            values = ", ".join(f"{name} {frame[name][later]!r}" for name in cls.key)
            raise TableError(
                f"{values} appears more than once. Keep one of the rows.",
                row=later,
                first_row=earlier,
                table=cls.__name__,
            )
        return frame

    @classmethod
    def _conform(cls, frame: pl.DataFrame) -> pl.DataFrame:
        for name in cls.columns:
            if name not in frame.columns:
                raise TableError(
                    f"no column {name!r}.{did_you_mean(name, frame.columns)} "
                    f"Found {', '.join(frame.columns) or 'no columns'}; "
                    f"expected {', '.join(cls.columns)}.",
                    table=cls.__name__,
                )
        unknown = [name for name in frame.columns if name not in cls.columns]
        if unknown and not cls.open:
            raise TableError(
                f"unknown column {unknown[0]!r}. Expected only {', '.join(cls.columns)}; "
                "drop the others.",
                table=cls.__name__,
            )
        frame = frame.select(*cls.columns, *unknown)
        return frame.with_columns(
            _typed(frame[name], dtype, cls.__name__)
            for name, dtype in cls.columns.items()
            if not (name in cls._coded and frame[name].dtype == pl.Categorical)
        )

    @classmethod
    def _check_values(cls, frame: pl.DataFrame) -> None:
        for name, dtype in cls.columns.items():
            column = frame[name]
            if column.null_count():
                cls._fail(f"{name} is missing. Every row needs one.", column.is_null())
            if dtype == pl.Float64 and column.is_nan().any():
                cls._fail(
                    f"{name} is NaN (not a number). Find out why the system produced it, "
                    "and drop or rescore the row.",
                    column.is_nan(),
                )
            if name in cls.key and dtype == pl.String and (column == "").any():
                cls._fail(f"{name} is empty. Ids need at least one character.", column == "")

    @classmethod
    def _fail(cls, message: str, bad: pl.Series) -> None:
        raise TableError(message, row=_first_true(bad), table=cls.__name__)

    # -- reading ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} rows, {self.fingerprint[:12]}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or type(self) is not type(other):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits that name the content: the same rows in any order give the same."""
        return fingerprint_of(type(self).__name__, self.frame.sort(self.key))


class Corpus(Table):
    """Documents: doc_id and text; a title and any other columns ride along."""

    columns: ClassVar = {"doc_id": pl.String, "text": pl.String}
    key = ("doc_id",)
    open = True


class Queries(Table):
    """Queries: query_id and text; attributes (topic, date, source …) ride along."""

    columns: ClassVar = {"query_id": pl.String, "text": pl.String}
    key = ("query_id",)
    open = True

    def select(self, query_ids: Iterable[str]) -> Queries:
        """Return the queries with these ids, in the order they have here."""
        wanted = pl.DataFrame({"query_id": sorted(set(query_ids))}, schema={"query_id": pl.String})
        return Queries.trusted(
            self.frame.join(wanted, on="query_id", how="semi", maintain_order="left")
        )


class Qrels(Table):
    """Judgements: how relevant doc_id is to query_id; 0 or less means not relevant."""

    columns: ClassVar = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    key = ("query_id", "doc_id")

    @classmethod
    def _to_frame(cls, data: Any) -> pl.DataFrame:
        return _from_nested(data, cls) if _is_nested(data) else super()._to_frame(data)

    @classmethod
    def _check(cls, frame: pl.DataFrame) -> pl.DataFrame:
        frame = cls._conform(frame)
        cls._check_values(frame)
        # Published files repeat a judgement now and then (MS MARCO's training set does so ten
        # times). The same judgement twice says nothing new; two different ones are a fault.
        if _first_duplicate(frame, cls.key) is None:
            return frame
        unique = frame.unique(maintain_order=True)
        conflict = _first_duplicate(unique, cls.key)
        if conflict is not None:
            query, doc, relevance = unique.row(conflict[1])
            same = (frame["query_id"] == query) & (frame["doc_id"] == doc)
            earlier = _first_true(same)
            later = _first_true(same & (frame["relevance"] == relevance))
            raise TableError(
                f"document {doc!r} is judged {relevance} for query {query!r}, but "
                f"{frame['relevance'][earlier]} before. Keep one of the two judgements.",
                row=later,
                first_row=earlier,
                table=cls.__name__,
            )
        repeated = len(frame) - len(unique)
        warn(
            f"{repeated} judgement{'s are' if repeated > 1 else ' is'} repeated with the same "
            "relevance; each is counted once.",
            FarfieldWarning,
            stacklevel=5,
        )
        return unique

    @cached_property
    def query_ids(self) -> pl.Series:
        """The judged queries, sorted by the bytes of their ids."""
        return self.frame["query_id"].unique().sort()

    def relevant(self, threshold: int = 1) -> Qrels:
        """Return the judgements with at least this relevance."""
        return Qrels.trusted(self.frame.filter(pl.col("relevance") >= threshold))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return ``{query_id: {doc_id: relevance}}``, as pytrec_eval and ranx take it."""
        return _to_nested(self.frame)


class Run(Table):
    """Ranked results: query_id, doc_id, score, rank, always in ranked order.

    Queries keep the order in which they were given, documents are ranked within them. ``ties``
    says how: ``"trec"`` by score, then document id descending by bytes, as trec_eval does;
    ``"trec9"`` compares scores in single precision, as trec_eval 9 does; ``"file"`` keeps the
    order of the rows, as the official MS MARCO measure does. A given rank is only used where
    there is no score (the score is then minus the rank).

    Inside, rows stay as they were given; only what moves in the ranking is remembered. The
    ranked columns (``doc_ids``, ``scores``, ``frame``) are made when asked for, and measures need
    none of them.
    """

    columns: ClassVar = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    key = ("query_id", "doc_id")
    _coded = ("query_id",)

    name: str
    _ranked: Ranked

    def __init__(self, data: Any, *, name: str = "run", ties: str = "trec") -> None:
        rule = check_ties(ties)
        frame = self._to_frame(data)
        if "score" not in frame.columns and "rank" in frame.columns:
            frame = frame.with_columns(score=-_typed(frame["rank"], pl.Float64, "Run"))
        if "rank" in frame.columns:
            frame = frame.drop("rank")
        frame = self._conform(frame)
        self._check_values(frame)
        self.name = name
        self._given_docs, self._given_scores = frame["doc_id"], frame["score"]
        self._ranked = rank_rows(frame["query_id"], self._given_docs, self._given_scores, rule)
        duplicate = _first_duplicate(frame, self.key) if self._ranked.duplicates else None
        if duplicate is not None:
            earlier, later = duplicate
            raise TableError(
                f"document {frame['doc_id'][later]!r} appears twice for query "
                f"{frame['query_id'][later]!r}. Keep one of the two rows.",
                row=later,
                first_row=earlier,
                table="Run",
            )

    @classmethod
    def _to_frame(cls, data: Any) -> pl.DataFrame:
        return _from_nested(data, cls) if _is_nested(data) else super()._to_frame(data)

    def __len__(self) -> int:
        return len(self._given_docs)

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {len(self):,} rows, {len(self.query_ids):,} queries>"

    @property
    def query_ids(self) -> pl.Series:
        """The queries, each once, in the order they were given."""
        return self._ranked.query_ids

    @property
    def bounds(self) -> npt.NDArray[np.int64]:
        """Where each query starts among the ranked rows; last, the number of rows."""
        return self._ranked.bounds

    @property
    def tied(self) -> int:
        """How many neighbours in the rankings have equal scores."""
        return self._ranked.tied

    @cached_property
    def doc_ids(self) -> pl.Series:
        """The documents, ranked."""
        ranked, docs = self._ranked, self._given_docs
        return docs if ranked.in_order else docs.gather(ranked.order())

    @cached_property
    def scores(self) -> npt.NDArray[np.float64]:
        """The scores, in the order of :attr:`doc_ids`."""
        scores = self._given_scores.to_numpy()
        return scores if self._ranked.in_order else scores[self._ranked.order()]

    @cached_property
    def frame(self) -> pl.DataFrame:  # type: ignore[override]  # made on demand here
        """The run as a frame: query_id, doc_id, score, rank."""
        lengths = np.diff(self.bounds)
        query = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
        rank = np.arange(1, len(self) + 1)
        rank -= np.repeat(self.bounds[:-1], lengths)
        return pl.DataFrame(
            {
                "query_id": self.query_ids.gather(query),
                "doc_id": self.doc_ids,
                "score": self._given_scores if self._ranked.in_order else self.scores,
                "rank": rank,
            }
        )

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits that name the content, whatever the order of the queries."""
        return fingerprint_of("Run", self.frame.sort("query_id", maintain_order=True))

    def as_given(self) -> tuple[pl.Series, pl.Series, npt.NDArray[Any], npt.NDArray[Any]] | None:
        """Documents and scores as given, and which rows of them ranking puts at which places.

        Nothing is copied; all other rows are at their places. ``None`` if the rows of a query were
        not given together.
        """
        ranked = self._ranked
        if ranked.grouping is not None:
            return None
        return self._given_docs, self._given_scores, ranked.rows, ranked.places

    def find(self, doc_ids: pl.Series) -> tuple[npt.NDArray[np.int64], pl.Series]:
        """Where any of these documents is ranked: places among the ranked rows, and the ids."""
        given = self._given_docs.alias("doc_id").to_frame().lazy().with_row_index("row")
        wanted = doc_ids.unique().to_frame("doc_id").lazy()
        found = given.join(wanted, on="doc_id", how="semi").collect(engine="streaming")
        places = self._ranked.places_of(found["row"].to_numpy().astype(np.int64))
        return places, found["doc_id"]

    def named(self, name: str) -> Run:
        """Return the same run under another name."""
        other = object.__new__(Run)
        other.__dict__.update(self.__dict__, name=name)
        return other

    def head(self, k: int) -> Run:
        """Return the first ``k`` documents of every query."""
        # The order is settled, whatever rule settled it: "file" keeps it.
        return Run(self.frame.filter(pl.col("rank") <= k), name=self.name, ties="file")

    def without_self(self) -> Run:
        """Return the run without documents that have the id of their query, as BEIR wants it."""
        kept = self.frame.filter(pl.col("query_id") != pl.col("doc_id"))
        return Run(kept, name=self.name, ties="file")

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{query_id: {doc_id: score}}``, as pytrec_eval and ranx take it."""
        return _to_nested(self.frame.drop("rank"))


class PerQuery(Table):
    """Values of measures: one for every query, system and measure."""

    columns: ClassVar = {
        "query_id": pl.String,
        "system": pl.String,
        "measure": pl.String,
        "value": pl.Float64,
    }
    key = ("query_id", "system", "measure")


class Partition(Table):
    """What a shift makes of a collection: the role of a query (train, near, far) in a fold."""

    columns: ClassVar = {"fold": pl.String, "query_id": pl.String, "role": pl.String}
    key = ("fold", "query_id")

    @classmethod
    def _check_values(cls, frame: pl.DataFrame) -> None:
        super()._check_values(frame)
        bad = ~frame["role"].is_in(ROLES)
        if bad.any():
            given = frame["role"][_first_true(bad)]
            cls._fail(f"role {given!r} is not one of {', '.join(ROLES)}.", bad)


class Allocation(Table):
    """How many results (``budget``) each source gives to a query."""

    columns: ClassVar = {"query_id": pl.String, "source": pl.String, "budget": pl.Int64}
    key = ("query_id", "source")

    @classmethod
    def _check_values(cls, frame: pl.DataFrame) -> None:
        super()._check_values(frame)
        if (frame["budget"] < 0).any():
            cls._fail("budget is negative. It counts results.", frame["budget"] < 0)


# -- helpers ------------------------------------------------------------------------------------


def _first_true(flags: pl.Series) -> int:
    return int(flags.arg_true()[0])


def _typed(column: pl.Series, dtype: Any, table: str) -> pl.Series:
    """Cast without loss, or say which value does not fit."""
    if column.dtype == dtype:
        return column
    accepted = {
        # Whole numbers as ids are common in data frames and read back the same as text.
        pl.String: column.dtype.is_integer() or column.dtype in (pl.Categorical, pl.Enum, pl.Null),
        pl.Float64: column.dtype.is_numeric() or column.dtype == pl.Null,
        pl.Int64: column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null),
    }[dtype]
    if not accepted:
        raise TableError(
            f"column {column.name!r} holds {column.dtype}, expected {dtype}. Convert it first.",
            table=table,
        )
    fitting = column.cast(dtype, strict=False)
    lost = fitting.is_null() & column.is_not_null()
    what = f"does not fit {dtype}"
    if dtype == pl.Int64 and column.dtype.is_float():
        lost |= (column != column.floor()).fill_null(value=False)
        what = "is not a whole number that fits 64 bits"
    if lost.any():
        row = _first_true(lost)
        raise TableError(f"{column.name} {column[row]} {what}.", row=row, table=table)
    return fitting


def _first_duplicate(frame: pl.DataFrame, key: tuple[str, ...]) -> tuple[int, int] | None:
    """Rows (earlier, later) of the first key that is given again, or ``None``."""
    keys = frame.select(key)
    if keys.n_unique() == len(keys):
        return None
    again = ~keys.select(pl.struct(key).is_first_distinct().alias("first"))["first"]
    later = _first_true(again)
    same = keys.select(pl.all_horizontal(pl.col(k) == keys[k][later] for k in key)).to_series()
    return _first_true(same), later


def _is_nested(data: Any) -> bool:
    return isinstance(data, Mapping) and all(isinstance(v, Mapping) for v in data.values())


def _from_nested(data: Mapping[str, Mapping[str, Any]], table: type[Table]) -> pl.DataFrame:
    """Read ``{query: {document: value}}``."""
    query, doc, value = table.columns
    values = [v for documents in data.values() for v in documents.values()]
    columns = {
        query: [q for q, documents in data.items() for _ in documents],
        doc: [d for documents in data.values() for d in documents],
    }
    try:
        # Whole numbers among others are common: JavaScript writes 1.0 as 1.
        mixed = any(isinstance(v, float) for v in values)
        numbers = pl.Series(value, values, dtype=pl.Float64 if mixed else None)
        frame = pl.DataFrame(columns).with_columns(numbers)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise TableError(
            f"the dictionary mixes kinds of values: {error}. Expected "
            f"{{{query}: {{{doc}: {value}}}}} with ids as strings and numbers as values.",
            table=table.__name__,
        ) from error
    return frame if len(frame) else pl.DataFrame(schema=table.columns)


def _to_nested(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for query, doc, value in frame.iter_rows():
        nested.setdefault(query, {})[doc] = value
    return nested
