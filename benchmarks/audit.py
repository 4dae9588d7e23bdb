"""The audit at MS MARCO's size: 500,000 training against 7,000 test queries, on the lab's texts.

python benchmarks/audit.py             # lexical and label overlap, whole command
python benchmarks/audit.py --growth    # how the cost grows with the training set
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import farfield
from farfield import lab
from runs import HERE, measure


def make(folder: Path, train: int, test: int) -> Path:
    """Write a collection of these sizes, once."""
    path = folder / f"lab-{train}-{test}"
    if not (path / "card.json").exists():
        made = lab.make(passages=max(2000, train // 10), train=train, test=test)
        farfield.write_collection(made.collection, path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--train", type=int, default=500_000)
    parser.add_argument("--test", type=int, default=7_000)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--folder", type=Path, default=HERE / ".cache")
    options = parser.parse_args()
    sizes = (
        [options.train // 16, options.train // 4, options.train]
        if options.growth
        else [options.train]
    )
    print(f"{'training':>10}{'test':>8}{'wall s':>9}{'cpu s':>9}{'peak MB':>9}")
    for train in sizes:
        path = make(options.folder, train, options.test)
        command = [sys.executable, "-m", "farfield", "audit", "--collection", str(path)]
        cost = measure([*command, "--encoder", "none", "--json"])
        print(
            f"{train:10,}{options.test:8,}{cost.wall:9.1f}{cost.cpu:9.1f}{cost.peak:9.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
