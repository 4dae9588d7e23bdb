"""Several sources, one query: make a collection of tables of records, or of one with a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.collection import Card, Collection
from farfield.errors import InputError
from farfield.io import name_of, read_collection, write, write_collection
from farfield.io.files import PathLike
from farfield.questions._records import match_rows, read_tables, records_of
from farfield.questions._small_files import read_rows
from farfield.questions._sources import label_documents
from farfield.tables import Corpus, Partition, Qrels, Queries

__all__ = ["MultiSource", "by_source", "multi_source"]

TEST = "test"
_TRAIN = "train-"

_DROPPED = {"what": pl.String, "source": pl.String, "count": pl.Int64}


@dataclass(frozen=True, eq=False)
class MultiSource:
    """A collection whose documents come from several sources, and what was left out of it.

    Documents have a column ``source``; queries have ``source`` (where the query comes from) and
    ``item`` (queries about the same thing have the same). ``given`` counts the records, or
    documents, of each source before anything was left out; ``dropped`` says what was: what,
    source, count. ``matches`` are the matches given, and how many of them are used.
    """

    collection: Collection
    given: dict[str, int]
    dropped: pl.DataFrame
    matches: tuple[int, int] | None = None

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """Of each source: given, documents, repeated, queries, training.

        ``repeated`` documents have a text that another document of the source has as well: which
        of them is found is a matter of chance. ``queries`` are those of all splits but training.
        """
        corpus, queries = self.collection.corpus.frame, self.collection.queries.frame
        judged = {
            split: queries.join(qrels.frame, on="query_id", how="semi")
            for split, qrels in self.collection.qrels.items()
        }
        again = corpus.filter(pl.struct("source", "text").is_duplicated())
        counts = {
            "documents": [corpus],
            "repeated": [again],
            "queries": [part for split, part in judged.items() if not _is_training(split)],
            "training": [part for split, part in judged.items() if _is_training(split)],
        }
        rows = [
            {"source": source, "given": given}
            | {
                name: sum(int((part["source"] == source).sum()) for part in parts)
                for name, parts in counts.items()
            }
            for source, given in self.given.items()
        ]
        return pl.DataFrame(rows)

    @cached_property
    def undecidable(self) -> float:
        """The share of test queries with a relevant text that its source has twice."""
        corpus = self.collection.corpus.frame
        again = corpus.filter(pl.struct("source", "text").is_duplicated()).select("doc_id")
        asked = [q.frame for split, q in self.collection.qrels.items() if not _is_training(split)]
        rows = pl.concat(asked)
        met = rows.filter(pl.col("relevance") > 0).join(again, on="doc_id", how="semi")
        return met["query_id"].n_unique() / max(1, rows["query_id"].n_unique())

    @cached_property
    def partitions(self) -> dict[str, Partition]:
        """For every source with training queries a fold that trains on it alone.

        Near are the test queries whose text comes from that source, far those of the others.
        """
        source = dict(self.collection.queries.frame.select("query_id", "source").iter_rows())
        found = {}
        for split, qrels in self.collection.qrels.items():
            name = split.removeprefix(_TRAIN)
            if name == split or name not in self.given:
                continue
            test = self.collection.qrels[TEST].query_ids
            roles = [(name, query, "train") for query in qrels.query_ids]
            roles += [(name, query, "near" if source[query] == name else "far") for query in test]
            frame = pl.DataFrame(roles, ["fold", "query_id", "role"], orient="row")
            found[split] = Partition(frame)
        return found

    def write(self, folder: PathLike) -> None:
        """Write the collection as a BEIR folder, with its partitions as train-NAME.csv."""
        write_collection(self.collection, folder)
        for split, partition in self.partitions.items():
            write(partition, Path(folder) / f"{split}.csv")

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield multi-source --json`` prints."""
        found: dict[str, Any] = {
            "name": self.collection.name,
            "sources": self.sizes.to_dicts(),
            "dropped": self.dropped.to_dicts(),
            "undecidable": self.undecidable,
            "splits": {split: len(q.query_ids) for split, q in self.collection.qrels.items()},
            "fingerprint": self.collection.fingerprint,
        }
        if self.matches is not None:
            found |= {"matches": self.matches[0], "used": self.matches[1]}
        return found


