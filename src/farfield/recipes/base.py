"""What all recipes share: a job, a folder that work can continue in, and a record of it.

A recipe says what its task is (:meth:`Recipe._task`) and which retriever its model makes
(:meth:`Recipe.retriever`). A recipe that builds on another one runs it as a stage, in a folder
inside its own.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from farfield import neural
from farfield.collection import Collection
from farfield.errors import FileError, InputError, SpecError, did_you_mean
from farfield.fingerprint import fingerprint_of, versions_of
from farfield.io.files import PathLike, write_json
from farfield.neural.models import Kind, quietly
from farfield.retrievers import Retriever
from farfield.retrievers._sparse import full_text
from farfield.spec import Member
from farfield.tables import Partition
from farfield.training.examples import Examples
from farfield.training.loop import Plan, Task, fit
from farfield.training.scratch import base_of, digest_of, making, scratch, untouched

__all__ = ["Job", "Recipe", "Trained"]

#: The form of a trained model's folder; one more whenever older programs could not read it.
FORMAT = 1

_RECORD, _JOB = "record.json", "job.json"
_LIBRARIES = ("farfield", "numpy", "sentence-transformers", "tokenizers", "torch", "transformers")


@dataclass(frozen=True)
class Job:
    """What a recipe trains on: examples, those held out to check with, and where it works."""

    collection: Collection
    examples: Examples
    held_out: Examples | None
    seed: int
    device: str
    facts: dict[str, Any] = field(default_factory=dict)
    from_scratch: bool = False

    @classmethod
    def of(
        cls,
        collection: Collection,
        partition: Partition | None = None,
        fold: str | None = None,
        *,
        validation: int | str = 200,
        most: int | None = None,
        seed: int = 0,
        device: str = "auto",
    ) -> Job:
        """Find the training queries: those of a fold, or of the split ``train``.

        Without a split of that name the only one there is is taken. ``validation`` is how many
        queries are held out to choose the best checkpoint, or a split with others. They are not
        subject to the shift: drawn from the training queries of all folds, whatever the fold, as in
        MS-Shift, so that near and far models are chosen by the same queries.

        ``most`` trains on no more queries than that, drawn at random from the rest: fewer are among
        more, and the queries held out are the same for any number, so that models trained on more
        and more can be compared.
        """
        if most is not None and most < 1:
            raise InputError(f"most is {most}, expected 1, 2, 3 … training queries.")
        where = neural.device_of(device)
        ids, pool, facts = _training_queries(collection, partition, fold)
        corpus = collection.corpus.frame
        texts = full_text(corpus).to_list()
        judged = pl.concat(
            [
                q.frame.select("query_id", "doc_id", "relevance")
                for q in (collection.qrels[split] for split in collection.qrels)
            ]
        )
        judged = judged.unique(["query_id", "doc_id"], keep="first", maintain_order=True)

        def examples(query_ids: pl.Series) -> Examples:
            return Examples.of(
                collection.queries.select(query_ids).frame,
                corpus["doc_id"],
                texts,
                judged.join(query_ids.to_frame("query_id"), on="query_id", how="semi"),
            )

        found = examples(ids)
        held_out: Examples | None
        if isinstance(validation, str):
            held_out = examples(_unseen(collection, validation, ids))
        elif validation < 0:
            raise InputError(f"validation is {validation}, expected 0, 1, 2 … queries or a split.")
        else:
            held_out = examples(pool).drawn(min(validation, len(found) // 5), seed)
            found = examples(ids.filter(~ids.is_in(held_out.query_ids.implode())))
        if not len(held_out):
            held_out = None
        if most is not None:
            found = found.drawn(most, seed)
            facts["most"] = most
        facts |= {
            "collection": collection.name,
            "training": fingerprint_of("training", found.qrels),
            "corpus": collection.corpus.fingerprint,
            "queries": len(found),
            "validation": validation,
            "validation_queries": 0 if held_out is None else len(held_out),
        }
        return cls(collection, found, held_out, seed, where, facts)


@dataclass(frozen=True)
class Trained:
    """A trained model in its folder."""

    recipe: Recipe
    folder: Path

    @property
    def model(self) -> Path:
        """The folder of the model itself."""
        return self.folder / "model"

    @cached_property
    def record(self) -> dict[str, Any]:
        """What was done, how fast, and with which losses."""
        return _read(self.folder / _RECORD)

    @property
    def retriever(self) -> Retriever:
        """The retriever that uses the model."""
        return self.recipe.retriever(str(self.model))


@dataclass(frozen=True, kw_only=True)
class Recipe(Member):
    """How a model is trained.

    ``epochs`` times all training queries, ``batch`` of them at a time, with a learning rate that
    rises to ``lr`` over the share ``warmup`` of all steps and falls to 0; weights ``decay``,
    gradients are cut to the length ``clip``. ``checks`` times the model is tried on the queries
    that were held out, and the best is kept. Epochs and lr are by default what suits the base: one
    from scratch needs more of both. ``compiled`` compiles the model on a GPU.
    """

    #: What kind of model it trains, and does the model write texts?
    kind: ClassVar[Kind | None] = "dense"
    writes: ClassVar[bool] = False
    #: Epochs and learning rate for a base from scratch, and for one that was trained before.
    from_scratch: ClassVar[tuple[float, float]] = (3, 1e-3)
    from_trained: ClassVar[tuple[float, float]] = (3, 5e-5)

    epochs: float | None = None
    batch: int = 64
    lr: float | None = None
    warmup: float = 0.1
    decay: float = 0.01
    clip: float = 1.0
    checks: int = 2
    compiled: bool = False

    def __post_init__(self) -> None:
        if self.epochs is not None and not 0 < self.epochs < math.inf:
            raise SpecError(f"epochs is {self.epochs}, expected a number above 0.")
        if self.batch < 1:
            raise SpecError(f"batch is {self.batch}, expected 1, 2, 3 …")
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise SpecError(f"lr is {self.lr}, expected a number above 0.")
        if not 0 <= self.warmup <= 1:
            raise SpecError(f"warmup is {self.warmup}, expected a share from 0 to 1.")
        for name in ("decay", "clip", "checks"):
            if not 0 <= getattr(self, name) < math.inf:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 0 or more.")

    # -- training ---------------------------------------------------------------------------

    def train(self, base: str | scratch, collection: Collection, **options: Any) -> Retriever:
        """Train as :meth:`run` does, and return the retriever that uses the model."""
        self.retriever("model")  # is it one of those that make a retriever?
        return self.run(base, collection, **options).retriever

    def run(
        self,
        base: str | scratch,
        collection: Collection,
        *,
        partition: Partition | None = None,
        fold: str | None = None,
        out: PathLike,
        seed: int = 0,
        device: str = "auto",
        validation: int | str = 200,
        most: int | None = None,
    ) -> Trained:
        """Train on a collection, or on one fold of a partition of it.

        ``base`` is a folder, the name of a model, or ``scratch(…)``. Work that was stopped in the
        folder ``out`` is continued, finished work is returned at once. For the options see
        :meth:`Job.of`.
        """
        start = base_of(base)
        folder = Path(out)
        job = Job.of(
            collection,
            partition,
            fold,
            validation=validation,
            most=most,
            seed=seed,
            device=device,
        )
        if not isinstance(start, scratch):
            return self.stage(start, job, folder)
        job = Job(**{**vars(job), "from_scratch": True})
        done = self._claim(folder, job, str(start))
        if not done:
            start.make(folder / "base", job.examples.documents, seed, writes=self.writes)
        return self.stage(str(folder / "base"), job, folder, name=str(start))

    def stage(self, base: str, job: Job, folder: Path, *, name: str | None = None) -> Trained:
        """Train in a folder, unless that is done; for recipes that build on others."""
        if self._claim(folder, job, name or digest_of(base)):
            return Trained(self, folder)
        start = datetime.now(UTC)
        figures = self._train(base, job, folder)
        record = {
            "format": FORMAT,
            **self._description(job, name or base),
            "device": _device(job.device),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "wall_seconds": (datetime.now(UTC) - start).total_seconds(),
            "versions": versions_of(*_LIBRARIES),
            **job.facts,
            **figures,
            "model": digest_of(str(folder / "model")),
        }
        write_json(folder / _RECORD, record)
        for left in (*folder.glob("checkpoint.pt"), *folder.glob("best-*.pt")):
            left.unlink()
        return Trained(self, folder)

    def retriever(self, model: str) -> Retriever:
        """Return the retriever that uses a model trained by this recipe."""
        raise InputError(
            f"{self} makes a base for other recipes, not a retriever. Use it inside one, as in "
            "pretrain(contrastive())."
        )

    # -- what members say -------------------------------------------------------------------

    def _task(self, base: str, job: Job, folder: Path) -> Task:
        """Make the model and say what its steps are; other stages go before."""
        raise NotImplementedError(f"{type(self).__name__} defines no _task")

    def _train(self, base: str, job: Job, folder: Path) -> dict[str, Any]:
        """Train, and leave the model in ``folder / "model"``; return figures for the record."""
        task = self._task(base, job, folder)
        plan = self._plan(job, task)
        trace = fit(task, plan, folder)
        with quietly():
            self._save(task.model, folder / "model")
        return {"steps_planned": plan.steps, "lr": plan.lr, **trace.to_dict()}

    def _plan(self, job: Job, task: Any) -> Plan:
        epochs, lr = self._suiting(job, task.model)
        epochs, lr = self.epochs or epochs, self.lr or lr
        return Plan(
            steps=max(1, round(epochs * task.order.per_epoch)),
            lr=lr,
            warmup=self.warmup,
            decay=self.decay,
            clip=self.clip,
            checks=self.checks if job.held_out is not None else 0,
            seed=job.seed,
            compiled=self.compiled,
        )

    def _suiting(self, job: Job, model: Any) -> tuple[float, float]:
        """Epochs and learning rate that suit the base, unless they are given."""
        return self.from_scratch if job.from_scratch else self.from_trained

    def _load(self, base: str, job: Job) -> Any:
        """Load the base as a model of this kind; parts that it lacks depend on the seed."""
        assert self.kind is not None
        kind = self.kind
        return untouched(lambda: neural.load(base, kind, device=job.device, fresh=True), job.seed)

    def _save(self, model: Any, folder: Path) -> None:
        with making(folder) as place, quietly():
            model.save_pretrained(str(place), create_model_card=False)

    # -- inside -----------------------------------------------------------------------------

    def _description(self, job: Job, base: str) -> dict[str, Any]:
        return {"recipe": str(self), "base": base, "seed": job.seed}

    def _claim(self, folder: Path, job: Job, base: str) -> bool:
        """Say whether this very job is finished here; refuse a folder that holds another."""
        ours = {
            **self._description(job, base),
            "most": job.facts.get("most"),  # not in notes of work on all queries
            **{name: job.facts[name] for name in ("training", "corpus", "validation")},
        }
        note = folder / _JOB
        if note.exists():
            found = _read(note)
            for name, value in ours.items():
                if found.get(name) != value:
                    raise FileError(
                        folder,
                        f"this folder holds training with another {name} ({found.get(name)}, now "
                        f"{value}). Give another folder, or remove this one.",
                    )
            return (folder / _RECORD).exists()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileError(folder, "this holds something else. Give a new or an empty folder.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(folder, f"cannot be made: {error.strerror or error}.") from error
        write_json(note, {name: value for name, value in ours.items() if value is not None})
        return False


def _training_queries(
    collection: Collection, partition: Partition | None, fold: str | None
) -> tuple[pl.Series, pl.Series, dict[str, Any]]:
    """The queries to train on, those of all folds, and what to write down about them."""
    if partition is None:
        if fold is not None:
            raise InputError(f"fold {fold!r} is given without a partition. Give both.")
        splits = list(collection.qrels)
        split = splits[0] if len(splits) == 1 else "train"
        ids = collection.qrels[split].query_ids
        return ids, ids, {"split": split}
    folds = partition.frame["fold"].unique(maintain_order=True).to_list()
    if fold is None and len(folds) == 1:
        fold = folds[0]
    if fold not in folds:
        said = "no fold is given" if fold is None else f"there is no fold {fold!r}"
        raise InputError(
            f"{said}.{did_you_mean(fold or '', folds)} The partition has {', '.join(folds)}."
        )
    chosen = partition.frame.filter((pl.col("fold") == fold) & (pl.col("role") == "train"))
    if not len(chosen):
        raise InputError(f"the fold {fold!r} has no training queries.")
    pool = partition.frame.filter(pl.col("role") == "train")["query_id"].unique().sort()
    return chosen["query_id"], pool, {"fold": fold, "partition": partition.fingerprint}


def _unseen(collection: Collection, split: str, trained: pl.Series) -> pl.Series:
    """The queries of a split that are not trained on."""
    ids = collection.qrels[split].query_ids
    found = ids.filter(~ids.is_in(trained.implode()))
    if not len(found):
        raise InputError(f"all queries of the split {split!r} are trained on. Give another.")
    return found


def _device(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(path, f"this cannot be read ({error}). Train again.") from None
    return dict(found)
