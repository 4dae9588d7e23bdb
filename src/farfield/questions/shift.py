"""What are near and far queries of a collection, and what is there to train on?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from farfield import encoders, shifts, stats
from farfield.collection import Card, Collection
from farfield.encoders import Encoder
from farfield.errors import FileError, InputError, did_you_mean
from farfield.io import read_collection, write, write_collection
from farfield.io.files import PathLike, replacing, write_json
from farfield.overlap.labels import shared_labels
from farfield.progress import track
from farfield.shifts import Dealt, Fold, Shift
from farfield.tables import ROLES, Partition, Qrels

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["EXPORTS", "Shifted", "shift"]

#: Layouts in which the folds can be written for others to train on.
EXPORTS = ("beir", "qrels")

_TESTED = ("near", "far")


@dataclass(frozen=True, eq=False)
class Shifted:
    """A partition of the queries, with what it cost and what leaks through it."""

    dealt: Dealt
    level: float

    @property
    def partition(self) -> Partition:
        """The role of every query in every fold."""
        return self.dealt.partition

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """One row per fold: fold, train, near, far, dropped (queries), train_judgements."""
        judged = self.dealt.pool.judgements
        return pl.DataFrame(
            [
                {
                    "fold": fold.name,
                    **{role: len(fold.rows(role)) for role in ROLES},
                    "dropped": sum(fold.dropped.values()),
                    "train_judgements": int(judged[fold.train].sum()),
                }
                for fold in self.dealt.folds
            ]
        )

    @cached_property
    def dropped(self) -> pl.DataFrame:
        """What is in no fold, or not in this one, and why: fold, reason, queries."""
        rows = [("all", reason, count) for reason, count in self.dealt.pool.dropped.items()]
        rows += [
            (fold.name, reason, count)
            for fold in self.dealt.folds
            for reason, count in fold.dropped.items()
        ]
        schema = {"fold": pl.String, "reason": pl.String, "queries": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def overlap(self) -> pl.DataFrame:
        """Label overlap that remains: fold, role, queries, shared, share, low, high.

        ``shared`` counts the test queries of which a relevant document is relevant to a training
        query of the fold.
        """
        rows = []
        for fold in self.dealt.folds:
            train = self.qrels(fold, "train")
            for role in _TESTED:
                if not len(fold.rows(role)):
                    continue
                found = shared_labels(train, self.qrels(fold, role), [1])["shared"].to_numpy() > 0
                share = stats.mean(found.astype(float), level=self.level)
                row = {"fold": fold.name, "role": role, "queries": len(found)}
                row |= {"shared": int(found.sum()), "share": share.value}
                rows.append(row | {"low": share.low, "high": share.high})
        return pl.DataFrame(rows)

    def qrels(self, fold: Fold, role: str) -> Qrels:
        """Return the judgements of the queries that have a role in a fold."""
        side = self.dealt.pool.qrels["train" if role == "train" else "test"].frame
        ids = self.dealt.pool.at(fold.rows(role)).frame.select("query_id")
        return Qrels.trusted(side.join(ids, on="query_id", how="semi", maintain_order="left"))

    def collections(self) -> Iterator[Collection]:
        """Yield each fold as a collection, with the splits train, near and far."""
        pool = self.dealt.pool
        for fold in self.dealt.folds:
            qrels = {role: self.qrels(fold, role) for role in ROLES if len(fold.rows(role))}
            ids = pl.concat([table.query_ids for table in qrels.values()])
            yield Collection(
                f"{pool.collection.name} {self.dealt.shift} {fold.name}",
                corpus=lambda: pool.collection.corpus,
                queries=pool.queries.select(ids),
                qrels=qrels,
                card=Card(
                    **pool.collection.card.to_dict()
                    | {"revision": f"{self.dealt.shift}, fold {fold.name}, seed {self.dealt.seed}"}
                ),
            )

    def manifest(self) -> dict[str, Any]:
        """Return all that is needed to make the partition again, and what came out."""
        import farfield

        pool = self.dealt.pool
        return {
            "farfield": farfield.__version__,
            "shift": str(self.dealt.shift),
            "seed": self.dealt.seed,
            "collection": pool.collection.name,
            "splits": {"train": pool.splits[0], "test": pool.splits[1]},
            "queries": pool.queries.fingerprint,
            "judgements": {side: table.fingerprint for side, table in pool.qrels.items()},
            "partition": self.partition.fingerprint,
            "facts": self.dealt.facts,
            "sizes": self.sizes.to_dicts(),
            "dropped": self.dropped.to_dicts(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield shift --json`` prints."""
        return self.manifest() | {"label_overlap": self.overlap.to_dicts()}

    def write(self, path: PathLike) -> Path:
        """Write the partition, and its manifest beside it; return the manifest's path."""
        write(self.partition, path)
        beside = Path(path).with_suffix(".manifest.json")
        write_json(beside, self.manifest())
        return beside

    def export(self, layout: str, path: PathLike) -> list[Path]:
        """Write every fold into a folder of its own, for others to train on.

        ``beir``: a collection with the splits train, near and far. ``qrels``: files as in the
        released sets of Zhan et al. 2022: train-qrel.txt, interpolate.test-qrel.txt and
        extrapolate.test-qrel.txt.
        """
        if layout not in EXPORTS:
            raise InputError(
                f"no layout is called {layout!r}.{did_you_mean(layout, EXPORTS)} "
                f"Expected {' or '.join(EXPORTS)}."
            )
        folder = Path(path)
        names = [_file_name(fold.name) for fold in self.dealt.folds]
        if len(set(names)) < len(names):
            raise InputError(
                f"the folds {', '.join(fold.name for fold in self.dealt.folds)} cannot be told "
                "apart as folders. Rename the groups."
            )
        folders = [folder / name for name in names]
        if layout == "beir":
            self._export_beir(folders)
        else:
            self._export_qrels(folders)
        return folders

    def _export_beir(self, folders: list[Path]) -> None:
        first = folders[0]
        for place, made in zip(folders, _tracked(self.collections(), len(folders)), strict=True):
            if place == first:
                write_collection(made, place)
                continue
            # The documents are the same in every fold: one file under several names.
            empty = Collection(
                made.name,
                corpus=type(made.corpus).trusted(made.corpus.frame.head(0)),
                queries=made.queries,
                qrels=dict(made.qrels),
                card=made.card,
            )
            write_collection(empty, place)
            _same_file(first / "corpus.jsonl", place / "corpus.jsonl")

    def _export_qrels(self, folders: list[Path]) -> None:
        names = {
            "train": "train-qrel.txt",
            "near": "interpolate.test-qrel.txt",
            "far": "extrapolate.test-qrel.txt",
        }
        for fold, place in zip(self.dealt.folds, folders, strict=True):
            try:
                place.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(place, f"cannot be made: {error.strerror}.") from error
            for role, name in names.items():
                if len(fold.rows(role)):
                    frame = self.qrels(fold, role).frame.select(
                        "query_id", pl.lit("0").alias("i"), "doc_id", "relevance"
                    )
                    with replacing(place / name) as file:
                        frame.write_csv(
                            file, separator="\t", include_header=False, quote_style="never"
                        )

    def figure(
        self, *, encoder: str | Encoder | None = None, method: str = "pca", fold: str | None = None
    ) -> go.Figure:
        """Draw the queries (by ``pca`` or ``tsne``) and how similar each fold's are to training.

        Points are coloured by group, or by their role in one ``fold``. Vectors come from
        ``encoder``, by default the one of the shift, or else ``lsa()``.
        """
        from farfield.questions._shift_figures import draw

        own = getattr(self.dealt.shift, "encoder", None)
        chosen = encoders.parse(encoder) if encoder is not None else own or encoders.parse("lsa()")
        return draw(self.dealt, chosen, method, fold)


def shift(
    shift: str | Shift,
    collection: Collection | PathLike,
    *,
    train: str | None = None,
    test: str | None = None,
    share: float = 0.2,
    together: str | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> Shifted:
    """Divide the queries of a collection into training, near and far ones, in one or more folds.

    ``shift`` is a member of :mod:`farfield.shifts` or its spec: ``"resttest(buckets=5)"``.
    ``train`` and ``test`` name splits; of a single split a random ``share`` is for testing, where
    queries with one text (or one value in the column ``together``) stay on one side.
    """
    member = shifts.parse(shift)
    if not isinstance(collection, Collection):
        collection = read_collection(collection)
    dealt = member.deal(
        collection, train=train, test=test, share=share, together=together, seed=seed
    )
    return Shifted(dealt, level)


def _tracked(items: Iterator[Collection], count: int) -> Iterator[Collection]:
    """Yield collections as they are made, with a bar."""
    for _ in track(range(count), "writing folds"):
        yield next(items)


def _file_name(name: str) -> str:
    """A name that is a good folder name everywhere."""
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in name)
    return kept.strip(".") or "fold"


def _same_file(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no such thing."""
    target.unlink()
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
