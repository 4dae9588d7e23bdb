"""Sparse retrieval: farfield beside bm25s and tantivy, as ratios, in one go.

    python benchmarks/sparse.py               # index 200,000 documents, 1,000 queries top-1000
    python benchmarks/sparse.py --weights     # weights like SPLADE's, beside a scipy product
    python benchmarks/sparse.py --growth      # our cost from 25,000 to 2,000,000 documents

Documents are made: words of a Zipf distribution over 200,000, about 58 each, as passages of MS
MARCO have. Every program runs in a process of its own and reads them from a parquet file, which
is not counted. Indexing is from texts to files that can be searched, search from texts of queries
to ranked documents. The first search of a process is counted apart from later ones, of which the
processor time is given as well.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from runs import Cost, measure

HERE = Path(__file__).parent
VOCABULARY, LENGTH, QUERIES = 200_000, 60, 1_000

HEAD = """
import json, os, sys, time
import polars as pl
def clock(): return time.perf_counter()
def size(folder):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(folder) for f in fs)
documents = pl.read_parquet(sys.argv[1])
queries = pl.read_parquet(sys.argv[2])
folder, times = sys.argv[3], {}
"""
TAIL = """
print(json.dumps(times))
"""

OURS = f"""{HEAD}
from farfield import retrievers
from farfield.tables import Corpus, Queries
corpus, asked = Corpus(documents), Queries(queries)
retriever = retrievers.parse("bm25()")
begin = clock(); retriever.index(corpus, folder); times["index"] = clock() - begin
times["size"] = size(folder)
from farfield.sparse import scoring
scoring.MANY = 10**18 if "numpy" in sys.argv else 0
begin = clock(); index = retrievers.open(folder); times["open"] = clock() - begin
begin = clock(); run = index.search(asked, 1000); times["first search"] = clock() - begin
begin, used = clock(), time.process_time()
index.search(asked, 1000)
times["search"], times["cpu"] = clock() - begin, time.process_time() - used
times["results"] = len(run)
{TAIL}"""

BM25S = f"""{HEAD}
import bm25s, Stemmer
texts, asked = documents["text"].to_list(), queries["text"].to_list()
options = dict(stopwords="en", stemmer=Stemmer.Stemmer("porter"), show_progress=False)
begin = clock()
tokens = bm25s.tokenize(texts, **options)
model = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
model.index(tokens, show_progress=False)
model.save(folder)
times["index"] = clock() - begin
times["size"] = size(folder)
def search():
    words = bm25s.tokenize(asked, **options)
    return model.retrieve(words, k=1000, n_threads=os.cpu_count(), show_progress=False)
begin = clock(); search(); times["first search"] = clock() - begin
begin, used = clock(), time.process_time()
search()
times["search"], times["cpu"] = clock() - begin, time.process_time() - used
{TAIL}"""

TANTIVY = f"""{HEAD}
import tantivy
os.makedirs(folder)
names, texts = documents["doc_id"].to_list(), documents["text"].to_list()
asked = queries["text"].to_list()
begin = clock()
fields = tantivy.SchemaBuilder()
fields.add_text_field("id", stored=True, tokenizer_name="raw")
fields.add_text_field("text", stored=False, tokenizer_name="en_stem", index_option="freq")
index = tantivy.Index(fields.build(), path=folder)
writer = index.writer(512_000_000)
for name, text in zip(names, texts):
    writer.add_document(tantivy.Document(id=name, text=text))
writer.commit(); writer.wait_merging_threads()
times["index"] = clock() - begin
times["size"] = size(folder)
index.reload(); searcher = index.searcher()
def search():
    return sum(len(searcher.search(index.parse_query(q, ["text"]), 1000).hits) for q in asked)
