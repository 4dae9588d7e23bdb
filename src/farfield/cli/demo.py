"""``farfield demo``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from farfield.cli import show
from farfield.cli.compare import print_comparison
from farfield.cli.evaluate import print_evaluation
from farfield.cli.options import Json, Seed


def demo(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")] = Path("demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Train no models: less than a minute.")
    ] = False,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """See the whole story on the embedded collection, from nothing to a report.

    What has leaked from training, who finds what, how to share out a budget; and models of four
    families, trained on the folds of a shift, near and far. Takes some minutes.
    """
    from farfield import demo as story
    from farfield import progress

    progress.show(not json)
    told = show.note if not json and not sys.stderr.isatty() else lambda _: None
    result = story.demo(out, quick=quick, seed=seed, tell=told)
    comparison = result.comparison
    if json:
        show.print_json(
            {
                "out": str(out),
                "report": str(result.report),
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
    print(
        f"Open {result.report} in a browser. Everything else is in {out}: RESULT.md to read, runs/ "
        "and lab/ to try the commands on."
    )
