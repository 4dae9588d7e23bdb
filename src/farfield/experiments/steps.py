"""The steps of an experiment: what each needs, and a key that names all that decides its result.

A step is a pure function from the folders of other steps and a spec to files in a folder of its
own. Nothing in it depends on where it runs, so that an engine may run it anywhere that has the
files it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

from farfield.experiments.manifest import Experiment, System

__all__ = ["FORMAT", "Step", "plan"]

#: The form of a run directory; one more whenever older programs could not read it.
FORMAT = 1

# Of the tables of near and far: one more whenever there are others, so that they are made again.
_TABLES_FORM = 2


@dataclass(frozen=True, eq=False)
class Step:
    """One piece of work; ``needs`` names the steps whose folders it reads.

    ``where`` says where other inputs lie. Their content is in the spec, so it decides nothing.
    """

    kind: str
    label: str
    spec: dict[str, Any]
    needs: dict[str, Step] = field(default_factory=dict)
    where: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """16 hex digits that name the kind, the spec and, by their keys, all needs."""
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "spec": self.spec,
            "needs": {name: step.key for name, step in sorted(self.needs.items())},
        }
        text = json.dumps(content, sort_keys=True)
        return blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{self.kind}-{self.key}"


def plan(
    experiment: Experiment,
    source: str,
    folds: Callable[[Step], list[str]],
    models: Callable[[str], list[str]],
) -> list[Step]:
    """Return the steps of an experiment, each after all that it needs.

    ``source`` is the fingerprint of the collection, ``models(text)`` has those of all models that a
    base or a spec names. ``folds(step)`` gives the folds of a shift that is done; where it is not,
    an empty list, and the steps that depend on its folds are planned once they are known.
    """
    place = {"source": experiment.collection}
    collection = Step("collection", "read the collection", {"content": source}, where=place)
    steps = [collection]
    indexes: dict[str, Step] = {}
    for text in experiment.shifts:
        spec = {"shift": text, "split": experiment.split, "seed": 0, **_used(models, text)}
        shift = Step("shift", f"shift {text}", spec, {"collection": collection})
        steps.append(shift)
        distance = _distance(experiment, shift, collection, models)
        steps += [distance] if distance else []
        names = folds(shift)
        runs: dict[tuple[str, str | None, int], Step] = {}
        for system in experiment.systems:
            if not system.trained:
                if system.name not in indexes:
                    indexes[system.name] = _index(system, collection, models)
                    steps.append(indexes[system.name])
                run = _search(experiment, system.name, indexes[system.name], shift, collection)
                runs[system.name, None, 0] = run
                steps.append(run)
                continue
            trained = {}
            for fold in names:
                for seed in experiment.seeds:
                    made = _trained(experiment, system, fold, seed, shift, collection, models)
                    steps += made
                    runs[system.name, fold, seed] = made[-1]
                    trained[fold, seed] = made[0]
            if names and experiment.pictures and system.pictured:
                chosen = {fold: trained[fold, experiment.seeds[0]] for fold in names}
                steps.append(_picture(system, chosen, shift, collection))
        steps += _fused(experiment, names, runs, shift)
        if names:
            steps.append(_nearfar(experiment, runs, shift, distance))
    return steps


def _used(models: Callable[[str], list[str]], spec: str | None) -> dict[str, list[str]]:
    """What the models are that a spec names, if there are any: the key must tell them apart."""
    found = models(spec) if spec else []
    return {"models": found} if found else {}


def _distance(
    experiment: Experiment, shift: Step, collection: Step, models: Callable[[str], list[str]]
) -> Step | None:
    """How far the near and far queries of every fold are from what is trained on."""
    if not experiment.indicators:
        return None
    spec = {
        "indicators": list(experiment.indicators),
        "encoder": experiment.encoder,
        **_used(models, experiment.encoder),
    }
    needs = {"shift": shift, "collection": collection}
    return Step("distance", f"distances, {shift.spec['shift']}", spec, needs)


def _index(system: System, collection: Step, models: Callable[[str], list[str]]) -> Step:
    spec = {"retriever": system.retriever, **_used(models, system.retriever)}
    return Step("index", f"index {system.name}", spec, {"collection": collection})


def _search(experiment: Experiment, name: str, index: Step, shift: Step, collection: Step) -> Step:
    needs = {"index": index, "shift": shift, "collection": collection}
    return Step("search", f"search {name}", {"name": name, "depth": experiment.depth}, needs)


def _trained(
    experiment: Experiment,
    system: System,
    fold: str,
    seed: int,
    shift: Step,
    collection: Step,
    models: Callable[[str], list[str]],
) -> list[Step]:
    """Train on a fold, index with the model, search."""
    where = f"{system.name}, fold {fold}" + (f", seed {seed}" if len(experiment.seeds) > 1 else "")
    spec = {
        "recipe": system.recipe,
        **_used(models, system.recipe),
        "content": models(str(system.base)) or [str(system.base)],
        "fold": fold,
        "seed": seed,
        "validation": experiment.validation,
    }
    if system.most is not None:  # else the key stays what it was without this entry
        spec["most"] = system.most
    needs = {"shift": shift, "collection": collection}
    train = Step("train", f"train {where}", spec, needs, where={"base": system.base})
    needs = {"model": train, "collection": collection}
    index = Step("index", f"index {where}", {"recipe": system.recipe}, needs)
    found = {"index": index, "model": train, "shift": shift, "collection": collection}
    search = {"name": system.name, "depth": experiment.depth, "recipe": system.recipe}
    return [train, index, Step("search", f"search {where}", search, found)]


def _fused(
    experiment: Experiment,
    folds: list[str],
    runs: dict[tuple[str, str | None, int], Step],
    shift: Step,
) -> list[Step]:
    made = []
    trained = {system.name for system in experiment.systems if system.trained}
    for fused in experiment.fusions:
        alone = not trained & set(fused.of)
        pairs = [(None, 0)] if alone else [(f, s) for f in folds for s in experiment.seeds]
        for fold, seed in pairs:
            needs = {
                f"run {number}": runs[(of, fold, seed) if of in trained else (of, None, 0)]
                for number, of in enumerate(fused.of)
            }
            where = "" if fold is None else f", fold {fold}"
            where += f", seed {seed}" if len(experiment.seeds) > 1 and fold is not None else ""
            spec = {"fusion": fused.fusion, "name": fused.name, "depth": experiment.depth}
            step = Step("fuse", f"fuse {fused.name}{where}", spec, {**needs, "shift": shift})
            runs[fused.name, fold, seed] = step
            made.append(step)
    return made


def _picture(system: System, models: dict[str, Step], shift: Step, collection: Step) -> Step:
    """Where the models of the folds put passages; one seed is enough for that."""
    needs = {f"model {number}": model for number, model in enumerate(models.values())}
    spec = {"system": system.name, "recipe": system.recipe, "folds": list(models), "seed": 0}
    label = f"picture {system.name}, {shift.spec['shift']}"
    return Step("picture", label, spec, {**needs, "shift": shift, "collection": collection})


def _nearfar(
    experiment: Experiment,
    runs: dict[tuple[str, str | None, int], Step],
    shift: Step,
    distance: Step | None,
) -> Step:
    listed = [[system, fold, seed] for system, fold, seed in runs]
    needs = {f"run {number}": step for number, step in enumerate(runs.values())}
    needs |= {"shift": shift} | ({"distance": distance} if distance else {})
    spec = {"runs": listed, "measures": list(experiment.measures), "form": _TABLES_FORM}
    return Step("nearfar", f"near and far, {shift.spec['shift']}", spec, needs)