def multi_source(
    tables: Mapping[str, pl.DataFrame] | Sequence[PathLike],
    matches: pl.DataFrame | PathLike | None = None,
    *,
    names: Sequence[str] | None = None,
    id: str | None = None,
    title: Sequence[str] | None = None,
    text: Sequence[str] | None = None,
    halves: bool = False,
    words: int = 3,
    name: str | None = None,
) -> MultiSource:
    """Make a collection of tables of records and a table that says which of them match.

    ``tables`` are frames by the names of their sources, or files (csv with any separator, jsonl,
    parquet), called after themselves or by ``names``; one BEIR folder stands for the two tables
    that its queries and documents are, with its judgements as matches. A row of ``matches`` has
    the ids of the records of one thing, a column for each source.

    The query is the title of a matched record, from whichever source; relevant are all records of
    the same thing. A document is what the columns ``text`` say, without the record's own title; if
    fewer than ``words`` words are left, the record is left out with its matches. ``title`` and
    ``text`` name columns; of several titles the first that a table has counts, of texts all. With
    ``halves`` the words of the title are dealt out, for tables that have no descriptions: the
    first, third, fifth … make the query, the others go to the document.

    A query is left out where two records of its source have the same. The split ``test`` has the
    matched records; ``train-NAME`` the titles of records of that source that no test query is
    about, each with its own text as relevant: to train on one source only.
    """
    if isinstance(tables, Mapping):
        frames, judged = dict(tables), None
        called = name or "-".join(frames)
    else:
        frames, judged = read_tables(tables, names)
        called = name or (name_of(tables[0]) if len(tables) == 1 else "-".join(frames))
    if len(frames) < 2:
        raise InputError(
            "one table of records, expected two or more, or one BEIR folder. With a column that "
            "says the source of documents, use --by."
        )
    for source in frames:
        if not source.strip() or any(mark in source for mark in "/\\:"):
            raise InputError(f"a source is called {source!r}; expected a name without / \\ and :.")
    if words < 1:
        raise InputError(f"words is {words}, expected 1, 2, 3 …")
    rows = judged if matches is None else matches
    if rows is None:
        raise InputError(
            "which records match? Give a table with the ids of the same thing in each source "
            "(--matches)."
        )
    rows = rows if isinstance(rows, pl.DataFrame) else read_rows(rows)
    records = records_of(frames, id=id, title=title, text=text, halves=halves)
    return _made(called, records, *match_rows(rows, list(frames)), words)


def by_source(
    collection: Collection | PathLike,
    column: str,
    *,
    largest: int | None = None,
    most: int | None = None,
    seed: int = 0,
) -> MultiSource:
    """Make a collection of one whose documents, or queries, have a column that says the source.

    Where only queries have it, a document is of the source of the queries it is relevant to.
    ``largest`` keeps so many of the largest sources, ``most`` so many documents of each, drawn by
    ``seed``. Left out are documents of no source or several, queries of which nothing relevant
    remains, and queries whose text another query of the split has about something else.
    """
    whole = collection if isinstance(collection, Collection) else read_collection(collection)
    for option, value, least in (("largest", largest, 2), ("most", most, 1)):
        if value is not None and value < least:
            raise InputError(f"{option} is {value}, expected {least}, {least + 1}, {least + 2} …")
    dropped = _Dropped()
    labelled = _called_source(label_documents(whole, column), column)
    corpus = labelled.filter(pl.col("source").is_not_null())
    dropped.add(f"documents of no {column}, or of several", len(labelled) - len(corpus))
    counts = corpus["source"].value_counts().sort("count", "source", descending=[True, False])
    if len(counts) < 2:
        raise InputError(f"the documents are of {len(counts)} {column}, expected two or more.")
    kept = counts.head(largest or len(counts))
    large = corpus.join(kept, on="source", how="semi", maintain_order="left")
    smaller = len(counts) - len(kept)
    dropped.add(f"documents of {smaller:,} smaller sources", len(corpus) - len(large))
    corpus = large
    if most is not None:
        draw = pl.Series("draw", np.random.default_rng(seed).permutation(len(corpus)))
        drawn = corpus.with_columns(draw).filter(
            pl.col("draw").rank("ordinal").over("source") <= most
        )
        dropped.add("documents beyond the most of a source", len(corpus) - len(drawn))
        corpus = drawn.drop("draw")
    return _of_sources(whole, column, corpus, dict(kept.sort("source").iter_rows()), dropped)


# -- inside -------------------------------------------------------------------------------------


