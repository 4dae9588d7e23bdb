"""What the functions here accept: arrays of finite numbers, shares, whole numbers, choices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError, did_you_mean

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.intp]

_HINTS = {
    1: "Give one number per query; for several columns use means().",
    2: "Give one row per query and one column per system; for one column use mean().",
}


def finite(values: npt.ArrayLike, name: str, ndim: int) -> Floats:
    """Return ``values`` as finite numbers of the right shape, or say what is wrong with them."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} cannot be read as numbers ({error}). Give one number per query."
        ) from None
    if array.ndim != ndim:
        raise InputError(
            f"{name} has {array.ndim} dimension(s), where {ndim} is expected. {_HINTS[ndim]}"
        )
    if array.size == 0:
        raise InputError(
            f"{name} is empty, and a mean of nothing does not exist. Give at least one value."
        )
    good = np.isfinite(array)
    if not good.all():
        place = np.unravel_index(int(np.argmin(good)), array.shape)
        raise InputError(
            f"{name}[{', '.join(str(i) for i in place)}] is {array[place]}, where a finite number "
            "is expected. Score the query or leave it out of every system; a missing value is "
            "never averaged over."
        )
    return array


def pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return two columns of finite numbers, of the same queries."""
    first, second = finite(a, "a", 1), finite(b, "b", 1)
    if len(first) != len(second):
        raise InputError(
            f"a has {len(first)} values and b has {len(second)}, where pairs are expected. Give "
            "both in the same order of the same queries, or compare them as unpaired samples."
        )
    return first, second


def share(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise InputError(
            f"{name} is {value!r}, where a number strictly between 0 and 1 is expected. "
            "Write 95 % as 0.95."
        )
    return float(value)


def whole(name: str, value: int, least: int) -> int:
    """Return a whole number no smaller than ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(
            f"{name} is {value!r}, where a whole number of at least {least} is expected. "
            f"Give {name}={least} or more."
        )
    return number


def choice(name: str, value: str, known: Sequence[str]) -> None:
    """Refuse a value that is not one of the ``known`` names."""
    if value not in known:
        raise InputError(
            f"{name} is {value!r}, which names nothing known. Choose one of "
            f"{', '.join(known)}.{did_you_mean(str(value), known)}"
        )


def cluster_codes(clusters: npt.ArrayLike, n: int) -> Integers:
    """Number the clusters in the order in which they first appear.

    That order, and not the order of the labels, decides which cluster a draw stands for, so that
    clusters of one query each give the very interval that no clusters give.
    """
    labels: npt.NDArray[Any] = np.asarray(clusters)
    if labels.shape != (n,):
        raise InputError(
            f"clusters has shape {labels.shape}, where one label for each of the {n} values is "
            "expected. Give the label of every query, in the order of the values."
        )
    # Of all labels only NaN differs from itself.
    missing = np.flatnonzero((labels == np.array(None)) | np.not_equal(labels, labels))
    if len(missing):
        raise InputError(
            f"clusters[{missing[0]}] is missing, where a label is expected. Give a query that "
            "belongs to no cluster a label of its own."
        )
    known: dict[Any, int] = {}
    return np.array(
        [known.setdefault(label, len(known)) for label in labels.tolist()], dtype=np.intp
    )
