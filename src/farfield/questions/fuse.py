"""What do several runs become when they are fused into one?"""

from __future__ import annotations

from farfield import fusions
from farfield.fusions import Fusion
from farfield.io import read_qrels
from farfield.questions.evaluate import PathLike, Runs, named_runs, open_runs
from farfield.tables import Qrels, Run

__all__ = ["fuse"]


def fuse(
    fusion: str | Fusion,
    runs: Runs,
    *,
    k: int | None = 1000,
    qrels: Qrels | PathLike | None = None,
    name: str | None = None,
    ties: str = "trec",
) -> Run:
    """Fuse runs, given as tables or as paths, into one.

    ``fusion`` is a member of :mod:`farfield.fusions` or its spec: ``"rrf(k=60)"``,
    ``"interpolate(weights=[0.3, 0.7])"``. The first ``k`` documents of each query are kept
    (``None``: all); a query counts if any run has it. Only the oracle needs ``qrels``. ``ties``
    says how runs that are read from files are ordered (see :class:`~farfield.tables.Run`).
    """
    member = fusions.parse(fusion)
    named = named_runs(runs)
    judgements = None
    if member.needs_qrels and qrels is not None:
        judgements = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    member.check(named, k=k, qrels=judgements)
    return member.fuse(list(open_runs(named, ties=ties)), k=k, name=name, qrels=judgements)
