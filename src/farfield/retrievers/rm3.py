"""RM3: expansion by a relevance model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from farfield.errors import SpecError
from farfield.retrievers._feedback import Feedback, Floats, Seen, leading, terms_of
from farfield.retrievers._sparse import SparseRetriever
from farfield.sparse import Weighted

__all__ = ["FORMS", "rm3"]


class Form(NamedTuple):
    """What an engine takes for granted."""

    docs: int
    terms: int
    weight: float


FORMS = {"terrier": Form(3, 10, 0.6), "anserini": Form(10, 10, 0.5)}

# Terms that more than this share of all documents have say little.
_COMMON = 0.1


@dataclass(frozen=True, kw_only=True)
class rm3(Feedback):
    """Query expansion by a relevance model (Lavrenko and Croft 2001) mixed with the query.

    The weight of a term is ``weight`` P(t | query) + (1 - ``weight``) P(t | feedback), where the
    ``terms`` most probable terms of the ``docs`` best documents share the second part.

    ``form='terrier'`` (3 documents, 10 terms, weight 0.6): P(t | feedback) is the sum over
    documents of tf / length times the softmax of their scores; only terms that at least 2 and less
    than a tenth of all documents have. ``form='anserini'`` (10, 10, 0.5): each document is cut to
    its ``terms`` most frequent terms, which share its score; only terms of 2 to 20 plain letters
    or digits that at most a tenth of all documents have.

    Relations: bo1 has no share to set and asks how unlikely a term is by chance.
    """

    base: SparseRetriever
    weight: float | None = None
    form: Literal["terrier", "anserini"] = "terrier"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise SpecError(f"weight is {self.weight}, expected a number from 0 to 1.")

    @property
    def depth(self) -> int:
        """How many documents are looked at."""
        return FORMS[self.form].docs if self.docs is None else self.docs

    def expand(self, asked: Weighted, seen: Seen) -> Weighted:
        """The query mixed with the relevance model of the feedback documents."""
        form = FORMS[self.form]
        number = form.terms if self.terms is None else self.terms
        share = form.weight if self.weight is None else self.weight
        if self.form == "terrier":
            seen = seen.keep(_terrier_terms(seen))
            shares = seen.count / seen.lengths[seen.document] * _softmax(seen)[seen.document]
        else:
            seen = seen.keep(_anserini_terms(seen))
            seen = seen.keep(leading(seen.document, seen.count, seen.term, number))
            sums = np.bincount(seen.document, seen.count, minlength=len(seen.scores))
            scores = np.maximum(seen.scores, 0.0)  # those of Terrier's BM25 may be negative
            shares = seen.count / sums[seen.document] * scores[seen.document]
        model = Weighted.of(seen.query, seen.term, shares, len(asked))
        kept = leading(model.query, model.weights, model.terms, number) & (model.weights > 0)
        query, term, weight = model.query[kept], model.terms[kept], model.weights[kept]
        total = np.bincount(query, weight, minlength=len(asked))
        feedback = (1.0 - share) * weight / total[query]
        own = share * asked.weights / asked.totals()[asked.query]
        return Weighted.of(
            np.concatenate((asked.query, query)),
            np.concatenate((asked.terms, term)),
            np.concatenate((own, feedback)),
            len(asked),
        )


def _terrier_terms(seen: Seen) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    df = seen.index.df[seen.term]
    return (df >= 2) & (df < _COMMON * len(seen.index))


def _anserini_terms(seen: Seen) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    terms, which = terms_of(seen.index, seen.term)
    plain = terms.str.contains("^[a-z0-9]{2,20}$").to_numpy()
    return plain[which] & (seen.index.df[seen.term] <= _COMMON * len(seen.index))


def _softmax(seen: Seen) -> Floats:
    """Of each document, e to its score; from the best of its query, so that none is too large."""
    best = np.full(int(seen.of_query.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(best, seen.of_query, seen.scores)
    # The sum over the results, by which a softmax divides, falls out when shares are made.
    found: Floats = np.exp(seen.scores - best[seen.of_query])
    return found
