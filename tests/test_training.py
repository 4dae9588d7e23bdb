"""The training core: formulas by hand and beside sentence-transformers, order, resume."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield.errors import FarfieldError, FileError, InputError, SpecError

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from transformers import BertConfig, BertForMaskedLM  # noqa: E402

from farfield import neural  # noqa: E402
from farfield.neural.vectors import TokenVectors, starts_of  # noqa: E402
from farfield.training import Examples, Order, Plan, fit, heads, losses, scratch  # noqa: E402
from farfield.training.examples import sampled  # noqa: E402
from farfield.training.scratch import base_of, digest_of  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    kept = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(kept)


# -- losses -------------------------------------------------------------------------------------


def test_cross_entropy_is_that_of_sentence_transformers():
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from torch.nn.functional import normalize

    torch.manual_seed(0)
    queries, documents, others = (torch.randn(5, 8) for _ in range(3))
    peer = MultipleNegativesRankingLoss(torch.nn.Identity(), scale=20.0)
    expected = peer.compute_loss_from_embeddings([queries, documents, others], None)
    table = normalize(queries) @ normalize(torch.cat([documents, others])).T / 0.05
    assert losses.cross_entropy(table, torch.arange(5)).item() == pytest.approx(expected.item())


def test_what_is_masked_takes_no_part():
    scores = torch.tensor([[2.0, -torch.inf, 1.0]])
    own = torch.tensor([0])
    expected = -np.log(np.exp(2) / (np.exp(2) + np.exp(1)))
    assert losses.cross_entropy(scores, own).item() == pytest.approx(expected, rel=1e-5)
    assert losses.pairwise(scores, own).item() == pytest.approx(np.log1p(np.exp(1 - 2)))


def test_flops_is_that_of_sentence_transformers():
    from sentence_transformers.sparse_encoder.losses import FlopsLoss

    weights = torch.rand(4, 6)
    peer = FlopsLoss(torch.nn.Identity()).compute_loss_from_embeddings(weights)
    assert losses.flops(weights).item() == pytest.approx(peer.item())
    assert losses.flops(torch.tensor([[1.0, 0.0], [3.0, 2.0]])).item() == 2.0**2 + 1.0**2


def test_regularisers_come_in_with_the_square_of_the_step():
    assert [losses.rising(step, 10) for step in (0, 5, 10, 20)] == [0, 0.25, 1, 1]


def test_lambda_rank_by_hand():
    scores = torch.tensor([[3.0, 2.0, 1.0]])
    relevant = torch.tensor([[False, True, False]])
    first = np.log1p(np.exp(3 - 2)) * (1 - 1 / 2)
    last = np.log1p(np.exp(1 - 2)) * (1 / 2 - 1 / 3)
    found = losses.lambda_rank(scores, relevant).item()
    assert found == pytest.approx((first + last) / 2)


def test_a_teacher_is_divided_by_its_temperature():
    student, teacher = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.0]])
    wanted = np.exp([2.0, 0.0]) / np.exp([2.0, 0.0]).sum()  # 0.5 / 0.25
    given = np.exp([1.0, 0.0]) / np.exp([1.0, 0.0]).sum()
    expected = (wanted * np.log(wanted / given)).sum()
    assert losses.teacher_divergence(student, teacher, 0.25).item() == pytest.approx(
        expected, rel=1e-5
    )
    assert losses.teacher_divergence(teacher, teacher, 1.0).item() == pytest.approx(0, abs=1e-7)


def test_margins_by_hand():
    student, teacher = (
        torch.tensor([[3.0, 1.0], [0.0, 0.0]]),
        torch.tensor([[1.0, 0.0], [2.0, 0.0]]),
    )
    assert losses.margin_error(student, teacher).item() == ((2 - 1) ** 2 + (0 - 2) ** 2) / 2


def test_late_interaction_equals_the_search_engines():
    rng = np.random.default_rng(0)

    def made(lengths):
        starts = starts_of(np.array(lengths))
        return TokenVectors(rng.normal(size=(starts[-1], 4)).astype(np.float32), starts)

    def padded(vectors):
        width = int(vectors.lengths.max())
        table = torch.full((len(vectors), width, 4), 99.0)  # what is masked must not matter
        mask = torch.zeros(len(vectors), width, dtype=torch.bool)
        for at, (start, end) in enumerate(zip(vectors.starts, vectors.starts[1:], strict=False)):
            table[at, : end - start] = torch.from_numpy(vectors.vectors[start:end])
            mask[at, : end - start] = True
        return table, mask

    queries, documents = made([2, 3]), made([4, 1, 2])
    pairs = np.indices((2, 3)).reshape(2, -1).T
    expected = neural.maxsim(queries, documents, pairs, device="cpu").reshape(2, 3)
    found = losses.maxsim_table(padded(queries), padded(documents))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


# -- heads over words ---------------------------------------------------------------------------


@pytest.mark.parametrize("at_a_time", [1, 70, 10**6])
@pytest.mark.parametrize("bias", [True, False])
def test_largest_logits_are_those_of_the_whole_table(at_a_time, bias, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(heads, "_NUMBERS", at_a_time)
    hidden = torch.randn(5, 4, 3, dtype=torch.float64, requires_grad=True)
    head = torch.nn.Linear(3, 7, bias=bias, dtype=torch.float64)
    mask = torch.tensor(
        [[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    ).bool()
    sent = torch.randn(5, 7, dtype=torch.float64)
    asked = [hidden, *head.parameters()]

    plain = head(hidden).masked_fill(~mask.unsqueeze(-1), -torch.inf).max(dim=1).values
    expected = torch.autograd.grad((plain * sent).sum(), asked)
    found = heads.largest_logits(hidden, head, mask)
    torch.testing.assert_close(found, plain)
    # Gradients of weights are added in single precision.
    torch.testing.assert_close(
        torch.autograd.grad((found * sent).sum(), asked), expected, rtol=1e-6, atol=1e-6
    )


def test_largest_logits_in_half_precision():
    torch.manual_seed(0)
    hidden, head = torch.randn(3, 4, 8, requires_grad=True), torch.nn.Linear(8, 9)
    mask = torch.ones(3, 4, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = head(hidden).max(dim=1).values
        found = heads.largest_logits(hidden, head, mask)
    assert found.dtype == plain.dtype == torch.bfloat16
    torch.testing.assert_close(found, plain)
    one, other = (torch.autograd.grad(each.sum(), head.weight)[0] for each in (plain, found))
    assert other.dtype == torch.float32
    torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)


def test_a_model_has_its_head_back():
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16,
        )
    )  # fmt: skip
    tokens = torch.tensor([[1, 2, 3]])
    with heads.headless(model) as head:
        assert model(tokens).logits.shape == (1, 3, 8)
        assert head.weight.shape == (30, 8)
    assert model(tokens).logits.shape == (1, 3, 30)
    with pytest.raises(RuntimeError, match="stop"), heads.headless(model):
        raise RuntimeError("stop")
    assert model(tokens).logits.shape == (1, 3, 30)


# -- examples -----------------------------------------------------------------------------------


def examples(judged, queries=3, documents=6) -> Examples:
    rows = [(f"q{q}", f"d{d}", r) for q, d, r in judged]
    return Examples.of(
        pl.DataFrame({"query_id": [f"q{n}" for n in range(queries)], "text": ["x"] * queries}),
        pl.Series([f"d{n}" for n in range(documents)]),
        ["text"] * documents,
        pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row"),
    )


def test_queries_without_a_relevant_document_are_left_out():
    made = examples([(0, 1, 2), (1, 2, 0), (2, 3, 1), (2, 9, 1), (2, 4, 1)])
    assert made.query_ids.to_list() == ["q0", "q2"]
    assert made.relevant.tolist() == [1, 3, 4]
    with pytest.raises(InputError, match="nothing to train on"):
        examples([(0, 1, 0)])


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, unique=True)


@given(pairs, st.lists(st.integers(0, 5), min_size=1, max_size=8), st.randoms())
def test_false_negatives_are_those_of_a_plain_search(judged, columns, random):
    made = examples([(q, d, 1) for q, d in judged], queries=4)
    rows = np.array(random.choices(range(len(made)), k=3))
    found = set(zip(*map(list, made.false_negatives(rows, np.array(columns))), strict=True))
    expected = {
        (i, j)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
        if (int(made.query_ids[int(row)][1:]), column) in judged
    }
    assert found == expected


def test_the_more_relevant_is_drawn_more_often():
    made = examples([(0, 1, 1), (0, 2, 3)])
    rng = np.random.default_rng(0)
    drawn = np.array([made.positives(rng)[0] for _ in range(2000)])
    assert set(drawn) == {1, 2}
    assert np.mean(drawn == 2) == pytest.approx(0.75, abs=0.03)
    assert sampled(np.zeros(2), np.array([0, 2]), rng).tolist() == [-1]


def test_some_are_drawn():
    made = examples([(q, q % 6, 1) for q in range(20)], queries=20)
    held = made.drawn(4, seed=0)
    assert len(held) == 4
    assert made.drawn(4, seed=0).query_ids.to_list() == held.query_ids.to_list()
    assert set(held.query_ids) < set(made.drawn(8, seed=0).query_ids)
    assert made.drawn(4, seed=1).query_ids.to_list() != held.query_ids.to_list()


# -- order --------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 5))
def test_an_epoch_has_each_row_once(count, batch, seed):
    order = Order(np.arange(count), batch, seed)
    steps = range(order.per_epoch, 2 * order.per_epoch)
    rows = np.concatenate([order.rows(step) for step in steps])
    assert len(rows) == len(set(rows.tolist())) == order.per_epoch * min(batch, count)
    again = Order(np.arange(count), batch, seed)
    np.testing.assert_array_equal(
        again.rows(steps[-1]), order.rows(steps[-1])
    )  # without the others


def test_like_lengths_go_together():
    lengths = np.random.default_rng(0).integers(1, 100, 640)
    order = Order(lengths, 20, 0)
    spreads = [np.ptp(lengths[order.rows(step)]) for step in range(order.per_epoch)]
    assert np.mean(spreads) < 10
    means = [lengths[order.rows(step)].mean() for step in range(order.per_epoch)]
    assert means != sorted(means)


# -- the loop -----------------------------------------------------------------------------------


def test_the_rate_by_hand():
    plan = Plan(steps=10, lr=1.0, warmup=0.2)
    assert [plan.rate(step) for step in (0, 1, 2, 6, 9)] == [0.5, 1.0, 1.0, 0.5, 0.125]


@pytest.mark.parametrize(
    ("steps", "checks", "expected"), [(10, 2, [5, 10]), (5, 2, [3, 5]), (7, 0, [])]
)
def test_when_the_model_is_checked(steps, checks, expected):
    plan = Plan(steps=steps, lr=1.0, checks=checks)
    assert [done for done in range(1, steps + 1) if plan.is_check(done)] == expected


class Line:
    """Fit a line with noise of the step's own; the best check is not the last."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
        self.seen: list[float] = []

    def loss(self, step):
        given = torch.randn(16, 3)
        self.seen.append(float(given.sum()))
        return ((self.model(given)[:, 0] - given.sum(1)) ** 2).mean()

    def examples(self, step):
        return 16

    def check(self):
        self.seen.append(-1)
        return -abs(self.seen.count(-1) - 2)  # the second is best


