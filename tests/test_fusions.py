"""Fusions: values worked out by hand, laws of every member, peers as oracles."""

from __future__ import annotations

import os
import subprocess
import sys
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import fusions
from farfield.errors import InputError, SpecError
from farfield.fusions import _pool
from farfield.fusions.rrf import DIALECTS
from farfield.tables import Qrels, Run

# Two lists of three. A: a b c; B: c a d.
A = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
B = {"q": {"c": 0.9, "a": 0.5, "d": 0.1}}
QRELS = Qrels({"q": {"d": 1, "b": 2, "x": 3, "a": 0}})


def fused(spec, *runs, k=None, qrels=None) -> dict[str, float]:
    """The scores of query q, in ranked order."""
    run = fusions.parse(spec).fuse(
        [Run(r, name=str(i)) for i, r in enumerate(runs)], k=k, qrels=qrels
    )
    return run.to_dict().get("q", {})


SD = sqrt(2 / 3)  # of 3, 2, 1 as a whole; of B's 0.9, 0.5, 0.1 it is 0.4 times that

BY_HAND = {
    "rrf()": {"a": 1 / 61 + 1 / 62, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 63},
    "rrf(k=1)": {"a": 1 / 2 + 1 / 3, "c": 1 / 4 + 1 / 2, "b": 1 / 3, "d": 1 / 4},
    "rrf(weights=[0.5, 2.0])": {
        "c": 0.5 / 63 + 2 / 61,
        "a": 0.5 / 61 + 2 / 62,
        "d": 2 / 63,
        "b": 0.5 / 62,
    },
    "rrf(depth=2)": {"a": 1 / 61 + 1 / 62, "c": 1 / 61, "b": 1 / 62},
    "rrf(dialect='pyserini')": {
        "a": 1 / 61 + 1 / 62,
        "c": 1 / 63 + 1 / 61,
        "b": 1 / 62,
        "d": 1 / 63,
    },
    "rrf(dialect='elasticsearch')": {
        "a": 1 / 61 + 1 / 62,
        "c": 1 / 63 + 1 / 61,
        "b": 1 / 62,
        "d": 1 / 63,
    },
    # Ranks from 0.
    "rrf(dialect='chroma')": {"a": 1 / 60 + 1 / 61, "c": 1 / 62 + 1 / 60, "b": 1 / 61, "d": 1 / 62},
    "rrf(dialect='qdrant')": {"a": 1 / 2 + 1 / 3, "c": 1 / 4 + 1 / 2, "b": 1 / 3, "d": 1 / 4},
    # 1 / ((position + 1) / weight + k - 1): the third of A is worth as much as the first of B.
    "rrf(weights=[3.0, 1.0], dialect='qdrant')": {
        "a": 1 / (1 / 3 + 1) + 1 / (2 + 1),
        "c": 1 / (3 / 3 + 1) + 1 / (1 + 1),
        "b": 1 / (2 / 3 + 1),
        "d": 1 / (3 + 1),
    },
    # d is right behind A's third, b right behind B's third.
    "rrf(absent='last')": {
        "a": 1 / 61 + 1 / 62,
        "c": 1 / 63 + 1 / 61,
        "b": 1 / 62 + 1 / 64,
        "d": 1 / 63 + 1 / 64,
    },
    "rrf(dialect='chroma', absent='last')": {
        "a": 1 / 60 + 1 / 61,
        "c": 1 / 62 + 1 / 60,
        "b": 1 / 61 + 1 / 63,
        "d": 1 / 62 + 1 / 63,
    },
    # Between 0 and 1, A: a 1, b 0.5, c 0; B: c 1, a 0.5, d 0.
    "interpolate()": {"a": 0.75, "c": 0.5, "b": 0.25, "d": 0.0},
    "interpolate(weights=[0.3, 0.7])": {"c": 0.7, "a": 0.3 + 0.35, "b": 0.15, "d": 0.0},
    "interpolate(weights=[3.0, 7.0])": {"c": 0.7, "a": 0.3 + 0.35, "b": 0.15, "d": 0.0},
    "interpolate(weights=[1.0, 0.0])": {"a": 1.0, "b": 0.5, "d": 0.0, "c": 0.0},
    # Raw scores; B's lowest is 0.1, A's is 1.
    "interpolate(norm='none')": {"a": 1.75, "b": 1.0, "c": 0.95, "d": 0.05},
    "interpolate(norm='none', absent='min')": {"a": 1.75, "b": 1.05, "c": 0.95, "d": 0.55},
    # Deviations from the mean: A: a 1/SD, b 0, c -1/SD; B: c 1/SD, a 0, d -1/SD.
    "interpolate(norm='z')": {"a": 0.5 / SD, "c": 0.0, "b": 0.0, "d": -0.5 / SD},
    "interpolate(norm='z', absent='min')": {"a": 0.5 / SD, "c": 0.0, "b": -0.5 / SD, "d": -1 / SD},
    # The sample's deviation of A is 1: from 2 - 3 to 2 + 3, a is at (3 + 1) / 6.
    "interpolate(norm='dbsf')": {
        "a": (4 / 6 + 3 / 6) / 2,
        "c": (2 / 6 + 4 / 6) / 2,
        "b": 3 / 12,
        "d": 2 / 12,
    },
    "interpolate(norm='rank')": {
        "a": (1 + 2 / 3) / 2,
        "c": (1 / 3 + 1) / 2,
        "b": 1 / 3,
        "d": 1 / 6,
    },
    "comb_sum()": {"a": 1.5, "c": 1.0, "b": 0.5, "d": 0.0},
    "comb_sum(weights=[1.0, 3.0])": {"c": 3.0, "a": 2.5, "b": 0.5, "d": 0.0},
    "comb_sum(norm='none')": {"a": 3.5, "b": 2.0, "c": 1.9, "d": 0.1},
    "comb_mnz()": {"a": 3.0, "c": 2.0, "b": 0.5, "d": 0.0},
    "comb_mnz(weights=[1.0, 3.0])": {"c": 6.0, "a": 5.0, "b": 0.5, "d": 0.0},
    # Three points for a first place, two for a second, one for a third.
    "borda()": {"a": 5.0, "c": 4.0, "b": 2.0, "d": 1.0},
    "borda(weights=[1.0, 2.0], depth=2)": {"c": 4.0, "a": 4.0, "b": 1.0},
    # b is judged 2, d 1; the others follow as by rrf. x was found by nobody.
    "oracle()": {
        "b": 2 + 1 / 62 / 1000,
        "d": 1 + 1 / 63 / 1000,
        "a": (1 / 61 + 1 / 62) / 1000,
        "c": (1 / 63 + 1 / 61) / 1000,
    },
}


