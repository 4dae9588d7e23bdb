"""Indicators: values worked out by hand, laws of every member, peers as oracles, calibration."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import encoders, indicators, lab
from farfield.errors import InputError, SpecError
from farfield.indicators import Side, Sides
from farfield.similarity.vocabulary import jaccard_of_texts, standard_error, words_of
from farfield.tables import Queries

FAST = {
    "jaccard": "jaccard(draws=5, permutations=49)",
    "r": "r()",
    "neighbours": "neighbours()",
    "mmd": "mmd(permutations=99)",
    "classifier": "classifier(permutations=99)",
}
TESTS = ["jaccard", "mmd", "classifier"]


def read(spec, sides):
    return indicators.parse(spec).compare(sides)


def sides_of(a, b, *, seed=0, level=0.95, texts=None) -> Sides:
    """Sides with these vectors; the texts hardly matter."""
    a, b = (np.array(x, dtype=np.float32) for x in (a, b))
    words = texts or [[f"word{i % 7} w{i}" for i in range(len(x))] for x in (a, b)]
    one, other = (Side(pl.Series(w), x) for w, x in zip(words, (a, b), strict=True))
    return Sides(one, other, level=level, seed=seed)


@cache
def planted() -> tuple[pl.DataFrame, np.ndarray]:
    """Training queries of the lab with their topics, and vectors of them."""
    made = lab.make(passages=600, train=2400, test=200)
    frame = made.queries.filter(pl.col("split") == "train").sort("query_id")
    queries = Queries(frame.select("query_id", "text"))
    (vectors,) = encoders.parse("lsa(dimensions=32)").encode(queries)
    return frame, vectors


def chosen(a, b, *, seed=0) -> Sides:
    """Sides from rows of the lab's queries."""
    frame, vectors = planted()
    one, other = (Side(frame["text"].gather(rows), vectors[rows]) for rows in (a, b))
    return Sides(one, other, seed=seed)


def halves(seed, size=300) -> Sides:
    rows = np.random.default_rng(seed).permutation(len(planted()[0]))[: 2 * size]
    return chosen(rows[:size], rows[size:], seed=seed)


def topics(seed=0) -> Sides:
    topic = planted()[0]["topic"]
    return chosen(*((topic == name).arg_true().to_numpy() for name in ("cooking", "machines")))


# -- by hand ------------------------------------------------------------------------------------


def test_jaccard_by_hand():
    a, b = pl.Series(["A b", "a"]), pl.Series(["a c", "a c"])
    # Shares: a 2/3, b 1/3 against a 1/2, c 1/2. Common: 1/2; larger: 2/3 + 1/3 + 1/2 = 3/2.
    found = read("jaccard(draws=2)", Sides(Side(a), Side(b)))
    assert found.value == pytest.approx(0.5 / 1.5)
    assert (found.details["words_a"], found.details["words_b"]) == (2, 2)


def test_stop_words_and_stems_by_hand():
    a, b = pl.Series(["What is the engine?", "engines"]), pl.Series(["the engine", "stopped"])
    found = {
        spec: read(spec, Sides(Side(a), Side(b))).value
        for spec in ("jaccard", "jaccard(stop=True)", "jaccard(stop=True, stem=True)")
    }
    # As they are: only "the" is shared, 1/5 of A and 1/3 of B.
    assert found["jaccard"] == pytest.approx((1 / 5) / (9 / 5))
    # Left are engine, engines | engine, stopped: 1/2 is common.
    assert found["jaccard(stop=True)"] == pytest.approx(0.5 / 1.5)
    # engin, engin | engin, stop.
    assert found["jaccard(stop=True, stem=True)"] == pytest.approx(0.5 / 1.5)
    assert read("jaccard(stem=True)", Sides(Side(a), Side(b))).value == pytest.approx(
        (1 / 5 + 1 / 3) / (2 - 1 / 5 - 1 / 3)  # the, and engin: 2/5 against 1/3
    )