class _Dropped:
    """What is left out, in the order of things."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, int]] = []

    def add(self, what: str, count: int, source: str = "") -> None:
        if count:
            self._rows.append((what, source, count))

    def add_each(self, what: str, rows: pl.DataFrame) -> None:
        """Count rows by source."""
        for source, count in rows["source"].value_counts().sort("source").iter_rows():
            self.add(what, count, source)

    def table(self) -> pl.DataFrame:
        return pl.DataFrame(self._rows, schema=_DROPPED, orient="row")


def _made(
    name: str, records: pl.DataFrame, matched: pl.DataFrame, unmatched: int, words: int
) -> MultiSource:
    """Turn records and matches into a collection."""
    dropped = _Dropped()
    dropped.add("pairs that are labelled as no match", unmatched)
    records = records.with_columns(
        doc_id=pl.col("source") + ":" + pl.col("record"),
        has_text=pl.col("text").str.count_matches(r"\w+") >= words,
    ).with_row_index("number")
    matched = _with_numbers(matched, records)
    things = _components(matched["match"], matched["number"], len(records))
    short = records.filter(~pl.col("has_text"))
    dropped.add_each(f"records with fewer than {words} words of text", short)
    whole = matched.filter(pl.col("has_text")).group_by("match")
    used = whole.agg(pl.col("source").n_unique()).filter(pl.col("source") > 1)
    given = matched["match"].n_unique()
    dropped.add("matches without text in two sources", given - len(used))

    kept = records.with_columns(thing=pl.Series(things)).filter(pl.col("has_text"))
    shared = (pl.col("thing") >= 0) & (pl.col("source").n_unique().over("thing") > 1)
    kept = kept.with_columns(
        item=pl.when(shared).then(pl.col("doc_id").first().over("thing")),
        twice=pl.struct("source", "key").is_duplicated(),
    )
    test = _titled(kept.filter(pl.col("item").is_not_null()), "queries", dropped)
    test = _unambiguous(test, "queries", dropped)
    train = _titled(kept.filter(pl.col("item").is_null()), "training queries", dropped)
    seen = train.join(test, on="key", how="semi")
    dropped.add_each("training queries whose title is that of a test query", seen)
    train = train.join(test, on="key", how="anti", maintain_order="left")
    if not len(test):
        raise InputError(
            "no query is left: no match has text in two sources, or no title stands for one "
            "record only. Look at --title, --text and --matches."
        )
    own = kept.filter(pl.col("item").is_not_null()).select("item", "doc_id")
    qrels = {TEST: _qrels(test.join(own, on="item", maintain_order="left", suffix="_of_item"))}
    for (source,), part in train.group_by("source", maintain_order=True):
        qrels[f"{_TRAIN}{source}"] = _qrels(part.with_columns(doc_id_of_item="doc_id"))
    asked = pl.concat([test, train.with_columns(item="doc_id")]).select(
        _query_id(), "source", "item", text="query"
    )
    return MultiSource(
        Collection(
            name,
            corpus=Corpus(kept.select("doc_id", "text", "source")),
            queries=Queries(asked),
            qrels=qrels,
            card=Card(description="Made of tables of records by farfield multi-source."),
        ),
        dict(records.group_by("source", maintain_order=True).len().iter_rows()),
        dropped.table(),
        (given, len(used)),
    )


def _of_sources(
    whole: Collection, column: str, corpus: pl.DataFrame, given: dict[str, int], dropped: _Dropped
) -> MultiSource:
    """Leave out of a collection what is about documents that are not in ``corpus``."""
    judged = {
        split: qrels.frame.join(corpus, on="doc_id", how="semi", maintain_order="left")
        for split, qrels in whole.qrels.items()
    }
    relevant = pl.concat(judged.values()).filter(pl.col("relevance") > 0)
    queries = whole.queries.frame.drop("item", strict=False)
    asked = queries.join(relevant, on="query_id", how="semi", maintain_order="left")
    dropped.add("queries of which no relevant document is left", len(queries) - len(asked))
    numbers = asked.select("query_id").with_row_index("number")
    pairs = relevant.join(numbers, on="query_id")
    things = _components(pairs["doc_id"], pairs["number"], len(asked))
    if column in asked.columns:
        asked = _called_source(asked, column)
    else:
        first = relevant.unique("query_id", keep="first", maintain_order=True)
        origin = first.join(corpus.select("doc_id", "source"), on="doc_id")
        asked = asked.drop("source", strict=False).join(
            origin.select("query_id", "source"), on="query_id", maintain_order="left"
        )
    # Queries of different splits may well have the same text: that is for audits to tell.
    splits = pl.concat(rows.select("query_id", split=pl.lit(name)) for name, rows in judged.items())
    split = splits.unique("query_id", keep="first", maintain_order=True)
    text = pl.col("text").str.to_lowercase().str.strip_chars()
    asked = asked.join(split, on="query_id", maintain_order="left").with_columns(
        item=pl.col("query_id").first().over(pl.Series(things)),
        key=pl.col("split") + "\n" + text,
    )
    asked = _unambiguous(asked, "queries", dropped).drop("split", "key")
    qrels = {
        split: Qrels.trusted(rows.join(asked, on="query_id", how="semi", maintain_order="left"))
        for split, rows in judged.items()
    }
    if not len(asked):
        raise InputError("no query is left: none has a relevant document of these sources.")
    made = Collection(
        whole.name,
        corpus=Corpus(corpus),
        queries=Queries(asked),
        qrels={split: rows for split, rows in qrels.items() if len(rows)},
        card=replace(whole.card, revision=f"{whole.fingerprint} by {column}"),
    )
    return MultiSource(made, given, dropped.table())


def _with_numbers(matched: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Matches with the numbers of their records."""
    known = records.select("source", "record", "number", "has_text")
    found = matched.join(known, on=["source", "record"], how="left", maintain_order="left")
    strange = found.filter(pl.col("number").is_null())
    if len(strange):
        source, record = strange.row(0, named=True)["source"], strange["record"][0]
        raise InputError(
            f"the matches name record {record!r} of {source}, which is not in its table "
            f"({len(strange):,} such ids). Are the columns of the matches in the order of the "
            "tables, and is --id the right column?"
        )
    if not len(found):
        raise InputError("there are no matches. Expected rows with an id for each source.")
    return found


