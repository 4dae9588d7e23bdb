"""A shift for those who train elsewhere: folds as BEIR folders, with what still leaks.

Train on the split `train` of each folder with any program, and search `near` and `far`.
"""

import farfield
from farfield import lab

world = lab.make(passages=500, train=1000, test=200).collection
answer = farfield.shift("resttest(buckets=2)", world)
print(answer.sizes)
print(answer.overlap)  # queries whose relevant document is relevant in training all the same

farfield.write(answer.partition, "partition.parquet")
for number, fold in enumerate(answer.collections()):
    farfield.write_collection(fold, f"fold-{number}")
    print(fold.name, {split: len(qrels) for split, qrels in fold.qrels.items()})

# How far is far? By words, and by the similarity of queries to the training queries of the fold.
print(farfield.fold_distances(world, answer.partition, indicators=["jaccard", "r"]).table)
