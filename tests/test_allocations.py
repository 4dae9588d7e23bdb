"""Allocations: policies worked out by hand, laws of every member, brute force as oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farfield
from farfield import allocations
from farfield.allocations import Keyed, Split, gather, label
from farfield.allocations._curves import conditional, pointwise, rising
from farfield.allocations._picks import rounded
from farfield.errors import InputError, SpecError
from farfield.tables import Qrels, Run

# Source a has a high level for this query, b a low one. Relevant: a3 and b1.
A = {"q": {"a1": 9.0, "a2": 8.5, "a3": 8.0, "a4": 7.5}}
B = {"q": {"b1": 5.0, "b2": 2.0, "b3": 1.0}}
QRELS = Qrels({"q": {"a3": 1, "b1": 1, "x": 0}})
LABELLED = ("boosted()", "calibrated()", "fraction()", "level()", "softmax()")


def runs(**sources) -> dict[str, Run]:
    return {name: Run(lists, name=name) for name, lists in sources.items()}


def shown(spec, k, *, qrels=QRELS, **sources) -> list[str]:
    """What query q gets, in order."""
    lists = gather(runs(**(sources or {"a": A, "b": B})))
    labels = label(lists, qrels)
    picks = allocations.parse(spec).pick(lists, k, labels)
    return picks.run().frame.filter(query_id="q")["doc_id"].to_list()


BY_HAND = {
    ("merge()", 4): ["a1", "a2", "a3", "a4"],
    ("merge()", 6): ["a1", "a2", "a3", "a4", "b1", "b2"],
    ("equal()", 4): ["a1", "a2", "b1", "b2"],
    # The spare slot goes to a3 (8), not to b2 (2).
    ("equal()", 3): ["a1", "a2", "b1"],
    ("interleave()", 4): ["a1", "b1", "a2", "b2"],
    ("interleave()", 3): ["a1", "b1", "a2"],
    # Means of the first four: a 8.25, b 8/3. Keys: a 0.75 0.25 -0.25 -0.75, b 2.33 -0.67 -1.67.
    ("local()", 4): ["b1", "a1", "a2", "a3"],
    # Means of the first two: a 8.75, b 3.5. Keys: a 0.25 -0.25 -0.75 -1.25, b 1.5 -1.5.
    ("local(depth=2)", 4): ["b1", "a1", "a2", "a3"],
    ("local()", 2): ["b1", "a1"],
    ("level(weight=0.0)", 4): ["a1", "a2", "a3", "a4"],
    ("level(weight=1.0)", 4): ["b1", "a1", "a2", "a3"],
    # Half of the level: a 4.875 4.375 3.875 3.375, b 3.667 0.667.
    ("level(weight=0.5)", 4): ["a1", "a2", "a3", "b1"],
    ("fraction(shares=[0.25, 0.75])", 4): ["a1", "b1", "b2", "b3"],
    ("fraction(shares=[0.25])", 4): ["a1", "b1", "b2", "b3"],
    # b has three results only; what it cannot give goes by score.
    ("fraction(shares=[0.0, 1.0])", 4): ["a1", "b1", "b2", "b3"],
    # Half a slot and one and a half: the remainders tie, and a1 has the better score.
    ("fraction(shares=[1.0, 3.0])", 2): ["a1", "b1"],
    # ln p with T = 1: a -0.19-… every a is less likely than b1 (0.93), a1 0.43 before b2 0.05.
    ("softmax(temperatures=[1.0, 1.0], reach=[1.0, 1.0])", 4): ["b1", "a1", "a2", "a3"],
    # At a thousandth of the reach b comes last.
    ("softmax(temperatures=[1.0, 1.0], reach=[1.0, 0.001])", 4): ["a1", "a2", "a3", "a4"],
    # Both can be had in four slots: a1 a2 a3 and b1, by score.
    ("oracle()", 4): ["a1", "a2", "a3", "b1"],
    # Only one of them: b1 comes first of its list, and fills up by score.
    ("oracle()", 3): ["b1", "a1", "a2"],
    ("oracle()", 1): ["b1"],
}


@pytest.mark.parametrize(("spec", "k"), BY_HAND, ids=str)
def test_by_hand(spec, k):
    assert shown(spec, k) == BY_HAND[spec, k]


def test_the_soft_mean_by_hand():
    # T ln(mean of exp(s / T)) with T = 2 over two results each.
    lists = gather(runs(a=A, b=B))
    soft = [2 * np.log((np.exp(x / 2) + np.exp(y / 2)) / 2) for x, y in ((9, 8.5), (5, 2))]
    assert lists.soft_mean_of_top(2, 2.0)[0] == pytest.approx(soft)
    keys = allocations.parse("lse(times=2, depth=2, scale=1)").keys(lists, 4)
    assert keys[0, :, 0] == pytest.approx([9 - soft[0], 5 - soft[1]])
    # Between the mean and the maximum, and the mean in the limit.
    assert lists.soft_mean_of_top(3, 1e6)[0] == pytest.approx(lists.mean_of_top(3)[0], abs=1e-4)
    assert lists.soft_mean_of_top(3, 1e-3)[0] == pytest.approx([9, 5], abs=0.01)


def test_the_scale_is_the_excess_of_the_tail():
    # Ranks 11 to 100 above rank 101: scores fall by 1 a rank, so 90 … 1 above it, 45.5 in the mean.
    long = {"q": {f"a{i:03}": float(-i) for i in range(150)}}
    short = {"q": {"b1": 3.0, "b2": 2.0}}
    # A source without a tail gets the mean of the others; without any, whole lists are taken.
    assert gather(runs(a=long, b=short)).tails == pytest.approx([45.5, 45.5])
    assert gather(runs(a=A, b=short)).tails == pytest.approx([(1.5 + 1.0 + 0.5) / 3, 1.0])
    flat = {"q": {"c1": 1.0, "c2": 1.0}}
    assert gather(runs(a=flat, b={"q": {"d": 1.0}})).tails == pytest.approx([1.0, 1.0])


# -- rounding and ties --------------------------------------------------------------------------


def test_shares_are_rounded_by_the_largest_remainder():
    # int((1 - 0.9) * 10) is 0 in Python: a tenth of ten is one all the same.
    for share in range(11):
        fixed, tied = rounded(np.array([share / 10, 1 - share / 10]), 10)
        assert fixed.tolist() == [share, 10 - share]
        assert not tied.any()
    fixed, tied = rounded(np.array([0.5, 0.3, 0.2]), 4)  # 2, 1.2, 0.8
    assert (fixed.tolist(), tied.any()) == ([2, 1, 1], False)
    fixed, tied = rounded(np.array([1.0, 1.0, 1.0]), 4)  # one is left for any of them
    assert (fixed.tolist(), tied.tolist()) == ([1, 1, 1], [True, True, True])
    fixed, tied = rounded(np.array([[2.0, 2.0, 0.0], [1.0, 0.0, 0.0]]), 5)
    assert fixed.tolist() == [[2, 2, 0], [5, 0, 0]]
    assert tied.tolist() == [[True, True, False], [False, False, False]]


def test_a_slot_that_remains_goes_by_score_and_not_to_the_first():
    one = {"p": {"a1": 3.0, "a2": 1.0}, "q": {"a1": 3.0, "a2": 2.0}}
    two = {"p": {"b1": 3.0, "b2": 2.0}, "q": {"b1": 3.0, "b2": 1.0}}
    for spec in ("equal()", "fraction(shares=[1.0, 1.0])"):
        budgets = allocations.parse(spec).pick(gather(runs(a=one, b=two)), 3).budgets
        assert budgets.tolist() == [[1, 2], [2, 1]]


def test_fewer_slots_than_sources_go_to_the_best():
    sources = {
        name: {"q": {f"{name}1": score}} for name, score in zip("abcde", range(5), strict=True)
    }
    assert shown("equal()", 2, **sources) == ["e1", "d1"]
    assert shown("interleave()", 2, **sources) == ["e1", "d1"]


def test_ties_go_by_rank_and_then_in_turn():
    queries = [f"q{i}" for i in range(200)]
    same = {
        name: {q: {f"{name}1": 1.0, f"{name}2": 1.0} for q in queries} for name in ("a", "b", "c")
    }
    picks = allocations.parse("merge()").pick(gather(runs(**same)), 4)
    assert (picks.rank[:, :3] == 0).all()  # all firsts before any second
    first = Counter(picks.source[:, 0].tolist())
    assert all(40 < first[source] < 100 for source in range(3))
    # Whose turn it is depends on the query alone.
    lists = gather(runs(**same))
    some = np.arange(50, 60)
    again = allocations.parse("merge()").pick(lists.take(some), 4)
    assert (again.source == picks.source[some]).all()


# -- laws of every member -----------------------------------------------------------------------


scores = st.lists(st.floats(-5, 5, width=16), min_size=0, max_size=7)
a_source = st.lists(scores, min_size=3, max_size=3)


def made(sources: list[list[list[float]]]) -> dict[str, Run]:
    """Runs of queries 0, 1, 2; every source has a fourth query, so that none is empty."""
    return {
        f"s{number}": Run(
            {
                str(query): {f"s{number}d{at}": s for at, s in enumerate(scores)}
                for query, scores in enumerate([*lists, [1.0, 0.5]])
            },
            name=f"s{number}",
        )
        for number, lists in enumerate(sources)
    }


def fitted(spec, lists, labels, k):
    policy = allocations.parse(spec)
    return policy.fit(lists, labels, k) if policy.learns else policy


def some_labels(lists):
    """The first result of every source is relevant to the last query, to all others the second."""
    rows = [
        (query, run.doc_ids[int(run.bounds[at]) + (0 if query == "3" else 1)], 1)
        for run in lists.runs
        for at, query in enumerate(run.query_ids.cast(pl.String))
        if run.bounds[at + 1] - run.bounds[at] > (0 if query == "3" else 1)
    ]
    return label(lists, Qrels(pl.DataFrame(rows, schema=list(Qrels.columns), orient="row")))


@pytest.mark.parametrize("name", allocations.names())
def test_every_policy_spends_its_budget_and_keeps_the_order_of_sources(name):
    @settings(max_examples=5 if name == "boosted" else 25)
    @given(st.lists(a_source, min_size=2, max_size=4), st.integers(1, 12))
    def law(sources, k):
        lists = gather(made(sources), queries=pl.Series(["0", "1", "2", "3"]))
        labels = some_labels(lists)
        policy = fitted("boosted(trees=3)" if name == "boosted" else f"{name}()", lists, labels, k)
        picks = policy.pick(lists, k, labels)
        there = lists.lengths.sum(axis=1)
        assert (picks.budgets.sum(axis=1) == np.minimum(there, k)).all()
        assert (picks.budgets <= lists.lengths).all()
        for source, rank in zip(picks.source, picks.rank, strict=True):
            for number in range(len(sources)):
                mine = rank[source == number]
                assert mine.tolist() == list(range(len(mine)))  # the best first, none left out
            assert (np.diff((source == -1).astype(int)) >= 0).all()  # what is missing comes last
        assert allocations.parse(str(policy)) == policy or name == "boosted"
        assert len(picks.run()) == picks.budgets.sum()
        assert picks.allocation.frame["budget"].sum() == picks.budgets.sum()
        # Other queries change nothing, once all is learned.
        if name not in ("lse", "oracle"):
            alone = policy.pick(lists.take(np.array([1])), k)
            assert alone.source[0].tolist() == picks.source[1].tolist()

    law()


@pytest.mark.parametrize("name", allocations.names())
def test_specs_read_back(name):
    member = allocations.parse(f"{name}()")
    assert allocations.parse(str(member)) == member
    assert allocations.parse(name) == member
    assert member.learns == (str(member) in LABELLED)
    assert "Relations:" in (type(member).__doc__ or "")


def test_what_was_learned_reads_back():
    rng = np.random.default_rng(0)
    lists, labels = world(rng, queries=60, sources=3, temperature=0.3)
    for spec in ("fraction()", "level()", "softmax()", "calibrated()", "calibrated(curve=platt)"):
        policy = fitted(spec, lists, labels, 5)
        assert not policy.learns
        assert allocations.parse(str(policy)) == policy
        again = allocations.parse(str(policy)).pick(lists, 5)
        assert (again.source == policy.pick(lists, 5).source).all()
    isotonic = fitted("calibrated(curve=isotonic)", lists, labels, 5)
    assert allocations.parse(str(isotonic)) == isotonic
    assert fitted("softmax()", *world(rng, queries=20, sources=50), 5).temperatures[49] > 0


def test_fifty_sources():
    rng = np.random.default_rng(1)
    lists, labels = world(rng, queries=40, sources=50, depth=12)
    for name in allocations.names():
        spec = "boosted(trees=3)" if name == "boosted" else f"{name}()"
        picks = fitted(spec, lists, labels, 20).pick(lists, 20, labels)
        assert (picks.budgets.sum(axis=1) == 20).all()


def test_equal_and_interleave_take_the_same():
    rng = np.random.default_rng(2)
    lists, _ = world(rng, queries=30, sources=4, depth=6)
    lists.scores[0, 0, 1:] = -np.inf  # one source runs dry
    one, other = (allocations.parse(name).pick(lists, 10) for name in ("equal()", "interleave()"))
    assert (one.budgets == other.budgets).all()
    assert (one.budgets[1:].max(axis=1) - one.budgets[1:].min(axis=1) <= 1).all()
    assert one.budgets[0].tolist() == [1, 3, 3, 3]


# -- keys that are not monotone -----------------------------------------------------------------


def test_a_key_that_rises_with_the_rank_reorders_nothing():
    @dataclass(frozen=True, kw_only=True)
    class upside_down(Keyed):
        """The last result of a list has the largest key."""

        def keys(self, lists, k):
            return np.broadcast_to(np.arange(lists.depth), lists.scores.shape) * 1.0

    picks = upside_down().pick(gather(runs(a=A, b=B)), 5)
    for number in (0, 1):
        mine = picks.rank[0][picks.source[0] == number]
        assert mine.tolist() == sorted(mine.tolist())
    # No result counts for more than those above it: all have the key of the first.
    assert picks.rank[0].tolist() == [0, 0, 1, 1, 2]


def test_a_split_of_ones_own():
    @dataclass(frozen=True, kw_only=True)
    class by_best(Split):
        """The share of a source is the rank of its best score among the sources."""

        def parts(self, lists, k):
            return 1.0 + np.argsort(np.argsort(lists.scores[:, :, 0], axis=1), axis=1)

    picks = by_best().pick(gather(runs(a=A, b=B)), 3)
    assert picks.budgets.tolist() == [[2, 1]]


# -- the oracle, and the best shares ------------------------------------------------------------


def brute_force(lists, labels, k) -> tuple[np.ndarray, np.ndarray]:
    """The best recall and then precision over all ways to spend at most k slots, shown by score."""
    found = []
    for row, query in enumerate(lists.query_ids):
        best = (-1.0, -1.0)
        alone, known = lists.take(np.array([row])), labels.take(np.array([row]))
        for slots in product(*(range(n + 1) for n in lists.lengths[row])):
            if sum(slots) != min(k, lists.lengths[row].sum()):
                continue
            # Shares that add up to what is spent become just these slots.
            policy = allocations.get("fraction")(shares=tuple(float(s) for s in slots))
            picks = policy.pick(alone, sum(slots))
            assert picks.budgets[0].tolist() == list(slots), query
            best = max(best, (known.recall(picks)[0], known.precision(picks)[0]))
        found.append(best)
    recall, precision = np.array(found).T
    return recall, precision


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 6), st.integers(1, 4))
def test_the_oracle_is_brute_force(seed, sources, k, relevant):
    rng = np.random.default_rng(seed)
    lists, _ = world(rng, queries=3, sources=sources, depth=max(k, 3))  # lists of k or more
    labels = random_labels(rng, lists, relevant)
    picks = allocations.parse("oracle()").pick(lists, k, labels)
    recall, precision = brute_force(lists, labels, k)
    assert labels.recall(picks) == pytest.approx(recall)
    assert labels.precision(picks) == pytest.approx(precision)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 8))
def test_the_oracle_is_brute_force_where_lists_are_short(seed, sources, k):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, size=(sources, 3)).tolist()
    lists = gather(made([[rng.normal(size=n).tolist() for n in source] for source in lengths]))
    labels = random_labels(rng, lists, 3)
    picks = allocations.parse("oracle()").pick(lists, k, labels)
    recall, precision = brute_force(lists, labels, k)
    assert labels.recall(picks) == pytest.approx(recall)
    # What fills up the budget comes after what is needed, so that no split is better.
    assert (labels.precision(picks) >= precision - 1e-12).all()


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 6))
def test_the_best_shares_are_brute_force(seed, sources, k):
    rng = np.random.default_rng(seed)
    lists, _ = world(rng, queries=12, sources=sources, depth=k)
    labels = random_labels(rng, lists, 2)
    learned = allocations.parse("fraction()").fit(lists, labels, k)
    best = -1.0
    for slots in product(range(k + 1), repeat=sources):
        if sum(slots) == k:
            policy = allocations.get("fraction")(shares=tuple(map(float, slots)))
            best = max(best, labels.recall(policy.pick(lists, k)).sum())
    even = allocations.get("fraction")(shares=(1.0,) * sources)  # spare slots differ by query
    best = max(best, labels.recall(even.pick(lists, k)).sum())
    assert labels.recall(learned.pick(lists, k)).sum() == pytest.approx(best)


def test_without_evidence_shares_are_equal():
    lists = gather(runs(a=A, b=B))
    nothing = label(lists, Qrels({"q": {"x": 1}}))
    assert allocations.parse("fraction()").fit(lists, nothing, 10).shares == (1.0, 1.0)


# -- what is learned ----------------------------------------------------------------------------


def world(rng, *, queries=50, sources=3, depth=10, temperature=1.0, lift=None):
    """Lists of normal scores, and in each list a relevant result drawn by softmax(s / T)."""
    scores = -np.sort(-rng.normal(size=(queries, sources, depth)), axis=2)
    if lift is not None:
        scores = scores + np.asarray(lift)[..., None]
    chance = np.exp(scores / temperature)
    chance /= chance.sum(axis=2, keepdims=True)
    relevant = (chance.cumsum(axis=2) < rng.random((queries, sources, 1))).sum(axis=2)
    made = {
        f"s{s}": Run(
            pl.DataFrame(
                {
                    "query_id": [f"q{q:04}" for q in range(queries) for _ in range(depth)],
                    "doc_id": [f"s{s}q{q}d{d}" for q in range(queries) for d in range(depth)],
                    "score": scores[:, s].ravel(),
                }
            ),
            ties="file",
        )
        for s in range(sources)
    }
    rows = [
        (f"q{q:04}", f"s{s}q{q}d{min(int(relevant[q, s]), depth - 1)}", 1)
        for q in range(queries)
        for s in range(sources)
    ]
    qrels = Qrels(pl.DataFrame(rows, schema=list(Qrels.columns), orient="row"))
    lists = gather(made)
    return lists, label(lists, qrels)


def random_labels(rng, lists, count):
    rows = set()
    for query in lists.query_ids:
        for _ in range(count):
            run = lists.runs[rng.integers(len(lists.runs))]
            there = run.query_ids.cast(pl.String).to_list()
            if query in there:
                first, last = run.bounds[there.index(query) :][:2]
                rows.add((query, run.doc_ids[int(rng.integers(first, last))], 1))
    frame = pl.DataFrame(sorted(rows), schema=list(Qrels.columns), orient="row")
    return label(lists, Qrels(frame))


@pytest.mark.parametrize("temperature", [0.25, 1.0])
def test_softmax_recovers_the_temperature_and_the_reach(temperature):
    lists, labels = world(np.random.default_rng(3), queries=3000, temperature=temperature)
    learned = allocations.parse("softmax(depth=10)").fit(lists, labels, 5)
    assert learned.temperatures == pytest.approx([temperature] * 3, rel=0.1)
    assert learned.reach == pytest.approx([3001 / 3002] * 3, abs=1e-5)
    # Without labels: the scale of the tails and even odds.
    nothing = label(lists, Qrels({"q0000": {"x": 1}}))
    prior = allocations.parse("softmax(depth=10)").fit(lists, nothing, 5)
    assert prior.temperatures == pytest.approx(lists.tails, rel=1e-4)
    assert prior.reach == pytest.approx([1 / 3002] * 3, rel=1e-3)


def test_titles_teach_only_about_their_own_source():
    lists, labels = world(np.random.default_rng(4), queries=40, sources=3)
    asked = np.zeros((40, 3), dtype=bool)
    asked[:, 0] = True
    at_home = allocations.Labels(
        labels.lists, labels.hits & asked[:, :, None], labels.relevant, asked
    )
    learned = allocations.parse("softmax(depth=10)").fit(lists, at_home, 5)
    assert learned.temperatures[1:] == pytest.approx(lists.tails[1:], rel=1e-4)
    assert learned.reach == pytest.approx([41 / 42] * 3, rel=1e-4)  # the others as the first


def test_level_turns_the_dial_to_where_the_truth_is():
    rng = np.random.default_rng(5)
    # Every source has its relevant result first, at a level of its own for each query: level them.
    lists, labels = world(rng, temperature=0.05, lift=rng.normal(size=(50, 3)) * 5)
    assert allocations.parse("level()").fit(lists, labels, 3).weight >= 0.9
    # The relevant results are where the level is high: leave it.
    high = lists.scores[:, :, 0] == lists.scores[:, :, 0].max(axis=1, keepdims=True)
    topical = allocations.Labels(
        lists, labels.hits & high[:, :, None], np.ones(50, dtype=int), labels.asked
    )
    assert allocations.parse("level()").fit(lists, topical, 3).weight < 0.7


def test_the_conditional_curve_recovers_slope_and_offsets():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(6000, 3, 8)) + rng.normal(size=(6000, 1, 1)) * 3
    offsets = np.array([0.0, 1.0, -1.0])
    logits = 1.5 * scores + offsets[:, None]
    drawn = (logits + rng.gumbel(size=logits.shape)).reshape(6000, -1).argmax(axis=1)
    hits = (np.arange(24) == drawn[:, None]).reshape(scores.shape)
    slope, found = conditional(scores, hits, 0.01)
    assert slope == pytest.approx(1.5, abs=0.08)
    assert found - found[0] == pytest.approx(offsets, abs=0.12)
    # A strong ridge leaves naive merging.
    assert conditional(scores, hits, 1e9)[1] == pytest.approx([0, 0, 0], abs=1e-4)
    # Scores that say the contrary are left as they are.
    assert conditional(-scores, hits, 0.01)[0] == 1.0
    assert conditional(scores, np.zeros_like(hits), 1.0) == (1.0, pytest.approx([0, 0, 0]))


def test_a_pointwise_curve_recovers_slope_and_offsets():
    rng = np.random.default_rng(7)
    x, source = rng.normal(size=40_000), rng.integers(0, 2, 40_000)
    chance = 1 / (1 + np.exp(-(2 * x - 1 + np.array([0.5, -0.5])[source])))
    slope, offsets = pointwise(x, rng.random(40_000) < chance, source, 2, 1e-3)
    assert slope == pytest.approx(2, abs=0.1)
    assert offsets[0] - offsets[1] == pytest.approx(1, abs=0.1)
    # A clean cut has an end, too.
    clean, _ = pointwise(
        np.array([-1.0, 1.0] * 20), np.array([False, True] * 20), source[:40], 2, 1
    )
    assert 1 < clean < 20


def test_a_rising_curve_never_falls():
    rng = np.random.default_rng(8)
    z = rng.normal(size=2000)
    knots, heights = rising(z, rng.random(2000) < 1 / (1 + np.exp(-3 * z)))
    assert (np.diff(knots) > 0).all()
    assert (np.diff(heights) >= 0).all()
    assert np.corrcoef(knots, heights)[0, 1] > 0.9
    assert len(rising(z, rng.random(2000) < 0.5)[0]) < 12  # noise is pooled


def test_offsets_help_where_a_source_is_worth_more_than_its_scores():
    rng = np.random.default_rng(9)
    lists, labels = world(rng, queries=400, temperature=0.05)
    mine = np.array([True, False, False])
    only = allocations.Labels(
        lists, labels.hits & mine[:, None], np.ones(400, dtype=int), labels.asked
    )
    merged = only.recall(allocations.parse("merge()").pick(lists, 2)).mean()
    learned = fitted("calibrated()", lists, only, 2)
    assert learned.offsets[0] > max(learned.offsets[1:])
    assert only.recall(learned.pick(lists, 2)).mean() > merged + 0.2


def test_boosted_learns_and_falls_within_a_source():
    rng = np.random.default_rng(10)
    lists, labels = world(rng, queries=200, temperature=0.1, lift=rng.normal(size=(200, 3)) * 3)
    learned = fitted("boosted(trees=30)", lists, labels, 6)
    merged = labels.recall(allocations.parse("merge()").pick(lists, 6)).mean()
    assert labels.recall(learned.pick(lists, 6)).mean() > merged + 0.1
    assert str(learned) == "boosted(trees=30)"
    # Labels that tell nothing apart leave the scores as they are.
    nothing = label(lists, Qrels({"q0000": {"x": 1}}))
    untaught, merged = fitted("boosted()", lists, nothing, 6), allocations.parse("merge()")
    assert (untaught.pick(lists, 6).source == merged.pick(lists, 6).source).all()


# -- agreement with the rest --------------------------------------------------------------------


def test_recall_and_precision_are_those_of_the_run():
    rng = np.random.default_rng(11)
    lists, _ = world(rng, queries=40, sources=4)
    labels = random_labels(rng, lists, 3)
    rows = [
        (query, run.doc_ids[int(run.bounds[at] + rank)], 1)
        for number, run in enumerate(lists.runs)
        for at, query in enumerate(run.query_ids.cast(pl.String))
        for rank in np.flatnonzero(labels.hits[at, number])
    ]
    qrels = Qrels(pl.DataFrame(rows, schema=list(Qrels.columns), orient="row"))
    for name in ("merge()", "equal()", "interleave()", "local()", "oracle()"):
        picks = allocations.parse(name).pick(lists, 7, labels)
        found = farfield.evaluate(qrels, picks.run(name), ["R@7", "AP@7"])
        assert found.values("R@7")[0] == pytest.approx(labels.recall(picks))
        assert found.values("AP@7")[0] == pytest.approx(labels.precision(picks))


def test_merging_pooled_runs_is_searching_all_documents():
    lab = farfield.lab.make(passages=120, train=80, test=20)
    corpus, queries = lab.collection.corpus, lab.collection.queries_of("test")
    index = farfield.retrievers.parse("bm25()").index(corpus)
    parts = dict(corpus.frame.group_by("source").agg("doc_id").sort("source").iter_rows())
    by_source = index.search_parts(queries, {n: pl.Series(ids) for n, ids in parts.items()}, 20)
    merged = allocations.parse("merge()").pick(gather(by_source), 10).run()
    whole = index.search(queries, 10)
    one, other = (
        dict(run.frame.group_by("query_id").agg("doc_id").iter_rows()) for run in (merged, whole)
    )
    scores = whole.to_dict()
    for query, docs in other.items():
        edge = min(scores[query].values())  # at the edge equal scores may change places
        assert {d for d in docs if scores[query][d] > edge} <= set(one[query])


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("fraction(shares=[0.0, 0.0])", "one above"),
        ("fraction(shares=[-1.0, 2.0])", "at least 0"),
        ("fraction(1.5)", "expected 0 to 1"),
        ("local(depth=0)", "expected 1, 2, 3"),
        ("lse(times=0)", "above 0"),
        ("softmax(temperatures=[0.0])", "above 0"),
        ("softmax(depth=0)", "expected 1, 2, 3"),
        ("calibrated(ridge=0)", "above 0"),
        ("calibrated(slope=-1.0)", "belongs together"),
        ("calibrated(curve=spline)", "expected one of"),
        ("boosted(rate=2.0)", "at most 1"),
        ("boosted(trees=0)", "at least 1"),
        ("locall()", "Did you mean 'local'"),
    ],
)
def test_specs_that_make_no_sense(spec, said):
    with pytest.raises(SpecError, match=said):
        allocations.parse(spec)


def test_lists_that_make_no_sense():
    with pytest.raises(InputError, match="at least 2"):
        gather(runs(a=A))
    with pytest.raises(InputError, match="'a1' is in 'a' and in 'c'.*farfield fuse"):
        gather(runs(a=A, b=B, c={"other": {"a1": 1.0}}))
    with pytest.raises(InputError, match="infinite"):
        gather(runs(a=A, b={"q": {"b1": float("inf")}}))
    with pytest.raises(InputError, match="depth is 0"):
        gather(runs(a=A, b=B), depth=0)


def test_policies_that_cannot_be_used_so():
    lists = gather(runs(a=A, b=B))
    labels = label(lists, QRELS)
    with pytest.raises(InputError, match="k is 0"):
        allocations.parse("merge()").pick(lists, 0)
    with pytest.raises(InputError, match="needs judgements"):
        allocations.parse("oracle()").pick(lists, 3)
    for spec in LABELLED:
        with pytest.raises(InputError, match="something to learn"):
            allocations.parse(spec).pick(lists, 3)
    with pytest.raises(InputError, match="3 sources, but there are 2: a, b"):
        allocations.parse("fraction(shares=[1.0, 1.0, 1.0])").pick(lists, 3)
    assert allocations.parse("boosted()").fit(lists, labels, 3).pick(lists, 3).source.shape == (
        1,
        3,
    )
