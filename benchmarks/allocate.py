"""Sharing out a budget among many sources: what every policy costs, and the whole question.

    python benchmarks/allocate.py                  # 7,000 queries x 9 sources x 100 results
    python benchmarks/allocate.py --sources 50
    python benchmarks/allocate.py --results 100    # a budget of 100

Lists are made in memory: normal scores at a level of each query and source, and for each query one
relevant result in each of two sources. Learning is from all labels; memory is the peak of the
process.
"""

from __future__ import annotations

import argparse
import resource
from time import perf_counter

import numpy as np
import polars as pl

import farfield
from farfield import Qrels, Run, allocations


def make(queries: int, sources: int, depth: int) -> tuple[dict[str, Run], Qrels]:
    """Lists of every source for every query, and what is relevant."""
    rng = np.random.default_rng(0)
    names = pl.Series([f"q{number}" for number in range(queries)])
    numbers = np.repeat(np.arange(queries), depth)
    rows = []
    runs = {}
    for source in range(sources):
        scores = rng.normal(size=(queries, depth)) + rng.normal(size=(queries, 1))
        docs = [f"s{source}d{number}" for number in range(20_000)]
        drawn = rng.integers(0, 20_000 // depth, size=(queries, 1)) * depth + np.arange(depth)
        runs[f"s{source}"] = Run(
            pl.DataFrame(
                {
                    "query_id": names.gather(numbers),
                    "doc_id": pl.Series(docs).gather(drawn.ravel()),
                    "score": -np.sort(-scores, axis=1).ravel(),
                }
            ),
            ties="file",
        )
    for source in (0, sources - 1):
        at = np.arange(queries) * depth + np.minimum(rng.geometric(0.2, queries) - 1, depth - 1)
        docs_of = runs[f"s{source}"].doc_ids.gather(at)
        rows.append(pl.DataFrame({"query_id": names, "doc_id": docs_of, "relevance": 1}))
    return runs, Qrels(pl.concat(rows))


def main() -> None:
    """Print the seconds of every part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=7_000)
    parser.add_argument("--sources", type=int, default=9)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--results", type=int, default=10)
    given = parser.parse_args()
    k = given.results
    runs, qrels = make(given.queries, given.sources, given.depth)
    start = perf_counter()
    lists = allocations.gather(runs)
    labels = allocations.label(lists, qrels)
    print(f"{given.queries:,} queries x {given.sources} sources x {given.depth} results, k = {k}")
    print(f"{'lists and labels':22}{perf_counter() - start:9.2f} s")
    print(f"{'':22}{'learn':>9}  {'share out':>9}  recall")
    for name in allocations.names():
        policy = allocations.parse(name)
        start = perf_counter()
        policy = policy.fit(lists, labels, k)
        learned = perf_counter()
        picks = policy.pick(lists, k, labels)
        done = perf_counter()
        assert (picks.budgets.sum(axis=1) == k).all()
        recall = labels.recall(picks).mean()
        print(f"{name:22}{learned - start:9.2f}  {done - learned:9.2f}  {recall:.3f}")
    start = perf_counter()
    farfield.allocate(runs, qrels, k=k).to_dict()
    print(f"{'farfield.allocate':22}{perf_counter() - start:9.2f} s, with intervals and tests")
    start = perf_counter()
    farfield.allocate(runs, qrels, k=k, seeds=30).to_dict()
    print(f"{'  with 10 x 30 seeds':22}{perf_counter() - start:9.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
