"""The answer first: what is left of the score far from training, who holds up, what to do."""

from __future__ import annotations

from typing import Any

import polars as pl

from farfield import stats
from farfield.measures import Measure
from farfield.reports import words
from farfield.reports.blocks import Figures
from farfield.reports.page import Section
from farfield.reports.parts import Part
from farfield.reports.parts.nearfar import dumbbells
from farfield.reports.rundir import RunDirectory, ShiftRuns

__all__ = ["PART"]

_CLEAR = 0.05
_READING = (
    "Each system has two points: near, asked of models trained on queries of the same kind, and "
    "far, asked of the model that was not. The distance between them is what the system owes to "
    "having seen the like in training; below its name stands that change with its interval."
)


def _of_run(run: RunDirectory) -> list[Section]:
    measure = run.measures[0]
    parts, findings = {}, []
    for shift in run.shifts:
        rows = _rows(run, shift, measure)
        parts[shift.name] = rows
        findings += _said(shift, rows, measure)
    findings += _seen(run)
    findings += _advice(run, measure)
    alt = "Near and far of every system on every shift, with intervals, as in the table below."
    figure = Figures(dumbbells(parts, f"{measure} near and far"), alt, whole=True)
    return [
        Section("answer", "The answer", reading=_READING, findings=findings, blocks=[figure]),
    ]


def _rows(run: RunDirectory, shift: ShiftRuns, measure: Measure) -> pl.DataFrame:
    return run.tables["table"].filter(
        (pl.col("shift") == shift.name)
        & (pl.col("measure") == str(measure))
        & (pl.col("average") == "micro")
    )


def _said(shift: ShiftRuns, rows: pl.DataFrame, measure: Measure) -> list[str]:
    """What is left far from training, and who is best there."""
    trained = rows.filter(pl.col("system").is_in(list(shift.trained)) & (pl.col("near") > 0))
    if len(trained):
        worst = trained.sort("delta", descending=not measure.higher_is_better).row(0, named=True)
        kept = f"of the {measure} that {worst['system']} reaches near its training queries, "
        kept += f"{words.share(worst['far'] / worst['near'])} is left far from them"
        if not measure.higher_is_better:
            kept = f"the {measure} of {worst['system']} changes from near to far"
        said = (
            f"{kept}: {words.number(worst['near'])} becomes {words.number(worst['far'])}, "
            f"{words.with_interval(worst, 'delta', words.change)}."
        )
    else:
        said = "no system was trained, so none can lose what training gave it."
    text = f"{shift.name}: {said}"
    if not shift.paired:
        text += " Near and far are different queries here, which may differ in how hard they are."
    best, second, p = _best(shift, rows, measure)
    if second is not None:
        clearly = "clearly above" if p < _CLEAR else "not separable from"
        text += (
            f" Best there is {best['system']} with {words.with_interval(best, 'far')}, {clearly} "
            f"{second['system']} ({words.number(second['far'])}, {words.p_value(p)})."
        )
    return [text]


def _best(
    shift: ShiftRuns, rows: pl.DataFrame, measure: Measure
) -> tuple[dict[str, Any], dict[str, Any] | None, float]:
    """The best system far from training, the next, and p of a paired test between them."""
    order = rows.sort("far", descending=measure.higher_is_better).head(2).to_dicts()
    if len(order) < 2:
        return order[0], None, 1.0
    values = shift.means(str(measure), "far")
    one, other = (values.filter(system=row["system"])["value"].to_numpy() for row in order)
    return order[0], order[1], float(stats.paired_test(one, other).p)


def _seen(run: RunDirectory) -> list[str]:
    audit = run.audit
    if not len(audit.leaked):
        return ["No test query was seen in training, by near-duplicates or shared labels."]
    hit = audit.test_ids.is_in(audit.leaked.implode()).to_numpy().astype(float)
    found = stats.mean(hit, level=audit.level, seed=audit.seed)
    row = {"share": found.value, "low": found.low, "high": found.high}
    return [
        f"{words.with_interval(row, 'share', words.share, ends=('low', 'high'))} of the "
        f"{audit.queries:,} test queries were seen in training (a near-duplicate, or a relevant "
        "document in common): a mean over all of them is in part a score for remembering."
    ]


def _advice(run: RunDirectory, measure: Measure) -> list[str]:
    """What to do, from who is best near and far on the first shift."""
    shift = run.shifts[0]
    rows = _rows(run, shift, measure)
    near = rows.sort("near", descending=measure.higher_is_better).row(0, named=True)
    best, second, p = _best(shift, rows, measure)
    name = best["system"]
    said = []
    if near["system"] != name:
        said.append(
            f"judged by near queries alone you would choose {near['system']} "
            f"({words.number(near['near'])} near, {words.number(near['far'])} far)"
        )
    if name in run.resolved["fusions"]:
        said.append(f"use the fusion {name} where queries may be unlike the training data")
    elif name in shift.trained:
        said.append(
            f"{name} may be used beyond its training data; expect {words.number(best['far'])} "
            f"there, not {words.number(best['near'])}"
        )
    elif shift.trained:
        said.append(
            f"for queries unlike the training data use {name}, which is not trained: no trained "
            "system is better there"
        )
    if second is not None and p >= _CLEAR:
        said.append(f"between {name} and {second['system']} choose by cost")
    if not said:
        return []
    return [f"What to do: {'; '.join(said)}."]


PART = Part(order=0, of_run=_of_run)
