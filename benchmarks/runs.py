"""Reading and evaluating run files: farfield beside its peers, as ratios, in one go.

    python benchmarks/runs.py                 # 6,980 queries x 1,000 documents
    python benchmarks/runs.py --growth        # our cost from 0.7 to 70 million rows
    python benchmarks/runs.py --start-up      # import and --help beside an empty program

Every program runs whole, from start to end, in a process of its own: imports, reading, four
measures, means. Wall and processor seconds are the best of ``--repeat`` tries (peers that take
long get one less), memory is the peak. The tools' means are compared before their times are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
MEASURES = ["nDCG@10", "RR@10", "R@1000", "AP"]  # what MS MARCO papers report

PEERS = {
    "pytrec-eval-terrier": """
import collections, json, sys, pytrec_eval
qrels, run = collections.defaultdict(dict), collections.defaultdict(dict)
for line in open(sys.argv[1]):
    query, _, doc, relevance = line.split()
    qrels[query][doc] = int(relevance)
for line in open(sys.argv[2]):
    query, _, doc, _, score, _ = line.split()
    run[query][doc] = float(score)
names = ["ndcg_cut_10", "recip_rank", "recall_1000", "map"]  # it has no RR@10
found = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
print(json.dumps([sum(f[n] for f in found.values()) / len(qrels) for n in names]))
""",
    "ir_measures": """
import json, sys, ir_measures
chosen = [ir_measures.parse_measure(m) for m in ["nDCG@10", "RR@10", "R@1000", "AP"]]
qrels, run = ir_measures.read_trec_qrels(sys.argv[1]), ir_measures.read_trec_run(sys.argv[2])
found = ir_measures.calc_aggregate(chosen, qrels, run)
print(json.dumps([found[m] for m in chosen]))
""",
    "ranx": """
import json, sys
from ranx import Qrels, Run, evaluate
qrels, run = Qrels.from_file(sys.argv[1], kind="trec"), Run.from_file(sys.argv[2], kind="trec")
found = evaluate(qrels, run, ["ndcg@10", "mrr@10", "recall@1000", "map"], make_comparable=True)
print(json.dumps(list(map(float, found.values()))))
""",
}


@dataclass
class Cost:
    """What a program took."""

    wall: float
    cpu: float
    peak: float  # megabytes
    out: str

    def better(self, other: Cost | None) -> Cost:
        if other is None:
            return self
        return Cost(
            min(self.wall, other.wall),
            min(self.cpu, other.cpu),
            min(self.peak, other.peak),
            self.out,
        )


def measure(command: list[str]) -> Cost:
    """Run a program once; its children's time and memory are the kernel's account."""
    with tempfile.TemporaryFile("w+") as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        out.seek(0)
        text = out.read()
    if status:
        raise SystemExit(f"{' '.join(command[:3])} … failed")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def best(command: list[str], repeat: int) -> Cost:
    cost = None
    for _ in range(max(repeat, 1)):
        cost = measure(command).better(cost)
    assert cost is not None
    return cost


def make(folder: Path, queries: int, depth: int = 1000) -> tuple[Path, Path]:
    """Write a run like one of MS MARCO's, and judgements of about one document per query."""
    run, qrels = folder / f"{queries}x{depth}.trec", folder / f"{queries}x{depth}.qrels"
    if run.exists() and qrels.exists():
        return run, qrels
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(queries)
    names = rng.choice(max(1_200_000, 2 * queries), queries, replace=False)
    ranks = range(1, depth + 1)
    with open(run.with_suffix(".tmp"), "w") as out, open(qrels, "w") as judged:
        for name in names.tolist():
            docs = rng.choice(8_841_823, depth, replace=False).tolist()
            scores = np.sort(rng.gamma(2.0, 4.0, depth))[::-1].tolist()
            rows = zip(docs, ranks, scores, strict=True)
            out.write("".join(f"{name} Q0 {d} {r} {s:.6f} bench\n" for d, r, s in rows))
            at = min(int(rng.exponential(40)), depth + 200)
            relevant = docs[at] if at < depth else int(rng.integers(8_841_823, 9_000_000))
            judged.write(f"{name} 0 {relevant} 1\n")
    run.with_suffix(".tmp").rename(run)
    return run, qrels


