"""The queries a shift deals out: which are there to train on, which to test with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.collection import Collection
from farfield.errors import InputError, did_you_mean
from farfield.similarity import normal_form
from farfield.tables import Qrels, Queries

__all__ = ["Pool"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pool:
    """Training and test queries of a collection, sorted by id.

    ``is_test`` says which are for testing; ``qrels`` holds all judgements of either side.
    ``dropped`` counts, by reason, the queries of the splits that are not in the pool. No text (in
    its normal form) is on both sides, and every training query has a relevant document.
    """

    collection: Collection
    queries: Queries
    is_test: Bools
    qrels: dict[str, Qrels]  # by side: train, test
    dropped: dict[str, int]
    splits: tuple[str, str]

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def train(self) -> Ints:
        """Rows of the training queries."""
        return np.flatnonzero(~self.is_test)

    @cached_property
    def test(self) -> Ints:
        """Rows of the test queries."""
        return np.flatnonzero(self.is_test)

    @cached_property
    def judgements(self) -> Ints:
        """How many judgements each query has on its side."""
        counts = pl.concat([qrels.frame["query_id"] for qrels in self.qrels.values()])
        return self._aligned(counts.value_counts(), "count")

    @cached_property
    def relevant(self) -> pl.DataFrame:
        """The relevant documents of every query: row (of the pool), doc_id."""
        pairs = pl.concat([q.relevant().frame.select("query_id", "doc_id") for q in self._sides])
        rows = self.queries.frame.select("query_id").with_row_index("row")
        found = pairs.join(rows, on="query_id", how="inner")
        return found.select(pl.col("row").cast(pl.Int64), "doc_id").sort("row", "doc_id")

    def at(self, rows: Ints) -> Queries:
        """Return the queries of these rows."""
        return Queries.trusted(self.queries.frame[rows])

    def column(self, name: str) -> pl.Series:
        """Return a column of the queries, one value a query, or raise."""
        frame = self.queries.frame
        known = frame.columns[2:]
        if name not in known:
            raise InputError(
                f"the queries of {self.collection.name} have no column {name!r}."
                f"{did_you_mean(name, known)} They have {', '.join(known) or 'none but a text'}."
            )
        if frame[name].dtype.is_nested():
            raise InputError(f"the column {name!r} holds lists or objects, expected one value.")
        return frame[name]

    @property
    def _sides(self) -> list[Qrels]:
        return list(self.qrels.values())

    def _aligned(self, frame: pl.DataFrame, column: str) -> Ints:
        joined = self.queries.frame.select("query_id").join(
            frame, on="query_id", how="left", maintain_order="left"
        )
        return joined[column].fill_null(0).cast(pl.Int64).to_numpy()

    # -- making -----------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        collection: Collection,
        *,
        train: str | None = None,
        test: str | None = None,
        share: float = 0.2,
        together: str | None = None,
        seed: int = 0,
    ) -> Pool:
        """Take two splits of a collection, or divide a single one.

        By default these are ``train`` and ``test``. If both names are the same, or there is only
        one split, a random ``share`` of its queries is for testing; queries with the same text (or
        the same value in the column ``together``) stay together.
        """
        if not 0 < share < 1:
            raise InputError(f"share is {share}, expected a share of the queries between 0 and 1.")
        one, other = _splits(collection, train, test)
        if one == other:
            qrels, is_test_of = _divide(collection, one, share, together, seed)
        else:
            if together is not None:
                raise InputError(
                    f"together={together!r} is for dividing a single split; {one} and {other} are "
                    "two. Leave it out, or give the same split for both."
                )
            qrels = {"train": collection.qrels[one], "test": collection.qrels[other]}
            is_test_of = None
        return cls._filtered(collection, qrels, is_test_of, (one, other))

    @classmethod
    def _filtered(
        cls,
        collection: Collection,
        qrels: dict[str, Qrels],
        tested: pl.Series | None,
        splits: tuple[str, str],
    ) -> Pool:
        """Keep queries that can be used, and count the others by reason."""
        sides = {side: table.query_ids for side, table in qrels.items()}
        if tested is not None:
            sides["train"] = sides["train"].filter(~sides["train"].is_in(tested.implode()))
            sides["test"] = tested
        both = sides["train"].filter(sides["train"].is_in(sides["test"].implode()))
        trained = sides["train"].filter(~sides["train"].is_in(both.implode()))
        judged = pl.concat([trained, sides["test"]])
        frame = collection.queries.frame.join(
            judged.to_frame("query_id"), on="query_id", how="semi"
        ).sort("query_id")
        if len(frame) < len(judged):
            stray = judged.filter(~judged.is_in(frame["query_id"].implode()))
            raise InputError(
                f"{collection.name}: query {stray.sort()[0]!r} is judged but has no text "
                f"({len(stray):,} such queries). Add them to the queries, or drop the judgements."
            )
        is_test = frame["query_id"].is_in(sides["test"].implode()).to_numpy()
        answered = qrels["train"].relevant().frame["query_id"].unique()
        useless = ~is_test & ~frame["query_id"].is_in(answered.implode()).to_numpy()
        known = _known_texts(frame["text"], is_test) & ~useless
        dropped = {
            "judged in both splits, so not trained on": len(both),
            "training queries without a relevant document": int(useless.sum()),
            "training queries with the text of a test query": int(known.sum()),
        }
        kept = ~(useless | known)
        pool = cls(
            collection,
            Queries.trusted(frame.filter(pl.Series(kept))),
            is_test[kept],
            qrels,
            {reason: count for reason, count in dropped.items() if count},
            splits,
        )
        for rows, side, split in (
            (pool.train, "training", splits[0]),
            (pool.test, "test", splits[1]),
        ):
            if not len(rows):
                left = "".join(f" {count:,} {reason}." for reason, count in pool.dropped.items())
                raise InputError(
                    f"{collection.name}: no {side} queries are left of the split {split}.{left}"
                )
        return pool


def _splits(collection: Collection, train: str | None, test: str | None) -> tuple[str, str]:
    names = list(collection.qrels)
    if len(names) == 1:
        train, test = train or names[0], test or names[0]
    found = (train or "train", test or "test")
    for side, split in zip(("train", "test"), found, strict=True):
        if split not in names:
            raise InputError(
                f"{collection.name} has no split {split!r}.{did_you_mean(split, names)} It has "
                f"{', '.join(names) or 'none'}: say which one is for {side}ing with {side}=… "
                f"(--{side}), or give one split for both to divide it."
            )
    return found


def _divide(
    collection: Collection, split: str, share: float, together: str | None, seed: int
) -> tuple[dict[str, Qrels], pl.Series]:
    """Divide a split at random; queries that belong together stay together."""
    qrels = collection.qrels[split]
    frame = collection.queries_of(split).frame.sort("query_id")
    if together is None:
        keys = _text_keys(frame["text"])
    elif together in frame.columns[1:]:
        own = pl.concat_str(pl.lit("query "), frame["query_id"])  # without a value: on its own
        keys = frame.select(pl.col(together).cast(pl.String).fill_null(own)).to_series()
    else:
        raise InputError(
            f"the queries of {collection.name} have no column {together!r}."
            f"{did_you_mean(together, frame.columns)} They have {', '.join(frame.columns[1:])}."
        )
    groups = keys.unique().sort()
    order = np.random.default_rng(seed).permutation(len(groups))
    sizes = keys.value_counts(name="n").sort(keys.name or "")["n"].to_numpy()
    taken = np.cumsum(sizes[order]) <= max(1, round(share * len(frame)))
    chosen = groups.gather(np.sort(order[taken]))
    tested = frame.filter(keys.is_in(chosen.implode()))["query_id"]
    train = qrels.frame.filter(~qrels.frame["query_id"].is_in(tested.implode()))
    test = qrels.frame.filter(qrels.frame["query_id"].is_in(tested.implode()))
    return {"train": Qrels.trusted(train), "test": Qrels.trusted(test)}, tested


def _text_keys(texts: pl.Series) -> pl.Series:
    """Normal forms; a text that has none (only signs) stands for itself."""
    forms = normal_form(texts)
    return texts.zip_with(forms == "", forms).alias("text")


def _known_texts(texts: pl.Series, is_test: Bools) -> Bools:
    """Which training queries have the text of a test query?"""
    keys = _text_keys(texts)
    tested = keys.filter(pl.Series(is_test)).unique()
    found: Bools = ~is_test & keys.is_in(tested.implode()).to_numpy()
    return found