@pytest.mark.parametrize("spec", BY_HAND)
def test_values_by_hand(spec):
    found = fused(spec, A, B, qrels=QRELS)
    assert found == pytest.approx(BY_HAND[spec], abs=1e-12)
    assert list(found) == list(BY_HAND[spec])


def test_every_member_has_a_value_by_hand():
    assert {fusions.parse(spec).spec.name for spec in BY_HAND} == set(fusions.names())
    spoken = {fusions.parse(s).dialect for s in BY_HAND if s.startswith("rrf")}
    assert spoken == set(DIALECTS)


@pytest.mark.parametrize(
    ("norm", "all_equal"), [("minmax", 1.0), ("z", 0.0), ("dbsf", 0.5), ("none", 0.1)]
)
@pytest.mark.parametrize("documents", [["x"], ["x", "y", "z"]])
def test_scores_that_are_all_equal(norm, all_equal, documents):
    same = {"q": dict.fromkeys(documents, 0.1)}
    found = fused(f"comb_sum(norm={norm})", same, {"q": {"other": 1.0}})
    assert {found[doc] for doc in documents} == {all_equal}


def test_a_window_as_deep_as_the_results_asked_for():
    # One result of each list: a and c tie, and c has the higher id.
    assert fused("rrf(dialect='elasticsearch')", A, B, k=1) == {"c": 1 / 61}
    assert fused("rrf()", A, B, k=1) == {"a": 1 / 61 + 1 / 62}
    long = {"q": {f"{i:04}": -float(i) for i in range(1001)}}
    assert "1000" not in fused("rrf(dialect='pyserini')", long, A)
    assert "1000" in fused("rrf(dialect='pyserini', depth=1001)", long, A)
    assert "1000" in fused("rrf()", long, A)


