"""Your training data: how much of the test set was seen in training, and data without that.

The lab says which test queries were planted as copies, so the audit can be checked.
"""

import polars as pl

import farfield
from farfield import lab

world = lab.make(passages=500, train=1000, test=200)
collection = world.collection

audit = farfield.audit(
    train_queries=collection.queries_of("train"),
    test_queries=collection.queries_of("test"),
    train_qrels=collection.qrels["train"],
    test_qrels=collection.qrels["test"],
)
print(audit.label_overlap)
print(audit.query_overlap)
print(audit.pairs.head(3))  # the evidence

found = set(audit.pairs.filter(pl.col("ngram") >= audit.threshold)["query_id"])
planted = set(world.truth.filter(pl.col("kind").is_in(["exact", "near_duplicate"]))["query_id"])
print(f"copies: {len(planted)} planted, {len(found & planted)} of them found")

# What is left when every leaked test query is taken out, and what can be told from so few?
clean = collection.qrels["test"].frame.filter(~pl.col("query_id").is_in(list(audit.leaked)))
farfield.write(farfield.Qrels(clean), "clean-test.tsv")
print(audit.power())
