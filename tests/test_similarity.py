"""Similarity of queries: by hand, exact, and the same whichever loop computes it."""

from __future__ import annotations

import importlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import encoders
from farfield.errors import InputError, MissingDependency, SpecError
from farfield.similarity import nearest, nearest_by_vectors, normal_form
from farfield.similarity.terms import gram_sets, rarity, word_counts
from farfield.tables import Queries

module = importlib.import_module("farfield.similarity.nearest")


def queries(texts: list[str], prefix: str = "q") -> Queries:
    ids = [f"{prefix}{i}" for i in range(len(texts))]
    frame = pl.DataFrame({"query_id": ids, "text": texts})
    return Queries(frame.cast(pl.String))


def test_normal_form():
    given_texts = pl.Series(["  What's a B-tree?", "ﬁve  Cafés", "!!!", "naïve №5", ""])
    found = ["what s a b tree", "five cafés", "", "naïve no5", ""]
    assert normal_form(given_texts).to_list() == found


def grams(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def reference(one: str, other: str) -> float:
    """The larger Jaccard similarity of 3-grams and words, in plain Python."""
    a, b = normal_form(pl.Series([one, other]))
    found = []
    for x, y in (
        (grams(a) if a else set(), grams(b) if b else set()),
        (set(a.split()), set(b.split())),
    ):
        found.append(len(x & y) / len(x | y) if x | y else 0.0)
    return max(found)


def test_similarity_by_hand():
    # 3-grams of " abc " and " abd ": " ab" is shared, "abc", "bc ", "abd", "bd " are not: 1 of 5.
    found = nearest(queries(["abc"], "t"), queries(["abd"]))
    assert found.rows() == [("t0", "q0", 1 / 5, 1)]
    # Words {red, fox} and {red, dog}: 1 of 3; 3-grams of " red fox " and " red dog ": " re","red",
    # "ed " shared of 3 + 4 + 4 others.
    found = nearest(queries(["red fox"], "t"), queries(["red dog"]))
    assert found["similarity"].to_list() == [pytest.approx(1 / 3)]


texts = st.lists(
    st.text(st.sampled_from("ab cé1?"), max_size=8) | st.sampled_from(["what is it", "who is it"]),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(texts, texts)
def test_every_pair_is_compared(test_texts, train_texts):
    found = nearest(queries(test_texts, "t"), queries(train_texts), k=len(train_texts))
    given_pairs = {(t, q): s for t, q, s, _ in found.iter_rows()}
    for i, one in enumerate(test_texts):
        for j, other in enumerate(train_texts):
            expected = reference(one, other)
            assert given_pairs.get((f"t{i}", f"q{j}"), 0.0) == pytest.approx(expected), (one, other)
    ranks = found.group_by("query_id").agg(pl.col("similarity").is_sorted(descending=True).all())
    assert ranks["similarity"].all()


@pytest.mark.parametrize("method", ["ngram", "bm25"])
def test_the_compiled_loop_gives_the_same_numbers(method, monkeypatch):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefg"), 4)) for _ in range(60)]
    made = [" ".join(rng.choice(words, rng.integers(1, 7))) for _ in range(400)]
    test, train = queries(made[:80], "t"), queries(made[80:])
    plain = nearest(test, train, k=7, method=method)
    monkeypatch.setattr(module, "_MANY_PAIRS", 0)
    compiled = nearest(test, train, k=7, method=method)
    assert plain["train_id"].to_list() == compiled["train_id"].to_list()
    np.testing.assert_allclose(plain["similarity"], compiled["similarity"], rtol=1e-5)


def test_blocks_do_not_change_the_result(monkeypatch):
    test, train = queries(["a b", "b c", "c d e"], "t"), queries(["a", "b", "c d", "x"])
    whole = nearest(test, train, k=2)
    monkeypatch.setattr(module, "_BLOCK", 4)
    assert nearest(test, train, k=2).equals(whole)


def test_bm25_by_hand():
    # Three training queries; "fox" is in one of them: idf = ln(1 + 2.5 / 1.5).
    train = queries(["red fox", "red dog", "red cat runs"])
    (row,) = nearest(queries(["fox"], "t"), train, method="bm25").iter_rows()
    lengths = [2, 2, 3]
    norm = 0.9 * (1 - 0.4 + 0.4 * 2 / np.mean(lengths))
    assert row[:2] == ("t0", "q0")
    assert row[2] == pytest.approx(np.log(1 + 2.5 / 1.5) * 1 / (1 + norm), rel=1e-6)


def test_equals_are_ordered_by_id_and_strangers_left_out():
    train = Queries({"query_id": ["b", "a", "c"], "text": ["same", "same", "zzz"]})
    found = nearest(queries(["same"], "t"), train, k=3)
    assert found["train_id"].to_list() == ["a", "b"]


def test_what_cannot_be_asked():
    one = queries(["a"])
    with pytest.raises(InputError, match="Did you mean 'ngram'"):
        nearest(one, one, method="ngrams")
    with pytest.raises(InputError, match="k is 0"):
        nearest(one, one, k=0)


def test_rarity_and_counts():
    (counts,), words = word_counts(pl.Series(["b a b", "a"]))
    assert words.to_list() == ["a", "b"]
    assert counts.toarray().tolist() == [[1.0, 2.0], [1.0, 0.0]]
    assert rarity(counts).tolist() == pytest.approx([np.log(1 + 0.5 / 2.5), np.log(1 + 1.5 / 1.5)])
    assert [m.shape for m in gram_sets(pl.Series(["ab"]), pl.Series(["", "b"]))] == [
        (1, 64),
        (2, 64),
    ]


def test_vectors_find_their_neighbours():
    axes = np.eye(3, dtype=np.float32)
    found = nearest_by_vectors(pl.Series(["t"]), axes[:1], pl.Series(["c", "a", "b"]), axes, k=2)
    assert found.rows()[0] == ("t", "c", 1.0, 1)


# -- encoders -----------------------------------------------------------------------------------


def test_lsa_brings_words_together_that_share_company():
    train = queries(["red fox runs", "red fox hunts", "slow ship sails", "slow ship sinks"] * 3)
    one, other = encoders.parse("lsa(dimensions=2)").encode(train, queries(["fox", "ship"], "t"))
    assert one.shape == (12, 2)
    assert one.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1.0, rtol=1e-5)
    similar = other @ one.T
    assert similar[0, 0] > 0.9
    assert similar[0, 2] < 0.3
    assert similar[1, 2] > 0.9


def test_lsa_is_the_same_for_the_same_seed_and_survives_tiny_sets():
    sets = queries(["a b", "b c", "c d"]), queries(["x"], "t")
    first, second = (encoders.parse("lsa()").encode(*sets) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    (alone,) = encoders.parse("lsa()").encode(queries(["a"]))
    assert alone.shape[0] == 1


def test_precomputed_vectors(tmp_path):
    frame = pl.DataFrame({"query_id": ["q0", "q1"], "vector": [[3.0, 4.0], [0.0, 2.0]]})
    frame.write_parquet(tmp_path / "v.parquet")
    encoder = encoders.get("vectors")(file=str(tmp_path / "v.parquet"))
    assert encoders.parse(str(encoder)) == encoder
    (found,) = encoder.encode(queries(["a", "b"]))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 1.0]])
    with pytest.raises(InputError, match="no vector for query 'q2'"):
        encoder.encode(queries(["a", "b", "c"]))
    pl.DataFrame({"id": ["q0"]}).write_parquet(tmp_path / "w.parquet")
    with pytest.raises(InputError, match="expected query_id and vector"):
        encoders.get("vectors")(file=str(tmp_path / "w.parquet")).encode(queries(["a"]))


def test_encoders_read_back_their_specs_and_refuse_nonsense(monkeypatch):
    import sys

    for spec in (
        "lsa()",
        "lsa(dimensions=64, seed=3)",
        "sentence(model='a/b')",
        "vectors(file='x')",
    ):
        assert str(encoders.parse(spec)) == spec
    with pytest.raises(SpecError, match="dimensions is 1"):
        encoders.parse("lsa(dimensions=1)")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependency, match=r"farfield\[neural\]"):
        encoders.parse("sentence(model='x')").encode(queries(["a"]))