def test_queries_of_any_run_and_lists_that_are_missing():
    one, two = Run({"2": {"a": 1.0}, "1": {"b": 1.0}}), Run({"3": {"c": 1.0}, "1": {"b": 5.0}})
    for spec in ("rrf()", "rrf(absent='last')"):
        run = fusions.parse(spec).fuse([one, two])
        assert run.to_dict() == {"2": {"a": 1 / 61}, "1": {"b": 2 / 61}, "3": {"c": 1 / 61}}
        assert run.query_ids.to_list() == ["2", "1", "3"]
    assert len(fusions.parse("rrf").fuse([Run({}), Run({})])) == 0
    assert fusions.parse("rrf").fuse([Run({}), two]).to_dict()["3"] == {"c": 1 / 61}


def test_equal_scores_by_descending_id_over_the_edge_of_k():
    # All documents are worth 1/61 or 1/62; of equal ones the higher id comes first, as bytes.
    runs = [{"q": {first: 2.0, second: 1.0}} for first, second in ("9a", "b8", "é7", "10")]
    assert list(fused("rrf()", *runs)) == ["é", "b", "9", "1", "a", "8", "7", "0"]
    for k in range(1, 9):
        assert list(fused("rrf()", *runs, k=k)) == ["é", "b", "9", "1", "a", "8", "7", "0"][:k]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_the_first_k_whatever_the_size_of_the_scores(scale):
    # Neighbours differ by less than single precision can tell.
    many = {"q": {f"d{i:03}": scale * (1.0 + i * 1e-12) for i in range(200)}}
    found = fused("comb_sum(norm='none')", many, {"q": {"x": 0.0}}, k=7)
    assert list(found) == [f"d{i}" for i in range(199, 192, -1)]


# -- a slow one in plain Python -----------------------------------------------------------------

ids = st.sampled_from([*"abcdefgh", "10", "9", "aa", "é", "ä" * 20, "x" * 13, "x" * 12])
scores = st.sampled_from([-2.0, 0.0, 0.1, 0.5, 1.0, 7.0])
a_run = st.dictionaries(st.sampled_from("pqrs"), st.dictionaries(ids, scores, min_size=1))
some_runs = st.lists(a_run, min_size=2, max_size=4)


def slow_rrf(runs: list[Run], constant: int) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, dict[str, float]] = {}
    for run in runs:
        for query, doc, _, rank in run.frame.iter_rows():
            points = found.setdefault(query, {})
            points[doc] = points.get(doc, 0.0) + 1.0 / (constant + rank)
    return {
        query: sorted(points.items(), key=lambda p: (p[1], p[0].encode()), reverse=True)
        for query, points in found.items()
    }


@given(some_runs, st.none() | st.integers(1, 6), st.integers(1, 30), st.integers(0, 3))
def test_equal_to_plain_python(runs, k, block, bits):
    made = [Run(run, name=str(i)) for i, run in enumerate(runs)]
    expected = slow_rrf(made, 60)
    block_before, hashes_before = _pool._BLOCK, _pool._hashes
    # Blocks of a query or two, and at first hashes of so few bits that different ids meet.
    _pool._BLOCK = block
    _pool._hashes = lambda docs, seed: hashes_before(docs, seed) << np.uint64(64 - bits - 60 * seed)
    try:
        run = fusions.parse("rrf").fuse(made, k=k)
    finally:
        _pool._BLOCK, _pool._hashes = block_before, hashes_before
    rows = {query: [] for query in expected}
    for query, doc, score, _ in run.frame.iter_rows():
        rows[query].append((doc, score))
    assert rows == {query: ranked[:k] for query, ranked in expected.items()}


