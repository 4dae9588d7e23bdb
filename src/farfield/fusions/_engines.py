"""A fusion in the words of a search engine, or the reason why the engine has no words for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from farfield.errors import InputError, did_you_mean
from farfield.fusions.base import Fusion

__all__ = ["ENGINES", "Snippet", "export"]

_MOST_QUERIES = 5  # of a hybrid query of OpenSearch


@dataclass(frozen=True)
class Snippet:
    """Requests that make an engine fuse in the same way, and what to know about them.

    ``requests`` are (method and path, body); names in ``<…>`` are to be filled in.
    """

    engine: str
    fusion: str
    requests: tuple[tuple[str, dict[str, Any]], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{where}\n{json.dumps(body, indent=2)}" for where, body in self.requests]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield fuse --export --json`` prints."""
        return {
            "engine": self.engine,
            "fusion": self.fusion,
            "requests": [{"request": where, "body": body} for where, body in self.requests],
            "notes": list(self.notes),
        }


def export(
    fusion: Fusion, engine: str, runs: Sequence[str], *, k: int = 10, depth: int | None = None
) -> Snippet:
    """Write a fusion of these runs as requests to ``qdrant``, ``elasticsearch`` or ``opensearch``.

    ``k`` is the number of results; ``depth`` how deep each list was, where the fusion does not say
    so itself. A setting that the engine cannot express raises, and says why.
    """
    if engine not in ENGINES:
        raise InputError(
            f"no engine is called {engine!r}.{did_you_mean(engine, ENGINES)} "
            f"Known: {', '.join(ENGINES)}."
        )
    if fusion.needs_qrels:
        raise _cannot(fusion, engine, "no engine knows which documents are relevant.")
    fusion.check(runs, k=k)
    window = max(k, fusion.window(k) or depth or k)
    snippet = ENGINES[engine](fusion, list(runs), k, window)
    said = f"Lists are taken {window:,} deep; another depth may change the results."
    return replace(snippet, notes=(*snippet.notes, said))


def _qdrant(fusion: Fusion, runs: list[str], k: int, window: int) -> Snippet:
    name, notes = fusion.spec.name, []
    query: dict[str, Any]
    if name == "rrf":
        _no_synthetic_ranks(fusion, "qdrant")
        # Qdrant counts from 0: 1 / (k + position) is 1 / (k - 1 + rank).
        query = {"rrf": {"k": _one_based_constant(fusion) + 1}}
        notes.append("The constant k needs Qdrant 1.16 or newer. Its ranks start at 0.")
        if _unequal(fusion):
            if not _weighs_ranks(fusion):
                raise _cannot(
                    fusion,
                    "qdrant",
                    "its weights divide the rank, and these multiply the score. "
                    "Tune rrf(dialect='qdrant').",
                )
            query["rrf"]["weights"] = list(fusion.weights)
            notes.append("Weights need Qdrant 1.17 or newer.")
    elif name in ("interpolate", "comb_sum") and _norm(fusion) == "dbsf" and not _unequal(fusion):
        _absent_is_zero(fusion, "qdrant")
        query = {"fusion": "dbsf"}
        notes.append("Qdrant adds the scores up; the order is the same.")
    else:
        raise _cannot(
            fusion, "qdrant", "it has rrf, and dbsf without weights (interpolate(norm='dbsf'))."
        )
    body = {
        "prefetch": [
            {"query": f"<query of {run}>", "using": f"<vector of {run}>", "limit": window}
            for run in runs
        ],
        "query": query,
        "limit": k,
    }
    where = "POST /collections/<collection>/points/query"
    return Snippet("qdrant", str(fusion), ((where, body),), tuple(notes))


def _elasticsearch(fusion: Fusion, runs: list[str], k: int, window: int) -> Snippet:
    name, notes = fusion.spec.name, []
    children: list[dict[str, Any]] = [{"retriever": {f"<retriever of {run}>": {}}} for run in runs]
    if name == "rrf":
        constant = _rank_fusion(fusion, "elasticsearch")
        if _unequal(fusion):
            for child, weight in zip(children, fusion.weights, strict=True):
                child["weight"] = weight
            notes.append("Weights of rrf need Elasticsearch 9.2 or newer.")
        else:
            children = [child["retriever"] for child in children]
        retriever: dict[str, Any] = {
            "rrf": {
                "retrievers": children,
                "rank_constant": constant,
                "rank_window_size": window,
            }
        }
    elif name in ("interpolate", "comb_sum") and _norm(fusion) in ("minmax", "none"):
        _absent_is_zero(fusion, "elasticsearch")
        for child, weight in zip(children, fusion.shares(len(runs)), strict=True):
            child |= {"weight": weight, "normalizer": _norm(fusion)}
        retriever = {"linear": {"retrievers": children, "rank_window_size": window}}
        if _norm(fusion) == "minmax":
            notes.append("Where all scores of a list are equal, Elasticsearch keeps them; here: 1.")
    else:
        raise _cannot(
            fusion, "elasticsearch", "it has rrf, and the linear retriever with minmax or none."
        )
    body = {"retriever": retriever, "size": k}
    return Snippet("elasticsearch", str(fusion), (("POST /<index>/_search", body),), tuple(notes))