def test_r_by_hand():
    # B's mean is (2/3, 1/3); without (1, 0) it is (1/2, 1/2), without (0, 1) it is (1, 0).
    sides = sides_of([[1, 0], [0.6, 0.8]], [[1, 0], [1, 0], [0, 1]])
    found = read("r", sides)
    assert found.a == pytest.approx([2 / 3, 0.4 + 0.8 / 3])
    assert found.b == pytest.approx([0.5, 0.5, 0.0])
    assert found.value == pytest.approx(2 / 3)
    assert found.same == pytest.approx(1 / 3)
    assert found.details["difference"] == pytest.approx(1 / 3)
    cosine = read("r(variant=cosine)", sides)
    assert cosine.a == pytest.approx([2 / 5**0.5, 2 / 5**0.5])
    assert cosine.b == pytest.approx([0.5**0.5, 0.5**0.5, 0.0])
    assert read("r(variant=max)", sides).a == pytest.approx([1.0, 0.8])
    top = read("r(variant=top, k=2)", sides)
    assert top.a == pytest.approx([1.0, 0.7])
    assert top.b == pytest.approx([0.5, 0.5, 0.0])


def test_r_keeps_the_lengths_of_vectors():
    found = read("r", sides_of([[2, 0], [0, 3]], [[4, 0], [0, 1]]))
    assert found.a == pytest.approx([4.0, 1.5])
    assert found.b == pytest.approx([0.0, 0.0])


def test_neighbours_by_hand():
    a = [[1, 0], [0.6, 0.8], [0, -1]]
    b = [[1, 0], [0.8, 0.6], [0, 1]]
    found = read("neighbours", sides_of(a, b))
    assert found.a == pytest.approx([1.0, 0.96, 0.0])
    assert found.b == pytest.approx([0.8, 0.8, 0.6])
    # B's own 5 % quantile lies between 0.6 and 0.8; only the third query of A is farther.
    assert found.details["farther"] == pytest.approx(1 / 3)
    assert found.details["quantiles"]["b"]["50%"] == pytest.approx(0.8)


def test_a_query_is_no_neighbour_of_itself_but_its_copy_is():
    b = [[1, 0]] * 5 + [[0, 1]]
    found = read("neighbours", sides_of([[1, 0], [0, 1]], b))
    assert found.b == pytest.approx([1, 1, 1, 1, 1, 0])


def test_mmd_by_hand():
    # Kernel exp(-distance² / 2): A at 0 and 1, B at 3 and 3.
    near, far, farther = np.exp(-0.5), np.exp(-2.0), np.exp(-4.5)
    found = read("mmd(bandwidth=1.0)", sides_of([[0], [1]], [[3], [3]]))
    assert found.value == pytest.approx(near + 1.0 - (far + farther))
    # Of six ways to deal two of four labels, it and its mirror give that much.
    many = read("mmd(bandwidth=1.0, permutations=4999)", sides_of([[0], [1]], [[3], [3]]))
    assert many.p == pytest.approx(1 / 3, abs=0.03)


def test_a_classifier_that_makes_no_mistake():
    a, b = [[float(i), 1.0] for i in range(20)], [[float(i), -1.0] for i in range(20)]
    found = read("classifier(permutations=199)", sides_of(a, b))
    assert found.value == found.high == 1.0
    assert found.low == pytest.approx(0.025 ** (1 / 20))
    assert found.p == pytest.approx(1 / 200)
    assert found.a == pytest.approx(np.ones(20))


# -- peers --------------------------------------------------------------------------------------


def notebook_jaccard(a, b) -> float:
    """As in the published notebook: over the union of the words, minima and maxima."""
    shares = []
    for texts in (a, b):
        words = Counter(" ".join(texts).lower().split())
        shares.append({word: n / words.total() for word, n in words.items()})
    every = set(shares[0]) | set(shares[1])
    pairs = [[share.get(word, 0.0) for share in shares] for word in every]
    return sum(map(min, pairs)) / sum(map(max, pairs))


@given(*[st.lists(st.text("abAB ,é\t", min_size=1), min_size=1, max_size=8)] * 2)
def test_jaccard_agrees_with_the_notebook(a, b):
    if not ("".join(a).strip() and "".join(b).strip()):
        return
    assert jaccard_of_texts(pl.Series(a), pl.Series(b)) == pytest.approx(notebook_jaccard(a, b))


