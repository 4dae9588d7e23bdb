"""What is training worth far away? A model for each fold of a shift, compared near and far.

The "model" answers from memory: it returns what was relevant to the most similar training queries
of its fold. It stands for yours; any program may make the runs, as long as every fold's model ranks
all test queries.
"""

import polars as pl

import farfield
from farfield import lab

world = lab.make(passages=500, train=1000, test=200).collection
partition = farfield.shift("resttest(buckets=2)", world).partition
test, queries = world.queries_of("test"), world.queries.frame


def trained_on(fold: str) -> farfield.Run:
    """Rank documents by how similar the training queries are that they were relevant to."""
    trained = partition.frame.filter(fold=fold, role="train").join(queries, on="query_id")
    known = farfield.Corpus(trained.select(doc_id="query_id", text="text"))
    similar = farfield.search(farfield.index("bm25()", known), test, k=20).frame
    relevant = world.qrels["train"].frame.select(doc_id="query_id", found="doc_id")
    found = similar.join(relevant, on="doc_id").group_by("query_id", "found").agg(pl.max("score"))
    return farfield.Run(found.select("query_id", doc_id="found", score="score"), name="memory")


# System, fold, seed of training, run. BM25 is not trained: one run for all folds.
runs = [("memory", fold, 0, trained_on(fold)) for fold in partition.frame["fold"].unique().sort()]
runs += [("bm25", None, 0, farfield.search(farfield.index("bm25()", world), test, k=100))]

answer = farfield.near_far(
    partition, world.qrels["test"], runs, ["nDCG@10"], train_qrels=world.qrels["train"]
)
print(answer.table)  # near, far, delta = far / near - 1
print(answer.by_memory)  # apart for queries with a relevant document that was trained on
print(answer.losses)  # by what was left out of training
