"""The sparse engine: built from blocks, searched exactly, the same whatever was interrupted."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.analysis import Terms
from farfield.errors import FileError, InputError
from farfield.sparse import (
    Okapi,
    Products,
    SparseIndex,
    Weighted,
    Weighting,
    build,
    building,
    count_terms,
    from_matrix,
    scoring,
)
from farfield.tables import Corpus


def names(documents: int) -> pl.Series:
    """Ids that sort otherwise than they are numbered."""
    return pl.Series("doc_id", [f"d{number}" for number in range(documents)])


def corpus_of(counts: np.ndarray) -> Corpus:
    """Documents with terms a, b, c …, as often as the rows say."""
    letters = [chr(ord("a") + term) for term in range(counts.shape[1])]
    texts = [" ".join(np.repeat(letters, row)) for row in counts]
    return Corpus(pl.DataFrame({"doc_id": names(len(counts)), "text": texts}))


def by_blanks(frame: pl.DataFrame):
    from farfield.analysis import Analyser

    return count_terms(Analyser("blanks", "none", "none").analyse(frame["text"]), len(frame))


def dense(index: SparseIndex, counts: np.ndarray) -> np.ndarray:
    """The rows of a matrix in the order in which the index numbers documents."""
    rows = [int(name[1:]) for name in index.doc_ids]
    return counts[rows]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(building, "BLOCK", 3)
    monkeypatch.setattr(building, "_FEW", 4)


@pytest.fixture(params=["numpy", "compiled"])
def adding(request, monkeypatch):
    """Both ways of adding up."""
    monkeypatch.setattr(scoring, "MANY", 0 if request.param == "compiled" else 10**18)


COUNTS = np.array(
    [
        [2, 0, 1, 0],
        [0, 3, 0, 0],
        [1, 1, 1, 0],
        [0, 0, 0, 0],
        [5, 0, 0, 1],
        [0, 1, 2, 0],
        [300, 0, 0, 0],
    ]
)


# -- building -----------------------------------------------------------------------------------


def test_documents_are_numbered_by_descending_id():
    index = build(corpus_of(COUNTS), by_blanks)
    assert index.doc_ids.to_list() == sorted((f"d{n}" for n in range(7)), reverse=True)
    assert index.lengths.tolist() == dense(index, COUNTS).sum(axis=1).tolist()
    assert index.terms.to_list() == ["a", "b", "c", "d"]
    assert index.df.tolist() == (COUNTS > 0).sum(axis=0).tolist()
    assert index.cf.tolist() == COUNTS.sum(axis=0).tolist()
    assert index.numbers(pl.Series(["c", "", "zz", "a", "aa"])).tolist() == [2, -1, -1, 0, -1]
    assert index.mean_length == COUNTS.sum() / 7


@pytest.mark.usefixtures("small_blocks")
def test_blocks_and_folders_change_nothing(tmp_path):
    whole = build(corpus_of(COUNTS), by_blanks)
    stored = build(corpus_of(COUNTS), by_blanks, tmp_path / "ix", tmp_path / "ix" / "unfinished")
    again = building.open_index(tmp_path / "ix")
    assert len(again.blocks) == 4
    every = np.arange(7)
    for index in (whole, stored, again):
        assert index.terms.to_list() == whole.terms.to_list()
        assert index.df.tolist() == whole.df.tolist()
        assert index.cf.tolist() == whole.cf.tolist()
        assert index.doc_ids.to_list() == whole.doc_ids.to_list()
        vectors = index.vectors(every)
        found = np.zeros((7, 4))
        row = np.repeat(every, np.diff(vectors.starts))
        found[row, vectors.terms] = vectors.weights
        assert (found == dense(index, COUNTS)).all()


def test_documents_are_read_back_in_any_order():
    index = build(corpus_of(COUNTS), by_blanks)
    rows = dense(index, COUNTS)
    vectors = index.vectors(np.array([4, 0, 4, 3]))
    for at, doc in enumerate([4, 0, 4, 3]):
        part = slice(vectors.starts[at], vectors.starts[at + 1])
        assert vectors.terms[part].tolist() == np.flatnonzero(rows[doc]).tolist()
        assert vectors.weights[part].tolist() == rows[doc][rows[doc] > 0].tolist()
    assert len(index.vectors(np.array([], dtype=np.int64)).terms) == 0


def test_counts_take_as_few_bytes_as_they_can():
    few = count_terms(Terms(np.zeros(3, np.int32), np.zeros(3, np.int32), pl.Series(["a"])), 1)
    assert few.weights.dtype == np.uint8
    assert few.docs.dtype == np.uint16
    many = Terms(np.zeros(256, np.int32), np.zeros(256, np.int32), pl.Series(["a"]))
    assert count_terms(many, 1).weights.dtype == np.uint16
    assert count_terms(many, 1).weights.tolist() == [256]


def test_documents_without_a_term(tmp_path):
    corpus = Corpus({"doc_id": ["1", "2"], "text": ["", " "]})
    index = build(corpus, by_blanks, tmp_path / "ix", tmp_path / "ix" / "unfinished")
    assert index.postings == 0
    assert index.numbers(pl.Series(["a"])).tolist() == [-1]
    asked = Weighted.of(np.array([], np.int64), np.array([], np.int64), np.array([]), 2)
    assert index.search(asked, Okapi(), 10).bounds.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "file", ["df.npy", "terms.arrow", "documents.arrow", "blocks/00000.docs.npy"]
)
@pytest.mark.parametrize("left", [b"nothing", None])
def test_a_damaged_index_says_so(tmp_path, file, left):
    build(corpus_of(COUNTS), by_blanks, tmp_path / "ix", tmp_path / "ix" / "unfinished")
    path = tmp_path / "ix" / file
    path.unlink() if left is None else path.write_bytes(left)

    def use():
        index = building.open_index(tmp_path / "ix")
        return index.terms, index.doc_ids, index.blocks[0].postings

    with pytest.raises(FileError, match="damaged.*index again"):
        use()


# -- searching ----------------------------------------------------------------------------------


def ranked(scores: np.ndarray, matched: np.ndarray, k: int) -> tuple[list[int], list[float]]:
    """What a search should find: numbers and scores, by a plain sort."""
    docs = [d for d in range(len(scores)) if matched[d]]
    docs.sort(key=lambda d: (-scores[d], d))
    return docs[:k], [scores[d] for d in docs[:k]]


def check(index: SparseIndex, rows: np.ndarray, queries: np.ndarray, weighting: Weighting, k: int):
    """Compare a search with dense products of what the weighting says."""
    query, term = np.nonzero(queries)
    asked = Weighted.of(query, term, queries[query, term].astype(float), len(queries))
    found = index.search(asked, weighting, k)
    worth = weighting.in_queries(asked, index)
    doc, held = np.nonzero(rows)
    values = np.zeros(rows.shape)
    values[doc, held] = weighting.in_documents(rows[doc, held], doc, index.lengths, index)
    for at in range(len(queries)):
        part = slice(worth.starts[at], worth.starts[at + 1])
        scores = np.zeros(len(rows))
        for number, weight in zip(worth.terms[part], worth.weights[part], strict=True):
            scores += weight * values[:, number]
        matched = (rows[:, queries[at] != 0] != 0).any(axis=1)
        docs, expected = ranked(scores, matched, k)
        mine = slice(found.bounds[at], found.bounds[at + 1])
        assert found.docs[mine].tolist() == docs
        assert found.scores[mine].tolist() == expected  # to the last bit


@pytest.mark.parametrize("variant", ["lucene", "atire", "terrier"])
@pytest.mark.usefixtures("small_blocks", "adding")
def test_search_is_exact(variant):
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.4, (40, 8)) * rng.integers(0, 3, (40, 8))
    counts[0] = 1
    index = build(corpus_of(counts), by_blanks)
    queries = rng.integers(0, 3, (30, 8)) * (rng.random((30, 8)) < 0.4)
    for k in (1, 3, 10, 1000):
        check(index, dense(index, counts), queries, Okapi(1.2, 0.75, variant), k)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_search_is_exact_for_anything(data):
    documents, terms = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 5))
    few = st.sampled_from([0, 0, 0, 1, 2, 7])
    counts = np.array(
        data.draw(st.lists(few, min_size=documents * terms, max_size=documents * terms))
    )
    counts = counts.reshape(documents, terms)
    index = build(corpus_of(counts), by_blanks)
    used = [ord(term) - ord("a") for term in index.terms]
    if not used:
        return
    queries = np.array(data.draw(st.lists(few, min_size=2 * len(used), max_size=2 * len(used))))
    rows = dense(index, counts)[:, used]
    k = data.draw(st.integers(1, 15))
    variant = data.draw(st.sampled_from(["lucene", "atire", "terrier"]))
    check(index, rows, queries.reshape(2, len(used)), Okapi(0.9, 0.4, variant), k)


@pytest.mark.usefixtures("small_blocks", "adding")
def test_weights_of_a_model_may_be_any_number():
    from scipy.sparse import random_array

    rng = np.random.default_rng(2)
    matrix = random_array((50, 20), density=0.3, rng=rng, data_sampler=rng.standard_normal).tocsr()
    matrix = matrix.astype(np.float32)
    vocabulary = pl.Series([f"t{n}" for n in rng.permutation(20)])

    def invert(frame: pl.DataFrame):
        return from_matrix(vocabulary, matrix[[int(name[1:]) for name in frame["doc_id"]]])

    texts = pl.DataFrame({"doc_id": names(50), "text": [""] * 50})
    index = build(Corpus(texts), invert)
    order = index.numbers(vocabulary)
    rows = np.zeros((50, 20))
    rows[:, order] = matrix.toarray()
    queries = np.zeros((10, 20))
    queries[:, :6] = rng.standard_normal((10, 6))
    check(index, dense(index, rows), queries, Products(), 7)
    assert index.cf == pytest.approx(rows.sum(axis=0), rel=1e-6)


@pytest.mark.usefixtures("adding")
def test_negative_scores_after_positive_ones_are_found(monkeypatch):
    # In the order of their numbers documents score less and less, the later half below 0.
    monkeypatch.setattr(building, "BLOCK", 400)
    from scipy.sparse import csr_array

    weights = np.arange(1200.0, -1200.0, -1.5).astype(np.float32) + 0.25
    matrix = csr_array(weights[:, None])
    ids = [f"{len(weights) - n:05}" for n in range(len(weights))]
    corpus = Corpus({"doc_id": ids, "text": [""] * len(ids)})
    rows = {name: row for row, name in enumerate(ids)}
    index = build(
        corpus, lambda f: from_matrix(pl.Series(["a"]), matrix[[rows[n] for n in f["doc_id"]]])
    )
    asked = Weighted.of(np.array([0]), np.array([0]), np.array([1.0]), 1)
    for k in (3, 1000, 5000):
        found = index.search(asked, Products(), k)
        assert found.docs.tolist() == list(range(min(k, len(weights))))
        assert found.scores.tolist() == weights[:k].tolist()


@pytest.mark.usefixtures("adding")
@pytest.mark.parametrize("k", [1, 10, 40, 700])
def test_the_best_of_many_documents(k):
    # Enough documents that guesses and choices are made, with many ties.
    rng = np.random.default_rng(5)
    counts = rng.poisson(0.5, (6000, 4))
    index = build(corpus_of(counts), by_blanks)
    queries = np.array([[1, 1, 0, 1], [0, 0, 1, 0], [3, 0, 0, 1], [1, 1, 1, 1]])
    check(index, dense(index, counts), queries, Okapi(), k)


def test_weights_must_be_numbers():
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match="not a number"):
        from_matrix(pl.Series(["a"]), csr_array(np.array([[np.nan]])))


@pytest.mark.usefixtures("adding")
def test_ties_go_by_document_id_descending_also_at_the_cut():
    counts = np.ones((30, 1), dtype=int)
    index = build(corpus_of(counts), by_blanks)
    asked = Weighted.of(np.array([0]), np.array([0]), np.array([1.0]), 1)
    found = index.search(asked, Okapi(), 12)
    expected = sorted((f"d{n}" for n in range(30)), reverse=True)[:12]
    assert index.doc_ids.gather(found.docs).to_list() == expected


@pytest.mark.usefixtures("small_blocks")
def test_many_queries_are_searched_in_batches(monkeypatch):
    from farfield.sparse import index as module

    rng = np.random.default_rng(3)
    counts = rng.integers(0, 3, (30, 6))
    index = build(corpus_of(counts), by_blanks)
    queries = rng.integers(0, 2, (100, 6))
    query, term = np.nonzero(queries)
    asked = Weighted.of(query, term, np.ones(len(query)), 100)
    whole = index.search(asked, Okapi(), 5)
    monkeypatch.setattr(module, "_TOGETHER", 7)
    parts = index.search(asked, Okapi(), 5)
    for one, other in zip(whole, parts, strict=True):
        assert one.tolist() == other.tolist()


def test_weighted_queries_are_brought_in_order():
    asked = Weighted.of(
        np.array([2, 0, 2, 2]), np.array([5, 1, 3, 5]), np.array([1.0, 2.0, 4.0, 0.5]), 4
    )
    assert asked.starts.tolist() == [0, 1, 1, 3, 3]
    assert asked.terms.tolist() == [1, 3, 5]
    assert asked.weights.tolist() == [2.0, 4.0, 1.5]
    assert asked.largest().tolist() == [2.0, 0.0, 4.0, 0.0]
    assert asked.totals().tolist() == [2.0, 0.0, 5.5, 0.0]
    assert asked.part(1, 3).terms.tolist() == [3, 5]


# -- peers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lucene", "atire"])
def test_scores_equal_those_of_bm25s(method):
    import bm25s

    rng = np.random.default_rng(4)
    documents = [[f"w{n}" for n in rng.zipf(1.5, rng.integers(1, 60)) % 500] for _ in range(400)]
    asked = [[f"w{n}" for n in rng.zipf(1.5, 6) % 500] for _ in range(50)]
    other = bm25s.BM25(k1=1.1, b=0.6, method=method)
    other.index(documents, show_progress=False)
    texts = pl.DataFrame({"doc_id": names(400), "text": [" ".join(words) for words in documents]})
    index = build(Corpus(texts), by_blanks)
    numbers = [index.numbers(pl.Series(words, dtype=pl.String)) for words in asked]
    query = np.repeat(np.arange(50), [len(words) for words in asked])
    term = np.concatenate(numbers)
    known = term >= 0
    found = index.search(
        Weighted.of(query[known], term[known], np.ones(known.sum()), 50),
        Okapi(1.1, 0.6, method),
        400,
    )
    for at, words in enumerate(asked):
        theirs = other.get_scores([word for word in words if word in other.vocab_dict])
        mine = np.zeros(400)
        part = slice(found.bounds[at], found.bounds[at + 1])
        ids = index.doc_ids.gather(found.docs[part])
        mine[[int(name[1:]) for name in ids]] = found.scores[part]
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=1e-6)  # bm25s counts in 32 bits


# -- stop and continue --------------------------------------------------------------------------

# Libraries are loaded once; whoever indexes is a process of its own.
KILLED = """
import os, random, signal, sys, time
import polars as pl
from farfield import retrievers
from farfield.retrievers import bm25
from farfield.sparse import building, _compiled
from farfield.tables import Corpus
building.BLOCK, building._FEW = 100, 50

