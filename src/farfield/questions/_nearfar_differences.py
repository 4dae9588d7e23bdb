"""Who loses less from near to far? Every two systems, on the same queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import polars as pl

from farfield import measures, stats
from farfield.questions._nearfar_values import named

__all__ = ["differences", "who_loses_less"]

_CLEAR = 0.05


def differences(
    changes: Mapping[str, tuple[pl.Series, stats.Change]],
) -> Iterator[dict[str, Any]]:
    """Compare every two systems, given the queries and the change of each."""
    for (system, (ids, one)), (other, (others, two)) in combinations(changes.items(), 2):
        if not ids.equals(others) or one.influence is None or two.influence is None:
            continue  # a system that finds nothing near has no relative change
        found = stats.change_difference(one, two)
        row: dict[str, Any] = {"system": system, "other": other, "queries": len(ids)}
        row |= named("near", found.before) | named("far", found.after)
        yield row | named("delta", found.relative) | {"p": found.p}


def who_loses_less(table: pl.DataFrame, found: pl.DataFrame) -> list[str]:
    """Say for the first measure which system loses least, and which clearly lose more."""
    if not len(found):
        return []
    measure = found["measure"][0]
    sign = -1.0 if measures.parse(measure).higher_is_better else 1.0
    rows = table.filter(pl.col("measure") == measure, pl.col("average") == "micro")
    # Untrained systems have nothing to lose, and what finds nothing near has no relative change.
    trained = rows.filter(pl.col("delta").is_finite(), pl.col("delta") != 0)
    losses = dict(trained.select("system", sign * pl.col("delta")).iter_rows())
    if len(losses) < 2:
        return []
    least = min(losses, key=losses.__getitem__)
    p = {
        name: row["p_adjusted"]
        for row in found.filter(pl.col("measure") == measure).iter_rows(named=True)
        for one, name in ((row["system"], row["other"]), (row["other"], row["system"]))
        if one == least and name in losses
    }
    told = {name: f"{name} ({losses[name]:.1%})" for name in sorted(p, key=losses.__getitem__)}
    clear = [told[name] for name in told if p[name] < _CLEAR]
    open_ = [told[name] for name in told if p[name] >= _CLEAR]
    worst = max((p[name] for name in told if p[name] < _CLEAR), default=1.0)
    said = f"{least} loses least of {measure} ({losses[least]:.1%})"
    if clear:
        limit = "p < 0.0001" if worst < 0.0001 else f"p at most {worst:.4f}"
        said += f", clearly less than {', '.join(clear)} ({limit}, Holm)"
    if open_:
        said += f"{'; ' if clear else ', but '}not clearly less than {', '.join(open_)}"
    return [f"{said}."]
