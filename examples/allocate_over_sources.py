"""Several sources, one budget: who gives how many of six results?

The lab has three sources that write about the same things, so something is wanted from each.
"""

import farfield
from farfield import lab

world = lab.make(passages=600, train=200, test=200).collection
answer = farfield.allocate(
    world, retriever="bm25()", k=6, rel=2, policies=["merge()", "equal()", "local()"]
)
print(answer.table.select("policy", "recall", "recall_low", "recall_high", "closed", "p"))
print(answer.shares)  # of the budget, by source
print(answer.recommendation)

farfield.write(answer.allocation(), "allocation.csv")  # query_id, source, budget
farfield.write(answer.run(), "allocated.trec")

# The same from one run for each source, as search engines give them.
runs = {run.name: run for run in answer.lists.runs}
print(farfield.allocate(runs, world.qrels["test"], k=6, rel=2).recommendation)