# -- every member -------------------------------------------------------------------------------

SPECS = sorted(
    {*(f"{name}()" for name in fusions.names()), *BY_HAND, "comb_mnz(depth=3, norm='dbsf')"}
)


@pytest.mark.parametrize("spec", SPECS)
def test_reading_undoes_writing(spec):
    member = fusions.parse(spec)
    assert str(member) == spec
    assert fusions.parse(str(member)) == member


@pytest.mark.parametrize("spec", [s for s in SPECS if "weights" not in s])
@settings(max_examples=30)
@given(some_runs, st.none() | st.integers(1, 6))
def test_laws_of_every_fusion(spec, runs, k):
    member = fusions.parse(spec)
    made = [Run(run, name=str(i)) for i, run in enumerate(runs)]
    before = [run.frame.clone() for run in made]
    run = member.fuse(made, k=k, qrels=QRELS)
    # Every query of any run, no document twice, none that nobody found.
    assert set(run.query_ids) == {query for given in runs for query in given}
    frame = run.frame
    assert frame.select("query_id", "doc_id").is_unique().all()
    found = {(q, d) for given in runs for q, docs in given.items() for d in docs}
    assert set(frame.select("query_id", "doc_id").iter_rows()) <= found
    assert frame["score"].is_finite().all()
    if k is not None:
        assert frame["rank"].max() is None or frame["rank"].max() <= k
    # Ranked by our rule: ranking the rows anew changes nothing.
    assert Run(frame, name="again").frame.equals(frame)
    # Nothing given is changed; the same again; the order of queries does not matter.
    assert all(b.equals(r.frame) for b, r in zip(before, made, strict=True))
    assert member.fuse(made, k=k, qrels=QRELS).frame.equals(frame)
    turned = [Run(dict(reversed(list(given.items()))), name=str(i)) for i, given in enumerate(runs)]
    again = member.fuse(turned, k=k, qrels=QRELS).frame
    assert again.sort("query_id", "rank").equals(frame.sort("query_id", "rank"))


@pytest.mark.parametrize("spec", [s for s in SPECS if "weights" not in s])
def test_the_order_of_the_rows_of_a_file_does_not_matter(spec):
    shuffled = {"q": dict(reversed(A["q"].items()))}
    assert fused(spec, A, B, qrels=QRELS) == fused(spec, shuffled, B, qrels=QRELS)


@pytest.mark.parametrize("name", fusions.names())
def test_every_fusion_says_what_it_is(name):
    kind = fusions.get(name)
    assert kind.__doc__
    assert not kind.__doc__.startswith(kind.__name__ + "(")


def test_the_same_bytes_whatever_the_number_of_threads():
    program = (
        "import numpy as np, polars as pl\n"
        "from farfield import fusions\n"
        "from farfield.tables import Qrels, Run\n"
        "rng = np.random.default_rng(3)\n"
        "def run(n):\n"
        "    rows = [(str(q), str(d)) for q in range(300) for d in rng.choice(200, 100, False)]\n"
        "    query, doc = zip(*rows)\n"
        "    scores = rng.integers(0, 50, len(rows)) / 7\n"
        "    return Run({'query_id': query, 'doc_id': doc, 'score': scores}, name=str(n))\n"
        "runs = [run(n) for n in range(4)]\n"
        "qrels = Qrels({str(q): {str(q % 7): 1} for q in range(300)})\n"
        "for name in fusions.names():\n"
        "    print(name, fusions.parse(name).fuse(runs, k=70, qrels=qrels).fingerprint)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "POLARS_MAX_THREADS": threads},
        ).stdout
        for threads in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == len(fusions.names())


