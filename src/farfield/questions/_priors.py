"""Which runs come before which: in the order given, by date, or all the others."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError, did_you_mean
from farfield.questions._small_files import read_pairs
from farfield.stats.checks import choice

__all__ = ["DATE_TIES", "before", "dates_of", "turns"]

DATE_TIES = ("error", "earlier", "together")

_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.intp]


def dates_of(
    given: Mapping[str, Any] | str | os.PathLike[str] | None, names: Sequence[str]
) -> dict[str, str] | None:
    """Return the date of every run as a text that sorts: 2020, 2020-10 or 2020-10-31."""
    if given is None:
        return None
    known = read_pairs(given, "run", "date") if isinstance(given, str | os.PathLike) else given
    dates: dict[str, str] = {}
    for name in names:
        if name not in known:
            raise InputError(
                f"the dates lack the run {name!r}.{did_you_mean(name, known)} "
                f"They have {', '.join(known) or 'none'}. Add a line for it."
            )
        dates[name] = str(known[name])
        if not _is_date(dates[name]):
            raise InputError(
                f"the date of {name!r} is {dates[name]!r}, expected 2020, 2020-10 or 2020-10-31."
            )
    # 2020-10 and 2020-10-05: nobody can say which was first.
    coarse, fine = (pick(dates, key=lambda name: len(dates[name])) for pick in (min, max))
    if len(dates[coarse]) != len(dates[fine]):
        raise InputError(
            f"the date of {coarse!r} is {dates[coarse]} and that of {fine!r} is {dates[fine]}: "
            "which was first cannot be told. Give all dates alike: years, months or days."
        )
    return dates


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None


def turns(names: Sequence[str], dates: Mapping[str, str] | None, ties: str) -> Integers:
    """Return the turn of each of the runs, which are in order; those of one date may share one."""
    choice("date_ties", ties, DATE_TIES)
    if dates is None or ties == "earlier":
        return np.arange(len(names))
    when = [dates[name] for name in names]
    twice = next((at for at in range(1, len(when)) if when[at] == when[at - 1]), None)
    if ties == "error" and twice is not None:
        raise InputError(
            f"{names[twice - 1]!r} and {names[twice]!r} have the same date, {when[twice]}. Say "
            "what that means: --date-ties earlier (the run given first is the earlier) or "
            "--date-ties together (neither comes before the other), or give finer dates."
        )
    return np.unique(when, return_inverse=True)[1].astype(np.intp)


def before(names: Sequence[str], against: str | tuple[str, ...], turn: Integers) -> Bools:
    """Return a matrix that says of row and column: is the second run prior to the first?"""
    if against == "others":
        prior = np.ones((len(names), len(names)), dtype=np.bool_)
    elif against == "earlier":
        prior = turn[None, :] < turn[:, None]
    else:
        for name in against:
            if name not in names:
                raise InputError(
                    f"against is {name!r}.{did_you_mean(name, [*names, 'others', 'earlier'])} "
                    f"Expected others, earlier or runs: {', '.join(names)}."
                )
        prior = np.tile([name in against for name in names], (len(names), 1))
    np.fill_diagonal(prior, val=False)
    return prior
