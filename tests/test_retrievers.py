"""Retrievers: BM25, feedback and expansion, checked by hand; folders; the command line."""

from __future__ import annotations

import json
from math import exp, log, log2

import numpy as np
import polars as pl
import pytest

import farfield as ff
from farfield import retrievers
from farfield.errors import FileError, InputError, SpecError
from farfield.retrievers.bm25 import bm25
from farfield.retrievers.bo1 import bo1
from farfield.retrievers.expand import expand
from farfield.retrievers.rm3 import rm3
from farfield.sparse import Weighted
from farfield.tables import Corpus, Qrels, Queries

PLAIN = {"tokeniser": "blanks", "stopwords": "none", "stemmer": "none"}

CORPUS = Corpus(
    {
        "doc_id": ["d1", "d2", "d3", "d4", "d5"],
        "title": ["cat", None, "", "dog", "fish"],
        "text": ["cat dog", "cat cat bird", "dog bird bird", "dog fish", "whale ship sea"],
    }
)
QUERIES = Queries({"query_id": ["q1", "q2"], "text": ["cat", "dog dog bird"]})
# Terms of each document; N = 5, lengths 3, 3, 3, 3, 4, mean 3.2.
N, MEAN = 5, 16 / 5


def scores_of(run) -> dict[tuple[str, str], float]:
    frame = run.frame
    return {(q, d): s for q, d, s in frame.select("query_id", "doc_id", "score").iter_rows()}


def search(retriever, queries=QUERIES, corpus=CORPUS, k=10) -> dict[tuple[str, str], float]:
    return scores_of(retriever.index(corpus).search(queries, k))


def weights_of(retriever, queries=QUERIES, corpus=CORPUS) -> list[dict[str, float]]:
    """The weighted terms that each query becomes."""
    engine = retriever.index(corpus).engine
    asked: Weighted = retriever.ask(queries, engine)
    found = []
    for at in range(len(asked)):
        part = slice(asked.starts[at], asked.starts[at + 1])
        terms = engine.terms.gather(asked.terms[part]).to_list()
        found.append(dict(zip(terms, asked.weights[part].tolist(), strict=True)))
    return found


# -- BM25 by hand -------------------------------------------------------------------------------


def test_lucene_by_hand():
    # cat is in d1 (twice, with the title) and d2 (twice): df 2.
    idf = log(1 + (N - 2 + 0.5) / (2 + 0.5))
    part = 2 / (2 + 0.9 * (1 - 0.4 + 0.4 * 3 / MEAN))
    found = search(bm25(**PLAIN))
    assert found["q1", "d1"] == pytest.approx(idf * part, rel=1e-14)
    assert found["q1", "d2"] == pytest.approx(idf * part, rel=1e-14)
    assert ("q1", "d3") not in found
    # q2 has dog twice: d1 once, d3 once, d4 twice (df 3); bird: d2 once, d3 twice (df 2).
    dog, bird = log(1 + 2.5 / 3.5), log(1 + 3.5 / 2.5)
    norm = 0.9 * (1 - 0.4 + 0.4 * 3 / MEAN)
    assert found["q2", "d3"] == pytest.approx(
        2 * dog * 1 / (1 + norm) + bird * 2 / (2 + norm), rel=1e-14
    )


def test_atire_by_hand():
    found = search(bm25(k1=1.5, b=0.3, variant="atire", **PLAIN))
    norm = 1.5 * (1 - 0.3 + 0.3 * 3 / MEAN)
    dog, bird = log(N / 3), log(N / 2)
    assert found["q2", "d3"] == pytest.approx(
        2 * dog * 2.5 * 1 / (1 + norm) + bird * 2.5 * 2 / (2 + norm), rel=1e-14
    )


