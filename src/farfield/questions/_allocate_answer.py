"""The answer to an allocation: who gives how much, what it is worth, and what to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import allocations, stats
from farfield.allocations import Labels, Lists, Policy
from farfield.errors import InputError, did_you_mean
from farfield.progress import track
from farfield.questions._allocate_regime import Need, Regime, regime
from farfield.questions._allocate_sweeps import (
    differences,
    over_budgets,
    over_fractions,
    over_retrievers,
    over_seeds,
)
from farfield.questions._allocate_trials import Outcome, Trial, try_out
from farfield.tables import Allocation, PerQuery, Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = [
    "BEST_FRACTION",
    "BOUNDS",
    "DEFAULTS",
    "EQUAL",
    "LABEL_FREE",
    "LEARNED",
    "NAIVE",
    "ORACLE",
    "Allocated",
    "outcomes_of",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: What is used for a need, without labels and with them.
DEFAULTS: dict[str, tuple[str, str]] = {
    "each": ("local()", "softmax()"),
    "any": ("merge()", "calibrated()"),
}
#: What the best shares for all queries are called: a bound, for they were chosen on these queries.
BEST_FRACTION = "best fraction in hindsight"

NAIVE, EQUAL, ORACLE = "merge()", "equal()", "oracle()"
BOUNDS = (BEST_FRACTION, ORACLE)

LABEL_FREE = (NAIVE, EQUAL, "interleave()", "local()", "lse()")
LEARNED = ("fraction()", "level()", "softmax()", "calibrated()")
_NOTHING = 1e-12  # a gap below this is rounding


@dataclass(frozen=True, eq=False)
class Allocated:
    """What policies make of a budget of ``k`` results, and what that is worth.

    ``outcomes`` has every policy by its spec; with judgements also, as bounds, the best fraction in
    hindsight and the oracle. ``items`` numbers what queries are about: queries of one item are
    resampled together. Policies that learn did so from ``seeds`` (labelled queries beside these),
    or from these queries in ``trials`` that keep apart what is learned from and what is tried.
    ``plain`` are the outcomes without the bridge, where one was asked for. Of several retrievers
    this is the answer of the first, called ``retriever``, and ``others`` are those of the others.
    """

    k: int
    need: Need
    lists: Lists
    labels: Labels | None
    items: Ints
    outcomes: dict[str, Outcome]
    seeds: Labels | None = None
    plain: dict[str, Outcome] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    with_labels: bool = False
    retriever: str = ""
    others: dict[str, Allocated] = field(default_factory=dict)
    budgets: tuple[int, ...] = ()
    seed_sizes: tuple[int, ...] = ()
    draws: int = 10
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    # -- who gives how much -----------------------------------------------------------------

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources."""
        return self.lists.sources

    @cached_property
    def shares(self) -> pl.DataFrame:
        """The share of the budget that each source gives: policy, source, share, low, high."""
        matrix = np.concatenate([o.shares[self.tried] for o in self.outcomes.values()], axis=1)
        found = stats.means(matrix, **self._options)
        rows = [(policy, source) for policy in self.outcomes for source in self.sources]
        return pl.DataFrame(
            {
                "policy": [policy for policy, _ in rows],
                "source": [source for _, source in rows],
                "share": [e.value for e in found],
                "low": [e.low for e in found],
                "high": [e.high for e in found],
            }
        )

    def allocation(self, policy: str | None = None) -> Allocation:
        """How many results each source gives to each query, by a policy or the recommended one."""
        return self._outcome(policy).picks.allocation

    def run(self, policy: str | None = None) -> Run:
        """The results that each query gets, by a policy or the recommended one."""
        name = policy or self.recommended
        return self._outcome(name).picks.run(name)

    @cached_property
    def regime(self) -> Regime:
        """Whether sources seem to overlap or to be topical, by scores alone."""
        return regime(self.lists)

    # -- what it is worth -------------------------------------------------------------------

    @property
    def measures(self) -> tuple[str, str]:
        """Recall and average precision of the budget."""
        return f"R@{self.k}", f"AP@{self.k}"

    @cached_property
    def tried(self) -> npt.NDArray[np.bool_]:
        """Queries that every policy has a value for: all, unless a small set was drawn from."""
        every = np.stack([outcome.tried for outcome in self.outcomes.values()])
        return np.asarray(every.all(axis=0), dtype=np.bool_)

    @cached_property
    def per_query(self) -> PerQuery:
        """The recall and the average precision of every query by every policy."""
        self._judged()
        ids = self.lists.query_ids.filter(pl.Series(self.tried))
        values = [o.recall for o in self.outcomes.values()]
        values += [o.precision for o in self.outcomes.values()]
        systems = [*self.outcomes] * 2
        measures = [name for name in self.measures for _ in self.outcomes]
        return PerQuery.trusted(
            pl.DataFrame(
                {
                    "query_id": pl.concat([ids] * len(values)),
                    "system": pl.Series(systems).gather(_each(len(values), len(ids))),
                    "measure": pl.Series(measures).gather(_each(len(values), len(ids))),
                    "value": np.concatenate([x[self.tried] for x in values]),
                }
            )
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """Every policy: recall, precision, how much of the gap it closes, and against equal split.

        ``closed`` is the share of the way in recall from naive merging to the oracle; null where
        there is no way to go. ``over_equal`` is the difference in recall from an equal split, with
        the p of a paired t test, corrected by Holm over all policies; bounds are not tested.
        """
        self._judged()
        columns = {"recall": [o.recall[self.tried] for o in self.outcomes.values()]}
        columns["precision"] = [o.precision[self.tried] for o in self.outcomes.values()]
        frame = pl.DataFrame({"policy": [*self.outcomes]})
        for name, values in columns.items():
            frame = frame.hstack(
                _estimates(name, stats.means(np.stack(values, axis=1), **self._options))
            )
        recalls = np.stack(columns["recall"], axis=1)
        names = list(self.outcomes)
        naive, oracle = (recalls[:, names.index(name)] for name in (NAIVE, ORACLE))
        gains, room = (self._by_item(x) for x in (recalls - naive[:, None], oracle - naive))
        closed = stats.ratios(gains, room, **self._resampling)
        if room.sum() <= _NOTHING * len(room):
            closed = []
        frame = frame.hstack(_estimates("closed", closed, len(names)))
        tests = self.against(EQUAL).select(
            "policy",
            over_equal="difference",
            over_equal_low="low",
            over_equal_high="high",
            p="p_adjusted",
        )
        return frame.join(tests, on="policy", how="left", maintain_order="left")

    def against(self, baseline: str) -> pl.DataFrame:
        """Every policy against one of them, in recall: policy, difference, low, high, p …

        Bounds are left out, and so are policies with the very recall of the baseline, as interleave
        has that of an equal split: they are no comparisons to correct for.
        """
        self._judged()
        own = self._outcome(baseline).recall[self.tried]
        others = [
            name
            for name, outcome in self.outcomes.items()
            if name not in BOUNDS and not np.array_equal(outcome.recall[self.tried], own)
        ]
        rows = self.per_query.frame.filter(
            pl.col("measure") == self.measures[0],
            # Where all have one recall, any others will do to make a table of no rows.
            pl.col("system").is_in([*(others or self.outcomes), baseline]),
        )
        found = stats.contrasts(rows, baseline, clusters=self._labels_of_items, **self._resampling)
        found = found.rename({"system": "policy"}).drop("measure")
        return found if others else found.clear()

    @cached_property
    def fractions(self) -> pl.DataFrame:
        """Of two sources: every tenth of the budget for the first, as in the paper's Table 3."""
        labels = self._judged()
        if len(self.sources) != 2:
            raise InputError(
                f"fractions of {len(self.sources)} sources make no table. The best of them is the "
                f"policy {BEST_FRACTION!r}."
            )
        return over_fractions(labels, self.k, self._options_for_all)

    @cached_property
    def by_budget(self) -> pl.DataFrame:
        """Every policy at every one of ``budgets``: k, policy, recall, precision, intervals."""
        labels = self._judged()
        policies = {n: o.policy for n, o in self.outcomes.items() if n not in BOUNDS}

        def outcomes_at(k: int) -> dict[str, Outcome]:
            return outcomes_of(policies, self.lists, k, labels, self.seeds, self.trials)

        return over_budgets(self.budgets, outcomes_at, self.tried, self._options)

    @cached_property
    def by_seeds(self) -> pl.DataFrame:
        """Policies that learn, by the number of labelled queries, with their spread over draws."""
        labels = self._judged()
        learning = {n: o.policy for n, o in self.outcomes.items() if o.policy.learns}
        learning = {n: p for n, p in learning.items() if n not in BOUNDS}
        learning = learning or {name: allocations.parse(name) for name in LEARNED}
        fixed = {name: self.outcomes[name] for name in (NAIVE, EQUAL)}
        return over_seeds(
            learning,
            fixed,
            self.lists,
            labels,
            self.items,
            self.k,
            sizes=self.seed_sizes,
            draws=self.draws,
            seed=self.seed,
        )

    @cached_property
    def by_retriever(self) -> pl.DataFrame:
        """The ``table`` of every retriever, and the ``share of`` each source, with intervals."""
        return over_retrievers(self._by_retriever())

    @cached_property
    def between_retrievers(self) -> pl.DataFrame:
        """Retrievers two by two, by the recommended policy: one, other, difference, low, high, p.

        In recall, other minus one; p is of a paired t test, corrected by Holm over all pairs.
        """
        recalls = {
            name: answer.outcomes[self.recommended].recall[self.tried]
            for name, answer in self._by_retriever().items()
        }
        pairs = list(combinations(recalls, 2))
        table = pl.DataFrame(pairs, schema=["one", "other"], orient="row")
        table = table.with_columns(policy=pl.lit(self.recommended))
        values = [(recalls[other], recalls[one]) for one, other in pairs]
        return table.hstack(differences(values, self._options))

    @cached_property
    def bridged(self) -> pl.DataFrame:
        """What the bridge does to every policy: policy, without, with, difference, low, high, p.

        In recall; p is of a paired t test, corrected by Holm. The oracle is there to show how far
        the bound moves.
        """
        self._judged()
        if not self.plain:
            raise InputError("no bridge was asked for. Pass bridge=2 (--bridge 2).")
        pairs = {
            name: (self.outcomes[name].recall[self.tried], plain.recall[self.tried])
            for name, plain in self.plain.items()
        }
        table = pl.DataFrame(
            {
                "policy": list(pairs),
                "without": [float(b.mean()) for _, b in pairs.values()],
                "with": [float(a.mean()) for a, _ in pairs.values()],
            }
        )
        return table.hstack(differences(list(pairs.values()), self._options))

    # -- in words ---------------------------------------------------------------------------

    @property
    def default(self) -> str:
        """What is used for this need when nothing is measured."""
        without, with_labels = DEFAULTS[self.need]
        return with_labels if with_labels in self.outcomes and self.with_labels else without

    @cached_property
    def recommended(self) -> str:
        """The default, unless another policy is better and that is certain."""
        if self.labels is None:
            return self.default
        better = self.against(self.default).filter(
            pl.col("difference") > 0, pl.col("p_adjusted") < 1.0 - self.level
        )
        return str(better.sort("difference")["policy"][-1]) if len(better) else self.default

    @cached_property
    def recommendation(self) -> str:
        """What to use, in a sentence."""
        name, outcome = self.recommended, self.outcomes[self.recommended]
        use = f"Use {name}" + (f" as {outcome.fitted}" if str(outcome.fitted) != name else "")
        if self.labels is None:
            return (
                f"{use}, the default for need {self.need}; without judgements nothing is measured."
            )
        row = self.table.filter(pl.col("policy") == name).row(0, named=True)
        text = f"{use}: {self.measures[0]} {row['recall']:.4f}"
        if row["over_equal"] is None:
            text += ", not separable from equal split (the same recall)"
        else:
            low, high = row["over_equal_low"], row["over_equal_high"]
            between = "" if np.isnan(low) else f" [{low:+.4f}, {high:+.4f}]"
            text += f", {row['over_equal']:+.4f} over an equal split{between}"
            if not row["p"] < 1.0 - self.level:
                text += f", not separable from equal split (p {row['p']:.2f}, corrected)"
        if row["closed"] is not None and name != NAIVE:
            text += f"; {row['closed']:.0%} of the way from naive merging to the oracle"
        return text + "."

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield allocate --json`` prints."""
        found: dict[str, Any] = {
            "k": self.k,
            "need": self.need,
            "sources": list(self.sources),
            "queries": int(self.tried.sum()),
            "items": len(np.unique(self.items[self.tried])),
            "shares": _rows(self.shares),
            "learned": {n: str(o.fitted) for n, o in self.outcomes.items() if str(o.fitted) != n},
            "rho": self.regime.rho,
            "hint": self.regime.text,
            "recommended": self.recommended,
            "recommendation": self.recommendation,
            "level": self.level,
        }
        if self.labels is not None:
            found |= {"measures": list(self.measures), "policies": _rows(self.table)}
            if len(self.sources) == 2:
                found["fractions"] = _rows(self.fractions)
            if self.plain:
                found["bridged"] = _rows(self.bridged)
            if self.budgets:
                found["by_budget"] = _rows(self.by_budget)
            if self.seed_sizes:
                found["by_seeds"] = _rows(self.by_seeds)
            if self.others:
                found["retrievers"] = [self.retriever, *self.others]
                found["by_retriever"] = _rows(self.by_retriever)
                found["between_retrievers"] = _rows(self.between_retrievers)
        return found

    def figure(self) -> go.Figure:
        """Draw what policies are worth, who gives how much, and the sweeps that were asked for."""
        from farfield.questions._allocate_figures import draw

        return draw(self)

    # -- inside -----------------------------------------------------------------------------

    @property
    def _resampling(self) -> dict[str, Any]:
        return {"level": self.level, "resamples": self.resamples, "seed": self.seed}

    @property
    def _options(self) -> dict[str, Any]:
        return {**self._resampling, "clusters": self.items[self.tried]}

    @property
    def _options_for_all(self) -> dict[str, Any]:
        return {**self._resampling, "clusters": self.items}

    @cached_property
    def _labels_of_items(self) -> dict[str, int]:
        return dict(zip(self.lists.query_ids, self.items.tolist(), strict=True))

    def _by_item(self, values: Floats) -> Floats:
        """Sums over the queries of each item, so that items are what is resampled."""
        _, codes = np.unique(self.items[self.tried], return_inverse=True)
        sums = np.zeros((codes.max(initial=-1) + 1, *values.shape[1:]))
        np.add.at(sums, codes, values)
        return sums

    def _judged(self) -> Labels:
        if self.labels is None:
            raise InputError("without judgements nothing is valued. Pass qrels (--qrels).")
        return self.labels

    def _by_retriever(self) -> dict[str, Allocated]:
        if not self.others:
            raise InputError(
                "one retriever is no sweep. Pass several (--retriever once for each of them)."
            )
        return {self.retriever: self, **self.others}

    def _outcome(self, policy: str | None) -> Outcome:
        name = policy or self.recommended
        if name not in self.outcomes:
            raise InputError(
                f"{name!r} was not tried.{did_you_mean(name, self.outcomes)} There are "
                f"{', '.join(self.outcomes)}."
            )
        return self.outcomes[name]


def outcomes_of(
    policies: Mapping[str, Policy],
    lists: Lists,
    k: int,
    labels: Labels | None,
    seeds: Labels | None,
    trials: Sequence[Trial],
) -> dict[str, Outcome]:
    """What every policy does, and with judgements the bounds."""
    found = {
        name: try_out(policy, lists, k, labels=labels, seeds=seeds, trials=trials)
        for name, policy in track(list(policies.items()), "policies")
    }
    if labels is not None:
        best = allocations.parse("fraction()").fit(lists, labels, k)
        found[BEST_FRACTION] = try_out(best, lists, k, labels=labels)
        found[ORACLE] = try_out(allocations.parse(ORACLE), lists, k, labels=labels)
    return found


def _each(count: int, times: int) -> Ints:
    return np.repeat(np.arange(count), times)


def _estimates(name: str, found: Sequence[stats.Estimate], count: int = 0) -> pl.DataFrame:
    parts = {"": "value", "_low": "low", "_high": "high"}
    return pl.DataFrame(
        {
            f"{name}{end}": pl.Series(
                [getattr(e, part) for e in found] or [None] * count, dtype=pl.Float64
            )
            for end, part in parts.items()
        }
    )


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, which knows no NaN."""
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None)).to_dicts()
