"""The whole story on the embedded collection, from nothing to a report.

What has been seen in training, who finds what, several sources and one budget; and, unless it is
to be quick, models of four families trained on the folds of a shift and compared near and far.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from farfield import io, lab, progress, reports, stats
from farfield.errors import InputError
from farfield.io.files import replacing
from farfield.questions.allocate import allocate
from farfield.questions.audit import audit
from farfield.questions.compare import Comparison, compare
from farfield.questions.complement import complement
from farfield.questions.coverage import coverage
from farfield.tables import Run

__all__ = ["BASELINE", "Demo", "demo"]

MEASURES = ("nDCG@10", "RR@10", "R@100")
BASELINE = "lexical"

#: What is trained and compared: a word matcher, four families of models, and a hybrid.
EXPERIMENT = """\
name = "demo"
collection = "lab"
shifts = ["resttest(buckets=3)"]
measures = ["nDCG@10", "RR@10", "R@100", "ASL"]
pictures = true

[systems]
bm25 = "bm25()"
dense = { recipe = "contrastive(epochs=2)", base = "scratch()" }
splade = { recipe = "splade(epochs=0.75)", base = "scratch()" }
multivector = { recipe = "multivector(epochs=1)", base = "scratch()" }
crossencoder = { recipe = "crossencoder(epochs=1, depth=25)", base = "scratch()" }

[fusions]
hybrid = { fusion = "rrf()", of = ["bm25", "dense"] }
"""


@dataclass(frozen=True)
class Demo:
    """What the demo made and found."""

    out: Path
    lab: lab.Lab
    comparison: Comparison
    by_kind: pl.DataFrame
    findings: tuple[str, ...]
    report: Path


def demo(
    out: Path, *, quick: bool = False, seed: int = 0, tell: Callable[[str], None] = lambda _: None
) -> Demo:
    """Make the lab, ask every question of it, and leave everything in a folder.

    Unless it is ``quick``, models are trained for every fold of a shift, two at a time, and the
    report is one of that experiment. ``tell`` is called with a line for each event.
    """
    if not quick and find_spec("sentence_transformers") is None:
        raise InputError(
            "the whole demo trains models, for which sentence-transformers is missing. Install the "
            "extra neural (pip install 'farfield[neural]'), or ask for the quick one (--quick)."
        )
    made = lab.make(seed=seed)
    io.write_collection(made.collection, out / "lab")
    runs = {name: Run(frame, name=name) for name, frame in lab.runs(made, seed=seed).items()}
    (out / "runs").mkdir(parents=True, exist_ok=True)
    for run in runs.values():
        io.write(run, out / "runs" / f"{run.name}.trec.gz")
    others = {name: run for name, run in runs.items() if name != BASELINE}
    comparison = compare(made.collection.qrels["test"], runs[BASELINE], others, MEASURES, seed=seed)
    by_kind = near_and_far(comparison, made.truth, seed=seed)
    also = _answers(made, runs, seed)
    if quick:
        page = reports.page_of(comparison, also=also, title="How far does it reach? The lab")
        found = [section.findings[0] for section in page.sections if section.findings]
    else:  # the report of an experiment asks the other questions of the models it trained
        page = reports.page_of(_trained(out, tell), also=also[-1:])
        found = list(page.sections[0].findings)
    reports.save(page, out / "report.html")
    findings = (*_findings(by_kind), *found)
    io.write(comparison.evaluation.per_query, out / "per-query.parquet")
    _write(out / "evaluation.json", json.dumps(comparison.to_dict(), indent=2))
    result = Demo(out, made, comparison, by_kind, findings, out / "report.html")
    _write(out / "RESULT.md", _markdown(result))
    return result


def _answers(made: lab.Lab, runs: dict[str, Run], seed: int) -> list[Any]:
    """What else there is to ask: what leaked, who finds what, how to share out a budget."""
    collection = made.collection
    train, test = collection.qrels["train"], collection.qrels["test"]
    leaks = audit(
        train_queries=collection.queries.select(train.query_ids),
        test_queries=collection.queries.select(test.query_ids),
        train_qrels=train,
        test_qrels=test,
        seed=seed,
    )
    return [
        leaks,
        coverage(test, runs, seed=seed),
        complement(test, runs, queries=collection.queries, by="length", seed=seed),
        allocate(collection, retriever="bm25()", budgets=(2, 5, 10, 20), seed=seed),
    ]


def _trained(out: Path, tell: Callable[[str], None]) -> Path:
    """Run the experiment; return its directory."""
    from farfield import experiments
    from farfield.experiments.engine import run

    manifest = out / "experiment.toml"
    _write(manifest, EXPERIMENT)
    experiment = experiments.read(manifest)
    models = 3 * sum(system.trained for system in experiment.systems)
    with progress.counting(models, "training") as count:

        def follow(line: str) -> None:
            if line.startswith("train ") and not line.endswith("…"):
                count(1, line.partition(":")[0])
                tell(line)

        outcome = run(experiment, out / "run", jobs=2, tell=follow)
    if outcome.failed:
        label, problem = next(iter(outcome.failed.items()))
        raise InputError(f"{label}: {problem}\nIts log is in {out / 'run' / 'logs'}.")
    return outcome.directory


def near_and_far(comparison: Comparison, truth: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Average the first measure over the test queries of each kind that the lab planted."""
    measure = str(comparison.evaluation.measures[0])
    values = comparison.evaluation.per_query.frame.filter(pl.col("measure") == measure)
    values = values.join(truth.select("query_id", "kind"), on="query_id")
    rows: list[dict[str, Any]] = []
    for kind in lab.KINDS:
        for system in comparison.evaluation.systems:
            chosen = values.filter((pl.col("kind") == kind) & (pl.col("system") == system))
            if len(chosen):
                mean = stats.mean(chosen["value"].to_numpy(), seed=seed)
                rows.append(
                    {
                        "kind": kind,
                        "system": system,
                        "queries": mean.n,
                        "mean": mean.value,
                        "low": mean.low,
                        "high": mean.high,
                    }
                )
    return pl.DataFrame(rows)


