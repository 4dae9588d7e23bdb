"""Every recipe trains from scratch on the lab, gets better by a wide margin, and can be trusted."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from farfield.errors import FileError, InputError, SpecError

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import farfield as ff  # noqa: E402
from farfield import lab, neural, recipes, retrievers  # noqa: E402
from farfield.recipes import Recipe  # noqa: E402
from farfield.recipes._contrast import (  # noqa: E402
    FromBatch,
    FromLists,
    FromRandom,
    as_lists,
    encoded,
)
from farfield.recipes.base import Job  # noqa: E402
from farfield.training.scratch import scratch  # noqa: E402

TINY = "scratch(layers=1, dim=32, vocabulary=600)"

# Recipe, and by how much its model must beat the untrained one on queries that were held out.
TRAINED = {
    "contrastive(epochs=8)": 0.3,
    "adapter(epochs=20)": 0.1,
    "contrastive(negatives=random, count=64, epochs=8)": 0.3,
    "contrastive(negatives=bm25, similarity=dot, temperature=1, epochs=8)": 0.1,
    "hard(first=contrastive(epochs=6), epochs=2)": 0.3,
    "dynamic(first=contrastive(epochs=6), epochs=2)": 0.3,
    "distil(teacher=multivector(epochs=2), epochs=6)": 0.03,
    "distil(teacher=crossencoder(epochs=1), epochs=6)": None,
    "multivector(epochs=4)": 0.05,
    "splade(epochs=4)": 0.2,
    "splade(epochs=4, warm=mlm(epochs=0.1))": 0.1,
    "crossencoder(epochs=6, negatives=4, lr=0.003)": 0.2,
    "pretrain(contrastive(epochs=8))": 0.3,
    "pretrain(contrastive(epochs=8), objective=cloze)": 0.3,
    "mlm(epochs=8, batch=16)": 0.2,
    "seq2seq(epochs=6)": 0.5,
}


@pytest.fixture(scope="module", autouse=True)
def calm():
    kept, threads = os.environ.get("HF_HUB_OFFLINE"), torch.get_num_threads()
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    os.environ.pop("HF_HUB_OFFLINE") if kept is None else os.environ.update(HF_HUB_OFFLINE=kept)


@pytest.fixture(scope="module")
def collection():
    return lab.make(passages=120, train=400, test=60).collection


@pytest.fixture(scope="module")
def trained(collection, tmp_path_factory):
    """Train a recipe once, however often it is asked for."""
    made = {}

    def train(spec: str):
        if spec not in made:
            out = tmp_path_factory.mktemp("model") / "out"
            recipe = recipes.parse(spec)
            made[spec] = recipe.run(TINY, collection, out=out, validation=60, device="cpu")
        return made[spec]

    return train


def untrained(spec: str) -> str:
    """The recipe, stopped before it learns anything."""
    recipe = recipes.parse(spec)
    while isinstance(getattr(recipe, "then", None), Recipe):
        recipe = recipe.then
    if isinstance(recipe, recipes.get("hard") | recipes.get("dynamic") | recipes.get("distil")):
        recipe = recipes.parse("contrastive()")
    return str(replace(recipe, epochs=1e-6, lr=1e-9, checks=1))


# -- every recipe ---------------------------------------------------------------------------------


def test_every_recipe_is_tried():
    assert {recipes.parse(spec).spec.name for spec in TRAINED} == set(recipes.names())


@pytest.mark.parametrize("spec", TRAINED)
def test_specs_are_read_back(spec):
    recipe = recipes.parse(spec)
    assert recipes.parse(str(recipe)) == recipe


@pytest.mark.parametrize(("spec", "margin"), TRAINED.items())
def test_training_pays(trained, spec, margin):
    made = trained(spec)
    record = made.record
    found = [loss for _, loss in record["losses"]]
    third = max(1, len(found) // 3)
    if recipes.parse(spec).spec.name not in ("hard", "dynamic"):  # those start trained
        assert np.mean(found[-third:]) < np.mean(found[:third])
    if margin is not None:
        before = trained(untrained(spec)).record["checks"][-1][1]
        best = max(value for _, value in record["checks"])
        assert best > before + margin, (best, before)


@pytest.mark.parametrize("spec", TRAINED)
def test_the_record_says_what_was_done(trained, spec):
    record = trained(spec).record
    assert record["recipe"] == str(recipes.parse(spec))
    assert record["base"] == TINY
    assert record["steps"] > 0
    assert record["examples_per_second"] > 0
    assert record["peak_memory"] > 1e6
    assert record["versions"]["torch"] == torch.__version__
    assert record["queries"] + record["validation_queries"] == 400
    assert not list(trained(spec).folder.rglob("checkpoint.pt"))


@pytest.mark.parametrize(
    "spec", [spec for spec in TRAINED if not spec.startswith(("mlm", "seq2seq", "pretrain"))]
)
def test_the_retriever_finds_documents(trained, collection, spec):
    retriever = trained(spec).retriever
    assert retrievers.parse(str(retriever)) == retriever
    if spec.startswith("crossencoder"):
        retriever = replace(retriever, depth=10)
    queries = collection.queries_of("test")
    run = ff.search(retriever, queries, 10, corpus=collection.corpus)
    assert len(run.query_ids) == len(queries)


def test_a_writer_writes_queries(trained, collection):
    retriever = replace(trained("seq2seq(epochs=6)").retriever, n=1)
    corpus = type(collection.corpus)(collection.corpus.frame.head(5))
    run = ff.search(retriever, collection.queries_of("test"), 3, corpus=corpus)
    assert len(run)


def test_an_encoder_learns_to_write(trained, collection, tmp_path):
    encoder = str(trained("contrastive(epochs=8)").model)
    recipe = recipes.parse("seq2seq(epochs=6, lr=0.002)")
    made = recipe.run(encoder, collection, out=tmp_path / "w", validation=60, device="cpu")
    record = made.record
    first, *_, last = [value for _, value in record["checks"]]
    assert last > first > -6.4  # the logarithm of the 600 words there are: no better than chance
    settings = json.loads((made.model / "config.json").read_text())
    assert settings["model_type"] == "encoder-decoder"
    corpus = type(collection.corpus)(collection.corpus.frame.head(5))
    retriever = replace(made.retriever, n=1)
    assert len(ff.search(retriever, collection.queries_of("test"), 3, corpus=corpus))


def test_an_encoder_that_writes_starts_with_its_own_epochs(trained, collection, tmp_path):
    encoder = str(trained("contrastive(epochs=8)").model)
    given = {"out": tmp_path / "w", "validation": 60, "device": "cpu"}
    record = recipes.parse("seq2seq(epochs=0.1)").run(encoder, collection, **given).record
    assert record["lr"] == 2e-4


def test_queries_have_an_encoder_of_their_own(trained):
    made = trained("dynamic(first=contrastive(epochs=6), epochs=2)")
    both = neural.load(str(made.model), device="cpu")
    first = neural.load(str(made.folder / "first" / "model"), device="cpu")
    texts = ["who painted the bridge?", "the old mill"]
    same = neural.encode(both, texts, task="document"), neural.encode(first, texts, task="document")
    np.testing.assert_allclose(*same, atol=1e-5)
    other = neural.encode(both, texts, task="query")
    assert np.abs(other - same[0]).max() > 1e-3


def test_finished_work_is_returned_and_other_work_refused(trained, collection):
    made = trained("contrastive(epochs=8)")
    before = (made.model / "model.safetensors").stat().st_mtime_ns
    recipe = recipes.parse("contrastive(epochs=8)")
    again = recipe.train(TINY, collection, out=made.folder, validation=60, device="cpu")
    assert again == made.retriever
    assert (made.model / "model.safetensors").stat().st_mtime_ns == before
    for options in ({"seed": 1}, {"validation": 50}):
        with pytest.raises(FileError, match="another"):
            recipe.train(TINY, collection, out=made.folder, **{"validation": 60, **options})
    with pytest.raises(FileError, match="another recipe"):
        recipes.parse("contrastive()").train(TINY, collection, out=made.folder, validation=60)


def test_the_same_seed_gives_the_same_weights_and_another_does_not(collection, tmp_path):
    recipe = recipes.parse("multivector(epochs=0.2)")
    digests = [
        recipe.run(TINY, collection, out=tmp_path / str(at), seed=seed, device="cpu").record[
            "model"
        ]
        for at, seed in enumerate((0, 0, 1))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_student_is_not_held_to_unit_vectors(collection, tmp_path):
    """No teacher's scores lie between -1 and 1, where products of unit vectors do."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize

    base = tmp_path / "base"
    scratch(layers=1, dim=32).make(base, collection.corpus.frame["text"].to_list(), 0)
    unit = SentenceTransformer(modules=[*SentenceTransformer(str(base)), Normalize()])
    unit.save_pretrained(str(tmp_path / "unit"))
    recipe = recipes.parse("distil(teacher=multivector(epochs=0.1), epochs=0.1)")
    made = recipe.run(str(tmp_path / "unit"), collection, out=tmp_path / "out", device="cpu")
    lengths = np.linalg.norm(neural.encode(neural.load(str(made.model)), ["some words"]), axis=1)
    assert abs(lengths[0] - 1) > 0.01


