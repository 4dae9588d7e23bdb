"""What ``farfield allocate`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farfield.cli import show

if TYPE_CHECKING:
    from farfield.questions.allocate import Allocated

__all__ = ["print_answer"]

_SOURCES = 12  # that have a column of their own
_SOURCES_BESIDE = 3  # likewise, beside other columns


def print_answer(answer: Allocated) -> None:
    """Print every table that there is, the hint and the recommendation."""
    if answer.labels is not None:
        _print_policies(answer)
        print()
    _print_shares(answer)
    if answer.labels is not None:
        if len(answer.sources) == 2:
            print()
            _print_fractions(answer)
        if answer.plain:
            print()
            _print_bridged(answer)
        if answer.budgets:
            print()
            _print_budgets(answer)
        if answer.seed_sizes:
            print()
            _print_seeds(answer)
        if answer.others:
            print()
            _print_retrievers(answer)
    print()
    print(answer.regime.text)
    print(answer.recommendation)


def _print_policies(answer: Allocated) -> None:
    from farfield.questions.allocate import BEST_FRACTION

    queries, items = int(answer.tried.sum()), len(set(answer.items[answer.tried].tolist()))
    about = "" if items == queries else f" about {items:,} items"
    recall, precision = answer.measures
    show.table(
        ["policy", recall, precision, "closed"],
        [
            [
                row["policy"],
                _estimate(row, "recall"),
                _estimate(row, "precision"),
                "—" if row["closed"] is None else f"{row['closed']:.0%}",
            ]
            for row in answer.table.iter_rows(named=True)
        ],
        title=f"{queries:,} queries{about}, {len(answer.sources)} sources, {answer.k:,} results",
        notes=[
            f"closed: of the way in {recall} from merge() to oracle().",
            f"{BEST_FRACTION}: {answer.outcomes[BEST_FRACTION].fitted}. "
            "It and the oracle are bounds: they know what is relevant.",
            *_how_learned(answer),
        ],
    )
    tested = answer.table.filter(answer.table["p"].is_not_null())
    if not len(tested):  # all have the very same recall
        return
    print()
    show.table(
        ["against equal()", recall, "interval", "p", ""],
        [
            [
                row["policy"],
                show.number(row["over_equal"], sign=True),
                show.interval(row["over_equal_low"], row["over_equal_high"], sign=True),
                show.p_value(row["p"]),
                "" if row["p"] < 1.0 - answer.level else "not separable",
            ]
            for row in tested.iter_rows(named=True)
        ],
        notes=[f"p: paired t test, corrected by Holm over {len(tested)} policies."],
    )


def _how_learned(answer: Allocated) -> list[str]:
    if answer.trials:
        return [
            f"Policies that learn: {len(answer.trials)} times from {len(answer.trials[0][0]):,} "
            "queries, each tried on the others."
        ]
    if answer.seeds is not None:
        return [f"Policies that learn: from {len(answer.seeds):,} labelled queries."]
    return []


def _print_shares(answer: Allocated) -> None:
    shares = answer.shares
    names = answer.sources[:_SOURCES]
    rows = [
        [str(policy), *(f"{share:.1%}" for share in part["share"][: len(names)])]
        for (policy,), part in shares.group_by("policy", maintain_order=True)
    ]
    more = len(answer.sources) - len(names)
    notes = [f"{more} more sources: -o with --table shares writes all."] if more else []
    show.table(["policy", *names], rows, title="Share of the budget", notes=notes)


def _print_fractions(answer: Allocated) -> None:
    one, other = answer.sources
    rows = [
        [
            f"{row['share']:.1f}",
            row[f"slots of {one}"],
            row[f"slots of {other}"],
            _estimate(row, "recall"),
            _estimate(row, "precision"),
        ]
        for row in answer.fractions.iter_rows(named=True)
    ]
    show.table([f"share of {one}", one, other, *answer.measures], rows, title="Fixed shares")


def _print_bridged(answer: Allocated) -> None:
    rows = []
    for row in answer.bridged.iter_rows(named=True):
        certain = row["p"] < 1.0 - answer.level
        verdict = ("helps" if row["difference"] > 0 else "hurts") if certain else "not separable"
        rows.append(
            [
                row["policy"],
                show.number(row["without"]),
                show.number(row["with"]),
                show.number(row["difference"], sign=True),
                show.interval(row["low"], row["high"], sign=True),
                show.p_value(row["p"]),
                verdict,
            ]
        )
    show.table(
        ["policy", "without", "with", "difference", "interval", "p", ""],
        rows,
        title=f"{answer.measures[0]} without and with the bridge",
        notes=["It reranks within sources, so the bounds move as well. p: corrected by Holm."],
    )


def _print_budgets(answer: Allocated) -> None:
    table = answer.by_budget
    rows = [
        [str(policy), *(f"{recall:.4f} / {ap:.4f}" for recall, ap in part.iter_rows())]
        for (policy,), part in table.select("policy", "recall", "precision").group_by(
            "policy", maintain_order=True
        )
        for part in [part.drop("policy")]
    ]
    header = ["policy", *(f"k = {k:,}" for k in answer.budgets)]
    show.table(header, rows, title="Recall / average precision by budget")


def _print_seeds(answer: Allocated) -> None:
    rows = [
        [
            row["policy"],
            f"{row['seeds']:,}",
            _spread(row, "recall", "spread"),
            f"{row['least']:.4f} to {row['most']:.4f}",
            _spread(row, "over merge()", "spread over merge()", sign=True),
            _spread(row, "over equal()", "spread over equal()", sign=True),
        ]
        for row in answer.by_seeds.iter_rows(named=True)
    ]
    show.table(
        ["policy", "seeds", answer.measures[0], "range", "over merge()", "over equal()"],
        rows,
        title=f"By the number of labelled queries, {answer.draws} draws",
        notes=["± is the standard deviation over draws, not over queries."],
    )


def _print_retrievers(answer: Allocated) -> None:
    """All policies of all retrievers, and retrievers two by two."""
    recall, precision = answer.measures
    names = answer.sources if len(answer.sources) <= _SOURCES_BESIDE else ()
    rows, before = [], None
    for row in answer.by_retriever.iter_rows(named=True):
        rows.append(
            [
                "" if row["retriever"] == before else row["retriever"],
                row["policy"],
                _estimate(row, "recall"),
                _estimate(row, "precision"),
                "—" if row["closed"] is None else f"{row['closed']:.0%}",
                *(f"{row[f'share of {name}']:.1%}" for name in names),
            ]
        )
        before = row["retriever"]
    show.table(
        ["retriever", "policy", recall, precision, "closed", *names],
        rows,
        title="By retriever",
        text_columns=2,
        notes=[f"All else is about {answer.retriever}."],
    )
    print()
    show.table(
        ["one", "other", recall, "interval", "p", ""],
        [
            [
                row["one"],
                row["other"],
                show.number(row["difference"], sign=True),
                show.interval(row["low"], row["high"], sign=True),
                show.p_value(row["p"]),
                "" if row["p"] < 1.0 - answer.level else "not separable",
            ]
            for row in answer.between_retrievers.iter_rows(named=True)
        ],
        title=f"What the other finds more than the one, by {answer.recommended}",
        text_columns=2,
        notes=["p: paired t test, corrected by Holm over all pairs."],
    )


def _estimate(row: dict[str, Any], name: str) -> str:
    between = show.interval(row[f"{name}_low"], row[f"{name}_high"])
    return f"{show.number(row[name])} {between}"


def _spread(row: dict[str, Any], name: str, spread: str, *, sign: bool = False) -> str:
    value = show.number(row[name], sign=sign)
    return value if row[spread] is None else f"{value} ± {row[spread]:.4f}"
