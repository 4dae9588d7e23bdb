"""Sweeps of an allocation: over fixed shares, budgets, numbers of labels, retrievers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import stats
from farfield.allocations import Labels, Lists, Policy
from farfield.allocations._picks import rounded
from farfield.allocations.fraction import fraction
from farfield.progress import track
from farfield.questions._allocate_trials import Outcome, draw_seeds, try_out

if TYPE_CHECKING:
    from farfield.questions._allocate_answer import Allocated

__all__ = ["differences", "over_budgets", "over_fractions", "over_retrievers", "over_seeds"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_STEPS = 10  # from no share to the whole
_ENDS = {"": "share", "_low": "low", "_high": "high"}


def over_fractions(labels: Labels, k: int, options: Mapping[str, Any]) -> pl.DataFrame:
    """Of two sources, every share of the first in tenths: share, its slots, recall, precision."""
    shares = [part / _STEPS for part in range(_STEPS + 1)]
    outcomes = [
        try_out(fraction(shares=(share,)), labels.lists, k, labels=labels) for share in shares
    ]
    columns = [x for o in outcomes for x in (o.recall, o.precision)]
    found = stats.means(np.stack(columns, axis=1), **options)
    rows = []
    for number, share in enumerate(shares):
        slots, tied = rounded(np.array([share, 1.0 - share]), k)
        of = zip(labels.lists.sources, slots.tolist(), tied.tolist(), strict=True)
        rows.append(
            {
                "share": share,
                **{
                    f"slots of {name}": f"{n} or {n + 1}" if open_ else f"{n}"
                    for name, n, open_ in of
                },
                **_mean("recall", found[2 * number]),
                **_mean("precision", found[2 * number + 1]),
            }
        )
    return pl.DataFrame(rows)


def over_budgets(
    budgets: Sequence[int],
    outcomes_at: Callable[[int], dict[str, Outcome]],
    tried: npt.NDArray[np.bool_],
    options: Mapping[str, Any],
) -> pl.DataFrame:
    """Every policy at every budget: k, policy, recall, precision, with intervals."""
    rows = []
    for k in budgets:
        outcomes = outcomes_at(k)
        columns = [x[tried] for o in outcomes.values() for x in (o.recall, o.precision)]
        found = stats.means(np.stack(columns, axis=1), **options)
        for number, policy in enumerate(outcomes):
            measured = _mean("recall", found[2 * number]) | _mean(
                "precision", found[2 * number + 1]
            )
            rows.append({"k": k, "policy": policy, **measured})
    return pl.DataFrame(rows)


def over_seeds(
    policies: Mapping[str, Policy],
    fixed: Mapping[str, Outcome],
    log: Lists,
    labels: Labels,
    items: Ints,
    k: int,
    *,
    sizes: Sequence[int],
    draws: int,
    seed: int,
) -> pl.DataFrame:
    """Policies that learn, with more and more labelled queries, drawn again and again.

    A row for each policy and number of seeds: the mean recall over draws on what was kept out, its
    standard deviation (``spread``), ``least`` and ``most``; and for each of the ``fixed`` policies
    how much better it is on the same queries, in the mean (``over NAME``), with its spread.
    """
    rows = []
    for size in sizes:
        trials = draw_seeds(items, size, draws, seed)
        for name, policy in track(list(policies.items()), f"{size} seeds"):
            means, gains = [], []
            for learn, test in trials:
                part = labels.take(test)
                picks = policy.fit(log, labels.take(learn), k).pick(part.lists, k)
                recall = part.recall(picks).mean()
                means.append(recall)
                gains.append([recall - other.recall[test].mean() for other in fixed.values()])
            over = np.array(gains)
            row: dict[str, Any] = {"policy": name, "seeds": size, "draws": draws}
            row |= {
                "recall": float(np.mean(means)),
                "spread": _spread(means),
                "least": float(np.min(means)),
                "most": float(np.max(means)),
            }
            for at, other in enumerate(fixed):
                row[f"over {other}"] = float(over[:, at].mean())
                row[f"spread over {other}"] = _spread(over[:, at])
            rows.append(row)
    return pl.DataFrame(rows)


def over_retrievers(answers: Mapping[str, Allocated]) -> pl.DataFrame:
    """Every retriever and policy: what its table says, and how much each source gives."""
    tables = []
    for name, answer in answers.items():
        table = answer.table.select(pl.lit(name).alias("retriever"), pl.all())
        for (source,), part in answer.shares.group_by("source", maintain_order=True):
            columns = {f"share of {source}{end}": part[c] for end, c in _ENDS.items()}
            table = table.with_columns(**columns)
        tables.append(table)
    return pl.concat(tables)


def differences(pairs: Sequence[tuple[Floats, Floats]], options: Mapping[str, Any]) -> pl.DataFrame:
    """What the first of two has more than the second, query by query: difference, low, high, p.

    p is of a paired t test, corrected by Holm over all pairs.
    """
    found = stats.means(np.stack([a - b for a, b in pairs], axis=1), **options)
    p = [stats.paired_test(a, b, clusters=options["clusters"]).p for a, b in pairs]
    return pl.DataFrame(
        {
            "difference": [e.value for e in found],
            "low": [e.low for e in found],
            "high": [e.high for e in found],
            "p": stats.adjust(p),
        }
    )


def _mean(name: str, found: stats.Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _spread(values: Sequence[float] | Floats) -> float | None:
    """The standard deviation over draws; a single draw has none."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None
