"""Which relevant documents do systems find alone and together, and what is left to gain?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from farfield import stats
from farfield.questions.complement import BEST_RUN, Complement, complement
from farfield.questions.tune import tune
from farfield.reports import words
from farfield.reports.blocks import Block, Figures, Findings, Table, Views
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.tuning import tuning_blocks
from farfield.reports.rundir import RunDirectory, ShiftRuns

if TYPE_CHECKING:
    from farfield.questions.tune import Tuning

__all__ = ["PART"]

_READING = (
    "Documents are counted by who finds them; what only one system finds is what it brings to a "
    "fusion. Headroom is what an oracle that puts all relevant documents first has over the best "
    "single system, and captured the share of it that a way to combine gains."
)
_ALT = "Who finds which relevant documents, and how much of the headroom each combination gains."
_DIALECTS = ("rrf()", "rrf(dialect=qdrant)", "interpolate()")


def _of_run(run: RunDirectory) -> list[Section]:
    single = [name for name in run.shifts[0].systems if name not in run.resolved["fusions"]]
    if len(single) < 2:
        return []
    choices: dict[str, list[Block]] = {}
    for shift in run.shifts:
        answer = _complement(run, shift, single)
        blocks, said = _blocks(answer), _said(answer)
        if run.bounded is not None:
            tuned = _tuned(run, shift, single)
            blocks += tuning_blocks(tuned)
            said.append(_gain(tuned))
        choices[shift.name] = [Findings(said), *blocks]
    return [_section([], [Views("Shift", choices)])]


def _complement(run: RunDirectory, shift: ShiftRuns, single: Sequence[str]) -> Complement:
    fused = [given["fusion"] for given in run.resolved["fusions"].values()]
    return complement(
        shift.qrels,
        {name: shift.far_runs[name] for name in single},
        run.measures[:2],
        fusions=list(dict.fromkeys([*_DIALECTS, *fused])),
        queries=run.queries,
        by="length",
        depth=run.resolved["depth"],
    )


def _tuned(run: RunDirectory, shift: ShiftRuns, single: Sequence[str]) -> Tuning:
    """Weights of the two systems that cover most together."""
    order = [name for name in shift.coverage.greedy["system"] if name in single]
    runs = {name: shift.far_runs[name] for name in order[:2]}
    measure = shift.coverage.evaluation.measures[0]
    return tune(shift.qrels, runs, "interpolate()", measure, k=run.resolved["depth"])


def _of_answer(answer: Complement) -> list[Section]:
    return [_section(_said(answer), _blocks(answer))]


def _section(findings: list[str], blocks: list[Block]) -> Section:
    title = "What do systems find together, and what is left to gain?"
    return Section("fusion", title, reading=_READING, findings=findings, blocks=blocks)


def _said(answer: Complement) -> list[str]:
    every = answer.systems.filter(pl.col("system") == "any of them").row(0, named=True)
    found = words.with_interval(every, "share", words.share, ends=("low", "high"))
    said = [
        f"Of {answer.relevant:,} relevant documents {found} are found by some system within rank "
        f"{answer.depth:,}."
    ]
    ways = answer.headroom.filter(
        pl.col("system").is_in(list(answer.fusions)) & pl.col("captured").is_not_null()
    )
    for (measure,), rows in ways.group_by("measure", maintain_order=True):
        best = rows.sort("captured", descending=True).row(0, named=True)
        gained = words.with_interval(best, "captured", words.share, ends=("low", "high"))
        said.append(
            f"{measure}: {best['system']} gains {gained} of the headroom above "
            f"{best['best_single']} ({words.number(best['single_mean'])})."
        )
    return said


def _gain(tuned: Tuning) -> str:
    gain = words.with_interval(tuned.gain, "difference", ends=("low", "high"))
    return (
        f"Weights of {words.listed(tuned.runs)} that were chosen on other queries change "
        f"{tuned.measure} by {gain} against equal ones ({words.p_value(tuned.gain['p'])})."
    )


def _blocks(answer: Complement) -> list[Block]:
    nobody = pl.when(pl.col("size") == 0).then(pl.lit("(nobody)")).otherwise("runs")
    alone = {"alone_low": "alone_share_low", "alone_high": "alone_share_high"}
    blocks: list[Block] = [
        Figures(answer.figure(), _ALT),
        Table(
            "who-finds-what",
            "Relevant documents by exactly who finds them",
            answer.table.with_columns(runs=nobody),
            labels={"runs": "found by", "size": "systems", "count": "documents"},
        ),
        Table(
            "found",
            "What each system finds, and what it finds alone",
            answer.systems.rename(alone),
            labels={"alone_share": "share found alone", "alone": "found alone"},
        ),
        Table(
            "headroom",
            "Ways to combine, and the share of the headroom that each gains",
            _headroom(answer),
            shown=["system", "measure", "mean", "captured", "best_single"],
            kinds={"captured": "share"},
            start={"measure": str(answer.evaluation.measures[0])},
        ),
    ]
    if len(answer.breakdown) and answer.groups is not None:
        by = f"Means by {answer.groups.by} of the query"
        blocks.append(Table("by-length", by, answer.breakdown, labels={"n": "queries"}))
    return blocks


def _headroom(answer: Complement) -> pl.DataFrame:
    """The headroom, with intervals of the means as well."""
    evaluation = answer.evaluation
    means = [evaluation.summary.select("system", "measure", "low", "high")]
    singles = [evaluation.systems.index(run) for run in answer.runs]
    for measure in evaluation.measures:
        values = evaluation.values(measure)[singles]
        best = values.max(axis=0) if measure.higher_is_better else values.min(axis=0)
        found = stats.mean(
            best,
            level=evaluation.level,
            resamples=evaluation.resamples,
            seed=evaluation.seed,
        )
        row = {"system": BEST_RUN, "measure": str(measure), "low": found.low, "high": found.high}
        means.append(pl.DataFrame([row]))
    ends = pl.concat(means).rename({"low": "mean_low", "high": "mean_high"})
    return answer.headroom.join(
        ends, on=["system", "measure"], how="left", maintain_order="left"
    ).select(
        "system",
        "measure",
        *("mean", "mean_low", "mean_high"),
        *("captured", "low", "high"),
        *("best_single", "single_mean"),
    )


PART = Part(order=70, answer="Complement", of_answer=_of_answer, of_run=_of_run)
