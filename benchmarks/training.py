"""Training throughput on one GPU beside the trainers of sentence-transformers.

    python benchmarks/training.py --model FOLDER --pairs FILE           # everything
    python benchmarks/training.py --model FOLDER --pairs FILE --only dense
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

LONGEST = 128
RATE = 5e-5


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


def job_of(queries: list[str], texts: list[str], device: str) -> Job:
    ids = pl.Series([str(number) for number in range(len(texts))], dtype=pl.String)
    relevant = np.ones(len(ids), np.int64)
    examples = Examples.of(
        pl.DataFrame({"query_id": ids, "text": queries}),
        ids,
        texts,
        pl.DataFrame({"query_id": ids, "doc_id": ids, "relevance": relevant}),
    )
    return Job(None, examples, None, 0, device)  # type: ignore[arg-type]  # nothing asks for it


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


def ours_dense(path: str, job: Job, batch: int, warm: int, steps: int, compiled: bool) -> Any:
    model = neural.load(path, device=job.device)
    model.max_seq_length = LONGEST
    score = scorer("dense", cosine=True, temperature=0.05)
    task = Contrast(model, job, batch=batch, negatives=FromBatch(), score=score)
    return timed(task, warm, steps, compiled)


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


def ours_cross(path: str, job: Job, batch: int, warm: int, steps: int, compiled: bool) -> Any:
    model = neural.load(path, "cross", device=job.device, fresh=True)
    model.max_seq_length = LONGEST
    lists = FromLists(np.full((len(job.examples), 1), -1))
    recipe: Any = SimpleNamespace(batch=batch // 2, negatives=1)  # BM25 is not needed here
    task = LabelledPairs(model, job, recipe, lists, Checking(None, 0))
    return timed(task, warm, steps, compiled)


def stock(
    kind: str, path: str, data: Any, device: str, batch: int, workers: int, warm: int, steps: int
) -> tuple[float, float]:
    """Return examples a second of a stock trainer, and its last loss."""
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

    model = neural.load(path, "dense" if kind == "dense" else "cross", device=device, fresh=True)
    model.max_seq_length = LONGEST
    queries, texts = data
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

        others = np.random.default_rng(0).permutation(len(texts))
        both = [*texts, *(texts[at] for at in others)]
        labels = [1.0] * len(texts) + [0.0] * len(texts)
        dataset = datasets.Dataset.from_dict({"query": queries * 2, "text": both, "label": labels})
        dataset = dataset.shuffle(seed=0)
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
    return batch * steps / (clock.end - clock.start), noted[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--count", type=int, default=60_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", choices=["dense", "cross"])
    parser.add_argument("--ours", action="store_true", help="no stock trainers")
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
        for batch in batches[kind]:
            print(f"\n{kind}, batch {batch}, {device}\n")
            row("what", "pairs/s", "times stock", "times stock with workers", "last loss")
            row(*("---" for _ in range(5)))
            base: list[float] = []
            for count in [] if options.ours else ([0, workers] if kind == "dense" else [0]):
                rate, loss = stock(kind, options.model, data, device, batch, count, warm, steps)
                base.append(rate)
                row(
                    f"stock trainer, {count} workers",
                    f"{rate:,.0f}",
                    *(f"{rate / one:.2f}" for one in base),
                    *("" for _ in range(2 - len(base))),
                    f"{loss:.4f}",
                )
            work = ours_dense if kind == "dense" else ours_cross
            for compiled in (False, True) if device == "cuda" else (False,):
                count = steps if options.small else 2 * steps
                rate, loss, warmed = work(options.model, job, batch, warm, count, compiled)
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
