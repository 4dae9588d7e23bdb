"""A linear map on a frozen encoder: what it learns, what it leaves alone, and that it resumes."""

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import farfield as ff  # noqa: E402
from farfield import lab, neural, recipes  # noqa: E402
from farfield.errors import SpecError  # noqa: E402
from farfield.recipes import adapter as module  # noqa: E402
from farfield.recipes.base import Job  # noqa: E402
from farfield.training import loop  # noqa: E402

TINY = "scratch(layers=1, dim=32, vocabulary=600)"


@pytest.fixture(scope="module", autouse=True)
def calm():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def collection():
    return lab.make(passages=120, train=400, test=200).collection


@pytest.fixture(scope="module")
def base(collection, tmp_path_factory):
    """An encoder that was trained a little."""
    out = tmp_path_factory.mktemp("base") / "out"
    recipe = recipes.parse("contrastive(epochs=1)")
    return str(recipe.run(TINY, collection, out=out, validation=40, device="cpu").model)


@pytest.fixture(scope="module")
def adapted(collection, base, tmp_path_factory):
    out = tmp_path_factory.mktemp("adapted") / "out"
    return recipes.parse("adapter()").run(base, collection, out=out, validation=60, device="cpu")


def test_the_map_is_all_that_is_added(adapted, base):
    """sentence-transformers opens it; its vectors are those of the base, times the matrix."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(adapted.model), device="cpu")
    assert [type(part).__name__ for part in model][-1] == "Dense"
    assert model.similarity_fn_name == "cosine"
    first = neural.load(base, device="cpu")
    for name, weights in first[0].state_dict().items():
        assert torch.equal(weights, model[0].state_dict()[name])
    texts = ["who painted the bridge?", "the old mill"]
    matrix = model[-1].linear.weight.detach().numpy()
    assert model[-1].linear.bias is None
    np.testing.assert_allclose(
        model.encode(texts), neural.encode(first, texts) @ matrix.T, atol=1e-5
    )
    assert np.abs(matrix - np.eye(32)).max() > 0.01


def test_it_finds_more_than_its_base(adapted, base, collection):
    queries, qrels = collection.queries_of("test"), collection.qrels["test"]
    before, after = (
        ff.search(retriever, queries, 10, corpus=collection.corpus)
        for retriever in (f"dense(model={base!r})", adapted.retriever)
    )
    row = ff.compare(qrels, before, [after], ["nDCG@10"]).table.row(0, named=True)
    assert row["difference"] > 0.03
    assert row["p"] < 0.01


def test_the_identity_is_where_it_starts(collection, base, tmp_path):
    recipe = recipes.parse("adapter(epochs=0.000001, lr=0.000000001)")
    made = recipe.run(base, collection, out=tmp_path / "out", validation=0, device="cpu")
    texts = ["the old mill"]
    same = (
        neural.encode(neural.load(str(path), device="cpu"), texts) for path in (made.model, base)
    )
    np.testing.assert_allclose(*same, atol=1e-6)


def test_only_documents_that_are_relevant_are_encoded(collection, base, monkeypatch, tmp_path):
    seen: set[str] = set()
    real = neural.encode

    def spy(model, texts, **options):
        if options["task"] == "document":
            seen.update(texts)
        return real(model, texts, **options)

    monkeypatch.setattr(module.neural, "encode", spy)
    recipes.parse("adapter(epochs=1)").run(
        base, collection, out=tmp_path / "out", validation=20, device="cpu"
    )
    job = Job.of(collection, validation=0, device="cpu")
    assert seen == {job.examples.documents[row] for row in job.examples.relevant}


class Stop(Exception):
    """As if the process were killed."""


@pytest.mark.parametrize("moment", [1, 4, 11])
def test_work_that_was_stopped_ends_with_the_same_weights(
    collection, base, tmp_path, monkeypatch, moment
):
    recipe = recipes.parse("adapter(epochs=3, checks=5)")
    options = {"validation": 40, "device": "cpu"}
    whole = recipe.run(base, collection, out=tmp_path / "whole", **options)
    real, steps = loop._step, []

    def step(*given):
        if len(steps) == moment:
            raise Stop
        steps.append(1)
        return real(*given)

    monkeypatch.setattr(loop, "_step", step)
    with pytest.raises(Stop):
        recipe.run(base, collection, out=tmp_path / "cut", **options)
    monkeypatch.undo()
    cut = recipe.run(base, collection, out=tmp_path / "cut", **options)
    assert cut.record["model"] == whole.record["model"]
    assert cut.record["losses"] == whole.record["losses"]
    assert cut.record["checks"] == whole.record["checks"]
    assert not list(cut.folder.glob("*.pt"))


def test_bad_specs():
    with pytest.raises(SpecError, match="temperature is 0"):
        recipes.parse("adapter(temperature=0)")
    with pytest.raises(SpecError, match="lr is -1"):
        recipes.parse("adapter(lr=-1)")