def index(folder):
    frame = pl.DataFrame({
        "doc_id": [f"d{n}" for n in range(3000)],
        "text": [" ".join(f"w{(n * i) % 997}" for i in range(1, 60)) for n in range(3000)],
    })
    corpus = Corpus(frame)
    corpus.fingerprint
    os.write(told, b".")
    retrievers.parse("bm25()").index(corpus, folder)
    os._exit(0)

def run_child(folder, kill_after=None):
    "Index in another process, and kill it after a while; return how long it took."
    child = os.fork()
    if child == 0:
        try:
            index(folder)
        finally:
            os._exit(1)
    os.read(ready, 1)
    begin = time.perf_counter()
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert status == 0 or kill_after is not None
    return time.perf_counter() - begin

os.chdir(sys.argv[1])
ready, told = os.pipe()
needed = run_child("whole")
chance, unfinished = random.Random(0), 0
for kills in range(20):
    folder = f"killed-{kills // 5}"
    run_child(folder, kill_after=chance.uniform(0, 0.6 * needed))
    unfinished += not os.path.exists(f"{folder}/manifest.json")
    if kills % 5 == 4:
        run_child(folder)
assert unfinished >= 4  # or the kills came too late to mean anything
"""


def content(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment_it_continues_to_the_same_bytes(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    expected = content(tmp_path / "whole")
    assert expected
    for number in range(4):
        assert content(tmp_path / f"killed-{number}") == expected


def test_finished_blocks_are_not_made_again(tmp_path, small_blocks):
    made = []

    def counting(frame: pl.DataFrame):
        made.append(len(frame))
        return by_blanks(frame)

    def stumbling(frame: pl.DataFrame):
        if len(made) == 2:
            raise KeyboardInterrupt
        return counting(frame)

    where = tmp_path / "ix", tmp_path / "ix" / "unfinished"
    with pytest.raises(KeyboardInterrupt):
        build(corpus_of(COUNTS), stumbling, *where)
    assert 2 <= len(made) < 4
    index = build(corpus_of(COUNTS), counting, *where)
    assert sum(made) == len(index) == 7
