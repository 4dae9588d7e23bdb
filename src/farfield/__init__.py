"""How far does a retriever reach beyond its training data?

Everything is a table in, a table out: read runs and qrels, ask a question, get an answer with its
uncertainty. Names are loaded on first use, so that importing farfield costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farfield.collection import Card, Collection
    from farfield.errors import (
        CheckFailed,
        FarfieldError,
        FarfieldWarning,
        FileError,
        InputError,
        MissingDependency,
        SpecError,
        TableError,
    )
    from farfield.io import (
        read,
        read_collection,
        read_corpus,
        read_qrels,
        read_queries,
        read_run,
        write,
        write_collection,
    )
    from farfield.questions.align import Alignment, align, scores_of
    from farfield.questions.allocate import Allocated, allocate
    from farfield.questions.audit import Audit, audit
    from farfield.questions.compare import Comparison, compare
    from farfield.questions.complement import Complement, complement
    from farfield.questions.coverage import Coverage, coverage
    from farfield.questions.diagnose import Diagnosis, diagnose
    from farfield.questions.distance import Distance, FoldDistances, distance, fold_distances
    from farfield.questions.evaluate import Evaluation, evaluate
    from farfield.questions.fuse import FusionReport, fuse, fuse_and_compare
    from farfield.questions.multi_source import MultiSource, by_source, multi_source
    from farfield.questions.nearfar import NearFar, near_far
    from farfield.questions.search import RetrieverTuning, index, search, tune_retriever
    from farfield.questions.shift import Shifted, shift
    from farfield.questions.train import train
    from farfield.questions.tune import Tuning, tune
    from farfield.recipes import Trained
    from farfield.reports import report
    from farfield.tables import Allocation, Corpus, Partition, PerQuery, Qrels, Queries, Run

_HOMES = {
    "collection": ["Card", "Collection"],
    "errors": [
        "CheckFailed",
        "FarfieldError",
        "FarfieldWarning",
        "FileError",
        "InputError",
        "MissingDependency",
        "SpecError",
        "TableError",
    ],
    "io": [
        "read",
        "read_collection",
        "read_corpus",
        "read_qrels",
        "read_queries",
        "read_run",
        "write",
        "write_collection",
    ],
    "questions.align": ["Alignment", "align", "scores_of"],
    "questions.allocate": ["Allocated", "allocate"],
    "questions.compare": ["Comparison", "compare"],
    "questions.complement": ["Complement", "complement"],
    "questions.coverage": ["Coverage", "coverage"],
    "questions.diagnose": ["Diagnosis", "diagnose"],
    "questions.distance": ["Distance", "FoldDistances", "distance", "fold_distances"],
    "questions.evaluate": ["Evaluation", "evaluate"],
    "questions.fuse": ["FusionReport", "fuse", "fuse_and_compare"],
    "questions.search": ["RetrieverTuning", "index", "search", "tune_retriever"],
    "questions.multi_source": ["MultiSource", "by_source", "multi_source"],
    "questions.nearfar": ["NearFar", "near_far"],
    "questions.shift": ["Shifted", "shift"],
    "questions.train": ["train"],
    "questions.tune": ["Tuning", "tune"],
    "recipes": ["Trained"],
    "reports": ["report"],
    "tables": ["Allocation", "Corpus", "Partition", "PerQuery", "Qrels", "Queries", "Run"],
    "questions.audit": ["Audit", "audit"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = [
    "allocations",
    "analysis",
    "encoders",
    "errors",
    "figures",
    "fusions",
    "indicators",
    "io",
    "lab",
    "measures",
    "recipes",
    "registry",
    "reports",
    "retrievers",
    "shifts",
    "similarity",
    "sparse",
    "spec",
    "stats",
    "tables",
]

__all__ = [
    "Alignment",
    "Allocated",
    "Allocation",
    "Audit",
    "Card",
    "CheckFailed",
    "Collection",
    "Comparison",
    "Complement",
    "Corpus",
    "Coverage",
    "Diagnosis",
    "Distance",
    "Evaluation",
    "FarfieldError",
    "FarfieldWarning",
    "FileError",
    "FoldDistances",
    "FusionReport",
    "InputError",
    "MissingDependency",
    "MultiSource",
    "NearFar",
    "Partition",
    "PerQuery",
    "Qrels",
    "Queries",
    "RetrieverTuning",
    "Run",
    "Shifted",
    "SpecError",
    "TableError",
    "Trained",
    "Tuning",
    "align",
    "allocate",
    "allocations",
    "analysis",
    "audit",
    "by_source",
    "compare",
    "complement",
    "coverage",
    "diagnose",
    "distance",
    "encoders",
    "errors",
    "evaluate",
    "figures",
    "fold_distances",
    "fuse",
    "fuse_and_compare",
    "fusions",
    "index",
    "indicators",
    "io",
    "lab",
    "measures",
    "multi_source",
    "near_far",
    "read",
    "read_collection",
    "read_corpus",
    "read_qrels",
    "read_queries",
    "read_run",
    "recipes",
    "registry",
    "report",
    "reports",
    "retrievers",
    "scores_of",
    "search",
    "shift",
    "shifts",
    "similarity",
    "sparse",
    "spec",
    "stats",
    "tables",
    "train",
    "tune",
    "tune_retriever",
    "write",
    "write_collection",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f"farfield.{_HOME_OF[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"farfield.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("farfield")
    else:
        raise AttributeError(f"module 'farfield' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
