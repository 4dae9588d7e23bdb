"""Reciprocal rank fusion of four large runs: farfield beside ranx, as ratios, in one go.

    python benchmarks/fusion.py                # 4 runs of 6,980 queries x 1,000 documents
    python benchmarks/fusion.py --no-ranx      # ours alone; ranx needs 13 GB and minutes
    python benchmarks/fusion.py --parts        # where our time goes, and the search for weights

Every program runs whole, from start to end, in a process of its own: imports, reading four files,
fusing. Our command also writes the result; our program without a file does what that of ranx does.
The documents of a query come from a pool of 3,000, so that the lists overlap as those of real
systems do. Our times are the best of ``--repeat`` tries, ranx gets one after it has compiled on a
small run; memory is the peak. The scores of some queries are compared before the times are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from runs import Cost, best, measure

HERE = Path(__file__).parent
RUNS, DEPTH, POOL = 4, 1_000, 3_000

RANX = """
import json, resource, sys, time
start = time.perf_counter()
from ranx import Run, fuse
runs = [Run.from_file(path, kind="trec") for path in sys.argv[2:]]
read = time.perf_counter()
fused = fuse(runs, method="rrf", params={"k": 60})
done = time.perf_counter()
shown = {query: dict(fused[query]) for query in json.loads(sys.argv[1])}
top = {q: sorted(docs.values(), reverse=True)[:1000] for q, docs in shown.items()}
print(json.dumps({"read": read - start, "fuse": done - read, "scores": top}))
"""

OURS = """
import sys, farfield
print(len(farfield.fuse("rrf(k=60)", sys.argv[1:])))
"""

PARTS = """
import resource, sys, time
clock = time.perf_counter
marks = [("import", clock())]
import farfield
from farfield import fusions
import numpy as np
marks.append(("read", clock()))
runs = [farfield.read_run(path) for path in sys.argv[1:]]
marks.append(("fuse", clock()))
fused = fusions.parse("rrf(k=60)").fuse(runs)
at = np.random.default_rng(0).integers(0, 1000, len(runs[0].query_ids)) + runs[0].bounds[:-1]
qrels = farfield.Qrels({"query_id": runs[0].query_ids, "doc_id": runs[0].doc_ids.gather(at),
                        "relevance": np.ones(len(at), dtype=int)})
marks.append(("tune two, 11 weights", clock()))
farfield.tune(qrels, runs[:2], "interpolate()", resamples=100)
marks.append(("", clock()))
for (name, start), (_, end) in zip(marks, marks[1:]):
    print(f"{name:22}{end - start:9.2f}")
"""


def make(folder: Path, queries: int) -> list[Path]:
    """Write four runs like those of MS MARCO, whose lists overlap."""
    files = [folder / f"fuse-{queries}x{DEPTH}-{number + 1}.trec" for number in range(RUNS)]
    if all(file.exists() for file in files):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(queries)
    names = rng.choice(max(1_200_000, 2 * queries), queries, replace=False).tolist()
    with ExitStack() as stack:
        outs = [stack.enter_context(open(file.with_suffix(".tmp"), "w")) for file in files]
        for name in names:
            docs = rng.choice(8_841_823, POOL, replace=False)
            for out in outs:
                chosen = rng.permutation(docs)[:DEPTH].tolist()
                scores = np.sort(rng.gamma(2.0, 4.0, DEPTH))[::-1].tolist()
                rows = enumerate(zip(chosen, scores, strict=True), start=1)
                out.write("".join(f"{name} Q0 {d} {r} {s:.6f} bench\n" for r, (d, s) in rows))
    for file in files:
        file.with_suffix(".tmp").rename(file)
    return files


def ours(files: list[Path], out: Path) -> list[str]:
    command = [sys.executable, "-m", "farfield", "fuse", "rrf(k=60)", *map(str, files)]
    return [*command, "-k", "1000", "-o", str(out)]


def some_scores(out: Path, queries: list[str]) -> dict[str, list[float]]:
    program = (
        "import json, sys, polars as pl\n"
        "chosen = pl.col('query_id').is_in(sys.argv[2:])\n"
        "f = pl.scan_parquet(sys.argv[1]).filter(chosen).collect()\n"
        "print(json.dumps({q: f.filter(query_id=q)['score'].to_list() for q in sys.argv[2:]}))"
    )
    found = measure([sys.executable, "-c", program, str(out), *queries]).out
    return json.loads(found)  # type: ignore[no-any-return]


def compare(folder: Path, queries: int, repeat: int, with_ranx: bool) -> None:
    files = make(folder, queries)
    out, text = folder / "fused.parquet", folder / "fused.trec"
    parquet = [file.with_suffix(".parquet") for file in files]
    for file, other in zip(files, parquet, strict=True):
        if not other.exists():
            convert = [sys.executable, "-m", "farfield", "convert", str(file), str(other)]
            subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
    costs = {
        "farfield": best(ours(files, out), repeat),
        "farfield, to text": best(ours(files, text), repeat),
        "farfield, no file": best([sys.executable, "-c", OURS, *map(str, files)], repeat),
        "farfield, from parquet": best(ours(parquet, out), repeat),
    }
    if with_ranx:
        with open(files[0]) as lines:
            chosen = sorted({next(lines).split()[0] for _ in range(3_000)})
        small = make(folder, 20)
        measure([sys.executable, "-c", RANX, "[]", *map(str, small)])  # it compiles
        costs["ranx"] = measure([sys.executable, "-c", RANX, json.dumps(chosen), *map(str, files)])
        theirs = json.loads(costs["ranx"].out)
        for query, scores in some_scores(out, chosen).items():
            np.testing.assert_allclose(scores, theirs["scores"][query], atol=1e-12)
        print(f"ranx: {theirs['read']:.1f} s to read, {theirs['fuse']:.1f} s to fuse")
    _print(costs, queries)


def _print(costs: dict[str, Cost], queries: int) -> None:
    print(f"RRF of {RUNS} runs of {queries:,} queries x {DEPTH:,} documents")
    print(
        f"{'':24}{'wall s':>9}{'cpu s':>9}{'peak MB':>9}{'wall x':>9}{'cpu x':>9}{'memory x':>10}"
    )
    own = costs["farfield"]
    for name, cost in costs.items():
        ratios = f"{cost.wall / own.wall:9.1f}{cost.cpu / own.cpu:9.1f}{cost.peak / own.peak:10.1f}"
        print(f"{name:24}{cost.wall:9.2f}{cost.cpu:9.2f}{cost.peak:9.0f}{ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-ranx", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / ".cache", help="for the made files")
    options = parser.parse_args()
    if options.parts:
        files = make(options.folder, options.queries)
        print(measure([sys.executable, "-c", PARTS, *map(str, files)]).out, end="")
    else:
        compare(options.folder, options.queries, options.repeat, not options.no_ranx)


if __name__ == "__main__":
    main()
