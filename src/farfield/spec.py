"""One spelling for everything: ``name(key=value)@cutoff``.

The same text is the argument on the command line, the entry in a manifest, the key of a cache,
the header of a column and the label in a report, and ``parse(str(x)) == x`` holds for every member
of every family. Specs nest: ``rm3(bm25(k1=0.9), docs=10)``. Defaults are left out.

A member is a frozen, keyword-only dataclass. In its spec, members that a field needs come first and
without a name; all others are written as ``key=value``; the field ``cutoff`` follows the ``@``.
Values given without a name go to the class's own fields in order, then to those it inherits.
"""

from __future__ import annotations

import ast
import types
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from farfield.errors import SpecError, did_you_mean

__all__ = ["Member", "Spec", "build", "parse"]

_LONGEST = 2_000

M = TypeVar("M", bound="Member")


@dataclass(frozen=True)
class Spec:
    """A parsed text: a name with arguments, options and a cutoff, not yet looked up."""

    name: str
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    cutoff: float | None = None  # members take whole numbers; ir_measures has IPrec@0.5
    bare: bool = False  # written as a single word, so it may also be a plain text

    def __str__(self) -> str:
        written = [_write(value) for value in self.arguments]
        written += [f"{key}={_write(value)}" for key, value in self.options]
        inside = f"({', '.join(written)})" if written or not self.bare else ""
        return self.name + inside + ("" if self.cutoff is None else f"@{self.cutoff}")


class Member:
    """A member of a family: a frozen, keyword-only dataclass with a spec."""

    #: Names other than the class's own under which the member is found.
    aliases: ClassVar[tuple[str, ...]] = ()
    #: Are the brackets left out when there is nothing in them? (Measures: ``RR``, not ``RR()``.)
    bare: ClassVar[bool] = False

    @property
    def spec(self) -> Spec:
        """The parsed form of ``str(self)``."""
        arguments: list[Any] = []
        options: list[tuple[str, Any]] = []
        cutoff = None
        for field in fields(self):  # type: ignore[arg-type]  # members are dataclasses
            value = getattr(self, field.name)
            if field.name == "cutoff":
                cutoff = value
            elif _default(field) is MISSING and isinstance(value, Member):
                arguments.append(value)
            elif isinstance(value, tuple) and any(isinstance(item, Member) for item in value):
                arguments += value
            elif value != _default(field):
                options.append((field.name, value))
        return Spec(type(self).__name__, tuple(arguments), tuple(options), cutoff, bare=self.bare)

    def __str__(self) -> str:
        return str(self.spec)


def parse(text: str) -> Spec:
    """Read a spec; what it names is looked up by a registry."""
    if len(text) > _LONGEST:
        raise SpecError(f"a spec of {len(text):,} characters: expected at most {_LONGEST:,}.")
    try:
        node = ast.parse(text.strip(), mode="eval").body
        return _to_spec(node, text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _unreadable(text, "it is not of the form name(key=value)@cutoff") from error


def build(kind: type[M], spec: Spec, look_up: Any) -> M:
    """Make a member of class ``kind`` from a spec.

    ``look_up(base, spec)`` makes a nested member whose class must descend from ``base``.
    """
    names = [field.name for field in fields(kind) if field.name != "cutoff"]  # type: ignore[arg-type]
    names.sort(key=lambda name: name not in kind.__annotations__)  # its own fields first
    hints = get_type_hints(kind)
    given: dict[str, Any] = dict(spec.options)
    if len(given) < len(spec.options):
        raise _unreadable(str(spec), "an option is given twice")
    given |= _place_arguments(kind, spec, names, hints, set(given))
    if spec.cutoff is not None:
        if "cutoff" not in hints:
            raise SpecError(f"{spec}: {kind.__name__} takes no cutoff (@{spec.cutoff}).")
        if type(spec.cutoff) is not int or spec.cutoff < 1:
            raise SpecError(f"{spec}: the cutoff after @ is {spec.cutoff}, expected 1, 2, 3 …")
        given["cutoff"] = spec.cutoff
    for name in given:
        if name not in hints or name not in {*names, "cutoff"}:
            takes = f"It takes {', '.join(names)}." if names else "It takes no options."
            raise SpecError(
                f"{spec}: {kind.__name__} has no option {name!r}."
                f"{did_you_mean(name, names)} {takes}"
            )
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in given and _default(field) is MISSING:
            raise SpecError(f"{spec}: {kind.__name__} needs {_needs(kind, field.name)}.")
    try:
        return kind(
            **{name: _fit(value, hints[name], name, spec, look_up) for name, value in given.items()}
        )
    except SpecError as error:
        # A member checks its own values; say where they stand.
        text = str(error)
        raise (error if str(spec) in text else SpecError(f"{spec}: {text}")) from error


# -- reading ------------------------------------------------------------------------------------


def _to_spec(node: ast.expr, text: str) -> Spec:
    cutoff = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        value = _to_value(node.right, text)
        if type(value) not in (int, float):
            raise _unreadable(text, f"the cutoff after @ is {_write(value)}, expected a number")
        cutoff, node = value, node.left
    called = node.func if isinstance(node, ast.Call) else node
    # Python folds look-alikes into one name: "ª" would be read as "a".
    if isinstance(called, ast.Name) and not (called.id.isascii() and called.id in text):
        raise _unreadable(text, "names are of plain letters, digits and _")
    if isinstance(node, ast.Name):
        return Spec(node.id, cutoff=cutoff, bare=True)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        options = []
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _unreadable(text, "** has no meaning here")
            options.append((keyword.arg, _to_value(keyword.value, text)))
        arguments = tuple(_to_value(argument, text) for argument in node.args)
        return Spec(node.func.id, arguments, tuple(options), cutoff)
    raise _unreadable(text, "it is not of the form name(key=value)@cutoff")


def _to_value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and type(node.operand.value) in (int, float)
    ):
        return -node.operand.value  # type: ignore[operator]  # just checked
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_to_value(item, text) for item in node.elts)
    return _to_spec(node, text)


