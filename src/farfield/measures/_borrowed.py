"""Measures that ir_measures computes for us."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from farfield.errors import InputError, MissingDependency, SpecError
from farfield.judged import JudgedRun
from farfield.measures.base import Floats, Measure
from farfield.spec import parse

__all__ = ["Borrowed", "borrow"]

#: Names for which to recommend ir_measures when it is not installed.
_ELSEWHERE = {"Accuracy", "Bpref", "Compat", "ERR", "infAP", "IPrec", "nERR", "NumRel", "NumRet"}
_ELSEWHERE |= {"RBP", "Rprec", "RPrec", "SDCG", "SetAP", "SetF", "SetP", "SetR", "alpha_nDCG"}

#: Measures of ir_measures that go up as a ranking gets worse, or are counts.
_UNBOUNDED = {"NumRet", "NumRel", "NumQ", "NumRelRet", "SDCG", "BPM", "INST", "INSQ"}


@dataclass(frozen=True, kw_only=True)
class Borrowed(Measure):
    """A measure of ir_measures, known by its text there.

    It is given the ranks of the judged documents, with unjudged documents in between, so that
    ties are broken as everywhere in farfield and not as its provider would.
    """

    bare: ClassVar[bool] = True

    text: str
    measure: Any = field(repr=False, compare=False)

    @property
    def bounded(self) -> bool:  # type: ignore[override]  # depends on the measure here
        """Do all values lie between 0 and 1?"""
        return self.measure.NAME not in _UNBOUNDED

    def __str__(self) -> str:
        return self.text

    def _values(self, judged: JudgedRun) -> Floats:
        import ir_measures

        qrels, run = _as_dicts(judged)
        values = np.full(len(judged.query_ids), float(self.measure.DEFAULT))
        try:  # some of its providers fail on a run without rows
            for metric in ir_measures.iter_calc([self.measure], qrels, run) if run else ():
                values[int(metric.query_id)] = metric.value
        except Exception as error:  # they call programs in C, Perl and Java
            raise InputError(f"ir_measures could not compute {self.text}: {error}") from error
        return values


def borrow(text: str) -> Borrowed | None:
    """Return the measure of ir_measures with this text, or ``None`` if it has none."""
    name = parse(text).name
    try:
        import ir_measures
    except ImportError:
        if name in _ELSEWHERE:
            raise MissingDependency(
                "ir_measures", f"the measure {text}", extra="measures"
            ) from None
        return None
    if name not in ir_measures.measures.registry:
        return None
    try:
        measure = ir_measures.parse_measure(text)
        ir_measures.evaluator([measure], [])
    except (ValueError, AssertionError, RuntimeError, TypeError, KeyError) as error:
        raise SpecError(f"ir_measures cannot compute {text!r}: {error}") from error
    return Borrowed(text=str(measure), measure=measure)


def _as_dicts(judged: JudgedRun) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Rebuild qrels and run with names of our own: the measure needs ranks, not ids.

    Queries are called by their numbers, the only names that every provider takes.
    """
    qrels: dict[str, dict[str, int]] = {str(q): {} for q in range(len(judged.query_ids))}
    run: dict[str, dict[str, float]] = {
        str(query): {f"unjudged-{r}": float(-r) for r in range(1, n + 1)}
        for query, n in enumerate(judged.retrieved.tolist())
        if n
    }
    found = judged.within(None).tolist()
    rows = zip(
        judged.query.tolist(), judged.rank.tolist(), judged.relevance.tolist(), found, strict=True
    )
    for number, (at, rank, relevance, retrieved) in enumerate(rows):
        query, name = str(at), f"judged-{number}"
        qrels[query][name] = relevance
        if retrieved:
            del run[query][f"unjudged-{rank}"]
            run[query][name] = float(-rank)
    return qrels, run