begin = clock(); times["results"] = search(); times["first search"] = clock() - begin
begin, used = clock(), time.process_time()
search()
times["search"], times["cpu"] = clock() - begin, time.process_time() - used
{TAIL}"""

WEIGHTS = """
import json, sys, time
import numpy as np, polars as pl
from scipy.sparse import csr_array
from farfield.sparse import Products, Weighted, build, from_matrix, scoring
from farfield.tables import Corpus
def clock(): return time.perf_counter()
number, dimensions, held, asked, queries = 200_000, 30_522, 130, 24, 1_000
rng = np.random.default_rng(0)
# So skewed that a document shares about one dimension with a query (the "FLOPS" of papers).
shares = 1 / (np.arange(dimensions) + 100.0)
shares /= shares.sum()
def rows(count, each):
    taken = np.searchsorted(np.cumsum(shares), rng.random((count, each)))
    weights = rng.gamma(2.0, 0.4, count * each).astype(np.float32)
    starts = np.arange(count + 1) * each
    matrix = csr_array((weights, taken.ravel(), starts), shape=(count, dimensions))
    matrix.sum_duplicates()
    return matrix
documents, wanted = rows(number, held), rows(queries, asked)
corpus = Corpus(pl.DataFrame({"doc_id": [f"{n:07}" for n in range(number)], "text": [""] * number}))
names = pl.Series([f"{n:05}" for n in range(dimensions)])
times = {}
begin = clock()
index = build(corpus, lambda f: from_matrix(names, documents[f["doc_id"].cast(int).to_numpy()]))
times["index"] = clock() - begin
term = index.numbers(names)[wanted.indices]
query = np.repeat(np.arange(queries), np.diff(wanted.indptr))
known = term >= 0
weighted = Weighted.of(query[known], term[known], wanted.data[known].astype(float), queries)
times["postings"] = int(index.df[weighted.terms].sum()) / queries
for name, many in (("numpy", 10**18), ("compiled", 0)):
    scoring.MANY = many
    begin = clock(); found = index.search(weighted, Products(), 1000)
    times[f"first search, {name}"] = clock() - begin
    begin = clock(); found = index.search(weighted, Products(), 1000)
    times[f"search, {name}"] = clock() - begin
turned = documents.T.tocsr()
begin = clock()
best = []
for first in range(0, queries, 50):
    product = wanted[first : first + 50] @ turned
    for at in range(product.shape[0]):
        part = slice(product.indptr[at], product.indptr[at + 1])
        scores, docs = product.data[part], product.indices[part]
        top = np.argpartition(-scores, min(1000, len(scores) - 1))[:1000]
        best.append(np.sort(scores[top])[::-1])
times["search, scipy"] = clock() - begin
for at in range(0, queries, 97):
    mine = found.scores[found.bounds[at] : found.bounds[at + 1]]
    np.testing.assert_allclose(mine, best[at], rtol=1e-5)
