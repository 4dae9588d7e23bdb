"""Training throughput on one GPU beside the trainers of sentence-transformers.

    python benchmarks/training.py --model FOLDER --pairs FILE           # everything
    python benchmarks/training.py --model FOLDER --pairs FILE --only dense
    python benchmarks/training.py --model FOLDER --pairs FILE --quality   # how good the models are
    python benchmarks/training.py --model FOLDER --small                # a try on a CPU

``--model`` is any SentenceTransformer (all-MiniLM-L6-v2 in the README); ``--pairs`` is a file of
{"query": …, "text": …} lines, .gz or plain; without it pairs are made up. Both sides have the same
batch, precision (bfloat16 on a GPU), optimiser, loss and longest text; steps are timed after some
that warm up. Stock trainers need the package datasets.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from farfield import neural
from farfield.recipes._checking import Checking
from farfield.recipes._contrast import Contrast, FromBatch, FromLists, scorer
from farfield.recipes.base import Job
from farfield.recipes.crossencoder import _Pairs
from farfield.training.examples import Examples
from farfield.training.loop import Plan, fit
from farfield.training.scratch import untouched

LONGEST = 128
RATE = 5e-5
WARMUP = 0.1


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def pairs_of(path: Path | None, count: int) -> tuple[list[str], list[str]]:
    if path is not None:
        data = path.read_bytes()
        lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
        found = [json.loads(line) for line in lines][:count]
        return [one["query"] for one in found], [one["text"] for one in found]
    rng = np.random.default_rng(0)
    words = np.array(["far", "field", "query", "model", "index", "search", "token", "train"])
    texts = [" ".join(rng.choice(words, rng.integers(8, 120))) for _ in range(count)]
    return [" ".join(text.split()[:8]) for text in texts], texts


def job_of(queries: list[str], texts: list[str], device: str, seed: int = 0) -> Job:
    """What to train on; of the documents those without a query are there to be found."""
    ids = pl.Series([str(number) for number in range(len(texts))], dtype=pl.String)
    asked = ids[: len(queries)]
    relevant = np.ones(len(asked), np.int64)
    examples = Examples.of(
        pl.DataFrame({"query_id": asked, "text": queries}),
        ids,
        texts,
        pl.DataFrame({"query_id": asked, "doc_id": asked, "relevance": relevant}),
    )
    return Job(None, examples, None, seed, device)  # type: ignore[arg-type]  # nothing asks for it


def timed(task: Any, warm: int, steps: int, compiled: bool) -> tuple[float, float, float]:
    """Return examples a second, the last loss, and the seconds of warming up."""
    plans = [
        Plan(steps=count, lr=RATE, checks=0, compiled=compiled and count == warm)
        for count in (warm, steps)
    ]
    traces = []
    for plan in plans:
        with tempfile.TemporaryDirectory() as folder:
            traces.append(fit(task, plan, Path(folder)))
    last = float(np.mean([loss for _, loss in traces[1].losses[-10:]]))
    return traces[1].examples / traces[1].seconds, last, traces[0].seconds


def dense_task(path: str, job: Job, batch: int) -> Any:
    model = neural.load(path, device=job.device, fresh=True)
    model.max_seq_length = LONGEST
    score = scorer("dense", cosine=True, temperature=0.05)
    return Contrast(model, job, batch=batch, negatives=FromBatch(), score=score)


class LabelledPairs(_Pairs):
    """Pairs with labels, and the loss that the stock trainer is given."""

    def loss(self, step: int) -> Any:
        import torch

        rows = self.order.rows(step)
        rng = np.random.default_rng([self.seed, 5, step])
        others = rng.integers(0, len(self.data.documents), len(rows))
        documents = np.concatenate([self.data.relevant[self.data.starts[rows]], others])
        pairs = np.stack([np.tile(rows, 2), documents], axis=1)
        scores = self.model(self._made.chunk(pairs).features(np.arange(len(pairs))))["scores"]
        labels = torch.arange(len(pairs), device=scores.device) < len(rows)
        return torch.nn.functional.binary_cross_entropy_with_logits(
            scores.reshape(-1).float(), labels.float()
        )


def cross_task(path: str, job: Job, batch: int) -> Any:
    model = untouched(lambda: neural.load(path, "cross", device=job.device, fresh=True), job.seed)
    model.max_seq_length = LONGEST
    lists = FromLists(np.full((len(job.examples), 1), -1))
    recipe: Any = SimpleNamespace(batch=batch // 2, negatives=1)  # BM25 is not needed here
    return LabelledPairs(model, job, recipe, lists, Checking(None, 0))


TASKS = {"dense": dense_task, "cross": cross_task}


def stock(
    kind: str,
    path: str,
    data: Any,
    device: str,
    batch: int,
    workers: int,
    warm: int,
    steps: int,
    seed: int = 0,
) -> tuple[float, float, Any]:
    """Return examples a second of a stock trainer, its last loss, and the model."""
    import sentence_transformers as library
    import torch
    from transformers import TrainerCallback

    datasets: Any = import_module("datasets")

    class Clock(TrainerCallback):
        start = end = 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step in (warm, warm + steps):
                if device == "cuda":
                    torch.cuda.synchronize()
                now = time.perf_counter()
                self.start, self.end = (
                    (now, 0.0) if state.global_step == warm else (self.start, now)
                )

    chosen: Any = "dense" if kind == "dense" else "cross"
    model = untouched(lambda: neural.load(path, chosen, device=device, fresh=True), seed)
    model.max_seq_length = LONGEST
    queries, texts = data
    texts = texts[: len(queries)]
    loss: Any
    trainer: Any
    if kind == "dense":
        from sentence_transformers.sentence_transformer import losses

        dataset = datasets.Dataset.from_dict({"anchor": queries, "positive": texts})
        loss = losses.MultipleNegativesRankingLoss(model)
        trainer, arguments = (
            library.SentenceTransformerTrainer,
            "SentenceTransformerTrainingArguments",
        )
    else:
        from sentence_transformers.cross_encoder import losses as cross_losses

        others = np.random.default_rng(seed).permutation(len(texts))
        both = [*texts, *(texts[at] for at in others)]
        labels = [1.0] * len(texts) + [0.0] * len(texts)
        dataset = datasets.Dataset.from_dict({"query": queries * 2, "text": both, "label": labels})
        dataset = dataset.shuffle(seed=seed)
        loss = cross_losses.BinaryCrossEntropyLoss(model)
        from sentence_transformers.cross_encoder import CrossEncoderTrainer

        trainer, arguments = CrossEncoderTrainer, "CrossEncoderTrainingArguments"
    if kind == "dense":
        made: Any = getattr(library, arguments)
    else:
        from sentence_transformers import cross_encoder

        made = getattr(cross_encoder, arguments)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings = made(
            output_dir=folder,
            max_steps=warm + steps,
            per_device_train_batch_size=batch,
            learning_rate=RATE,
            warmup_steps=WARMUP * (warm + steps),
            seed=seed,
            bf16=device == "cuda",
            use_cpu=device == "cpu",
            dataloader_num_workers=workers,
            dataloader_drop_last=True,
            save_strategy="no",
            report_to=[],
            logging_steps=max(1, steps // 10),
            disable_tqdm=True,
        )
        run = trainer(
            model=model, args=settings, train_dataset=dataset, loss=loss, callbacks=[clock]
        )
        run.train()
    noted = [float(one["loss"]) for one in run.state.log_history if "loss" in one]
    return batch * steps / (clock.end - clock.start), noted[-1], model


def quality(kind: str, path: str, data: Any, device: str, small: bool, count: int) -> None:
    """Print nDCG@10 on queries that were held out, of models that both sides trained alike."""
    queries, texts = data
    asked = job_of(queries[-count:], [*texts[-count:], *texts[:-count]], device).examples
    batch, epochs = (16, 1) if small else (256, 1)
    steps = epochs * (len(queries) - count) // batch
    candidates = None
    if kind == "cross":  # what the base finds, and the relevant document in any case
        base = neural.load(path, device=device)
        found, held = (neural.encode(base, each) for each in (asked.queries, asked.documents))
        candidates = neural.search(found, held, 10 if small else 50, device=device)[1]
        own = np.arange(count)
        lacking = ~(candidates == own[:, None]).any(1)
        candidates[lacking, -1] = own[lacking]
    checking = Checking(asked, 0, candidates)
    print(f"\n{kind}: {steps} steps of {batch}, {count} queries held out\n")
    row("seed", "stock trainer", "farfield")
    row("---", "---", "---")
    for seed in range(2 if small else 3):
        kept = (queries[:-count], texts)
        theirs = stock(kind, path, kept, device, batch, 0, 0, steps, seed)[2]
        task = TASKS[kind](path, job_of(*kept, device, seed), batch)
        plan = Plan(steps=steps, lr=RATE, warmup=WARMUP, decay=0.0, checks=0, seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            fit(task, plan, Path(folder))
        row(seed, *(f"{checking(model.to(device)):.4f}" for model in (theirs, task.model)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--count", type=int, default=60_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", choices=["dense", "cross"])
    parser.add_argument("--ours", action="store_true", help="no stock trainers")
    parser.add_argument("--quality", action="store_true", help="how good, not how fast")
    parser.add_argument("--held-out", type=int, default=2000, help="queries, with --quality")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    device = neural.device_of(options.device)
    data = pairs_of(options.pairs, 200 if options.small else options.count)
    job = job_of(*data, device)
    batches = {
        "dense": [16 if options.small else 1024],
        "cross": [16] if options.small else [256, 1024],
    }
    warm, steps = (2, 4) if options.small else (10, 50)
    workers = 0 if options.small else 8
    for kind in [options.only] if options.only else ["dense", "cross"]:
        if options.quality:
            held_out = 20 if options.small else options.held_out
            quality(kind, options.model, data, device, options.small, held_out)
            continue
        for batch in batches[kind]:
            print(f"\n{kind}, batch {batch}, {device}\n")
            row("what", "pairs/s", "times stock", "times stock with workers", "last loss")
            row(*("---" for _ in range(5)))
            base: list[float] = []
            for count in [] if options.ours else ([0, workers] if kind == "dense" else [0]):
                rate, loss, _ = stock(kind, options.model, data, device, batch, count, warm, steps)
                base.append(rate)
                row(
                    f"stock trainer, {count} workers",
                    f"{rate:,.0f}",
                    *(f"{rate / one:.2f}" for one in base),
                    *("" for _ in range(2 - len(base))),
                    f"{loss:.4f}",
                )
            for compiled in (False, True) if device == "cuda" else (False,):
                count = steps if options.small else 2 * steps
                task = TASKS[kind](options.model, job, batch)
                rate, loss, warmed = timed(task, warm, count, compiled)
                name = f"farfield{', compiled' * compiled} ({warmed:.0f} s to warm up)"
                row(
                    name,
                    f"{rate:,.0f}",
                    *(f"{rate / one:.2f}" for one in base),
                    *("" for _ in range(2 - len(base))),
                    f"{loss:.4f}",
                )


if __name__ == "__main__":
    main()