def _unreadable(text: str, why: str) -> SpecError:
    shown = text if len(text) <= 100 else text[:97] + "…"
    return SpecError(
        f"cannot read {shown!r}: {why}. Examples: nDCG@10, RR(rel=2)@10, rrf(k=60). "
        "Put texts with other characters than letters, digits and _ in quotes."
    )


# -- writing ------------------------------------------------------------------------------------


def _write(value: Any) -> str:
    if isinstance(value, Member | Spec):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_write, value)) + "]"
    return repr(value)


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


# -- fitting values to fields -------------------------------------------------------------------


def _place_arguments(
    kind: type[Member], spec: Spec, names: list[str], hints: dict[str, Any], taken: set[str]
) -> dict[str, Any]:
    """Give arguments without a name to the fields in order; a tuple of members takes the rest."""
    placed: dict[str, Any] = {}
    waiting = list(spec.arguments)
    for name in names:
        if not waiting:
            break
        if name in taken:
            continue
        if get_origin(hints[name]) is tuple and not isinstance(waiting[0], tuple):
            placed[name], waiting = tuple(waiting), []
        else:
            placed[name] = waiting.pop(0)
    if waiting:
        raise SpecError(
            f"{spec}: {kind.__name__} takes {len(names)} arguments, {len(spec.arguments)} given."
        )
    return placed


def _fit(value: Any, hint: Any, name: str, spec: Spec, look_up: Any) -> Any:
    """Turn a value into what the field holds, or say what it should have been."""
    expected = _expected(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        choices = get_args(hint)
        if value is None and type(None) in choices:
            return None
        (hint,) = [choice for choice in choices if choice is not type(None)]
        origin = get_origin(hint)
    if origin is tuple and isinstance(value, tuple):
        return tuple(_fit(item, get_args(hint)[0], name, spec, look_up) for item in value)
    if isinstance(hint, type) and issubclass(hint, Member):
        if isinstance(value, Member) and isinstance(value, hint):
            return value
        if isinstance(value, Spec):
            return look_up(hint, value)
        raise SpecError(f"{spec}: {name} is {_write(value)}, expected {expected}.")
    if isinstance(value, Spec) and value.bare and value.cutoff is None:
        value = value.name  # a single word without quotes is a text
    fits = {
        bool: type(value) is bool,
        int: type(value) is int,
        float: type(value) in (int, float),
        str: type(value) is str,
    }.get(hint, origin is Literal and value in get_args(hint))
    if not fits:
        suggestion = did_you_mean(str(value), map(str, get_args(hint)))
        raise SpecError(f"{spec}: {name} is {_write(value)}, expected {expected}.{suggestion}")
    return float(value) if hint is float else value


def _expected(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_expected(choice) for choice in get_args(hint))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    if origin is tuple:
        return f"a list of which each is {_expected(get_args(hint)[0])}"
    known = {
        bool: "True or False",
        int: "a whole number",
        float: "a number",
        str: "a text",
        type(None): "None",
    }
    return known.get(hint) or f"a {hint.__name__.lower()}"


def _needs(kind: type[Member], name: str) -> str:
    return f"a cutoff, like {kind.__name__}@10" if name == "cutoff" else f"{name}=…"