def _components(group: pl.Series, number: pl.Series, count: int) -> npt.NDArray[np.int64]:
    """What belongs together because it shares a group, directly or not; -1 for what is in none."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = pl.DataFrame({"group": group, "number": number.cast(pl.Int64)})
    first = rows.select(pl.col("number").first().over("group")).to_series().to_numpy()
    other = rows["number"].to_numpy()
    links = coo_array((np.ones(len(rows), np.int8), (first, other)), shape=(count, count))
    labels: npt.NDArray[np.int64] = connected_components(links, directed=False)[1].astype(np.int64)
    alone = np.ones(count, dtype=np.bool_)
    alone[other] = False
    labels[alone] = -1
    return labels


def _titled(rows: pl.DataFrame, what: str, dropped: _Dropped) -> pl.DataFrame:
    """Leave out records whose title is empty or that of another record of the source."""
    dropped.add_each(f"{what} without a title", rows.filter(pl.col("key") == ""))
    rows = rows.filter(pl.col("key") != "")
    dropped.add_each(f"{what} whose title occurs twice in the source", rows.filter("twice"))
    return rows.filter(~pl.col("twice"))


def _unambiguous(rows: pl.DataFrame, what: str, dropped: _Dropped) -> pl.DataFrame:
    """Of queries with one text about one thing keep the first; about several things, none."""
    several = pl.col("item").n_unique().over("key") > 1
    dropped.add_each(f"{what} whose text asks for different things", rows.filter(several))
    rows = rows.filter(~several)
    again = ~pl.struct("key").is_first_distinct()
    dropped.add_each(f"{what} whose text is there already", rows.filter(again))
    return rows.filter(~again)


def _query_id() -> pl.Expr:
    # Not the id of the document: many tools drop hits with the id of the query.
    return (pl.col("doc_id") + ":title").alias("query_id")


def _qrels(rows: pl.DataFrame) -> Qrels:
    return Qrels(rows.select(_query_id(), doc_id="doc_id_of_item", relevance=pl.lit(1, pl.Int64)))


def _called_source(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Call a column ``source``, in place of any other that is called so."""
    if column == "source":
        return frame.with_columns(pl.col(column).cast(pl.String))
    renamed = frame.drop("source", strict=False).rename({column: "source"})
    return renamed.with_columns(pl.col("source").cast(pl.String))


def _is_training(split: str) -> bool:
    return split.startswith("train")