def ours(qrels: Path, run: Path) -> list[str]:
    command = [sys.executable, "-m", "farfield", "evaluate", str(qrels), str(run), "--json"]
    return [*command, *(part for m in MEASURES for part in ("-m", m))]


def means(out: str) -> list[float]:
    (found,) = json.loads(out)["measures"].values()
    return [found[m]["mean"] for m in MEASURES]


def against_peers(folder: Path, queries: int, repeat: int, peers: list[str]) -> None:
    run, qrels = make(folder, queries)
    parquet = run.with_suffix(".parquet")
    if not parquet.exists():
        subprocess.run(
            [sys.executable, "-m", "farfield", "convert", str(run), str(parquet)], check=True
        )
    costs = {
        "farfield": best(ours(qrels, run), repeat),
        "farfield, parquet": best(ours(qrels, parquet), repeat),
    }
    expected = means(costs["farfield"].out)
    assert means(costs["farfield, parquet"].out) == expected
    for peer in peers:
        command = [sys.executable, "-c", PEERS[peer], str(qrels), str(run)]
        if peer == "ranx":
            measure(command)  # the first time it compiles
        costs[peer] = best(command, repeat - 1)
        found = np.array(json.loads(costs[peer].out))
        same = [0, 2, 3] if peer == "pytrec-eval-terrier" else [0, 1, 2, 3]
        np.testing.assert_allclose(found[same], np.array(expected)[same], atol=2e-4)
    print(f"{queries:,} queries x 1,000 documents, {run.stat().st_size / 1e6:.0f} MB of text")
    print(
        f"{'':22}{'wall s':>9}{'cpu s':>9}{'peak MB':>9}{'wall x':>9}{'cpu x':>9}{'parquet x':>11}"
    )
    text, columns = costs["farfield"], costs["farfield, parquet"]
    for name, cost in costs.items():
        ratios = f"{cost.wall / text.wall:9.1f}{cost.cpu / text.cpu:9.1f}"
        ratios += f"{cost.wall / columns.wall:11.1f}"
        print(f"{name:22}{cost.wall:9.2f}{cost.cpu:9.2f}{cost.peak:9.0f}{ratios}")


def growth(folder: Path, repeat: int, largest: int) -> None:
    print(f"{'rows':>12}{'wall s':>9}{'cpu s':>9}{'peak MB':>9}{'us a row':>10}")
    for queries in (700, 2_200, 7_000, 22_000, 70_000):
        if queries <= largest:
            run, qrels = make(folder, queries)
            cost = best(ours(qrels, run), repeat)
            each = cost.wall / queries * 1000
            row = f"{cost.wall:9.2f}{cost.cpu:9.2f}{cost.peak:9.0f}{each:10.3f}"
            print(f"{queries * 1000:12,}{row}", flush=True)


def start_up(repeat: int) -> None:
    programs = {
        "python -c pass": ["-c", "pass"],
        "import farfield": ["-c", "import farfield"],
        "farfield --help": ["-m", "farfield", "--help"],
        "import numpy": ["-c", "import numpy"],
        "import polars": ["-c", "import polars"],
        "import ir_measures": ["-c", "import ir_measures"],
        "import ranx": ["-c", "import ranx"],
    }
    costs = {
        name: best([sys.executable, *arguments], repeat) for name, arguments in programs.items()
    }
    empty = costs["python -c pass"].wall
    print(f"{'':22}{'wall s':>9}{'x empty':>9}")
    for name, cost in costs.items():
        print(f"{name:22}{cost.wall:9.3f}{cost.wall / empty:9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--largest", type=int, default=70_000, help="queries, with --growth")
    parser.add_argument("--start-up", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / ".cache", help="for the made files")
    options = parser.parse_args()
    if options.growth:
        growth(options.folder, options.repeat, options.largest)
    elif options.start_up:
        start_up(options.repeat * 3)
    else:
        against_peers(options.folder, options.queries, options.repeat, options.peers)


if __name__ == "__main__":
    main()
