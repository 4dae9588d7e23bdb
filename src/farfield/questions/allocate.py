"""Several sources, one budget: how many results does each give, and what is that worth?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from farfield import allocations, retrievers
from farfield.allocations import Lists, Policy
from farfield.collection import Collection
from farfield.encoders import Encoder
from farfield.errors import InputError, did_you_mean
from farfield.io import read_collection
from farfield.io.files import PathLike
from farfield.questions._allocate_answer import (
    BEST_FRACTION,
    DEFAULTS,
    EQUAL,
    LABEL_FREE,
    LEARNED,
    NAIVE,
    Allocated,
    outcomes_of,
)
from farfield.questions._allocate_regime import HEAD, Need
from farfield.questions._allocate_sources import TITLES, Given, from_collection, from_runs
from farfield.questions._allocate_trials import Outcome, Trial, draw_seeds, fold
from farfield.questions._sources import Statistics
from farfield.retrievers import Retriever
from farfield.tables import Qrels, Queries, Run

__all__ = ["BEST_FRACTION", "DEFAULTS", "Allocated", "allocate"]

Ints = npt.NDArray[np.int64]

#: One retriever, or several, which may have names.
Retrievers: TypeAlias = str | Retriever | Sequence[str | Retriever] | Mapping[str, str | Retriever]


def allocate(
    sources: Mapping[str, Run | PathLike] | Collection | PathLike,
    qrels: Qrels | PathLike | None = None,
    *,
    k: int = 10,
    need: Need = "each",
    policies: Iterable[str | Policy] | None = None,
    retriever: Retrievers | None = None,
    by: str = "source",
    statistics: Statistics = "pooled",
    split: str = "test",
    labels: Qrels | PathLike | None = None,
    seeds: int | None = None,
    draws: int = 10,
    folds: int = 5,
    queries: Queries | PathLike | None = None,
    item: str | None = None,
    bridge: float | None = None,
    encoder: str | Encoder = "lsa()",
    budgets: Sequence[int] = (),
    seed_sizes: Sequence[int] = (),
    rel: int = 1,
    ties: str = "trec",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Allocated:
    """Share out ``k`` results of each query among sources, and say what policies are worth.

    ``sources`` are runs by the names of their sources; or, with a ``retriever``, a collection whose
    documents have a source (the column ``by``), which is searched with ``statistics`` of all
    sources or each with its own. ``need`` says whether a query wants something from ``each`` source
    or the answer from ``any`` of them, and with that the default policy. Of several retrievers (a
    list, or a mapping from names) the answer is that of the first, and ``by_retriever`` has all.

    Policies that learn (``fraction()``, ``level()``, ``softmax()``, ``calibrated()``,
    ``boosted()``) do so from ``labels``: judgements of other queries, a split of the collection, or
    ``"titles"``; from ``seeds`` of the judged queries, drawn ``draws`` times; or, if they are asked
    for without either, from all other ``folds``. Queries of one ``item`` (a column of the queries)
    stay on one side and are resampled together.

    With a ``bridge`` (a weight, 2 is small) the results of each source are first reranked by how
    much they resemble the best of the others, by vectors of an ``encoder``; every policy is then
    compared with itself without it, since it may hurt.
    """
    needs = get_args(Need)
    if need not in needs:
        raise InputError(f"need is {need!r}.{did_you_mean(need, needs)} Expected each or any.")
    if seeds is not None and labels is not None:
        raise InputError("seeds are drawn from the judged queries. Give labels or seeds, not both.")
    with_labels = seeds is not None or labels is not None
    chosen = _policies(policies, need, with_labels, titles=labels == TITLES)
    ks = sorted({k, *budgets})
    if ks[0] < 1:
        raise InputError(f"k is {ks[0]}, expected 1, 2, 3 … results for each query.")
    swept = [allocations.parse(name) for name in LEARNED] if seed_sizes else []
    depth = max(HEAD, *(policy.window(ks[-1]) for policy in (*chosen.values(), *swept)))
    options: dict[str, Any] = {"labels": labels, "item": item, "depth": depth, "rel": rel}
    givens: dict[str, Given] = {}
    if retriever is None:
        if bridge is not None:
            raise InputError(
                "a bridge compares texts, which runs lack. Give a collection and a retriever."
            )
        givens[""] = from_runs(_named(sources), qrels, queries=queries, ties=ties, **options)
    else:
        collection = _whole(sources, queries)
        for name, member in _retrievers(retriever).items():
            givens[name] = from_collection(
                collection,
                member,
                qrels,
                split=split,
                by=by,
                statistics=statistics,
                seed=seed,
                weight=bridge,
                encoder=encoder,
                **options,
            )

    def answered(name: str, given: Given, others: Mapping[str, Allocated]) -> Allocated:
        lists = allocations.gather(
            given.runs, depth=depth, queries=None if given.qrels is None else given.qrels.query_ids
        )
        judged = None if given.qrels is None else allocations.label(lists, given.qrels, rel)
        items = _numbers(lists, given.items)
        trials: list[Trial] = []
        if judged is not None and given.seeds is None:
            # They depend on items and the seed alone, so that retrievers are tried alike.
            if seeds is not None:
                trials = draw_seeds(items, seeds, draws, seed)
            elif any(policy.learns for policy in chosen.values()):
                trials = fold(items, folds, seed)
        plain: dict[str, Outcome] = {}
        if given.plain is not None and given.qrels is not None:
            before = allocations.gather(given.plain, depth=depth, queries=lists.query_ids)
            same = allocations.label(before, given.qrels, rel)
            # What was learned from other queries was learned from their reranked lists.
            apart = {name: p for name, p in chosen.items() if given.seeds is None or not p.learns}
            plain = outcomes_of(apart, before, k, same, None, trials)
        return Allocated(
            k=k,
            need=need,
            lists=lists,
            labels=judged,
            items=items,
            outcomes=outcomes_of(chosen, lists, k, judged, given.seeds, trials),
            seeds=given.seeds,
            plain=plain,
            trials=tuple(trials),
            with_labels=with_labels,
            retriever=name,
            others=dict(others),
            budgets=tuple(budgets),
            seed_sizes=tuple(seed_sizes),
            draws=draws,
            level=level,
            resamples=resamples,
            seed=seed,
        )

    first, *rest = givens.items()
    return answered(*first, {name: answered(name, given, {}) for name, given in rest})


def _named(sources: Mapping[str, Run | PathLike] | Collection | PathLike) -> Mapping[str, Any]:
    if isinstance(sources, Mapping):
        return sources
    raise InputError(
        "a collection needs a retriever to be searched with (--retriever 'bm25()'); runs are given "
        "by the names of their sources (NAME=FILE)."
    )


def _whole(
    sources: Mapping[str, Run | PathLike] | Collection | PathLike, queries: object
) -> Collection:
    if isinstance(sources, Mapping):
        raise InputError("a retriever searches a collection, but runs were given. Leave it out.")
    if queries is not None:
        raise InputError("a collection has queries of its own. Leave them out.")
    return sources if isinstance(sources, Collection) else read_collection(sources)


def _retrievers(given: Retrievers) -> dict[str, Retriever]:
    """Retrievers by their names; without a name, by their specs."""
    if isinstance(given, Mapping):
        found = {name: retrievers.parse(one) for name, one in given.items()}
    else:
        found = {}
        for member in map(
            retrievers.parse, [given] if isinstance(given, str | Retriever) else given
        ):
            if str(member) in found:
                raise InputError(f"the retriever {member} is given twice.")
            found[str(member)] = member
    if not found:
        raise InputError('no retriever was given. Give at least one, like "bm25()".')
    return found


def _policies(
    given: Iterable[str | Policy] | None, need: Need, with_labels: bool, *, titles: bool
) -> dict[str, Policy]:
    """Policies by their specs; naive merging, equal split and the default are always among them."""
    learned = ("softmax()",) if titles else LEARNED  # titles say nothing of other sources
    several = [given] if isinstance(given, str | Policy) else given
    members = [*(several or (*LABEL_FREE, *(learned if with_labels else ())))]
    always = [NAIVE, EQUAL, DEFAULTS[need][0]]
    if with_labels and DEFAULTS[need][1] in learned:
        always.append(DEFAULTS[need][1])
    chosen: dict[str, Policy] = {name: allocations.parse(name) for name in dict.fromkeys(always)}
    seen: set[str] = set()
    for member in map(allocations.parse, members):
        if str(member) in seen:
            raise InputError(f"the policy {member} is given twice.")
        seen.add(str(member))
        if not member.needs_qrels:  # the oracle is always there
            chosen[str(member)] = member
    order = [*dict.fromkeys((*LABEL_FREE, *LEARNED, *chosen))]
    return {name: chosen[name] for name in order if name in chosen}


def _numbers(lists: Lists, items: Mapping[str, str] | None) -> Ints:
    """What each query is about, as numbers in the order of the queries."""
    if items is None:
        return np.arange(len(lists.query_ids))
    missing = [query for query in lists.query_ids if query not in items]
    if missing:
        raise InputError(
            f"{len(missing):,} queries have no item, like {missing[0]!r}. Give the queries of "
            "these runs."
        )
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(items[q], len(numbers)) for q in lists.query_ids])