# -- what is trained on ---------------------------------------------------------------------------


def test_a_fold_trains_on_its_queries_alone(collection):
    answer = ff.shift("length()", collection)
    fold = answer.dealt.folds[0].name
    job = Job.of(collection, answer.partition, fold, validation=10)
    frame = answer.partition.frame.filter((pl.col("fold") == fold) & (pl.col("role") == "train"))
    held_out = set(job.held_out.query_ids)
    assert set(job.examples.query_ids) == set(frame["query_id"]) - held_out
    with pytest.raises(InputError, match="no fold is given"):
        Job.of(collection, answer.partition)
    with pytest.raises(InputError, match="there is no fold"):
        Job.of(collection, answer.partition, "medium")
    with pytest.raises(InputError, match="without a partition"):
        Job.of(collection, fold="short")


def test_validation_is_not_subject_to_the_shift(collection):
    answer = ff.shift("length()", collection)
    jobs = [Job.of(collection, answer.partition, f.name, validation=20) for f in answer.dealt.folds]
    held_out = [set(job.held_out.query_ids) for job in jobs]
    assert held_out[0] == held_out[1]
    assert len(held_out[0]) == 20
    short, long = ({*job.examples.query_ids} for job in jobs)
    assert not (short | long) & held_out[0]
    groups = answer.partition.frame.filter(pl.col("role") == "train").group_by("fold")
    for _, part in groups.agg(pl.col("query_id")).iter_rows():
        assert set(part) & held_out[0]  # some of each group, also of the one left out


