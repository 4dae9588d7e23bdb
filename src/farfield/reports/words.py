"""Numbers in sentences: each with its interval, written one way everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

__all__ = ["change", "listed", "number", "p_value", "plural", "share", "with_interval"]


_MINUS = "\N{MINUS SIGN}"


def number(value: float) -> str:
    """Write a value of a measure: 0.512."""
    return f"{value:.3f}".replace("-", _MINUS)


def share(value: float) -> str:
    """Write a share: 12.3%."""
    return f"{value:.1%}".replace("-", _MINUS)


def change(value: float) -> str:
    """Write a relative change: +1.5%, -30.1%, with a real minus sign."""
    return f"{value:+.1%}".replace("-", _MINUS)


def p_value(value: float) -> str:
    """Write a p-value: p = 0.0213."""
    return "p < 0.0001" if value < 0.0001 else f"p = {value:.4f}"


def with_interval(
    row: Mapping[str, Any],
    name: str,
    write: Callable[[float], str] = number,
    *,
    ends: tuple[str, str] | None = None,
) -> str:
    """Write a value and its interval: 0.512 [0.480, 0.544]."""
    low, high = (row[end] for end in ends or (f"{name}_low", f"{name}_high"))
    value = write(row[name])
    known = low is not None and high is not None and isfinite(low) and isfinite(high)
    return f"{value} [{write(low)}, {write(high)}]" if known else value


def listed(names: Sequence[str]) -> str:
    """Write names one after the other: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plural(count: int, what: str, many: str = "") -> str:
    """Write a number of things: 1 query, 1,200 queries."""
    return f"{count:,} {what if count == 1 else many or what + 's'}"