def weights(task):
    return torch.cat([one.detach().flatten() for one in task.model.parameters()])


def test_the_loss_falls_and_the_best_is_kept(tmp_path):
    task = Line()
    before = torch.rand(1)
    state = torch.get_rng_state()
    trace = fit(task, Plan(steps=200, lr=0.05, checks=4), tmp_path)
    assert torch.equal(torch.get_rng_state(), state), before  # the program's numbers are its own
    assert trace.losses[-1][1] < trace.losses[0][1] / 20
    assert (trace.best, trace.steps, trace.examples) == (100, 200, 3200)
    assert [step for step, _ in trace.checks] == [50, 100, 150, 200]
    best = torch.load(tmp_path / "best-100.pt", weights_only=True)
    assert torch.equal(torch.cat([one.flatten() for one in best.values()]), weights(task))


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stop", [1, 7, 50, 51, 149])
def test_resume_gives_the_same_weights(tmp_path, stop):
    plan = Plan(steps=150, lr=0.05, checks=3, save_every=0.0)
    whole = Line()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    expected = fit(whole, plan, tmp_path / "one")

    class Stopping(Line):
        def loss(self, step):
            if step == stop:
                raise Stopped
            return super().loss(step)

    with pytest.raises(Stopped):
        fit(Stopping(), plan, tmp_path / "two")
    again = Line()
    again.seen = [-1.0] * sum(done <= stop for done in (50, 100, 150))
    trace = fit(again, plan, tmp_path / "two")
    assert torch.equal(weights(again), weights(whole))
    assert trace.losses == expected.losses
    assert (trace.checks, trace.best, trace.resumed) == (expected.checks, expected.best, 1)


