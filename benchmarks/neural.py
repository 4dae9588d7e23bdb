"""Encoding, scoring and searching on one GPU beside sentence-transformers and plain torch.

    python benchmarks/neural.py --model FOLDER                    # everything
    python benchmarks/neural.py --model FOLDER --only search      # or encode, score, late
    python benchmarks/neural.py --model FOLDER --small            # a try on a CPU

``--model`` is any SentenceTransformer (all-MiniLM-L6-v2 in the README); the cross-encoder is the
same network with an untrained head, whose speed is that of a trained one. ``--texts`` is a file of
{"text": …} lines, .gz or plain; without it texts are made up. Peers are tried with several batch
sizes and precisions and compared at their best. Needs torch, sentence-transformers and numpy only.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from farfield import neural
from farfield.neural import encoding, tokens, topk
from farfield.neural.vectors import TokenVectors, starts_of


def timed(work: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Return the median time of several goes, and what the last one gave."""
    import torch

    times, found = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        found = work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), found


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells: str) -> None:
    print(flush=True)
    row(*cells)
    row(*("---" for _ in cells))


def texts_of(path: Path | None, model: Any, count: int) -> list[str]:
    """Return texts of mixed length, from a file or made of the tokeniser's own words."""
    if path is not None:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        texts = [json.loads(line)["text"] for line in data.splitlines()]
        return (texts * -(-count // len(texts)))[:count]
    rng = np.random.default_rng(0)
    words = np.array([w for w in model.tokenizer.get_vocab() if w.isalpha()])
    lengths = np.clip(rng.lognormal(4, 0.8, count), 3, 400).astype(int)
    picked = words[np.minimum(rng.zipf(1.3, lengths.sum()), len(words)) - 1]
    return [" ".join(part) for part in np.split(picked, np.cumsum(lengths)[:-1])]


def precisions(device: str) -> list[str]:
    """Return what to try a peer in."""
    return ["float32", "bfloat16", "float16"] if device == "cuda" else ["float32"]


def encode(path: str, texts: list[str], sizes: list[int], device: str) -> None:
    import torch

    print(f"\n{len(texts):,} texts of {np.mean([len(text) for text in texts]):.0f} letters")
    head("encoding", "texts/s", "times encode()")
    rates, reference = [], np.zeros(0)
    for dtype in precisions(device):
        peer = neural.load(path, device=device).to(getattr(torch, dtype))
        peer.encode(texts[:512], batch_size=64)
        for size in sizes:
            whole = dtype == "float32" and size == sizes[0]
            some = texts if whole else texts[::4]
            took, found = timed(partial(peer.encode, some, batch_size=size))
            rates.append((f"encode(), {dtype}, batch {size}", len(some) / took))
            reference = found if whole else reference
    best = max(rate for _, rate in rates)
    model = neural.load(path, device=device)
    for name, rate in rates:
        row(name, f"{rate:,.0f}", f"{rate / best:.2f}")
    neural.encode(model, texts[:4096])
    took, found = timed(lambda: neural.encode(model, texts), 3)
    row("farfield", f"{len(texts) / took:,.0f}", f"{len(texts) / took / best:.2f}")
    lists = list(tokens.chunked(texts, encoding.CHUNK))
    took, chunks = timed(lambda: list(tokens.prepared(model, None, lists)), 3)
    row(
        "farfield, tokenising alone", f"{len(texts) / took:,.0f}", f"{len(texts) / took / best:.2f}"
    )

    def compute() -> None:
        budget = encoding.tokens_per_batch(model)
        for chunk in chunks:
            with encoding.computing(model):
                encoding._computed(model, chunk, budget, np.float32, None)

    took, _ = timed(compute, 3)
    rate = len(texts) / took
    row("farfield, computing alone", f"{rate:,.0f}", f"{rate / best:.2f}")
    cosines = (found * reference).sum(1) / np.linalg.norm(found, axis=1)
    cosines /= np.linalg.norm(reference, axis=1)
    print(f"\ncosine to encode() in float32: mean {cosines.mean():.6f}, least {cosines.min():.6f}")


def score(path: str, texts: list[str], sizes: list[int], device: str, depth: int) -> None:
    import torch

    model = neural.load(path, "cross", device=device, fresh=True)
    queries = [" ".join(text.split()[:8]) for text in texts[: len(texts) // 80]]
    rng = np.random.default_rng(1)
    pairs = np.stack(
        [
            np.repeat(np.arange(len(queries)), depth),
            rng.integers(0, len(texts), len(queries) * depth),
        ],
        axis=1,
    )
    given = [(queries[one], texts[two]) for one, two in pairs]
    plain = torch.nn.Identity()
    print(f"\n{len(pairs):,} pairs of {len(queries):,} queries")
    head("scoring pairs", "pairs/s", "times predict()")
    rates, reference = [], np.zeros(0)
    for dtype in precisions(device):
        peer = copy.deepcopy(model).to(getattr(torch, dtype))  # the same untrained head
        peer.predict(given[:256], activation_fn=plain)
        for size in sizes:
            whole = dtype == "float32" and size == sizes[0]
            some = given[::2] if whole else given[::8]
            work = partial(peer.predict, some, batch_size=size, activation_fn=plain)
            took, found = timed(work)
            rates.append((f"predict(), {dtype}, batch {size}", len(some) / took))
            reference = found if whole else reference
    best = max(rate for _, rate in rates)
    for name, rate in rates:
        row(name, f"{rate:,.0f}", f"{rate / best:.2f}")
    neural.score_pairs(model, queries, texts, pairs[:5000])
    took, found = timed(lambda: neural.score_pairs(model, queries, texts, pairs), 3)
    row("farfield", f"{len(pairs) / took:,.0f}", f"{len(pairs) / took / best:.2f}")
    apart = np.abs(found[::2] - reference)
    order = np.corrcoef(found[::2], reference)[0, 1]
    print(
        f"\nscores beside predict() in float32: {apart.max():.4f} apart at most, {apart.mean():.5f}"
        f" on average, where they spread by {reference.std():.4f}; correlation {order:.5f}"
    )


def search(device: str, asked: int, held: int, width: int, k: int) -> None:
    import torch

    make = torch.Generator(device).manual_seed(0)

    def vectors(count: int) -> Any:
        """Unit vectors around 2,000 centres, as texts are around topics."""
        near = centres[torch.randint(len(centres), (count,), generator=make, device=device)]
        noise = torch.randn((count, width), generator=make, device=device)
        return torch.nn.functional.normalize(near + noise, dim=1)

    centres = torch.randn((2_000, width), generator=make, device=device)
    documents, queries = vectors(held), vectors(asked)
    print(f"\n{asked:,} queries x {held:,} documents x {width}, top {k}")
    head("exact search", "s", "queries/s", "times the first", f"of the top {k} in float32")

    def plain(dtype: Any, given: Any = queries) -> Any:
        one, two = given.to(dtype), documents_as[dtype]
        step = max(1, (1 << 34) // (2 * held))
        parts = [(one[at : at + step] @ two.T).topk(k) for at in range(0, len(one), step)]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    some = min(1_000, asked)
    documents_as = {torch.float32: documents}
    reference = plain(torch.float32, queries[:some])[1]

    def kept(rows: Any) -> float:
        rows = torch.as_tensor(rows, device=device)[:some]
        return float((rows[:, :, None] == reference[:, None, :]).any(2).float().mean())

    base = 0.0

    def report(name: str, work: Callable[[], Any]) -> None:
        nonlocal base
        work()
        took, (_, rows) = timed(work, 5)
        base = base or took
        row(name, f"{took:.4f}", f"{asked / took:,.0f}", f"{base / took:.2f}", f"{kept(rows):.4f}")

    coarse = torch.bfloat16
    documents_as[coarse] = documents.to(coarse)
    report("bfloat16, torch.topk", lambda: plain(coarse))
    report("float32, torch.topk", lambda: plain(torch.float32))
    documents_as.clear()
    half = documents.half()
    report("farfield, float16 documents", lambda: topk.top_products(queries, half, k))
    report("farfield, float32 documents", lambda: topk.top_products(queries, documents, k))
    there, texts = queries.cpu().numpy(), half.cpu().numpy()
    report("farfield, float16 from memory", lambda: neural.search(there, texts, k, device=device))


def late(device: str, asked: int, held: int) -> None:
    rng = np.random.default_rng(2)

    def made(count: int, low: int, high: int) -> TokenVectors:
        starts = starts_of(rng.integers(low, high, count))
        vectors = rng.standard_normal((int(starts[-1]), 128), dtype=np.float32)
        return TokenVectors(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), starts)

    queries, documents = made(asked, 8, 33), made(held, 20, 180)
    neural.search_multi(queries, documents, 100, device=device)
    took, _ = timed(lambda: neural.search_multi(queries, documents, 100, device=device), 3)
    pairs = np.stack([np.repeat(np.arange(asked), 100), rng.integers(0, held, asked * 100)], 1)
    neural.maxsim(queries, documents, pairs[:100], device=device)
    again, _ = timed(lambda: neural.maxsim(queries, documents, pairs, device=device), 3)
    head("late interaction", "s", "pairs/s")
    row(
        f"all of {asked:,} queries x {held:,} documents",
        f"{took:.3f}",
        f"{asked * held / took:,.0f}",
    )
    row(f"{len(pairs):,} pairs", f"{again:.3f}", f"{len(pairs) / again:,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--count", type=int, default=40_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", choices=["encode", "score", "search", "late"])
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    device = neural.device_of(options.device)
    small = options.small
    wanted = [options.only] if options.only else ["search", "encode", "score", "late"]
    sizes = [32] if small else [128, 512, 2048]
    print(device)
    if {"encode", "score"} & set(wanted):
        model = neural.load(options.model, device=device)
        texts = texts_of(options.texts, model, 200 if small else options.count)
    if "search" in wanted:
        search(device, *((100, 20_000) if small else (10_000, 1_000_000)), 384, 100)
    if "encode" in wanted:
        encode(options.model, texts, sizes, device)
    if "score" in wanted:
        score(options.model, texts, sizes, device, depth=10 if small else 100)
    if "late" in wanted:
        late(device, *((5, 500) if small else (1_000, 50_000)))


if __name__ == "__main__":
    main()
