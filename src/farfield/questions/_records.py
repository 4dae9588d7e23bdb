"""Tables of records, as people have them: which column is what, and what is left to search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from farfield.errors import InputError, did_you_mean
from farfield.io import name_of, read_collection
from farfield.io.files import PathLike
from farfield.questions._small_files import read_rows
from farfield.tables import Qrels

__all__ = ["match_rows", "read_tables", "records_of"]

# What columns are called, where nobody says.
_IDS = ("id", "_id", "doc_id", "query_id")
_TITLES = ("title", "name", "text")
_TEXTS = ("description", "text")
# A column of matches that says which of them are none.
_LABELS = ("label", "relevance", "match")


def read_tables(
    given: Sequence[PathLike], names: Sequence[str] | None
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame | None]:
    """Read tables of records by name, and matches if a BEIR folder has them as judgements.

    One BEIR folder is two tables: its queries and its documents.
    """
    matches = None
    if len(given) == 1 and Path(given[0]).is_dir():
        collection = read_collection(given[0])
        tables = [collection.queries.frame, collection.corpus.frame]
        called = ["queries", "corpus"]
        judged = Qrels(pl.concat([q.relevant().frame for q in collection.qrels.values()]).unique())
        matches = judged.frame.select(pl.col("query_id", "doc_id"))
    else:
        tables = [read_rows(path) for path in given]
        called = [name_of(path) for path in given]
    if names is not None:
        if len(names) != len(tables):
            raise InputError(f"{len(names)} names for {len(tables)} tables. Give one for each.")
        called = list(names)
    twice = next((name for name in called if called.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two tables are called {twice!r}. Give each a name of its own (--names).")
    return dict(zip(called, tables, strict=True)), matches


def records_of(
    tables: Mapping[str, pl.DataFrame],
    *,
    id: str | None,
    title: Sequence[str] | None,
    text: Sequence[str] | None,
    halves: bool,
) -> pl.DataFrame:
    """All records: source, record (its id), query, key (equal for equal queries) and text.

    The query is the title, and the text what the other columns say without repeating the title.
    With ``halves`` the query has every other word of the title and the text the words between.
    """
    _check_named([*(title or ()), *(text or ())], tables)
    found = [
        _records(source, frame, id, title or _TITLES, text or _TEXTS, halves)
        for source, frame in tables.items()
    ]
    return pl.concat(found)


def match_rows(matches: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Matches as rows of match (a number), source and record; and how many are labelled as none.

    A row of the table is one thing: an id for every source, or nothing where a source lacks it.
    Columns are called like the sources, or come in their order.
    """
    label = next((name for name in _LABELS if name in matches.columns), None)
    rows = matches
    if label is not None:
        rows = rows.filter(pl.col(label).cast(pl.String).str.strip_chars() != "0").drop(label)
    columns = [name for name in names if name in rows.columns]
    if len(columns) < len(names):
        if len(rows.columns) != len(names):
            raise InputError(
                f"the matches have the columns {', '.join(rows.columns)}; expected one for each of "
                f"{', '.join(names)}, called so or in this order."
            )
        columns = rows.columns
    ids = rows.select(
        _plain(rows[column]).alias(name) for name, column in zip(names, columns, strict=True)
    )
    long = ids.with_row_index("match").unpivot(
        index="match", variable_name="source", value_name="record"
    )
    return long.filter(pl.col("record") != "").sort("match"), len(matches) - len(rows)


# -- inside -------------------------------------------------------------------------------------


def _records(
    source: str,
    frame: pl.DataFrame,
    id: str | None,
    titles: Sequence[str],
    texts: Sequence[str],
    halves: bool,
) -> pl.DataFrame:
    key = id or next((name for name in _IDS if name in frame.columns), frame.columns[0])
    if key not in frame.columns:
        raise InputError(
            f"{source} has no column {key!r}.{did_you_mean(key, frame.columns)} It has "
            f"{', '.join(frame.columns)}."
        )
    ids = _plain(frame[key])
    if (ids == "").any() or ids.is_duplicated().any():
        bad = ids.filter((ids == "") | ids.is_duplicated())[0]
        what = f"{bad!r} is there more than once" if bad else "is missing in a row"
        raise InputError(
            f"{source}: the id ({key}) {what}. Every record needs one of its own; --id names "
            "another column."
        )
    title = next((name for name in titles if name in frame.columns), None)
    if title is None:
        raise InputError(
            f"{source} has no title: none of {', '.join(titles)} is among its columns "
            f"{', '.join(frame.columns)}. Name the column with --title."
        )
    used = [name for name in texts if name in frame.columns and name not in (title, key)]
    if not used and not halves:
        raise InputError(
            f"{source} has titles ({title}) but no texts: it has {', '.join(frame.columns)}. Name "
            "columns with --text, or use halves of the titles (--halves)."
        )
    queries = _plain(frame[title])
    parts = pl.DataFrame([_plain(frame[name]) for name in used])
    joined = parts.select(pl.concat_str(pl.all(), separator=" ")) if used else parts
    bodies = joined.to_series() if used else pl.Series([""]).new_from_index(0, len(frame))
    bodies = _without_titles(bodies, queries)
    if halves:
        words = queries.str.split(" ")
        between = words.list.slice(1).list.gather_every(2).list.join(" ")
        bodies = (between + " " + bodies).str.strip_chars(" ")
        queries = words.list.gather_every(2).list.join(" ")
    return pl.DataFrame(
        {
            "source": pl.Series([source]).new_from_index(0, len(frame)),
            "record": ids,
            "query": queries,
            "key": queries.str.to_lowercase(),
            "text": bodies,
        }
    )


def _plain(column: pl.Series) -> pl.Series:
    """A column as texts, with single blanks between words; empty where there is nothing."""
    if column.dtype.is_nested():
        raise InputError(f"the column {column.name!r} holds lists or objects, expected texts.")
    texts = column.cast(pl.String).fill_null("")
    return texts.str.replace_all(r"\s+", " ").str.strip_chars(" ")


def _without_titles(texts: pl.Series, titles: pl.Series) -> pl.Series:
    """Delete each record's title from its own text, wherever it stands as whole words."""

    def left(text: str, title: str) -> str:
        if not title or title.lower() not in text.lower():
            return text
        whole = rf"(?<!\w){re.escape(title)}(?!\w)"
        return " ".join(re.sub(whole, " ", text, flags=re.IGNORECASE).split())

    return pl.Series(texts.name, map(left, texts, titles), dtype=pl.String)


def _check_named(wanted: Iterable[str], tables: Mapping[str, pl.DataFrame]) -> None:
    known = sorted({name for frame in tables.values() for name in frame.columns})
    for name in wanted:
        if name not in known:
            raise InputError(
                f"no table has a column {name!r}.{did_you_mean(name, known)} They have "
                f"{', '.join(known)}."
            )