def test_terrier_by_hand():
    found = search(bm25(k1=1.2, b=0.75, variant="terrier", **PLAIN))
    norm = 1.2 * ((1 - 0.75) + 0.75 * 3 / MEAN)
    # log2((N - df + 0.5) / (df + 0.5)): dog is in 3 of 5 documents, so its rarity is negative.
    dog, bird = log2(2.5 / 3.5), log2(3.5 / 2.5)
    # qtf / max qtf: dog 2 / 2, bird 1 / 2; then (k3 + 1) qtf / (k3 + qtf) with k3 = 8.
    q_dog, q_bird = 9 * 1 / (8 + 1), 9 * 0.5 / (8 + 0.5)
    assert dog < 0
    assert found["q2", "d3"] == pytest.approx(
        dog * 2.2 * 1 / (norm + 1) * q_dog + bird * 2.2 * 2 / (norm + 2) * q_bird, rel=1e-14
    )
    # Documents with no more than a common term have a negative score, and are found.
    assert found["q2", "d4"] == pytest.approx(dog * 2.2 * 2 / (norm + 2) * q_dog, rel=1e-14)
    assert found["q2", "d4"] < 0
    other = search(bm25(k1=1.2, b=0.75, variant="terrier", k3=1.0, **PLAIN))
    q_bird = 2 * 0.5 / (1 + 0.5)
    assert other["q2", "d3"] == pytest.approx(
        dog * 2.2 * 1 / (norm + 1) * 1 + bird * 2.2 * 2 / (norm + 2) * q_bird, rel=1e-14
    )


def test_k3_dampens_repetitions_in_any_variant():
    assert weights_of(bm25(**PLAIN))[1] == {"bird": 1.0, "dog": 2.0}
    plain, damped = search(bm25(**PLAIN)), search(bm25(k3=8.0, **PLAIN))
    assert damped["q2", "d4"] == pytest.approx(plain["q2", "d4"] / 2 * (9 * 2 / 10), rel=1e-14)


def test_k1_and_b_at_their_ends():
    found = search(bm25(k1=0.0, **PLAIN))
    assert found["q1", "d1"] == pytest.approx(log(1 + 3.5 / 2.5), rel=1e-14)
    for b in (0.0, 1.0):
        assert len(search(bm25(b=b, **PLAIN))) == len(found)


# -- feedback by hand ---------------------------------------------------------------------------


def bose_einstein(x: float, share: float) -> float:
    return x * log2((1 + share) / share) + log2(1 + share)


def test_bo1_by_hand():
    # q1 finds d2 and d1. x: cat 2 + 2, dog 1, bird 1. In all documents: cat 4, dog 4, bird 3.
    # dog and bird are each in only one of the two, so they get nothing.
    assert weights_of(bo1(base=bm25(**PLAIN)))[0] == {"cat": 1.0}
    # q2 (dog twice, bird once) finds d1 … d4; of these the best two by score, d3 and d4.
    found = search(bm25(**PLAIN))
    first = sorted((d for q, d in found if q == "q2"), key=lambda d: -found["q2", d])[:2]
    assert first == ["d3", "d4"]
    # x: dog 1 + 2, bird 2 (one document, but a term of the query), fish 1 (lonely: out).
    w_dog, w_bird = bose_einstein(3, 4 / N), bose_einstein(2, 3 / N)
    # The largest w is that of dog or bird: its x is m.
    m = 3 if w_dog > w_bird else 2
    norm = bose_einstein(m, m / N)
    new = {"dog": 2 / 2 + w_dog / norm, "bird": 1 / 2 + w_bird / norm}
    largest = max(new.values())
    expected = {term: value / largest for term, value in new.items()}
    assert weights_of(bo1(base=bm25(**PLAIN), docs=2))[1] == pytest.approx(expected, rel=1e-14)


def test_bo1_with_one_document_takes_its_terms():
    # The rule about lonely terms is off. d3 = dog bird bird.
    w = {"dog": bose_einstein(1, 4 / N), "bird": bose_einstein(2, 3 / N)}
    norm = bose_einstein(2, 2 / N)
    new = {"dog": 1 + w["dog"] / norm, "bird": 0.5 + w["bird"] / norm}
    largest = max(new.values())
    expected = {term: value / largest for term, value in new.items()}
    assert weights_of(bo1(base=bm25(**PLAIN), docs=1))[1] == pytest.approx(expected, rel=1e-14)


def test_bo1_takes_at_least_as_many_terms_as_the_query_has():
    # With terms=1 both terms of q2 are still weighed; with more there is nothing else to take.
    one, many = (weights_of(bo1(base=bm25(**PLAIN), docs=2, terms=n))[1] for n in (1, 50))
    assert one == many