def test_the_classifier_agrees_with_peers():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_score

    sides = topics()
    found = read("classifier(permutations=1)", sides)
    vectors = np.concatenate([sides.a.vectors, sides.b.vectors])
    labels = np.arange(len(vectors)) < len(sides.a)
    peer = cross_val_score(
        LogisticRegression(C=100.0, max_iter=1000), vectors, labels, cv=5, scoring="roc_auc"
    )
    assert found.value == pytest.approx(peer.mean(), abs=0.02)
    # The areas themselves: placements of A's queries among B's, with equals sharing their rank.
    from farfield.indicators.classifier import _placements, _ranks

    rng = np.random.default_rng(0)
    scores, of_a = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.4
    placed = _placements(_ranks(scores[:, None])[:, 0], of_a)
    for side in (of_a, ~of_a):
        assert placed[side].mean() == pytest.approx(roc_auc_score(of_a, scores))


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_mmd_agrees_with_its_definition(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(rng.integers(2, 9), 3)), rng.normal(size=(rng.integers(2, 9), 3))
    a, b = a.astype(np.float32), b.astype(np.float32)

    def kernel(x, y):
        squares = ((x[:, None].astype(float) - y[None]) ** 2).sum(axis=2)
        return np.exp(-squares / (2 * 0.7**2))

    def within(x):
        return (kernel(x, x).sum() - len(x)) / (len(x) * (len(x) - 1))

    expected = within(a) + within(b) - 2 * kernel(a, b).mean()
    found = read("mmd(bandwidth=0.7, permutations=3)", sides_of(a, b))
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_blocks_of_the_kernel_do_not_show(monkeypatch):
    from farfield.indicators import _dealing
    from farfield.indicators import mmd as module

    sides = topics()
    whole = read(FAST["mmd"], sides)
    monkeypatch.setattr(module, "_BLOCK", 37)
    assert read(FAST["mmd"], sides).value == pytest.approx(whole.value, abs=1e-12)
    monkeypatch.setattr(_dealing, "_CELLS", 40_000)
    found = read(FAST["mmd"], sides)
    assert (found.value, found.p) == (pytest.approx(whole.value, abs=1e-12), whole.p)


# -- intervals and tests are what they say ------------------------------------------------------


def test_the_standard_error_of_jaccard_is_that_of_samples():
    texts = planted()[0]["text"]
    topic = planted()[0]["topic"]
    groups = [texts.filter(topic == name) for name in ("cooking", "machines")]
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(80):
        drawn = [group.gather(rng.integers(0, len(group), 150)) for group in groups]
        values.append(jaccard_of_texts(*drawn))
        errors.append(standard_error(*words_of(drawn)))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.3)


@pytest.mark.parametrize("name", TESTS)
def test_random_halves_are_indistinguishable(name):
    p = np.array([read(FAST[name], halves(seed, 150)).p for seed in range(24)])
    assert np.count_nonzero(p <= 0.05) <= 4  # 1.2 are expected, 5 or more in 1 of 200
    assert 0.3 < p.mean() < 0.7


@pytest.mark.parametrize("name", TESTS)
def test_planted_topics_are_apart(name):
    sides = topics()
    found = read(FAST[name], sides)
    assert found.p <= 0.02
    nearer = indicators.parse(FAST[name]).higher_is_nearer
    assert found.high < found.same if nearer else found.low > found.same


@pytest.mark.parametrize("name", ["r", "r(variant=cosine)", "neighbours"])
def test_similarities_of_halves_and_topics(name):
    found = [read(name, halves(seed)).details for seed in range(40)]
    covered = [x["difference_low"] <= 0 <= x["difference_high"] for x in found]
    assert sum(covered) >= 34  # 38 are expected, 33 or fewer in 1 of 70
    assert read(name, topics()).details["difference_high"] < 0
    if name == "neighbours":
        assert np.mean([x["farther"] for x in found]) == pytest.approx(0.05, abs=0.02)
        assert read(name, topics()).details["farther"] > 0.5


def test_jaccard_depends_on_size_and_the_ratio_does_not():
    small, large = (read("jaccard", halves(3, size)) for size in (100, 1000))
    assert large.value > small.value + 0.1
    for found in (small, large):
        assert found.details["ratio"] == pytest.approx(1.0, abs=0.08)
        assert found.value / found.same == pytest.approx(1.0, abs=0.08)