# -- ranx ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lists() -> list[dict[str, dict[str, float]]]:
    """Three runs of 200 queries, of 2 to 30 out of 40 documents.

    No ties within a list, since ranx ranks equal scores in the order of insertion; all queries in
    all runs, since it takes them from the first; at least two documents, since a list whose scores
    are all equal becomes all 0 in its min-max, and all 1 in ours.
    """
    rng = np.random.default_rng(7)
    runs: list[dict[str, dict[str, float]]] = [{} for _ in range(3)]
    for run in runs:
        for query in range(200):
            docs = rng.choice(40, rng.integers(2, 31), replace=False)
            scores = rng.permutation(len(docs)) / 7 - 1
            run[str(query)] = {f"d{d}": s for d, s in zip(docs, scores.tolist(), strict=True)}
    return runs


@pytest.mark.filterwarnings("ignore::Warning")  # of numba, while it compiles ranx
@pytest.mark.parametrize(
    ("spec", "norm", "method", "parameters"),
    [
        ("rrf()", None, "rrf", {"k": 60}),
        ("rrf(k=7)", None, "rrf", {"k": 7}),
        ("comb_sum()", "min-max", "sum", None),
        ("comb_mnz()", "min-max", "mnz", None),
        ("interpolate(weights=[0.5, 0.2, 0.3])", "min-max", "wsum", {"weights": (0.5, 0.2, 0.3)}),
    ],
)
def test_scores_equal_to_ranx(spec, norm, method, parameters, lists):
    import ranx

    theirs = ranx.fuse(
        [ranx.Run(run) for run in lists], norm=norm, method=method, params=parameters
    ).to_dict()
    ours = fusions.parse(spec).fuse([Run(run) for run in lists], k=None).to_dict()
    assert set(ours) == set(theirs)
    for query, documents in ours.items():
        assert documents == pytest.approx(theirs[query], abs=1e-9)


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rff()", "no fusion is called 'rff'. Did you mean 'rrf'?"),
        ("rrf(k=0)", "k is 0, expected 1, 2, 3"),
        ("rrf(k=1.5)", "k is 1.5, expected a whole number"),
        ("rrf(depth=0)", "depth is 0, expected 1, 2, 3"),
        ("rrf(dialect='lucene')", "expected one of 'cormack', 'pyserini'"),
        ("rrf(weights=[0.0, 0.0])", "expected at least 0 and one above"),
        ("rrf(weights=[-1.0, 2.0])", "expected at least 0 and one above"),
        ("interpolate(weights=[1e999, 2.0])", "expected at least 0 and one above"),
        ("interpolate(norm='max')", "expected one of 'minmax'"),
        ("oracle(weights=[1.0, 1.0])", "the oracle takes no weights"),
    ],
)
def test_what_cannot_be_read_says_what_was_expected(spec, message):
    with pytest.raises(SpecError) as caught:
        fusions.parse(spec)
    assert message in str(caught.value)


def test_what_cannot_be_fused_says_why():
    a, b = Run(A, name="a"), Run(B, name="b")
    with pytest.raises(InputError, match="was given 1 run, expected at least 2"):
        fusions.parse("rrf").fuse([a])
    with pytest.raises(InputError, match="has 3 weights for 2 runs"):
        fusions.parse("rrf(weights=[1, 2, 3])").fuse([a, b])
    with pytest.raises(InputError, match="needs judgements"):
        fusions.parse("oracle").fuse([a, b])
    with pytest.raises(InputError, match="k is 0, expected 1, 2, 3"):
        fusions.parse("rrf").fuse([a, b], k=0)
    endless = Run({"q": {"a": float("inf"), "b": 1.0}}, name="endless")
    for norm in ("minmax", "z", "dbsf", "none"):
        with pytest.raises(InputError, match="the run 'endless' holds infinite scores"):
            fusions.parse(f"comb_sum(norm={norm})").fuse([endless, b])
    assert len(fusions.parse("rrf").fuse([endless, b])) == 4
    huge = Run({"q": {"a": 1e308, "b": -1e308}}, name="huge")
    with pytest.raises(InputError, match="they are too large. Fuse by rrf"):
        fusions.parse("comb_sum(norm='none')").fuse([huge, huge.named("again")])
