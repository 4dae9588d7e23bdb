"""What an experiment is: a toml file, read with all its mistakes named."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farfield import encoders, fusions, indicators, measures, recipes, retrievers, shifts
from farfield.errors import FileError, SpecError, did_you_mean
from farfield.io import irds
from farfield.io.files import PathLike, load
from farfield.questions.nearfar import INDICATORS

__all__ = ["Experiment", "Fused", "System", "read"]

_EXAMPLE = 'dense = { recipe = "contrastive()", base = "scratch()" } or bm25 = "bm25()"'


@dataclass(frozen=True)
class System:
    """A retriever as it is, or a recipe that trains one on every fold."""

    name: str
    retriever: str | None = None
    recipe: str | None = None
    base: str | None = None
    most: int | None = None  # training queries

    def to_dict(self) -> str | dict[str, Any]:
        """Return it as a manifest has it."""
        if self.recipe is None:
            return str(self.retriever)
        limit = {} if self.most is None else {"most": self.most}
        return {"recipe": self.recipe, "base": self.base, **limit}

    @property
    def trained(self) -> bool:
        """Is there a model for every fold?"""
        return self.recipe is not None

    @property
    def pictured(self) -> bool:
        """Has its model one vector for a passage, which has a place in a plane?"""
        if self.recipe is None:
            return False
        retriever = recipes.parse(self.recipe).retriever("model")
        return getattr(retriever, "kind", None) in ("dense", "sparse")


@dataclass(frozen=True)
class Fused:
    """A fusion of the runs of systems."""

    name: str
    fusion: str
    of: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """All that decides the results; specs are written in full, so that defaults are said."""

    name: str
    collection: str
    shifts: tuple[str, ...]
    systems: tuple[System, ...]
    fusions: tuple[Fused, ...] = ()
    measures: tuple[str, ...] = ("nDCG@10", "RR@10", "R@100")
    seeds: tuple[int, ...] = (0,)
    depth: int = 100
    validation: int = 200
    device: str = "auto"
    indicators: tuple[str, ...] = INDICATORS  # of how far what is tested is from what is trained on
    encoder: str = "lsa()"  # of queries, for indicators that compare vectors
    pictures: bool = False
    split: dict[str, Any] = field(default_factory=dict)  # train, test, share, together
    text: str = ""  # as it was given
    home: str = ""  # paths in specs count from here

    def to_dict(self) -> dict[str, Any]:
        """Return it resolved, for the record."""
        return {
            "name": self.name,
            "collection": self.collection,
            "split": self.split,
            "shifts": list(self.shifts),
            "systems": {s.name: s.to_dict() for s in self.systems},
            "fusions": {f.name: {"fusion": f.fusion, "of": list(f.of)} for f in self.fusions},
            "measures": list(self.measures),
            "seeds": list(self.seeds),
            "depth": self.depth,
            "validation": self.validation,
            "device": self.device,
            "indicators": list(self.indicators),
            "encoder": self.encoder,
            "pictures": self.pictures,
        }


_KNOWN = {
    "name": str,
    "collection": str,
    "shifts": list,
    "systems": dict,
    "fusions": dict,
    "measures": list,
    "seeds": list,
    "depth": int,
    "validation": int,
    "device": str,
    "indicators": list,
    "encoder": str,
    "pictures": bool,
    "train": str,
    "test": str,
    "share": float,
    "together": str,
}


def read(path: PathLike) -> Experiment:
    """Read an experiment from a toml file; paths in it count from its folder."""
    file = Path(path)
    text = load(file).text()
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(file, f"this is not toml: {error}.") from None
    return _Reader(file, given).experiment(text)


class _Reader:
    """Takes a manifest apart, and says of each mistake where it stands."""

    def __init__(self, file: Path, given: dict[str, Any]) -> None:
        self.file, self.given = file, given

    def experiment(self, text: str) -> Experiment:
        for name, value in self.given.items():
            if name not in _KNOWN:
                raise self.fault(
                    f"there is no entry {name!r}.{did_you_mean(name, _KNOWN)} There are "
                    f"{', '.join(_KNOWN)}."
                )
            wanted = _KNOWN[name]
            fits = isinstance(value, wanted) or (wanted is float and isinstance(value, int))
            if not fits or (isinstance(value, bool) and wanted is not bool):
                raise self.fault(f"{name} is {value!r}, expected {_said(wanted)}.")
        for name in ("collection", "shifts", "systems"):
            if not self.given.get(name):
                raise self.fault(f"{name} is missing. Every experiment needs one.")
        names: list[str] = ["train", "test", "share", "together"]
        split = {name: self.given[name] for name in names if name in self.given}
        experiment = Experiment(
            name=self.given.get("name", self.file.stem),
            collection=self.path(self.given["collection"]),
            shifts=self.specs("shifts", shifts),
            systems=tuple(self.system(*item) for item in self.given["systems"].items()),
            fusions=tuple(self.fused(*item) for item in self.given.get("fusions", {}).items()),
            measures=self.specs("measures", measures, Experiment.measures),
            seeds=self.numbers("seeds", Experiment.seeds),
            depth=self.given.get("depth", Experiment.depth),
            validation=self.given.get("validation", Experiment.validation),
            device=self.given.get("device", Experiment.device),
            indicators=self.specs("indicators", indicators, INDICATORS, none=True),
            encoder=str(self.parsed(encoders, self.given.get("encoder", "lsa()"), "encoder")),
            pictures=self.given.get("pictures", False),
            split=split,
            text=text,
            home=str(self.file.parent.resolve()),
        )
        if experiment.depth < 1:
            raise self.fault(f"depth is {experiment.depth}, expected 1, 2, 3 … results a query.")
        if experiment.pictures and not any(system.pictured for system in experiment.systems):
            raise self.fault(
                "pictures = true, but no system is trained that has one vector for a passage, as "
                "dense and sparse models have. Add one, or leave pictures out."
            )
        return experiment

    def specs(
        self, name: str, family: Any, default: tuple[str, ...] = (), *, none: bool = False
    ) -> tuple[str, ...]:
        given = self.given.get(name, list(default))
        found = []
        for text in given:
            found.append(str(self.parsed(family, text, name)))
            if found.count(found[-1]) > 1:
                raise self.fault(f"{name}: {found[-1]} is given twice.")
        if not found and not none:
            raise self.fault(f"{name} is empty. Give at least one.")
        return tuple(found)

    def parsed(self, family: Any, text: Any, where: str) -> Any:
        try:
            return family.parse(text)
        except SpecError as error:
            raise self.fault(f"{where}: {error}") from None

    def numbers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        given = self.given.get(name, list(default))
        good = all(type(n) is int and n >= 0 for n in given)
        if not given or not good or len(set(given)) < len(given):
            raise self.fault(f"{name} is {given!r}, expected different whole numbers, like [0, 1].")
        return tuple(given)

    def system(self, name: str, value: Any) -> System:
        where = f"systems.{name}"
        if isinstance(value, str):
            return System(name, retriever=str(self.parsed(retrievers, value, where)))
        known = {"recipe", "base", "most"}
        if not isinstance(value, dict) or not known >= set(value) >= {"recipe"}:
            raise self.fault(f"{where} is {value!r}, expected something like {_EXAMPLE}.")
        most = value.get("most")
        if most is not None and (type(most) is not int or most < 1):
            raise self.fault(f"{where}: most is {most!r}, expected 1, 2, 3 … training queries.")
        recipe = self.parsed(recipes, value["recipe"], where)
        base = str(value.get("base", "scratch()"))
        if "(" not in base and (self.file.parent / base).exists():
            base = self.path(base)
        return System(name, recipe=str(recipe), base=base, most=most)

    def fused(self, name: str, value: Any) -> Fused:
        where = f"fusions.{name}"
        if not isinstance(value, dict) or set(value) != {"fusion", "of"}:
            raise self.fault(
                f'{where} is {value!r}, expected {{ fusion = "rrf()", of = ["bm25", "dense"] }}.'
            )
        systems = self.given["systems"]
        if name in systems:
            raise self.fault(f"{where}: a system is called {name!r} too. Rename one of them.")
        for system in value["of"]:
            if system not in systems:
                raise self.fault(
                    f"{where}: there is no system {system!r}.{did_you_mean(system, systems)}"
                )
        fusion = self.parsed(fusions, value["fusion"], where)
        if fusion.needs_qrels:
            raise self.fault(f"{where}: {fusion} needs judgements, which no system has.")
        fusion.check(value["of"])
        return Fused(name, str(fusion), tuple(value["of"]))

    def path(self, text: str) -> str:
        return text if irds.is_name(text) else str((self.file.parent / text).resolve())

    def fault(self, message: str) -> FileError:
        return FileError(self.file, message)


def _said(kind: type) -> str:
    said = {str: "a text", list: "a list", dict: "a table", bool: "true or false"}
    return {**said, int: "a whole number", float: "a number"}[kind]