def _opensearch(fusion: Fusion, runs: list[str], k: int, window: int) -> Snippet:
    if len(runs) > _MOST_QUERIES:
        raise _cannot(
            fusion, "opensearch", f"its hybrid query takes {_MOST_QUERIES} queries at most."
        )
    name, notes = fusion.spec.name, []
    combination: dict[str, Any]
    if name == "rrf":
        constant = _rank_fusion(fusion, "opensearch")
        combination = {"technique": "rrf", "rank_constant": constant}
        processor = {"score-ranker-processor": {"combination": combination}}
        notes.append("Fusion by rank needs OpenSearch 2.19 or newer, with weights 3.x.")
    elif name in ("interpolate", "comb_sum") and _norm(fusion) == "minmax":
        _absent_is_zero(fusion, "opensearch")
        combination = {"technique": "arithmetic_mean"}
        normalization = {"technique": "min_max"}
        processor = {
            "normalization-processor": {
                "normalization": normalization,
                "combination": combination,
            }
        }
        notes.append("The last document of a list gets 0.001 in OpenSearch; here: 0.")
    else:
        raise _cannot(
            fusion, "opensearch", "it has rrf, and means of scores after minmax without extras."
        )
    if _unequal(fusion):
        total = sum(fusion.weights)
        combination["parameters"] = {"weights": [w / total for w in fusion.weights]}
    pipeline = {"phase_results_processors": [processor]}
    hybrid = {
        "queries": [{f"<query of {run}>": {}} for run in runs],
        "pagination_depth": window,
    }
    search = {"query": {"hybrid": hybrid}, "size": k}
    notes.append("pagination_depth counts results of each shard.")
    requests = (
        ("PUT /_search/pipeline/<pipeline>", pipeline),
        ("POST /<index>/_search?search_pipeline=<pipeline>", search),
    )
    return Snippet("opensearch", str(fusion), requests, tuple(notes))


ENGINES: dict[str, Callable[[Fusion, list[str], int, int], Snippet]] = {
    "qdrant": _qdrant,
    "elasticsearch": _elasticsearch,
    "opensearch": _opensearch,
}


# -- what a fusion asks for ---------------------------------------------------------------------


def _rank_fusion(fusion: Fusion, engine: str) -> int:
    """The constant of an rrf for an engine that counts from 1 and whose weights multiply."""
    _no_synthetic_ranks(fusion, engine)
    if _unequal(fusion) and _weighs_ranks(fusion):
        raise _cannot(
            fusion, engine, "its weights multiply the score, and these divide the rank. Tune rrf()."
        )
    constant = _one_based_constant(fusion)
    if constant < 1:
        raise _cannot(fusion, engine, "its constant is at least 1, with ranks from 1.")
    return constant


def _one_based_constant(fusion: Any) -> int:
    """The k of an rrf that counts from 1 and gives the same scores."""
    from farfield.fusions.rrf import DIALECTS

    return int(fusion.constant) - 1 + DIALECTS[fusion.dialect].first_rank


def _weighs_ranks(fusion: Any) -> bool:
    from farfield.fusions.rrf import DIALECTS

    return DIALECTS[fusion.dialect].weigh_rank


def _unequal(fusion: Fusion) -> bool:
    # A weight that is the same for all still matters where it divides the rank.
    same = {1.0} if fusion.spec.name == "rrf" and _weighs_ranks(fusion) else set(fusion.weights[:1])
    return not set(fusion.weights) <= same


def _norm(fusion: Fusion) -> str:
    return str(getattr(fusion, "norm", ""))


def _absent_is_zero(fusion: Fusion, engine: str) -> None:
    # The lowest score after minmax is 0.
    if getattr(fusion, "absent", "zero") != "zero" and _norm(fusion) != "minmax":
        raise _cannot(fusion, engine, "it gives absent documents 0. Use absent='zero'.")


def _no_synthetic_ranks(fusion: Fusion, engine: str) -> None:
    if getattr(fusion, "absent", "zero") != "zero":
        raise _cannot(fusion, engine, "it gives absent documents nothing. Use absent='zero'.")


def _cannot(fusion: Fusion, engine: str, why: str) -> InputError:
    return InputError(f"{engine} cannot express {fusion}: {why}")
