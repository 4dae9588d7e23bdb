"""Your run files: evaluate and compare rankings in TREC format.

Writes three files as trec_eval reads them, then asks three questions of them. With files of your
own, begin at the second part.
"""

import farfield
from farfield import lab

# Files in the usual formats: `query 0 document relevance` and `query Q0 document rank score tag`.
world = lab.make(passages=500, train=800, test=200)
farfield.write(world.collection.qrels["test"], "qrels.txt")
for name, rows in lab.runs(world).items():
    farfield.write(farfield.Run(rows, name=name), f"{name}.trec")

# How good are they? Means with intervals, over all judged queries.
answer = farfield.evaluate(
    "qrels.txt", ["lexical.trec", "memory.trec"], ["nDCG@10", "RR(rel=2)@10"]
)
print(answer.summary)
print("queries that a run lacks:", answer.missing, "neighbours of equal score:", answer.ties)

# Is one better? A paired test, corrected for the number of comparisons.
comparison = farfield.compare(
    "qrels.txt", "lexical.trec", ["memory.trec", "random.trec"], ["nDCG@10"]
)
print(comparison.table)

# On which queries? Every value is in one table: query_id, system, measure, value.
values = answer.per_query.frame.filter(measure="nDCG@10").pivot("system", values="value")
print(values.sort(values["memory"] - values["lexical"], descending=True).head())
