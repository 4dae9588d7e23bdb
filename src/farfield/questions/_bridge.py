"""Sources that describe the same things can vouch for one another: reranking across them.

Where a query wants the same thing from every source, a result that resembles the best results of
the other sources is more likely the one. What they have in common raises its score:

    s'_i = s_i + weight * b * mean over other sources of sum_j p_j cos(d_i, d_j)

over the ``top`` results j of a source, with p = softmax(s / b). The scale b is the mean excess of
the tails of all lists (:attr:`farfield.allocations.Lists.tails`), so that a weight means the same
for cosines and for BM25. Nothing is learned, and any policy may share out what comes out.

It helped where sources overlap and vectors knew what the scores did not (BM25, tuned encoders), and
hurt where they did not (MiniLM's own scores on short descriptions) or where sources are topical:
the best results of a source that has nothing to say vouch for what they resemble by chance. So it
is not a default; docs/multi-source.md has the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import allocations, encoders
from farfield.allocations import Lists
from farfield.encoders import Encoder
from farfield.errors import InputError
from farfield.retrievers._sparse import full_text
from farfield.tables import Corpus, Queries, Run

__all__ = ["DocumentVectors", "bridge", "document_vectors"]

Floats = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

# Queries that are reranked together: the vectors of all their results are held at once.
_TOGETHER = 128


@dataclass(frozen=True, eq=False)
class DocumentVectors:
    """A vector of length 1 for every document (or of zeros, where nothing is known of it)."""

    doc_ids: pl.Series
    values: Matrix

    def rows_of(self, run: Run) -> Ints:
        """Return the row of every result of a run, in ranked order."""
        known = self.doc_ids.to_frame("doc_id").with_row_index("row")
        found = run.doc_ids.to_frame("doc_id").join(
            known, on="doc_id", how="left", maintain_order="left"
        )
        strange = found.filter(pl.col("row").is_null())
        if len(strange):
            raise InputError(
                f"document {strange['doc_id'][0]!r} of {run.name!r} has no vector "
                f"({len(strange):,} such results). Encode the documents that the runs are of."
            )
        return found["row"].to_numpy().astype(np.int64)


def document_vectors(corpus: Corpus, encoder: str | Encoder) -> DocumentVectors:
    """Encode documents (title and text) with an encoder or its spec, like ``"lsa()"``."""
    texts = pl.DataFrame({"query_id": corpus.frame["doc_id"], "text": full_text(corpus.frame)})
    (values,) = encoders.parse(encoder).encode(Queries.trusted(texts))
    return DocumentVectors(corpus.frame["doc_id"], values)


def bridge(
    runs: Mapping[str, Run], vectors: DocumentVectors, *, weight: float = 2.0, top: int = 10
) -> dict[str, Run]:
    """Rerank the results of each source by how much they resemble the best of the others.

    A ``weight`` of 2 is small: it helps a little and does little harm. Results stay within their
    source, and all that a run has are reranked. Runs should be 101 results deep, for the scale.
    """
    if not 0 <= weight < np.inf:
        raise InputError(f"weight is {weight}, expected a number from 0.")
    if top < 1:
        raise InputError(f"top is {top}, expected 1, 2, 3 … results of each source.")
    lists = allocations.gather(runs)
    rows = [vectors.rows_of(run) for run in lists.runs]
    scale = float(lists.tails.mean())
    shares = _shares(lists, top, scale)
    raised = np.zeros(lists.scores.shape)
    for first in range(0, len(lists.query_ids), _TOGETHER):
        some = slice(first, first + _TOGETHER)
        held = [_held(lists, rows[at], vectors.values, at, some) for at in range(len(rows))]
        # What each source vouches for: its best results, in proportion to their shares.
        best = np.stack(
            [
                np.einsum("qj,qjd->qd", shares[some, at, : one.shape[1]], one[:, :top])
                for at, one in enumerate(held)
            ],
            axis=1,
        )
        others = (best.sum(axis=1, keepdims=True) - best) / (len(rows) - 1)
        for at, one in enumerate(held):
            raised[some, at, : one.shape[1]] = np.einsum("qid,qd->qi", one, others[:, at])
    return {
        run.name: _rescored(lists, at, lists.scores[:, at] + weight * scale * raised[:, at])
        for at, run in enumerate(lists.runs)
    }


def _shares(lists: Lists, top: int, scale: float) -> Floats:
    """The softmax of the first results of each list; zeros where there is none."""
    scores = lists.scores[:, :, :top] / scale
    highest = scores.max(axis=2, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(highest), highest, 0.0))
    total = weights.sum(axis=2, keepdims=True)
    found: Floats = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return found


def _held(lists: Lists, rows: Ints, values: Matrix, source: int, some: slice) -> Matrix:
    """The vectors of all results that a source has for some queries; zeros where a list ends."""
    there = lists.there[some, source]
    width = int(there.sum(axis=1).max(initial=1))
    query, rank = np.nonzero(there)
    held = np.zeros((len(there), max(width, 1), values.shape[1]), dtype=np.float32)
    held[query, rank] = values[rows[lists.firsts[some, source][query] + rank]]
    return held


def _rescored(lists: Lists, source: int, scores: Floats) -> Run:
    """The run of a source with other scores."""
    run = lists.runs[source]
    query, rank = np.nonzero(lists.there[:, source])
    frame = pl.DataFrame(
        {
            "query_id": lists.query_ids.cast(pl.String).gather(query),
            "doc_id": run.doc_ids.gather(lists.firsts[query, source] + rank),
            "score": scores[query, rank],
        }
    )
    return Run(frame, name=run.name)
