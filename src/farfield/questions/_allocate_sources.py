"""Where the lists to share out come from: run files, or a collection and a retriever."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import allocations
from farfield.allocations import Labels
from farfield.collection import Collection
from farfield.encoders import Encoder
from farfield.errors import InputError
from farfield.io import read_collection, read_qrels, read_queries
from farfield.io.files import PathLike
from farfield.questions._bridge import bridge, document_vectors
from farfield.questions._sources import Statistics, search_sources
from farfield.questions.evaluate import named_runs, open_runs
from farfield.retrievers import Retriever
from farfield.tables import Qrels, Queries, Run

__all__ = ["TITLES", "Given", "from_collection", "from_runs"]

Ints = npt.NDArray[np.int64]

#: As labels: titles of documents that no test query is about, in place of queries.
TITLES = "titles"

_MOST_TITLES = 500  # of each source; more of them change a temperature in the third digit


@dataclass(frozen=True, eq=False)
class Given:
    """Runs of all sources for the queries to share out, and what is known about these queries.

    ``items`` says which queries are about the same thing; ``seeds`` are labelled queries to learn
    from.
    """

    runs: dict[str, Run]
    qrels: Qrels | None
    items: dict[str, str] | None
    seeds: Labels | None = None
    plain: dict[str, Run] | None = None  # the same runs before they vouched for one another


def from_runs(
    sources: Mapping[str, Any],
    qrels: Qrels | PathLike | None,
    *,
    labels: Qrels | PathLike | None,
    queries: Queries | PathLike | None,
    item: str | None,
    depth: int,
    rel: int,
    ties: str,
) -> Given:
    """Read one run for each source; labelled queries are in the same runs."""
    runs = {run.name: run for run in open_runs(named_runs(sources), ties=ties)}
    judged = qrels if qrels is None or isinstance(qrels, Qrels) else read_qrels(qrels)
    asked = queries if queries is None or isinstance(queries, Queries) else read_queries(queries)
    if item is not None and asked is None:
        raise InputError(f"items are a column of the queries. Give the queries with {item!r}.")
    items, seeds = None if asked is None else _items(asked, item), None
    if labels is not None:
        known = labels if isinstance(labels, Qrels) else _read_labels(labels)
        lists = allocations.gather(runs, depth=depth, queries=known.query_ids)
        seeds = allocations.label(lists, known, rel)
        judged = _without(judged, known, items)
    return Given(runs, judged, items, seeds)


def from_collection(
    given: Collection | PathLike,
    retriever: str | Retriever,
    qrels: Qrels | PathLike | None,
    *,
    split: str,
    by: str,
    statistics: Statistics,
    labels: Qrels | PathLike | None,
    item: str | None,
    depth: int,
    rel: int,
    seed: int,
    weight: float | None,
    encoder: str | Encoder,
) -> Given:
    """Search every source of a collection with one retriever.

    With a ``weight`` the results of a source are reranked by those of the others (a bridge).
    """
    collection = given if isinstance(given, Collection) else read_collection(given)
    judged = collection.qrels[split] if qrels is None else qrels
    judged = judged if isinstance(judged, Qrels) else read_qrels(judged)
    items = _items(collection.queries, item)
    titled = isinstance(labels, str) and labels == TITLES
    pseudo = _titles(collection, by, seed) if titled else None
    known: Qrels | None = None
    if labels is not None and not titled:
        if isinstance(labels, Qrels):
            known = labels
        else:
            name = str(labels)
            known = collection.qrels[name] if name in collection.qrels else read_qrels(labels)
        judged = _without(judged, known, items)
    wanted = [q.query_ids for q in (judged, known, pseudo and pseudo[0]) if q is not None]
    asked = collection.queries.select(pl.concat(wanted))
    missing = judged.query_ids.filter(~judged.query_ids.is_in(asked.frame["query_id"].implode()))
    if len(missing):
        raise InputError(
            f"the judged query {missing[0]!r} is not among the queries of {collection.name} "
            f"({len(missing):,} such). Give the judgements of this collection."
        )
    runs = search_sources(
        collection, asked, retriever, column=by, depth=depth, statistics=statistics
    )
    plain = None
    if weight is not None:
        vectors = document_vectors(collection.corpus, encoder)
        runs, plain = bridge(runs, vectors, weight=weight), runs
    seeds = None
    if known is not None:
        lists = allocations.gather(runs, depth=depth, queries=known.query_ids)
        seeds = allocations.label(lists, known, rel)
    elif pseudo is not None:
        seeds = _asked_at_home(runs, *pseudo, depth)
    return Given(runs, judged, items, seeds, plain)


def _titles(collection: Collection, by: str, seed: int) -> tuple[Qrels, dict[str, str]]:
    """Titles of documents of each source, as queries whose one relevant document is their own."""
    parts = [qrels for split, qrels in collection.qrels.items() if split.startswith("train-")]
    if not parts or by not in collection.queries.frame.columns:
        raise InputError(
            f"{collection.name} has no titles to learn from: expected splits train-SOURCE, whose "
            f"queries have a column {by!r}. farfield multi-source makes such a collection of "
            "tables of records."
        )
    judged = Qrels(pl.concat(part.frame for part in parts))
    home = collection.queries.select(judged.query_ids).frame.sort("query_id")
    draw = np.random.default_rng(seed).permutation(len(home))
    kept = home.with_columns(draw=pl.Series(draw)).filter(
        pl.col("draw").rank("ordinal").over(by) <= _MOST_TITLES
    )
    chosen = judged.frame.join(kept, on="query_id", how="semi", maintain_order="left")
    at_home = kept.select("query_id", pl.col(by).cast(pl.String))
    return Qrels.trusted(chosen), dict(at_home.iter_rows())


def _asked_at_home(runs: dict[str, Run], judged: Qrels, home: dict[str, str], depth: int) -> Labels:
    lists = allocations.gather(runs, depth=depth, queries=judged.query_ids)
    labels = allocations.label(lists, judged)
    of = np.array([home[query] for query in lists.query_ids])
    asked = of[:, None] == np.array(lists.sources)
    return Labels(labels.lists, labels.hits & asked[:, :, None], labels.relevant, asked)


def _read_labels(given: PathLike) -> Qrels:
    if str(given) == TITLES and not os.path.exists(given):
        raise InputError(
            "titles are searched for like queries. Give a collection and a retriever, not runs."
        )
    return read_qrels(given)


def _without(judged: Qrels | None, known: Qrels, items: dict[str, str] | None) -> Qrels:
    """Leave out judged queries that are learned from, and others about the same items."""
    if judged is None:
        raise InputError(
            "labelled queries are learned from, and there is nothing to try it on. Give judgements "
            "of other queries (--qrels)."
        )
    of = items or {}
    seen = {of.get(query, query) for query in known.query_ids}
    kept = [query for query in judged.query_ids if of.get(query, query) not in seen]
    rest = judged.frame.filter(pl.col("query_id").is_in(kept))
    if not len(rest):
        raise InputError(
            "all judged queries are labelled ones, and what is learned from is not tried on. Give "
            "judgements of other queries, or --seeds to draw some of these."
        )
    return Qrels.trusted(rest)


def _items(queries: Queries, item: str | None) -> dict[str, str] | None:
    """Which queries are about the same thing: by a column, if it was named or is called item."""
    name = item or "item"
    if name not in queries.frame.columns:
        if item is not None:
            raise InputError(
                f"the queries have no column {item!r}. They have "
                f"{', '.join(queries.frame.columns)}."
            )
        return None
    own = pl.col("query_id").cast(pl.String)
    labels = queries.frame.select("query_id", pl.col(name).cast(pl.String).fill_null(own))
    return dict(labels.iter_rows())
