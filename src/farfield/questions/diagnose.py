"""Do runs hold up on queries that are unlike those of training?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import stats
from farfield.errors import InputError, did_you_mean
from farfield.io import read_qrels
from farfield.measures import Measure
from farfield.questions._placing import choose_ends, place, placed_by
from farfield.questions.audit import NEAR_DUPLICATE
from farfield.questions.evaluate import Evaluation, PathLike, Runs, evaluate, named_runs
from farfield.stats.checks import choice
from farfield.tables import Qrels, Queries

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["OBSERVATIONAL", "Diagnosis", "diagnose"]

OBSERVATIONAL = (
    "Observational: queries near to training and queries far from it differ in more than that "
    "(length, topic, difficulty), so a drop alone does not show that a system remembers. What two "
    "systems do differently on the same queries says more; a controlled answer needs retraining."
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Diagnosis:
    """What runs are worth near to training and far from it.

    ``placement`` has a row for every judged query: query_id, stratum, similarity (to its nearest
    training query, train_id), shared (relevant passages that are relevant in training too).
    ``strata`` are in order, the nearest first; ``near`` and ``far`` name those that are compared.
    """

    evaluation: Evaluation
    placement: pl.DataFrame
    strata: tuple[str, ...]
    near: tuple[str, ...]
    far: tuple[str, ...]
    test: str = "welch"
    correction: str = "holm"
    baseline: str | None = None

    @cached_property
    def table(self) -> pl.DataFrame:
        """Means in every stratum: system, stratum, group, mean, low, high, n."""
        frames = []
        for name in self.strata:
            found = self._means(self._values(name))
            frames.append(
                pl.DataFrame(
                    {
                        "system": list(self.evaluation.systems),
                        "stratum": name,
                        "group": self._group(name),
                        "mean": [e.value for e in found],
                        "low": [e.low for e in found],
                        "high": [e.high for e in found],
                        "n": [e.n for e in found],
                    }
                )
            )
        return pl.concat(frames).fill_nan(None)

    @cached_property
    def places(self) -> pl.DataFrame:
        """The strata: stratum, group (near, far or between), queries, and the similarities."""
        counted = self.placement.group_by("stratum").agg(
            queries=pl.len(),
            similarity_low=pl.col("similarity").min(),
            similarity_high=pl.col("similarity").max(),
        )
        named = pl.DataFrame(
            {"stratum": self.strata, "group": [self._group(name) for name in self.strata]}
        )
        return named.join(counted, on="stratum", how="left", maintain_order="left")

    @cached_property
    def drops(self) -> pl.DataFrame:
        """Near minus far, for each run: system, near, far, drop, low, high, p, p_adjusted …

        The queries differ, so the samples are independent: Welch's t test, or a permutation test.
        ``effect_size`` is Hedges' g. With a baseline, ``excess`` is how much more a run drops than
        it does, on the same queries, with interval and (corrected) p-value. Signs are never turned,
        whichever way a measure points. Without queries on both sides there are no rows.
        """
        near, far = self._ends
        if not (len(near.T) and len(far.T)):
            return pl.DataFrame(schema={"system": pl.String, "drop": pl.Float64})
        evaluation = self.evaluation
        found = stats.differences(near.T, far.T, **self._resampling)
        tests = [
            stats.two_sample_test(a, b, test=self.test, seed=evaluation.seed).p
            for a, b in zip(near, far, strict=True)
        ]
        sizes = [stats.effect_size(a, b, paired=False) for a, b in zip(near, far, strict=True)]
        frame = pl.DataFrame(
            {
                "system": list(evaluation.systems),
                "near": [e.value for e in self._means(near)],
                "far": [e.value for e in self._means(far)],
                "drop": [e.value for e in found],
                "low": [e.low for e in found],
                "high": [e.high for e in found],
                "p": tests,
                "p_adjusted": stats.adjust(tests, self.correction),
                "effect_size": [x if np.isfinite(x) else None for x in sizes],
                "n_near": len(near.T),
                "n_far": len(far.T),
            }
        ).fill_nan(None)
        return frame if self.baseline is None else self._with_excess(frame)

    @cached_property
    def agreement(self) -> stats.Agreement | None:
        """How far near and far queries put the systems in the same order; ``None`` for one."""
        near, far = self._ends
        if len(near) < 2 or not (len(near.T) and len(far.T)):
            return None
        return stats.agreement(near.T, far.T, **self._resampling)

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """What changes between any two runs: system, other, near, far, change, low, high, p …

        ``near`` and ``far`` are the mean differences system - other on the same queries; ``change``
        is near - far, how much more the first drops than the second. ``swaps`` says whether the
        order of the two turns round; ``p_swap`` is small where both differences, in opposite
        directions, are significant on their own.
        """
        near, far = self._ends
        systems = self.evaluation.systems
        one, two = np.triu_indices(len(systems), k=1)
        if not (len(one) and len(near.T) and len(far.T)):
            return pl.DataFrame(schema={"system": pl.String, "other": pl.String})
        gaps = [side[one] - side[two] for side in (near, far)]
        means = [np.array([e.value for e in self._means(gap)]) for gap in gaps]
        change = stats.differences(gaps[0].T, gaps[1].T, **self._resampling)
        p = [stats.two_sample_test(a, b).p for a, b in zip(*gaps, strict=True)]
        swaps = means[0] * means[1] < 0
        within = [
            max(stats.paired_test(side[i], side[j]).p for side in (near, far))
            for i, j in zip(one, two, strict=True)
        ]
        p_swap = np.where(swaps, within, 1.0)
        return pl.DataFrame(
            {
                "system": [systems[i] for i in one],
                "other": [systems[i] for i in two],
                "near": means[0],
                "far": means[1],
                "change": [e.value for e in change],
                "low": [e.low for e in change],
                "high": [e.high for e in change],
                "p": p,
                "p_adjusted": stats.adjust(p, self.correction),
                "swaps": swaps,
                "p_swap": p_swap,
                "p_swap_adjusted": stats.adjust(p_swap, self.correction),
            }
        ).fill_nan(None)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield diagnose --json`` prints."""
        by_stratum: dict[str, dict[str, Any]] = {s: {} for s in self.evaluation.systems}
        for row in self.table.drop("group").iter_rows(named=True):
            by_stratum[row.pop("system")][row.pop("stratum")] = row
        agreement = self.agreement
        return {
            "note": OBSERVATIONAL,
            "measure": str(self.evaluation.measures[0]),
            "near": list(self.near),
            "far": list(self.far),
            "strata": self.places.to_dicts(),
            "by_stratum": by_stratum,
            "drops": {row.pop("system"): row for row in self.drops.iter_rows(named=True)},
            "ranking": None
            if agreement is None
            else {
                key: None if np.isnan(value) else value
                for key in ("tau", "low", "high", "expected", "p")
                for value in [getattr(agreement, key)]
            },
            "pairs": self.pairs.to_dicts(),
            "test": self.test,
            "correction": self.correction,
            "baseline": self.baseline,
            **self.evaluation.to_dict(),
        }

    def figure(self) -> go.Figure:
        """Draw the measure from near to far, and the drops with their intervals."""
        from farfield.questions import _diagnose_figures

        return _diagnose_figures.draw(self)

    # -- inside -----------------------------------------------------------------------------

    @property
    def _resampling(self) -> dict[str, Any]:
        given = self.evaluation
        return {"level": given.level, "resamples": given.resamples, "seed": given.seed}

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        return self._values(*self.near), self._values(*self.far)

    def _values(self, *strata: str) -> Floats:
        """Values of the queries in these strata, systems x queries."""
        chosen = self.placement["stratum"].is_in(list(strata)).to_numpy()
        return self.evaluation.values()[:, chosen]

    def _means(self, rows: Floats) -> list[stats.Estimate]:
        return stats.means(rows.T, **self._resampling)

    def _group(self, stratum: str) -> str:
        return "near" if stratum in self.near else "far" if stratum in self.far else "between"

    def _with_excess(self, drops: pl.DataFrame) -> pl.DataFrame:
        """Add how much more each run drops than the baseline, from the pairs they make."""
        if len(drops) < 2:
            return drops
        names = ["system", "excess", "excess_low", "excess_high", "p_excess"]
        change, low, high = (pl.col(name) for name in ("change", "low", "high"))
        first, second = (self.pairs.filter(pl.col(c) == self.baseline) for c in ("system", "other"))
        parts = [
            second.select("system", change, low, high, "p"),
            first.select("other", -change, -high, -low, "p"),  # the other way round
        ]
        found = pl.concat([x.rename(dict(zip(x.columns, names, strict=True))) for x in parts])
        adjusted = stats.adjust(found["p_excess"].to_numpy(), self.correction)
        found = found.with_columns(p_excess=pl.Series(adjusted))
        return drops.join(found, on="system", how="left", maintain_order="left")


