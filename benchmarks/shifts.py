"""Vectors at MS MARCO's size: neighbours and k-means beside faiss, and shifts from end to end.

    python benchmarks/shifts.py               # neighbours against the product's peak, k-means
    python benchmarks/shifts.py --growth      # restrain and resttest whole, as collections grow

Neighbours are measured against the peak of a float32 matrix product, found in the same process
right before (4,096 x 4,096, all processors). Each program has a process of its own and is timed
without reading its file; memory is the peak of the process, with the vectors. Shares of the peak
are given by the wall clock and by processor time; where other work goes on beside it, only the
latter means something. The results are compared before the times are.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from runs import HERE, Cost, measure

WIDTH, TOPICS = 384, 200

START = """
import json, sys, time
import numpy as np
def timed(work, repeat):
    costs = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        found = work()
        costs.append((time.perf_counter() - wall, time.process_time() - cpu))
    return found, min(c[0] for c in costs), min(c[1] for c in costs)
items = np.load(sys.argv[1])
"""

NEIGHBOURS = (
    START
    + """
queries, k, repeat = np.load(sys.argv[2])[:int(sys.argv[3])], int(sys.argv[4]), int(sys.argv[5])
square = np.random.default_rng(0).standard_normal((4096, 4096), dtype=np.float32)
out = np.empty_like(square)
_, *peak = timed(lambda: np.matmul(square, square, out=out), 5)
del square, out
%s
(rows, values), wall, cpu = timed(search, repeat)
work = 2 * queries.size * len(items)
print(json.dumps({"wall": wall, "cpu": cpu, "check": float(values.sum(dtype=float)),
                  "of_wall": work / wall / (2 * 4096**3 / peak[0]),
                  "of_cpu": work / cpu / (2 * 4096**3 / peak[1]),
                  "peak": 2 * 4096**3 / peak[0] / 1e9}))
"""
)

SEARCH = {
    "farfield": """
from farfield.similarity.vectors import top_k
search = lambda: top_k(queries, items, k)
""",
    "faiss.IndexFlatIP": """
import faiss
index = faiss.IndexFlatIP(items.shape[1])
index.add(items)
search = lambda: index.search(queries, k)[::-1]
""",
    "numpy, argpartition": """
def search():
    rows, values = np.empty((len(queries), k), int), np.empty((len(queries), k), np.float32)
    for start in range(0, len(queries), 100):
        similar = queries[start:start + 100] @ items.T
        best = np.argpartition(similar, len(items) - k, axis=1)[:, len(items) - k:]
        found = np.take_along_axis(similar, best, axis=1)
        order = np.argsort(-found, axis=1)
        rows[start:start + 100] = np.take_along_axis(best, order, axis=1)
        values[start:start + 100] = np.take_along_axis(found, order, axis=1)
    return rows, values
""",
}

MEANS = (
    START
    + """
k, iterations = int(sys.argv[2]), int(sys.argv[3])
%s
inertia, wall, cpu = timed(cluster, 1)
print(json.dumps({"wall": wall, "cpu": cpu, "inertia": float(inertia)}))
"""
)

CLUSTER = {
    "farfield": """
from farfield.similarity.clusters import kmeans
cluster = lambda: kmeans(items, k, seed=0, iterations=iterations).inertia
""",
    "faiss.Kmeans": """
import faiss
def cluster():
    means = faiss.Kmeans(items.shape[1], k, niter=iterations, seed=0,
                         max_points_per_centroid=len(items))
    means.train(items)
    return means.index.search(items, 1)[0].sum(dtype=float)