# Enough documents that a tenth of them is more than 2; x and y are in a few, the rest fills up.
LARGE = Corpus(
    {
        "doc_id": [f"e{n:02}" for n in range(40)],
        "text": ["x x y", "x y y z", "x z w"] + [f"f{n % 20} g" for n in range(37)],
    }
)
ASKED = Queries({"query_id": ["q"], "text": ["x"]})


def first_scores(retriever) -> dict[str, float]:
    return {d: s for (_, d), s in search(retriever, ASKED, LARGE).items()}


def test_rm3_in_terriers_form_by_hand():
    base = bm25(**PLAIN)
    s = first_scores(base)
    assert set(s) == {"e00", "e01", "e02"}
    # Candidates: 2 <= df < 0.1 N = 4: x (3), y (2), z (2); w has df 1.
    total = sum(exp(score) for score in s.values())
    p = {doc: exp(score) / total for doc, score in s.items()}
    model = {
        "x": (2 / 3 * p["e00"] + 1 / 4 * p["e01"] + 1 / 3 * p["e02"]) / 3,
        "y": (1 / 3 * p["e00"] + 2 / 4 * p["e01"]) / 3,
        "z": (1 / 4 * p["e01"] + 1 / 3 * p["e02"]) / 3,
    }
    share = {term: value / sum(model.values()) for term, value in model.items()}
    expected = {term: 0.4 * share[term] + (0.6 if term == "x" else 0) for term in "xyz"}
    assert weights_of(rm3(base=base), ASKED, LARGE)[0] == pytest.approx(expected, rel=1e-13)
    # With two terms the third goes, and the two share all of it.
    kept = sorted(model, key=lambda term: -model[term])[:2]
    share = {term: model[term] / sum(model[t] for t in kept) for term in kept}
    expected = {
        term: 0.8 * share.get(term, 0) + (0.2 if term == "x" else 0) for term in {*kept, "x"}
    }
    two = rm3(base=base, terms=2, weight=0.2)
    assert weights_of(two, ASKED, LARGE)[0] == pytest.approx(expected, rel=1e-13)


def test_rm3_in_anserinis_form_by_hand():
    texts = ["xx xx yy", "xx yy yy zz", "xx zz ww v"] + [f"f{n % 20} gg" for n in range(37)]
    corpus = Corpus({"doc_id": LARGE.frame["doc_id"], "text": texts})
    asked = Queries({"query_id": ["q"], "text": ["xx"]})
    base = bm25(**PLAIN)
    s = {d: score for (_, d), score in search(base, asked, corpus).items()}
    # Terms of 2 to 20 letters or digits with df <= 0.1 N: v is too short. Each document keeps its
    # two most frequent terms (of equals the first by its letters), which share its score.
    vectors = {
        "e00": {"xx": 2 / 3, "yy": 1 / 3},
        "e01": {"yy": 2 / 3, "xx": 1 / 3},
        "e02": {"ww": 1 / 2, "xx": 1 / 2},
    }
    model: dict[str, float] = {}
    for doc, vector in vectors.items():
        for term, value in vector.items():
            model[term] = model.get(term, 0) + value * s[doc]
    kept = sorted(model, key=lambda term: -model[term])[:2]
    total = sum(model[term] for term in kept)
    expected = {t: 0.5 * model[t] / total + (0.5 if t == "xx" else 0) for t in {*kept, "xx"}}
    found = weights_of(rm3(base=base, form="anserini", terms=2), asked, corpus)[0]
    assert found == pytest.approx(expected, rel=1e-13)


def test_rm3_with_all_or_nothing_of_the_query():
    base = bm25(**PLAIN)
    own = search(base, ASKED, LARGE)
    assert weights_of(rm3(base=base, weight=1.0), ASKED, LARGE) == [{"x": 1.0}]
    assert search(rm3(base=base, weight=1.0), ASKED, LARGE) == own
    none = weights_of(rm3(base=base, weight=0.0, terms=1), ASKED, LARGE)
    assert none == [{"x": 1.0}]  # the one term that is most probable
    queries = Queries({"query_id": ["q"], "text": ["w"]})  # only e02 has it
    none = weights_of(rm3(base=base, weight=0.0), queries, LARGE)[0]
    assert set(none) == {"x", "z"}
    assert sum(none.values()) == pytest.approx(1.0)


