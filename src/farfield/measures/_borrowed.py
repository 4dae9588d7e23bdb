"""Measures that ir_measures computes for us."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from farfield.errors import MissingDependency, SpecError
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
        values = np.zeros(len(judged.query_ids))
        place = {query: i for i, query in enumerate(judged.query_ids)}
        for metric in ir_measures.iter_calc([self.measure], qrels, run):
            values[place[metric.query_id]] = metric.value
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
    """Rebuild qrels and run with names of our own: the measure needs ranks, not ids."""
    ids = judged.query_ids.to_list()
    qrels: dict[str, dict[str, int]] = {query: {} for query in ids}
    run: dict[str, dict[str, float]] = {
        query: {f"unjudged-{r}": float(-r) for r in range(1, n + 1)}
        for query, n in zip(ids, judged.retrieved.tolist(), strict=True)
        if n
    }
    found = judged.within(None).tolist()
    rows = zip(
        judged.query.tolist(), judged.rank.tolist(), judged.relevance.tolist(), found, strict=True
    )
    for number, (query, rank, relevance, retrieved) in enumerate(rows):
        name = f"judged-{number}"
        qrels[ids[query]][name] = relevance
        if retrieved:
            del run[ids[query]][f"unjudged-{rank}"]
            run[ids[query]][name] = float(-rank)
    return qrels, run
