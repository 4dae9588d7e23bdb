"""Every query: pick one, see where each system ranks its relevant documents."""

from __future__ import annotations

import polars as pl

from farfield.reports.blocks import Block, Explorer, Table, Views, Words
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.rundir import RunDirectory, ShiftRuns

__all__ = ["PART"]

_READING = (
    "Pick a query to see its relevant documents and the rank that every system gives them, near "
    "(by models trained on its like; the median where there are several) and far. A rank that is "
    "absent means that the document is not among the results."
)
_NOWHERE = float("inf")
_QUERY = 1000  # letters of a query
_LETTERS = (2000, 1000, 500, 250)  # of a document, fewer where there are many of them
_MOST = 5_000_000  # letters of all documents together


def _of_run(run: RunDirectory) -> list[Section]:
    choices: dict[str, list[Block]] = {}
    for shift in run.shifts:
        choices[shift.name] = [
            Words(f"Within the first {run.resolved['depth']:,} results of every system."),
            Explorer(
                f"Queries of {shift.name}",
                _queries(run, shift),
                [_ranks(shift), _systems(run, shift), _documents(run, shift)],
            ),
        ]
    title = "Query by query"
    return [Section("queries", title, reading=_READING, blocks=[Views("Shift", choices)])]


def _queries(run: RunDirectory, shift: ShiftRuns) -> Table:
    """The queries, with the value of every system while they are far."""
    measure = str(run.measures[0])
    texts = run.queries.frame.select("query_id", pl.col("text").str.head(_QUERY))
    # A system may be called like a column, so its own has a longer name.
    named = {system: f"{system} far" for system in shift.systems}
    values = (
        shift.means(measure, "far")
        .with_columns(pl.col("system").replace_strict(named))
        .pivot("system", index="query_id", values="value")
    )
    frame = (
        shift.far.rename({"fold": "group"})
        .join(texts, on="query_id", how="left", maintain_order="left")
        .join(values, on="query_id", how="left", maintain_order="left")
        .select("query_id", "text", "group", *named.values())
    )
    labels = {column: system for system, column in named.items()}
    labels |= {"query_id": "query", "group": "far in fold"}
    return Table("queries", f"Queries with {measure} of every system, far", frame, labels=labels)


def _ranks(shift: ShiftRuns) -> Table:
    """The rank of every relevant document, by system, near and far."""
    relevant = shift.qrels.relevant().frame.select("query_id", "doc_id", "relevance")
    parts = []
    for system, fold, _, rows in shift.opened():
        ranks = rows.select("query_id", "doc_id", pl.col("rank").cast(pl.Float64))
        found = relevant.join(ranks, on=["query_id", "doc_id"], how="left")
        name, of = pl.lit(system).alias("system"), pl.lit(fold, pl.String).alias("fold")
        if fold is None:  # near and far alike
            both = (pl.lit(role).alias("role") for role in ("near", "far"))
            parts += [found.with_columns(name, of, role) for role in both]
        else:
            told = found.with_columns(name, of)
            parts.append(told.join(shift.roles, on=["fold", "query_id"], how="inner"))
    # A model that does not find a document at all ranks it behind those that do.
    middle = pl.col("rank").fill_null(_NOWHERE).quantile(0.5, "lower")
    keys = ["query_id", "doc_id", "relevance", "system"]
    found = (
        pl.concat(part.select(*keys, "role", "rank") for part in parts)
        .group_by(*keys, "role")
        .agg(rank=pl.when(middle < _NOWHERE).then(middle))
        .pivot("role", index=keys, values="rank")
    )
    order = pl.Enum(list(shift.systems))
    frame = found.sort("query_id", "doc_id", pl.col("system").cast(order)).select(
        "query_id",
        "doc_id",
        "relevance",
        "system",
        *(role for role in ("near", "far") if role in found.columns),
    )
    return Table(
        "ranks",
        "Ranks of its relevant documents",
        frame,
        shown=[name for name in frame.columns if name != "query_id"],
        labels={"doc_id": "document", "near": "rank near", "far": "rank far"},
        kinds={"near": "rank", "far": "rank"},
    )


def _systems(run: RunDirectory, shift: ShiftRuns) -> Table:
    """The value of every system on the query, near and far."""
    measure = str(run.measures[0])
    near, far = (shift.means(measure, side).rename({"value": side}) for side in ("near", "far"))
    frame = far.join(near, on=["query_id", "system"], how="left", maintain_order="left")
    frame = frame.select("query_id", "system", "near", "far")
    labels = {"near": f"{measure} near", "far": f"{measure} far"}
    shown = ["system", "near", "far"]
    return Table("values", "What every system scores", frame, shown=shown, labels=labels)


def _documents(run: RunDirectory, shift: ShiftRuns) -> Table:
    """The relevant documents with their texts, cut so that the page stays small."""
    relevant = shift.qrels.relevant().frame.select("query_id", "doc_id", "relevance")
    documents = run.documents(relevant["doc_id"].unique())
    lengths = documents["text"].str.len_chars().fill_null(0)
    fit = (n for n in _LETTERS if int(lengths.clip(0, n).sum()) <= _MOST)
    cut = next(fit, 0)
    whole = pl.col("text").str.len_chars() <= cut
    text = pl.when(whole).then("text").otherwise(pl.col("text").str.head(cut) + " […]")
    shown = documents.with_columns(text=text)
    frame = relevant.join(shown, on="doc_id", how="left", maintain_order="left")
    return Table(
        "documents",
        "Its relevant documents",
        frame.sort("query_id", "relevance", "doc_id", descending=[False, True, False]),
        shown=["doc_id", "relevance", "text"] if run.texts else ["doc_id", "relevance"],
        labels={"doc_id": "document"},
    )


PART = Part(order=95, of_run=_of_run)
