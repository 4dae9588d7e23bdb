"""Two systems: what each finds alone, what fusing them gains, and what it could gain."""

import farfield
from farfield import lab

world = lab.make(passages=500, train=800, test=200)
qrels = world.collection.qrels["test"]
runs = {name: farfield.Run(rows, name=name) for name, rows in lab.runs(world).items()}
pair = [runs["lexical"], runs["memory"]]

answer = farfield.complement(
    qrels,
    pair,
    ["nDCG@10"],
    fusions=["rrf()", "interpolate()"],
    queries=world.collection.queries,
    by="topic",
)
print(answer.table)  # relevant documents by who finds them
print(answer.headroom)  # how much of the way to the oracle each fusion goes
print(answer.breakdown)

# Is a tuned weight worth it? It is valued on queries that it was not chosen on.
tuned = farfield.tune(qrels, pair, "interpolate()", "nDCG@10")
print(tuned.best, tuned.gain)
farfield.write(farfield.fuse(tuned.best, pair, k=100), "fused.trec.gz")