def test_a_damaged_checkpoint_says_so(tmp_path):
    (tmp_path / "checkpoint.pt").write_bytes(b"no")
    with pytest.raises(FileError, match="Delete it to start again"):
        fit(Line(), Plan(steps=5, lr=0.1), tmp_path)


def test_divergence_says_so(tmp_path):
    class Diverging(Line):
        def loss(self, step):
            return super().loss(step) * float("nan")

    with pytest.raises(FarfieldError, match="Set lr lower"):
        fit(Diverging(), Plan(steps=5, lr=0.1), tmp_path)


# -- bases --------------------------------------------------------------------------------------


def test_bases_are_read():
    assert base_of("scratch(layers=3)") == scratch(layers=3)
    assert base_of(str(scratch(dim=64, heads=4))) == scratch(dim=64, heads=4)
    assert base_of("scratch") == scratch()
    assert base_of("some/model") == "some/model"
    for wrong in ("scratch(layers=0)", "scratch(depth=2)", "scratch(dim=100, heads=3)"):
        with pytest.raises(SpecError):
            base_of(wrong)
    with pytest.raises(InputError, match="no base"):
        base_of(" ")


def test_scratch_is_the_same_in_every_process(tmp_path):
    texts = [f"the {a} {b} of the far field" for a in ("red", "blue") for b in ("bird", "boat")] * 9
    program = (
        "import sys; from pathlib import Path; from farfield.training import scratch\n"
        f"scratch(layers=1, dim=32, vocabulary=200).make(Path(sys.argv[1]), {texts!r}, 5)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "one")], check=True)
    scratch(layers=1, dim=32, vocabulary=200).make(tmp_path / "two", texts, 5)
    scratch(layers=1, dim=32, vocabulary=200).make(tmp_path / "three", texts, 6)
    one, two, three = (digest_of(str(tmp_path / name)) for name in ("one", "two", "three"))
    assert one == two != three


# -- kill -9 ------------------------------------------------------------------------------------

# Libraries are loaded once; whoever works is a process of its own.
KILLED = """
import functools, os, random, signal, sys, time, traceback
from pathlib import Path
import sentence_transformers, torch, transformers.models.bert.modeling_bert
torch.set_num_threads(1)
from farfield import lab, recipes
from farfield.recipes import base
from farfield.training.loop import Plan
base.Plan = functools.partial(Plan, save_every=0.0)

def start(folder):
    if child := os.fork():
        return child
    try:
        collection = lab.make(passages=100, train=200, test=20).collection
        recipe = recipes.parse("contrastive(epochs=6, batch=16)")
        recipe.run("scratch(layers=1, dim=32, vocabulary=500, dropout=0.1)", collection, out=folder)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)

def status(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

os.chdir(sys.argv[1])
whole, checkpoint, clock, kills = start("whole"), Path("killed/checkpoint.pt"), random.Random(0), 0
for _ in range(3):
    seen = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    child = start("killed")
    while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if checkpoint.exists() and checkpoint.stat().st_mtime_ns != seen:
            time.sleep(clock.uniform(0, 0.3))
            os.kill(child, signal.SIGKILL)
            break
        time.sleep(0.005)
    kills += status(child) == -signal.SIGKILL
assert kills >= 1
assert status(start("killed")) == status(whole) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments_and_continued_the_weights_are_the_same(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    one, two = (
        (tmp_path / folder / "model" / "model.safetensors").read_bytes()
        for folder in ("whole", "killed")
    )
    assert one == two