def test_rm3_over_negative_scores():
    # g is in nearly all documents: with Terrier's rarity all scores are below 0.
    base = bm25(variant="terrier", **PLAIN)
    queries = Queries({"query_id": ["q"], "text": ["g"]})
    assert max(search(base, queries, LARGE).values()) < 0
    for form in ("terrier", "anserini"):
        found = weights_of(rm3(base=base, form=form), queries, LARGE)[0]
        assert all(np.isfinite(weight) and weight > 0 for weight in found.values())


def test_queries_that_find_nothing_stay_as_they_are():
    queries = Queries({"query_id": ["a", "b", "c"], "text": ["unicorn", "", "cat"]})
    for retriever in (
        bo1(base=bm25(**PLAIN)),
        rm3(base=bm25(**PLAIN)),
        rm3(base=bm25(), form="anserini"),
    ):
        run = retriever.index(CORPUS).search(queries)
        assert run.query_ids.to_list() == ["c"]


def test_feedback_does_not_depend_on_batches(monkeypatch):
    from farfield.retrievers import _feedback

    world = ff.lab.make(passages=300, train=10, test=60, seed=1).collection
    for retriever in (bo1(base=bm25()), rm3(base=bm25()), rm3(base=bm25(), form="anserini")):
        index = retriever.index(world.corpus)
        whole = index.search(world.queries, 20)
        monkeypatch.setattr(_feedback, "_TOGETHER", 7)
        assert index.search(world.queries, 20) == whole
        monkeypatch.undo()


# -- expansion ----------------------------------------------------------------------------------


def test_expansion_appends_texts(tmp_path):
    rows = [
        {"doc_id": "d5", "text": "unicorn"},
        {"doc_id": "d1", "text": "horse"},
        {"doc_id": "d5", "text": "unicorn horse"},
    ]
    file = tmp_path / "more.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = Queries({"query_id": ["q"], "text": ["unicorn horse"]})
    by_hand = CORPUS.frame.with_columns(
        text=pl.Series(
            [
                "cat dog horse",
                "cat cat bird",
                "dog bird bird",
                "dog fish",
                "whale ship sea unicorn unicorn horse",
            ]
        )
    )
    found = search(expand(base=bm25(), file=str(file)), queries)
    assert found == search(bm25(), queries, Corpus(by_hand))
    assert list(found) == [("q", "d5"), ("q", "d1")]
    lists = tmp_path / "lists.jsonl"
    lists.write_text(
        '{"doc_id": "d5", "text": ["unicorn", "unicorn horse"]}\n'
        '{"doc_id": "d1", "text": ["horse"]}\n'
    )
    assert search(expand(base=bm25(), file=str(lists)), queries) == found
    table = tmp_path / "more.tsv"
    table.write_text("d5\tunicorn\nd1\thorse\nd5\tunicorn horse\n")
    assert search(expand(base=bm25(), file=str(table)), queries) == found


def test_an_index_with_expansions_opens_without_the_file(tmp_path):
    file = tmp_path / "more.tsv"
    file.write_text("d5\tunicorn\n")
    retriever = expand(base=bm25(), file=str(file))
    run = retriever.index(CORPUS, tmp_path / "ix").search(QUERIES)
    file.write_text("d5\tother\n")
    with pytest.raises(FileError, match="made with other files"):
        retriever.index(CORPUS, tmp_path / "ix")
    file.unlink()
    assert retrievers.open(tmp_path / "ix").search(QUERIES) == run
    with pytest.raises(FileError, match="no such file"):
        retriever.index(CORPUS, tmp_path / "other")


def test_expansions_of_other_documents_are_noticed(tmp_path):
    file = tmp_path / "more.tsv"
    file.write_text("d5\tunicorn\nd99\thorse\n")
    retriever = rm3(base=expand(base=bm25(), file=str(file)))
    with pytest.warns(ff.FarfieldWarning, match="1 of 2 documents are not among.*'d99'"):
        retriever.index(CORPUS)
    file.write_text("e5\tunicorn\n")
    with pytest.raises(InputError, match="none of its 1 documents"):
        retriever.index(CORPUS)
    file.write_text('{"doc_id": "d1", "texts": "horse"}\n')
    with pytest.raises(FileError, match="no column 'text'"):
        retriever.index(CORPUS)


# -- all of them --------------------------------------------------------------------------------

