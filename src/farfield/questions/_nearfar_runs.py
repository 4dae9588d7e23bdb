"""The runs that near and far are told from: read from a list, and checked against the folds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from farfield.errors import FileError, InputError, did_you_mean
from farfield.io.files import PathLike
from farfield.questions._small_files import read_rows
from farfield.tables import Run

__all__ = ["Trained", "check_runs", "read_trained"]

#: A run of a system trained on one fold; ``fold`` is ``None`` for one that no fold changes.
Trained = tuple[str, str | None, int, Run | PathLike]


def read_trained(path: PathLike) -> list[Trained]:
    """Read a list of runs: system, run (a path), and perhaps fold and seed."""
    frame = read_rows(path)
    for name in ("system", "run"):
        if name not in frame.columns:
            raise FileError(
                path,
                f"no column {name!r}.{did_you_mean(name, frame.columns)} Found "
                f"{', '.join(frame.columns)}; expected system, run, and perhaps fold and seed.",
            )
    folder = Path(path).parent
    found: list[Trained] = []
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        system, run = row["system"], row["run"]
        if not system or not run:
            raise FileError(path, f"row {number}: system or run is missing. Every row needs both.")
        fold, seed = row.get("fold"), row.get("seed")
        try:
            seed = int(seed) if seed not in (None, "") else 0
        except ValueError:
            raise FileError(path, f"row {number}: the seed {seed!r} is no whole number.") from None
        fold = str(fold) if fold not in (None, "", "*") else None
        found.append((str(system), fold, seed, folder / str(run)))
    return found


def check_runs(runs: Sequence[Trained], folds: Sequence[str]) -> None:
    """Refuse runs that do not fit: every system needs one of every fold and seed, once."""
    if not runs:
        raise InputError("no run was given. Give at least one for each fold.")
    there: dict[str, list[tuple[str, int]]] = {}
    for system, fold, seed, _ in runs:
        if fold is not None and fold not in folds:
            raise InputError(
                f"a run of {system} is of fold {fold!r}.{did_you_mean(fold, folds)} The partition "
                f"has {', '.join(folds)}."
            )
        there.setdefault(system, []).extend((f, seed) for f in (folds if fold is None else [fold]))
    for system, pairs in there.items():
        for fold, seed in pairs:
            if pairs.count((fold, seed)) > 1:
                raise InputError(f"{system} has two runs of fold {fold!r} and seed {seed}.")
        for seed in sorted({seed for _, seed in pairs}):
            for fold in folds:
                if (fold, seed) not in pairs:
                    raise InputError(
                        f"{system} has no run of fold {fold!r} and seed {seed}. Every fold needs "
                        "one of all test queries."
                    )