print(json.dumps(times))
"""


def make(folder: Path, number: int) -> tuple[Path, Path]:
    """Write documents and queries."""
    documents = folder / f"documents-{number}.parquet"
    queries = folder / "queries.parquet"
    if documents.exists() and queries.exists():
        return documents, queries
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    words = _words(rng)
    shares = np.cumsum(1.0 / (np.arange(VOCABULARY) + 10.0) ** 1.05)
    shares /= shares[-1]
    asked = [" ".join(_some(words, shares, int(rng.integers(4, 9)), rng)) for _ in range(QUERIES)]
    names = [f"q{n}" for n in range(QUERIES)]
    pl.DataFrame({"query_id": names, "text": asked}).write_parquet(queries)
    parts = []
    for first in range(0, number, 50_000):
        count = min(50_000, number - first)
        lengths = np.clip(rng.lognormal(np.log(LENGTH) - 0.08, 0.4, count), 5, 400).astype(int)
        taken = _some(words, shares, int(lengths.sum()), rng)
        ends = np.cumsum(lengths).tolist()
        texts = [" ".join(taken[a:b]) + "." for a, b in zip([0, *ends], ends, strict=False)]
        parts.append(
            pl.DataFrame({"doc_id": [f"D{first + n}" for n in range(count)], "text": texts})
        )
    pl.concat(parts).write_parquet(documents)
    return documents, queries


def _words(rng: np.random.Generator) -> npt.NDArray[np.str_]:
    """Different words, with the lengths and letters of English."""
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    shares = 1.0 / np.arange(1, 27)
    found: set[str] = set()
    while len(found) < VOCABULARY:
        lengths = np.clip(rng.normal(7.0, 2.5, VOCABULARY), 2, 16).astype(int)
        drawn = "".join(rng.choice(letters, lengths.sum(), p=shares / shares.sum()))
        ends = np.cumsum(lengths).tolist()
        found |= {drawn[a:b] for a, b in zip([0, *ends], ends, strict=False)}
    return rng.permutation(np.array(sorted(found)[:VOCABULARY]))


def _some(
    words: npt.NDArray[np.str_],
    shares: npt.NDArray[np.float64],
    number: int,
    rng: np.random.Generator,
) -> list[str]:
    chosen: list[str] = words[np.searchsorted(shares, rng.random(number))].tolist()
    return chosen


def run(
    program: str, files: tuple[Path, Path], scratch: Path, *more: str
) -> tuple[Cost, dict[str, float]]:
    shutil.rmtree(scratch, ignore_errors=True)
    cost = measure([sys.executable, "-c", program, *map(str, files), str(scratch), *more])
    shutil.rmtree(scratch, ignore_errors=True)
    return cost, json.loads(cost.out)


def compare(folder: Path, number: int, repeat: int) -> None:
    files, scratch = make(folder, number), folder / "index"
    _, ever = run(OURS, make(folder, 25_000), scratch)  # it compiles, unless it did before
    programs = {
        "farfield": (OURS,),
        "farfield, numpy": (OURS, "numpy"),
        "bm25s": (BM25S,),
        "tantivy": (TANTIVY,),
    }
    found: dict[str, dict[str, float]] = {}
    for _ in range(repeat):  # turn by turn, so that what else goes on hits all of them
        for name, (program, *more) in programs.items():
            cost, times = run(program, files, scratch, *more)
            times["peak"] = cost.peak
            earlier = found.get(name, times)
            found[name] = {key: min(value, earlier[key]) for key, value in times.items()}
    assert found["farfield"]["results"] == found["farfield, numpy"]["results"]
    own = found["farfield"]
    columns = ["index", "first search", "search", "cpu", "size"]
    print(f"{number:,} documents, {QUERIES:,} queries, the best 1,000 of each; best of {repeat}")
    print(f"{'':20}" + "".join(f"{name:>14}{'x':>7}" for name in columns) + f"{'peak MB':>10}")
    for name, times in found.items():
        cells = ""
        for column in columns:
            value = times[column] / (1e6 if column == "size" else 1)
            cells += f"{value:14.2f}{times[column] / own[column]:7.2f}"
        print(f"{name:20}{cells}{times['peak']:10.0f}")
    first = ever["first search"]
    print(f"opened in {own['open'] * 1000:.1f} ms; the very first search took {first:.1f} s")


def growth(folder: Path, largest: int) -> None:
    print(f"{'documents':>12}{'index s':>10}{'us each':>9}{'MB':>8}{'search s':>10}{'peak MB':>9}")
    number = 25_000
    while number <= largest:
        cost, times = run(OURS, make(folder, number), folder / "index")
        each = times["index"] / number * 1e6
        row = f"{number:12,}{times['index']:10.1f}{each:9.1f}{times['size'] / 1e6:8.0f}"
        print(f"{row}{times['first search']:10.2f}{cost.peak:9.0f}", flush=True)
        number = {25_000: 100_000, 100_000: 400_000, 400_000: 2_000_000}.get(number, largest + 1)


def weights() -> None:
    times = json.loads(measure([sys.executable, "-c", WEIGHTS]).out)
    theirs = times["search, scipy"]
    print(
        f"200,000 documents of 130 weights, 1,000 queries of 24, {times['postings']:,.0f} postings"
    )
    for name in ("numpy", "compiled"):
        first, later = times[f"first search, {name}"], times[f"search, {name}"]
        print(f"{name:10} {first:7.2f} first {later:7.2f} later {theirs / later:7.1f} times faster")
    print(f"{'scipy':10} {theirs:7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--largest", type=int, default=2_000_000, help="of --growth")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--weights", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / ".cache", help="for the made files")
    options = parser.parse_args()
    if options.growth:
        growth(options.folder, options.largest)
    elif options.weights:
        weights()
    else:
        compare(options.folder, options.documents, options.repeat)


if __name__ == "__main__":
    main()