SPECS = [
    "bm25()",
    "bm25(k1=1.2, b=0.75, variant='terrier')",
    "bm25(variant='atire', tokeniser='words', stopwords='questions', stemmer='none')",
    "rm3(bm25())",
    "rm3(bm25(k1=1.2), docs=5, form='anserini')",
    "bo1(bm25(), docs=5)",
    "bo1(rm3(bm25()))",
]


@pytest.fixture(scope="module")
def world():
    return ff.lab.make(passages=400, train=40, test=60, seed=0).collection


@pytest.mark.parametrize("spec", SPECS)
def test_the_laws_of_retrievers(spec, world, tmp_path):
    retriever = retrievers.parse(spec)
    assert str(retriever) == spec
    assert retrievers.parse(str(retriever)) == retriever
    index = retriever.index(world.corpus)
    assert len(index) == index.sizes["documents"] == 400
    run = index.search(world.queries, 30)
    assert run.name == spec
    assert run == index.search(world.queries, 30)
    assert max(np.diff(run.bounds)) <= 30
    # A shorter list is the beginning of a longer one, ties at the cut included.
    assert index.search(world.queries, 7) == run.head(7)
    # What is ranked is in the order that everybody uses.
    assert ff.Run(run.frame.sample(fraction=1.0, shuffle=True, seed=1), name=spec) == run
    # Neither the order of documents nor a folder makes a difference.
    shuffled = Corpus(world.corpus.frame.sample(fraction=1.0, shuffle=True, seed=2))
    assert retriever.index(shuffled).search(world.queries, 30) == run
    assert retriever.index(world.corpus, tmp_path / "ix").search(world.queries, 30) == run
    assert retrievers.open(tmp_path / "ix").search(world.queries, 30) == run
    # Queries do not see one another.
    alone = Queries.trusted(world.queries.frame.slice(11, 1))
    found = index.search(alone, 30).frame
    assert found.equals(run.frame.filter(pl.col("query_id") == alone.frame["query_id"][0]))


def test_every_shipped_sparse_retriever_is_among_them():
    from farfield.retrievers._sparse import SparseRetriever

    own = {kind.__name__ for kind in retrievers.family if issubclass(kind, SparseRetriever)}
    own = {name for name in own if not retrievers.get(name).neural}
    assert own - {"doc2query"} == {"bm25", "bo1", "rm3", "expand"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bm52()", "Did you mean 'bm25'"),
        ("bm25(k1=-1)", "k1 is -1"),
        ("bm25(b=1.5)", "from 0 to 1"),
        ("bm25(k3=-1)", "k3 is -1"),
        ("bm25(stemmer=klingon)", "stemmer is 'klingon'"),
        ("bm25(variant=lucen)", "Did you mean 'lucene'"),
        ("rm3()", "needs base"),
        ("rm3(bm25(), docs=0)", "docs is 0"),
        ("rm3(bm25(), terms=0)", "terms is 0"),
        ("rm3(bm25(), weight=2)", "weight is 2"),
        ("bo1(rrf())", "no retriever is called 'rrf'"),
        ("expand(bm25())", "needs file"),
    ],
)
def test_bad_specs_are_refused(spec, message):
    with pytest.raises(SpecError, match=message):
        retrievers.parse(spec)


def test_an_index_serves_all_retrievers_with_the_same_content(world, tmp_path):
    bm25().index(world.corpus, tmp_path / "ix")
    other = retrievers.parse("rm3(bm25(k1=2.0, variant='terrier'))")
    run = other.open(tmp_path / "ix").search(world.queries, 10)
    assert run == other.index(world.corpus).search(world.queries, 10)
    with pytest.raises(FileError, match="needs counts\\(words"):
        bm25(tokeniser="words").open(tmp_path / "ix")
    with pytest.raises(InputError, match="Index the documents with"):
        bm25().index(world.corpus).using(bm25(stemmer="none"))