def _findings(by_kind: pl.DataFrame) -> tuple[str, ...]:
    """Say in words who holds up: nearest against farthest kind of query, for each system."""
    sentences = []
    for (system,), rows in by_kind.group_by("system", maintain_order=True):
        near, far = rows.row(0, named=True), rows.row(-1, named=True)
        apart = near["low"] > far["high"]
        verb = "falls" if near["mean"] > far["mean"] else "rises"
        sentences.append(
            f"{system}: {near['mean']:.2f} on {near['kind']} queries, {far['mean']:.2f} on "
            f"{far['kind']} queries"
            + (f"; it {verb} clearly." if apart else "; the intervals do not separate the two.")
        )
    return tuple(sentences)


def _markdown(result: Demo) -> str:
    evaluation = result.comparison.evaluation
    lines = [
        "# farfield demo",
        "",
        f"{evaluation.queries:,} test queries of the generated collection, mean and "
        f"{evaluation.level:.0%} interval.",
        "",
        "| run | " + " | ".join(map(str, evaluation.measures)) + " |",
        "|---|" + "---|" * len(evaluation.measures),
    ]
    for (system,), rows in evaluation.summary.group_by("system", maintain_order=True):
        cells = [_cell(row) for row in rows.iter_rows(named=True)]
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    systems = evaluation.systems
    lines += [
        "",
        f"## Near and far: {evaluation.measures[0]} by planted distance from training",
        "",
        "| test queries | n | " + " | ".join(systems) + " |",
        "|---|---|" + "---|" * len(systems),
    ]
    for (kind,), rows in result.by_kind.group_by("kind", maintain_order=True):
        cells = [_cell(row) for row in rows.iter_rows(named=True)]
        lines.append(f"| {kind} | {rows['queries'][0]} | " + " | ".join(cells) + " |")
    lines += ["", "## In words", "", *(f"- {finding}" for finding in result.findings), ""]
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    return f"{row['mean']:.4f} [{row['low']:.4f}, {row['high']:.4f}]"


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
