"""The whole story on the embedded collection: evaluate, compare, near and far."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from farfield import io, lab, stats
from farfield.io.files import replacing
from farfield.questions.compare import Comparison, compare
from farfield.tables import Run

__all__ = ["BASELINE", "Demo", "demo"]

MEASURES = ("nDCG@10", "RR@10", "R@100")
BASELINE = "lexical"


@dataclass(frozen=True)
class Demo:
    """What the demo made and found."""

    out: Path
    lab: lab.Lab
    comparison: Comparison
    by_kind: pl.DataFrame
    findings: tuple[str, ...]


def demo(out: Path, *, seed: int = 0) -> Demo:
    """Make the lab, evaluate its systems near and far, and leave everything in a folder."""
    made = lab.make(seed=seed)
    io.write_collection(made.collection, out / "lab")
    runs = {name: Run(frame, name=name) for name, frame in lab.runs(made, seed=seed).items()}
    (out / "runs").mkdir(parents=True, exist_ok=True)
    for run in runs.values():
        io.write(run, out / "runs" / f"{run.name}.trec.gz")
    others = {name: run for name, run in runs.items() if name != BASELINE}
    comparison = compare(made.collection.qrels["test"], runs[BASELINE], others, MEASURES, seed=seed)
    by_kind = near_and_far(comparison, made.truth, seed=seed)
    findings = _findings(by_kind)
    io.write(comparison.evaluation.per_query, out / "per-query.parquet")
    _write(out / "evaluation.json", json.dumps(comparison.to_dict(), indent=2))
    result = Demo(out, made, comparison, by_kind, findings)
    _write(out / "RESULT.md", _markdown(result))
    return result


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
