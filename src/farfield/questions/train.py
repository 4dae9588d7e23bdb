"""What does a model learn from these queries? Train one by a recipe."""

from __future__ import annotations

from farfield import recipes
from farfield.collection import Collection
from farfield.io import read, read_collection
from farfield.io.files import PathLike
from farfield.recipes import Recipe, Trained
from farfield.tables import Partition
from farfield.training import scratch

__all__ = ["train"]


def train(
    recipe: str | Recipe,
    collection: Collection | PathLike,
    out: PathLike,
    *,
    base: str | scratch = "scratch()",
    partition: Partition | PathLike | None = None,
    fold: str | None = None,
    validation: int | str = 200,
    most: int | None = None,
    device: str = "auto",
    seed: int = 0,
) -> Trained:
    """Train a model by a recipe, on the training queries of a collection or of one fold.

    ``recipe`` is a member of :mod:`farfield.recipes` or its spec, like ``"contrastive()"``;
    ``base`` is a folder, the name of a model, or ``"scratch(layers=2, dim=128)"``. ``partition``
    and ``fold`` say which queries to train on (see :func:`farfield.shift`). ``validation`` is how
    many of them are held out to choose the best checkpoint, or a split of the collection for it.
    ``most`` trains on no more than so many of the others, drawn at random by the seed: fewer are
    among more, for learning curves.
    Work that was stopped in the folder ``out`` is continued; if it was finished, it is opened.
    """
    member = recipes.parse(recipe)
    if not isinstance(collection, Collection):
        collection = read_collection(collection)
    if partition is not None and not isinstance(partition, Partition):
        partition = read(partition, Partition)
    return member.run(
        base,
        collection,
        partition=partition,
        fold=fold,
        out=out,
        seed=seed,
        device=device,
        validation=validation,
        most=most,
    )
