"""``farfield demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farfield.cli import show
from farfield.cli.compare import print_comparison
from farfield.cli.evaluate import print_evaluation
from farfield.cli.options import Json, Seed


def demo(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")] = Path("demo"),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """See the main job on the embedded collection: evaluate, compare, near and far."""
    from farfield import demo as story

    result = story.demo(out, seed=seed)
    comparison = result.comparison
    if json:
        show.print_json(
            {
                "out": str(out),
                **comparison.to_dict(),
                "near_and_far": result.by_kind.to_dicts(),
                "findings": list(result.findings),
            }
        )
        return
    made = result.lab
    print(
        f"A generated world: {len(made.corpus):,} passages, {len(made.qrels['train']):,} training "
        f"judgements, {comparison.evaluation.queries:,} test queries. Some of them were planted "
        "near the training queries, some far."
    )
    print()
    print_evaluation(comparison.evaluation, "What is each run worth?")
    print()
    print_comparison(comparison)
    print()
    systems = list(comparison.evaluation.systems)
    rows = [
        [kind, str(group["queries"][0]), *map(show.number, group["mean"])]
        for (kind,), group in result.by_kind.group_by("kind", maintain_order=True)
    ]
    show.table(
        ["test queries", "n", *systems],
        rows,
        title=f"Near and far: {comparison.evaluation.measures[0]}, nearest to training first",
    )
    print()
    for finding in result.findings:
        print(finding)
    print()
    print(f"Everything is in {out}: RESULT.md to read, runs/ and lab/ to try the commands on.")