def test_validation_may_be_a_split_that_is_not_trained_on(collection):
    job = Job.of(collection, validation="test")
    assert len(job.examples) == 400
    assert set(job.held_out.query_ids) == set(collection.qrels["test"].query_ids)
    with pytest.raises(InputError, match="trained on"):
        Job.of(collection, validation="train")
    assert Job.of(collection, validation=0).held_out is None
    with pytest.raises(InputError, match="validation is -1"):
        Job.of(collection, validation=-1)


def test_fewer_training_queries_are_among_more(collection):
    whole = Job.of(collection, validation=40)
    jobs = {most: Job.of(collection, validation=40, most=most) for most in (10, 50, 200)}
    ids = {most: set(job.examples.query_ids) for most, job in jobs.items()}
    assert {most: len(found) for most, found in ids.items()} == {10: 10, 50: 50, 200: 200}
    assert ids[10] < ids[50] < ids[200] < set(whole.examples.query_ids)
    for most, job in jobs.items():
        assert job.held_out.query_ids.equals(whole.held_out.query_ids)
        assert (job.facts["most"], job.facts["queries"]) == (most, most)
        assert len(job.examples.documents) == 120  # negatives are of all documents
    assert "most" not in whole.facts
    other = Job.of(collection, validation=40, most=50, seed=1)
    assert set(other.examples.query_ids) != ids[50]
    every = Job.of(collection, validation=40, most=9_999)
    assert every.facts["training"] == whole.facts["training"]
    with pytest.raises(InputError, match="most is 0, expected 1, 2, 3"):
        Job.of(collection, most=0)


def test_another_number_of_training_queries_is_other_work(collection, tmp_path):
    recipe = recipes.parse("adapter(epochs=1)")

    def run(out, **options):
        return recipe.run(TINY, collection, out=tmp_path / out, device="cpu", **options)

    few, all_of_them = run("few", most=30), run("all")
    assert few.record["most"] == few.record["queries"] == 30
    assert run("few", most=30).record == few.record
    for given in ({"most": 31}, {}):
        with pytest.raises(FileError, match="another most"):
            run("few", **given)
    # Notes of work on all queries say nothing of it, and need not.
    assert "most" not in json.loads((all_of_them.folder / "job.json").read_text())
    assert "most" not in all_of_them.record
    assert run("all").record == all_of_them.record
    with pytest.raises(FileError, match="another most"):
        run("all", most=9_999)  # the same queries, but not the same command


# -- negatives ------------------------------------------------------------------------------------


def test_lists_leave_out_what_is_relevant(collection):
    examples = Job.of(collection, validation=0).examples
    query = np.array([0, 0, 0, 1])
    relevant = examples.relevant[examples.starts[0]]
    other = next(d for d in range(120) if d not in examples.relevant[: examples.starts[2]])
    lists = as_lists(examples, query, np.array([other, relevant, other, other]), 3)
    assert lists[0].tolist() == [other, other, -1]
    assert lists[1].tolist() == [other, -1, -1]
    rng = np.random.default_rng(0)
    assert FromLists(lists).draw(np.array([0, 1, 2]), rng).tolist() == [other, other]
    assert len(FromBatch().draw(np.array([0, 1]), rng)) == 0
    assert len(FromRandom(10, 7).draw(np.array([0, 1]), rng)) == 7