def test_folders_with_other_things_are_refused(world, tmp_path):
    bm25().index(world.corpus, tmp_path / "ix")
    with pytest.raises(FileError, match="of other documents"):
        bm25().index(CORPUS, tmp_path / "ix")
    with pytest.raises(FileError, match="of counts\\(standard"):
        bm25(stemmer="none").index(world.corpus, tmp_path / "ix")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "mine" / ".draft.tmp").write_text("de")
    with pytest.raises(FileError, match="holds other files"):
        bm25().index(CORPUS, tmp_path / "mine")
    assert (tmp_path / "mine" / ".draft.tmp").exists()
    with pytest.raises(FileError, match="this is a file"):
        bm25().index(CORPUS, tmp_path / "mine" / "letter.txt")
    with pytest.raises(FileError, match="not an index"):
        retrievers.open(tmp_path / "mine")
    manifest = tmp_path / "ix" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(FileError, match="format 99, expected 1"):
        retrievers.open(tmp_path / "ix")
    manifest.write_text("{")
    with pytest.raises(FileError, match="not JSON"):
        retrievers.open(tmp_path / "ix")
    with pytest.raises(InputError, match="no documents"):
        bm25().index(Corpus.trusted(CORPUS.frame.clear()))


def test_k_must_be_at_least_one():
    with pytest.raises(InputError, match="k is 0"):
        bm25().index(CORPUS).search(QUERIES, 0)


# -- questions ----------------------------------------------------------------------------------


def test_search_takes_whatever_is_at_hand(world, tmp_path):
    ff.io.write_collection(world, tmp_path / "world")
    expected = bm25().index(world.corpus).search(world.queries, 10)
    index = ff.index("bm25()", world, tmp_path / "ix")
    assert ff.search(index, world.queries, 10) == expected
    assert ff.search(str(tmp_path / "ix"), world, 10) == expected
    assert ff.search(tmp_path / "ix", tmp_path / "world", 10) == expected
    assert ff.search("bm25()", world, 10) == expected
    assert ff.search("bm25()", world.queries, 10, corpus=tmp_path / "world") == expected
    assert ff.search("bm25()", world.queries, 10, folder=tmp_path / "ix") == expected
    with pytest.raises(InputError, match="needs documents"):
        ff.search("bm25()", world.queries)
    with pytest.raises(InputError, match="not both"):
        ff.search("bm25()", world.queries, corpus=world, folder=tmp_path / "ix")
    with pytest.raises(InputError, match="is an index"):
        ff.search(tmp_path / "ix", world.queries, corpus=world)


def test_tuning_finds_the_best_setting(world):
    qrels = world.qrels["test"]
    tuning = ff.tune_retriever("bm25()", world, world, qrels, grid={"b": [0.0, 0.4, 1.0]})
    assert [str(s) for s in tuning.settings] == ["bm25()", "bm25(b=0.0)", "bm25(b=1.0)"]
    for at, setting in enumerate(tuning.settings):
        run = ff.search(setting, world)
        mean = ff.evaluate(qrels, run, ["nDCG@10"]).summary["mean"][0]
        assert tuning.table["mean"][at] == pytest.approx(mean, abs=1e-12)
    best = tuning.table.filter("best")
    assert best["mean"][0] == tuning.table["mean"].max()
    assert set(tuning.gain) >= {"difference", "low", "high", "p"}
    assert json.dumps(tuning.to_dict())
    grid = retrievers.parse("bo1(bm25())").choices()
    assert grid["docs"] == tuple(range(5, 51, 5))
    assert grid["terms"] == tuple(range(5, 61, 5))


def test_tuning_refuses_what_it_cannot_do(world):
    qrels = world.qrels["test"]
    with pytest.raises(InputError, match="no option 'k2'.*It has k1, b"):
        ff.tune_retriever("bm25()", world, world, qrels, grid={"k2": [1]})
    with pytest.raises(InputError, match="0 settings"):
        ff.tune_retriever("bm25()", world, world, qrels, grid={})
    with pytest.raises(SpecError, match="b is 3"):
        ff.tune_retriever("bm25()", world, world, qrels, grid={"b": [3]})
    with pytest.raises(InputError, match="folds is 1"):
        ff.tune_retriever("bm25()", world, world, qrels, folds=1)
    strangers = Qrels({"query_id": ["?", "!"], "doc_id": ["a", "b"], "relevance": [1, 1]})
    with pytest.raises(InputError, match="none of the judged queries"):
        ff.tune_retriever("bm25()", world, world, strangers, folds=2)