""",
}

SHIFT = """
import sys, farfield
from farfield import shifts
dealt = shifts.parse(sys.argv[2]).deal(farfield.read_collection(sys.argv[1]))
print(len(dealt.partition))
"""


def make(folder: Path, count: int) -> Path:
    """Write vectors of length 1 around some centres, once."""
    path = folder / f"vectors-{count}.npy"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(count)
    centres = np.random.default_rng(0).standard_normal((TOPICS, WIDTH), dtype=np.float32)
    kind, shape = np.dtype(np.float32), (count, WIDTH)
    temporary = path.with_suffix(".tmp")
    written = np.lib.format.open_memmap(temporary, mode="w+", dtype=kind, shape=shape)
    for start in range(0, count, 50_000):
        size = min(50_000, count - start)
        block = centres[rng.integers(0, TOPICS, size)]
        block += 1.5 * rng.standard_normal(block.shape, dtype=np.float32)
        written[start : start + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    del written
    temporary.rename(path)
    return path


def make_collection(folder: Path, train: int, test: int) -> Path:
    """Write a collection whose queries have these vectors; the texts do not matter."""
    path = folder / f"shift-{train}-{test}"
    if (path / "qrels" / "test.tsv").exists():
        return path
    (path / "qrels").mkdir(parents=True, exist_ok=True)
    ids = [f"q{number}" for number in range(train + test)]
    make(folder, train + test).with_suffix(".txt").write_text("\n".join(ids) + "\n")
    (path / "corpus.jsonl").write_text('{"_id": "d", "text": "everything"}\n')
    rows = (json.dumps({"_id": name, "text": f"what is {name}"}) for name in ids)
    (path / "queries.jsonl").write_text("\n".join(rows) + "\n")
    for split, chosen in (("train", ids[:train]), ("test", ids[train:])):
        judged = "".join(f"{name}\td\t1\n" for name in chosen)
        (path / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return path


def run(program: str, *arguments: object) -> tuple[dict[str, float], Cost]:
    cost = measure([sys.executable, "-c", program, *map(str, arguments)])
    return json.loads(cost.out), cost


def neighbours(folder: Path, count: int, repeat: int) -> None:
    items, queries = make(folder, count), make(folder, 7_000)
    for asked, k in ((100, 10), (100, 100), (7_000, 10), (7_000, 100)):
        print(f"\n{asked:,} queries x {count:,} vectors of {WIDTH}, top {k}")
        print(f"{'':22}{'wall s':>9}{'cpu s':>9}{'of peak':>9}{'by cpu':>9}{'GFLOP/s':>9}{'MB':>7}")
        checks = []
        for name, search in SEARCH.items():
            tries = repeat if asked <= 100 else 1
            found, cost = run(NEIGHBOURS % search, items, queries, asked, k, tries)
            checks.append(found["check"])
            row = f"{found['wall']:9.2f}{found['cpu']:9.2f}{found['of_wall']:9.0%}"
            row += f"{found['of_cpu']:9.0%}{found['peak']:9.0f}{cost.peak:7.0f}"
            print(f"{name:22}{row}", flush=True)
        np.testing.assert_allclose(checks, checks[0], rtol=1e-5)


def means(folder: Path, count: int) -> None:
    items = make(folder, count)
    for k in (5, 100):
        print(f"\nk-means of {count:,} vectors of {WIDTH}, k = {k}, 20 iterations")
        print(f"{'':22}{'wall s':>9}{'cpu s':>9}{'MB':>7}{'sum of squares':>16}")
        for name, cluster in CLUSTER.items():
            found, cost = run(MEANS % cluster, items, k, 20)
            row = f"{found['wall']:9.1f}{found['cpu']:9.1f}{cost.peak:7.0f}{found['inertia']:16.0f}"
            print(f"{name:22}{row}", flush=True)


def growth(folder: Path, largest: int) -> None:
    print(f"{'':12}{'training':>10}{'test':>8}{'wall s':>9}{'cpu s':>9}{'peak MB':>9}")
    for name, train, test in (("restrain", 500_000, 100), ("resttest", 793_000, 7_000)):
        for size in (train // 16, train // 4, train):
            if size > largest:
                continue
            path = make_collection(folder, size, test)
            file = str(make(folder, size + test))
            cost = measure(
                [sys.executable, "-c", SHIFT, str(path), f"{name}(encoder=vectors(file={file!r}))"]
            )
            row = f"{size:10,}{test:8,}{cost.wall:9.1f}{cost.cpu:9.1f}{cost.peak:9.0f}"
            print(f"{name:12}{row}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--items", type=int, default=500_000)
    parser.add_argument("--points", type=int, default=800_000, help="for k-means")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--largest", type=int, default=1_000_000, help="with --growth")
    parser.add_argument("--folder", type=Path, default=HERE / ".cache", help="for the made files")
    options = parser.parse_args()
    if options.growth:
        growth(options.folder, options.largest)
    else:
        neighbours(options.folder, options.items, options.repeat)
        means(options.folder, options.points)


if __name__ == "__main__":
    main()