def test_no_relevant_document_is_a_negative(collection, trained):
    made = trained("contrastive(epochs=8)")
    job = Job.of(collection, validation=0)
    recipe = recipes.parse("contrastive(negatives=random, count=50)")
    task = recipe._task(str(made.model), job, made.folder)
    rows, columns = task.batch_of(3)
    table = task.masked(torch.zeros(len(rows), len(columns)), rows, columns)
    data = job.examples
    for i, row in enumerate(rows):
        relevant = data.relevant[data.starts[row] : data.starts[row + 1]]
        assert columns[i] in relevant
        expected = ~np.isin(columns, relevant)
        expected[: len(rows)] = False  # random negatives, not those of the batch
        expected[i] = True
        np.testing.assert_array_equal(torch.isfinite(table[i]).numpy(), expected)


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("contrastive(epochs=0)", "epochs is 0"),
        ("contrastive(lr=-1)", "lr is -1"),
        ("contrastive(negatives=easy)", "negatives"),
        ("contrastive(temperature=0)", "temperature"),
        ("dynamic(first=mlm())", "expected contrastive"),
        ("distil(teacher=mlm())", "expected multivector"),
        ("mlm(covered=1)", "covered"),
        ("splade(until=2)", "until"),
        ("pretrain()", "needs then"),
        ("contrast()", "contrastive"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(SpecError, match=message):
        recipes.parse(spec)


def test_a_base_that_is_not_there(collection, tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        recipes.parse("contrastive()").train("./nowhere", collection, out=tmp_path / "out")


def test_mlm_makes_no_retriever(collection, tmp_path):
    with pytest.raises(InputError, match="a base for other recipes"):
        recipes.parse("mlm()").train(TINY, collection, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_things_is_left_alone(collection, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileError, match="something else"):
        recipes.parse("contrastive()").train(TINY, collection, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_recipe_of_ones_own(collection, tmp_path):
    from farfield.recipes.contrastive import contrastive

    try:

        @recipes.add
        @dataclass(frozen=True, kw_only=True)
        class patient(contrastive):
            """Warms up for longer."""

            warmup: float = 0.5

        made = recipes.parse("patient(epochs=0.3)").run(TINY, collection, out=tmp_path / "out")
        assert made.record["recipe"] == "patient(epochs=0.3)"
    finally:
        recipes.family._added.clear()


# -- command line ---------------------------------------------------------------------------------


def test_the_command_line(farfield, collection, tmp_path):
    ff.write_collection(collection, tmp_path / "lab")
    done = farfield("shift", "length()", tmp_path / "lab", "-o", tmp_path / "part.parquet")
    assert done.status == 0, done.err
    arguments = ["train", "contrastive(epochs=1)", tmp_path / "lab", "-o", tmp_path / "model"]
    arguments += ["--base", TINY, "--partition", tmp_path / "part.parquet", "--fold", "short"]
    arguments += ["--validation", "20", "--device", "cpu", "--most", "70"]
    done = farfield(*arguments, "--json")
    assert done.status == 0, done.err
    assert done.json["fold"] == "short"
    assert done.json["most"] == done.json["queries"] == 70
    assert done.json["retriever"] == f"dense(model={str(tmp_path / 'model' / 'model')!r})"
    assert json.loads((tmp_path / "model" / "record.json").read_text())["seed"] == 0
    again = farfield(*arguments)
    assert again.status == 0
    assert "use it as: dense(" in again.out
    wrong = farfield("train", "contrastiv()", tmp_path / "lab", "-o", tmp_path / "x")
    assert wrong.status == 2
    assert "Did you mean 'contrastive'?" in wrong.err


def test_splade_trains_with_the_vectors_that_it_gives(trained):
    """With less memory, but the same vectors and gradients as the model's own modules."""
    path = str(trained("splade(epochs=4)").model)
    model = neural.load(path, kind="sparse", device="cpu").train()
    features = model.preprocess(["one word or two", "another text that is a good deal longer"])
    torch.manual_seed(0)  # of dropout
    vectors = encoded(model, dict(features), "document").vectors
    torch.manual_seed(0)
    own = model(dict(features))["sentence_embedding"]
    torch.testing.assert_close(vectors, own)
    assert (own > 0).any()
    parameters = [one for one in model.parameters() if one.requires_grad]
    for one, other in zip(
        torch.autograd.grad(vectors.square().sum(), parameters, allow_unused=True),
        torch.autograd.grad(own.square().sum(), parameters, allow_unused=True),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