def diagnose(
    qrels: Qrels | PathLike,
    runs: Runs,
    measure: str | Measure = "nDCG@10",
    *,
    queries: Queries | PathLike | None = None,
    train_queries: Queries | PathLike | None = None,
    train_qrels: Qrels | PathLike | None = None,
    strata: Mapping[str, str] | PathLike | None = None,
    near: Sequence[str] | None = None,
    far: Sequence[str] | None = None,
    bins: int = 4,
    threshold: float = NEAR_DUPLICATE,
    relevance: int = 1,
    min_shared: int = 1,
    baseline: str | None = None,
    test: str = "welch",
    correction: str = "holm",
    ties: str = "trec",
    drop_self: bool = False,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Diagnosis:
    """Evaluate runs near to training and far from it, without training anything.

    Every judged query is placed by its proximity to the training queries: ``exact`` (the same but
    for case and punctuation), ``near_duplicate`` (n-gram similarity of ``threshold`` or more),
    ``shared_label`` (``min_shared`` of its passages of this ``relevance`` are relevant in training;
    needs ``train_qrels``), and the others by similarity, in ``bins`` of about equal size. Where
    ``train_qrels`` are given, the queries that they judge are the training queries.

    Or ``strata`` says where each query lies: a mapping, or a file with columns query_id and
    stratum. ``near`` and ``far`` name the strata to compare: by default exact queries and
    near-duplicates (and the next, while there are fewer than ten) with the similarity strata.

    ``baseline`` names a run that cannot have seen the training data, like BM25: what others drop
    more than it is not due to harder queries. ``test`` is ``"welch"`` or ``"permutation"``.
    Everything else is as for :func:`~farfield.evaluate`.
    """
    choice("test", test, stats.TWO_SAMPLE_TESTS)
    choice("correction", correction, stats.CORRECTIONS)
    judged = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    if strata is not None:
        placement = placed_by(judged, strata)
    else:
        placement = place(
            judged,
            queries,
            train_queries,
            train_qrels,
            threshold=threshold,
            relevance=relevance,
            min_shared=min_shared,
            bins=bins,
        )
    order, nearest, farthest = choose_ends(placement, near, far)
    named = dict(named_runs(runs))
    if baseline is not None and baseline not in named:
        raise InputError(
            f"the baseline {baseline!r} is not among the runs.{did_you_mean(baseline, named)} "
            f"They are {', '.join(named)}."
        )
    evaluation = evaluate(
        judged,
        named,
        [measure],
        ties=ties,
        drop_self=drop_self,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    return Diagnosis(evaluation, placement, order, nearest, farthest, test, correction, baseline)
