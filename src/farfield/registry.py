"""Families of members, found by file name, by entry point, or added in a notebook.

A shipped member is one file in its family's package: ``measures/ndcg.py`` holds the class ``nDCG``
(the file's name is the class's in lower case). Only the file of a member that is asked for is
imported. Other packages add members with an entry point in the group ``farfield.<family>``:

    [project.entry-points."farfield.measures"]
    Novelty = "my_package:Novelty"

and ``@measures.add`` adds one for this process. No name can be taken twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from farfield.errors import SpecError, did_you_mean
from farfield.spec import Member, Spec, build, parse

__all__ = ["Family"]

M = TypeVar("M", bound=Member)

#: Every family, so that a member can hold members of another (a hybrid holds a fusion).
_FAMILIES: list[Family[Any]] = []


class Family(Generic[M]):
    """All members of one kind, by name."""

    def __init__(
        self,
        name: str,
        base: type[M],
        *,
        package: str | None = None,
        otherwise: Callable[[str], M | None] | None = None,
    ) -> None:
        self.name = name
        self.base = base
        self._package = package or f"farfield.{name}"
        self._otherwise = otherwise
        self._added: dict[str, type[M]] = {}
        _FAMILIES.append(self)

    def __repr__(self) -> str:
        return f"<Family {self.name}>"

    # -- finding ----------------------------------------------------------------------------

    def names(self) -> list[str]:
        """All names, sorted without regard to case."""
        return sorted((kind.__name__ for kind in self), key=lambda n: (n.casefold(), n))

    def __iter__(self) -> Iterator[type[M]]:
        """Yield every member's class: shipped, from other packages, added."""
        for stem in self._files():
            yield self._shipped(stem)
        for name, entry in self._entry_points().items():
            yield self._load(name, entry)
        yield from self._added.values()

    def get(self, name: str) -> type[M]:
        """Return the class with this name, or raise with a suggestion."""
        kind = self._find(name)
        if kind is None:
            known = self.names()
            raise SpecError(
                f"no {self._noun} is called {name!r}.{did_you_mean(name, known)} "
                f"Known: {', '.join(known) or 'none'}."
            )
        return kind

    def parse(self, text: str | M) -> M:
        """Make a member from its spec; a member is returned as it is."""
        if isinstance(text, self.base):
            return text
        if not isinstance(text, str):
            raise SpecError(
                f"{text!r} is {type(text).__name__}, expected a {self._noun} or its spec as a text."
            )
        spec = parse(text)
        if self._otherwise is not None and self._find(spec.name) is None:
            member = self._otherwise(text)
            if member is not None:
                return member
        return self._build(spec)

    # -- adding -----------------------------------------------------------------------------

    def add(self, kind: type[M]) -> type[M]:
        """Add a class for this process (a decorator)."""
        self._check(kind, f"class {kind.__qualname__} of {kind.__module__}")
        earlier = self._find(kind.__name__)
        # Running a notebook cell again defines the same class again; that replaces it.
        rerun = (
            earlier is not None
            and kind.__name__ in self._added
            and (earlier.__module__, earlier.__qualname__) == (kind.__module__, kind.__qualname__)
        )
        if earlier is not None and not rerun:
            raise SpecError(
                f"{self._noun} {kind.__name__!r} exists already (in {earlier.__module__}); "
                "give yours another name."
            )
        self._added[kind.__name__] = kind
        return kind

    # -- inside -----------------------------------------------------------------------------

    @property
    def _noun(self) -> str:
        return self.name.removesuffix("s")

    def _build(self, spec: Spec) -> M:
        return build(self.get(spec.name), spec, _look_up)

    def _find(self, name: str) -> type[M] | None:
        if name in self._added:
            return self._added[name]
        if name.casefold() in self._files():
            kind = self._shipped(name.casefold())
            if kind.__name__ == name:
                return kind
        entry = self._entry_points().get(name)
        if entry is not None:
            return self._load(name, entry)
        return next((kind for kind in self if name in kind.aliases), None)

    def _files(self) -> list[str]:
        path = import_module(self._package).__path__
        return [m.name for m in iter_modules(path) if m.name != "base" and m.name[0] != "_"]

    def _shipped(self, stem: str) -> type[M]:
        module = import_module(f"{self._package}.{stem}")
        kind = next(value for name, value in vars(module).items() if name.casefold() == stem)
        self._check(kind, f"{module.__name__}")
        return kind  # type: ignore[no-any-return]  # checked by _check

    def _entry_points(self) -> dict[str, Any]:
        # Reading the metadata of every installed package takes a while: only when it is needed.
        from importlib.metadata import entry_points

        found: dict[str, Any] = {}
        shipped = set(self._files())
        for entry in entry_points(group=f"farfield.{self.name}"):
            source = entry.dist.name if entry.dist is not None else "an unknown package"
            if entry.name.casefold() in shipped:
                raise SpecError(
                    f"the package {source} adds a {self._noun} called {entry.name!r}, a name that "
                    "farfield uses itself. Rename it in that package, or uninstall the package."
                )
            if entry.name in found and found[entry.name].value != entry.value:
                other = found[entry.name].dist
                raise SpecError(
                    f"two packages ({other.name if other else '?'} and {source}) add a "
                    f"{self._noun} called {entry.name!r}. Uninstall one of them."
                )
            found[entry.name] = entry
        return found

    def _load(self, name: str, entry: Any) -> type[M]:
        source = entry.dist.name if entry.dist is not None else "an unknown package"
        try:
            kind = entry.load()
        except Exception as error:  # whatever a stranger's module does when imported
            raise SpecError(
                f"{self._noun} {name!r} of the package {source} cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
        self._check(kind, f"{entry.value} of the package {source}")
        if kind.__name__ != name:
            raise SpecError(
                f"{entry.value} of the package {source} is registered as {name!r} but called "
                f"{kind.__name__!r}. The two must be the same, or specs cannot be read back."
            )
        return kind  # type: ignore[no-any-return]  # checked by _check

    def _check(self, kind: Any, where: str) -> None:
        """Refuse at the door what would fail later."""
        if not (isinstance(kind, type) and issubclass(kind, self.base)):
            raise SpecError(f"{where} is not a {self.base.__name__}. Derive it from that class.")
        if "__dataclass_params__" not in vars(kind):  # its own, not one that it inherits
            raise SpecError(
                f"{where} is not a frozen dataclass. Decorate it with "
                "@dataclass(frozen=True, kw_only=True)."
            )


def _look_up(base: type[Member], spec: Spec) -> Member:
    """Make a nested member from the family whose members descend from ``base``, or all of it."""
    for family in _FAMILIES:
        if issubclass(family.base, base) or issubclass(base, family.base):
            member: Member = family._build(spec)
            if not isinstance(member, base):
                known = [kind.__name__ for kind in family if issubclass(kind, base)]
                raise SpecError(
                    f"{spec} cannot be used here: expected one of {', '.join(sorted(known))}."
                )
            return member
    raise SpecError(f"{spec}: no family holds a {base.__name__}.")