def test_progress_is_counted(monkeypatch, capsys):
    from farfield import progress

    monkeypatch.setattr(progress, "_shown", True)
    run = bm25().index(CORPUS).search(QUERIES)
    assert len(run)
    assert capsys.readouterr().out == ""  # it goes to standard error


# -- the command line ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory, world):
    path = tmp_path_factory.mktemp("retrievers")
    ff.io.write_collection(world, path / "world")
    return path


def test_the_command_line_indexes_and_searches(farfield, folder, world):
    first = farfield("index", "bm25()", "world", "-o", "ix", "--json", cwd=folder)
    assert first.status == 0
    assert first.json["documents"] == 400
    assert first.json["bytes"] > 0
    again = farfield("index", "bm25()", "world", "-o", "ix", cwd=folder)
    assert again.out.startswith("ix: bm25(), 400 documents, ")
    found = farfield("search", "ix", "world", "-k", "20", "-o", "a.trec.gz", "--json", cwd=folder)
    assert found.status == 0
    run = ff.read_run(folder / "a.trec.gz")
    assert found.json["rows"] == len(run)
    expected = ff.search("bm25()", world, 20)
    assert run.doc_ids.to_list() == expected.doc_ids.to_list()
    np.testing.assert_allclose(run.scores, expected.scores, rtol=1e-12)
    split = farfield(
        "search", "rm3(bm25())", "world", "--index", "ix", "--split", "test", "-o", "b.trec",
        "--name", "mine", "--json", cwd=folder,
    )  # fmt: skip
    assert split.json["queries"] == 60
    assert " mine\n" in (folder / "b.trec").read_text()


def test_the_command_line_tunes(farfield, folder):
    arguments = ["search", "bm25()", "world", "--split", "test", "--tune", "train", "-o", "c.trec"]
    done = farfield(*arguments, cwd=folder)
    assert done.status == 0
    assert "Tuned over 42 settings, 5 folds" in done.out
    assert done.out.count("bm25(") == 3
    other = farfield(*arguments[:-4], "--tune", "world/qrels/train.tsv", *arguments[-2:], "--json",
                     cwd=folder)  # fmt: skip
    assert other.json["tuning"]["best"] == other.json["retriever"]
    assert other.json["retriever"] in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "bm25()", "nothing", "-o", "x"], "no such file"),
        (["index", "bm25(k9=1)", "world", "-o", "x"], "no option 'k9'"),
        (["index", "bm25()", "world", "-o", "world"], "holds other files"),
        (["search", "world", "world", "-o", "x.trec"], "not an index"),
        (["search", "bm25()", "world/queries.jsonl", "-o", "x.trec"], "needs documents"),
        (["search", "bm25()", "world", "--split", "dev", "-o", "x.trec"], "no split 'dev'"),
        (["search", "bm25()", "world", "-k", "0", "-o", "x.trec"], "0 is not in the range"),
        (["search", "bm25()", "world", "-o", "x.pdf"], ".pdf"),
        (["search", "expand(bm25(), file='no.tsv')", "world", "-o", "x.trec"], "no such file"),
    ],
)
def test_mistakes_end_with_a_message(farfield, folder, arguments, message):
    done = farfield(*arguments, cwd=folder)
    assert done.status == 2
    assert message in done.err
    assert not (folder / "x.trec").exists()


# -- real data ----------------------------------------------------------------------------------


def test_scifact_comes_out_as_published(real_data):
    # Anserini, flat: nDCG@10 0.6789, R@100 0.9253.
    scifact = ff.read_collection(real_data / "beir" / "scifact")
    run = ff.search("bm25(k1=0.9, b=0.4)", scifact.queries_of("test"), corpus=scifact)
    found = ff.evaluate(scifact.qrels["test"], run, ["nDCG@10", "R@100"]).summary
    ndcg, recall = found["mean"]
    assert 0.675 <= ndcg <= 0.685
    assert 0.922 <= recall <= 0.935


def test_feedback_finds_more_on_cranfield(real_data):
    cranfield = ff.read_collection(real_data / "beir" / "cranfield")
    runs = [ff.search(spec, cranfield) for spec in ("bm25()", "rm3(bm25())", "bo1(bm25())")]
    found = ff.evaluate(cranfield.qrels["test"], runs, ["R@1000"]).summary
    plain, *others = found["mean"]
    assert all(other > plain + 0.01 for other in others)