# -- laws of every member -----------------------------------------------------------------------


@pytest.mark.parametrize("name", indicators.names())
def test_every_indicator_keeps_the_laws(name):
    indicator = indicators.parse(FAST.get(name, name))
    assert indicators.parse(str(indicator)) == indicator
    sides = topics()
    found = indicator.compare(sides)
    again = indicator.compare(sides)
    assert found.to_dict() == again.to_dict()  # deterministic in the seed
    assert found.low <= found.value <= found.high
    assert found.p is None or 0 < found.p <= 1
    for values, side in ((found.a, sides.a), (found.b, sides.b)):
        assert values is None or values.shape == (len(side),)
    assert set(found.to_dict()) >= {"value", "low", "high", "same", "p"}
    assert indicator.explain(found).endswith(".")
    # A set is nearer to its own kind than to another.
    own = indicator.compare(halves(0)).value
    assert (own > found.value) is indicator.higher_is_nearer
    # A wider level makes a wider interval.
    wide = indicator.compare(Sides(sides.a, sides.b, level=0.999))
    assert wide.low <= found.low
    assert wide.high >= found.high


@pytest.mark.parametrize("name", indicators.names())
def test_every_indicator_takes_the_smallest_and_the_oddest_sets(name):
    indicator = indicators.parse(FAST.get(name, name))
    same = np.ones((5, 3), dtype=np.float32)
    cases = [
        sides_of([[1, 0], [0, 1]], [[1, 0], [0, 1]]),
        sides_of(same, same, texts=[["a"] * 5] * 2),  # all are copies
        sides_of(np.zeros((3, 2)), np.zeros((4, 2))),  # texts without any known word
        sides_of(np.ones((2, 2)), np.random.default_rng(0).normal(size=(50, 2))),
    ]
    for sides in cases:
        found = indicator.compare(sides)
        assert np.isfinite(found.value)
        assert np.isfinite(found.same)
        if indicator.needs_vectors and sides is cases[1] and found.p is not None:
            assert found.p == 1.0


@pytest.mark.parametrize("spec", ["r(variant=top, size=40)", "neighbours(size=40)"])
def test_a_sample_is_looked_at_in_the_whole_set(spec):
    sides = halves(0)
    found, every = read(spec, sides), read(spec.replace("40", "None"), sides)
    for some, all_values in ((found.a, every.a), (found.b, every.b)):
        looked = ~np.isnan(some)
        assert looked.sum() == 40
        assert some[looked] == pytest.approx(all_values[looked], abs=1e-6)
    assert not np.isnan(every.a).any()


# -- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("jaccard(size=0)", "size is 0, expected 1, 2, 3"),
        ("jaccard(draws=1)", "draws is 1, expected 2, 3, 4"),
        ("r(variant=median)", "expected one of 'dot', 'cosine', 'top', 'max'"),
        ("r(k=0)", "k is 0, expected 1, 2, 3"),
        ("neighbours(beyond=1.0)", "expected a share between 0 and 1"),
        ("mmd(bandwidth=0.0)", "expected a distance above 0"),
        ("mmd(size=1)", "size is 1, expected 2, 3, 4"),
        ("classifier(folds=1)", "folds is 1, expected 2, 3, 4"),
        ("classifier(ridge=-1.0)", "expected a number above 0"),
        ("jacard", "Did you mean 'jaccard'?"),
    ],
)
def test_what_cannot_be_read_says_what_was_expected(spec, message):
    with pytest.raises(SpecError) as caught:
        indicators.parse(spec)
    assert message in str(caught.value)


def test_what_cannot_be_compared_says_why():
    with pytest.raises(InputError, match="A has 1 queries, expected at least 2"):
        sides_of([[1, 0]], [[1, 0], [0, 1]])
    texts = Side(pl.Series(["what is", "the of"]))
    with pytest.raises(InputError, match="r compares vectors"):
        read("r", Sides(texts, texts))
    with pytest.raises(InputError, match="A's 2 queries hold no words besides stop words"):
        read("jaccard(stop=True)", Sides(texts, texts))
    with pytest.raises(InputError, match="expected 1 to 1"):
        read("jaccard(size=2)", Sides(texts, texts))
