"""What retrievers with a model share: documents as passages, models, results in ranked order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import neural
from farfield.errors import FileError, InputError, SpecError
from farfield.io.files import first_sentence, replacing
from farfield.neural.models import Kind
from farfield.retrievers import _neural_nearby as nearby
from farfield.retrievers._neural_sentences import sentences, windows
from farfield.retrievers._sparse import full_text
from farfield.retrievers.base import UNFINISHED, Index, Manifest, Retriever, numbers_of, run_of
from farfield.tables import Corpus, Queries, Run

__all__ = [
    "Asking",
    "Ints",
    "Modelled",
    "PassageIndex",
    "Passages",
    "Ranked",
    "check_windows",
    "open_array",
    "open_strings",
    "ranked",
    "sorted_corpus",
    "windows_said",
    "write_array",
    "write_passages",
    "write_strings",
]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Documents that are split into passages at a time.
_TOGETHER = 8_192
# At which the recall of an approximate search is measured.
_RECALL = 100
_NEARBY = "nearby.faiss"
# Pretended queries: the first sentences of so many documents.
_PRETENDED = 100


@dataclass(frozen=True, kw_only=True)
class Modelled(Retriever):
    """A retriever with a model, by path or name; it is loaded when it is first needed."""

    neural = True

    @property
    def kind(self) -> Kind:
        """What kind of model it needs."""
        raise NotImplementedError(f"{type(self).__name__} defines no kind")

    @cached_property
    def network(self) -> Any:
        """The model itself."""
        return neural.load(self.model_name, self.kind)

    @property
    def model_name(self) -> str:
        """The path or name of the model."""
        return str(getattr(self, "model"))  # noqa: B009  # a field of every member

    @cached_property
    def network_fingerprint(self) -> str:
        """What names the model's weights and settings."""
        return neural.fingerprint(self.network)

    @property
    def inputs(self) -> dict[str, str]:
        """The fingerprint of the model."""
        return {self.model_name: self.network_fingerprint}

    def check_model(self, fingerprint: str) -> None:
        """Refuse to ask an index with another model than the one that made it."""
        if self.network_fingerprint != fingerprint:
            raise InputError(
                f"the model {self.model_name} is not the one that made this index: its weights or "
                "settings have changed since. Index the documents again into another folder."
            )


# -- documents ------------------------------------------------------------------------------------


def sorted_corpus(corpus: Corpus) -> pl.DataFrame:
    """The documents in descending order of their ids, so that ties are in order by number."""
    return corpus.frame[corpus.frame["doc_id"].arg_sort(descending=True)]


def check_windows(window: int | None, stride: int | None) -> None:
    """See that windows cover all sentences."""
    if window is None:
        if stride is not None:
            raise SpecError(f"stride is {stride} without a window. Give window=10 as well.")
        return
    if window < 1:
        raise SpecError(f"window is {window}, expected 1, 2, 3 … sentences.")
    if stride is not None and not 1 <= stride <= window:
        raise SpecError(f"stride is {stride}, expected 1 to {window}, the window.")


def windows_said(window: int | None, stride: int | None) -> str:
    """How documents are split, as part of what an index holds."""
    if window is None:
        return ""
    return f", window={window}" + ("" if stride is None else f", stride={stride}")


class Passages:
    """The texts of documents, whole or in windows of sentences; made anew whenever asked for.

    ``documents`` are ids in descending order, ``owner`` says which of them each passage is of. A
    document without text has no passage, and will not be found.
    """

    def __init__(self, corpus: Corpus, window: int | None = None, stride: int | None = None):
        self._frame, self._window = sorted_corpus(corpus), window
        self._stride = max(1, (window or 2) // 2) if stride is None else stride
        self.documents = self._frame["doc_id"]
        counts = [np.zeros(0, np.int64)]
        counts += [np.array([len(texts) for texts in part], np.int64) for part in self._parts()]
        self.owner = np.repeat(np.arange(len(self.documents)), np.concatenate(counts))
        if not len(self.owner):
            raise InputError("none of the documents has any text.")

    def __len__(self) -> int:
        return len(self.owner)

    def __iter__(self) -> Iterator[str]:
        for part in self._parts():
            for texts in part:
                yield from texts

    def _parts(self) -> Iterator[list[list[str]]]:
        for first in range(0, len(self._frame), _TOGETHER):
            some = self._frame.slice(first, _TOGETHER)
            whole = full_text(some).str.strip_chars().to_list()
            if self._window is None:
                yield [[text] if text else [] for text in whole]
                continue
            bodies = some["text"].to_list()
            titles = some["title"].to_list() if "title" in some.columns else [None] * len(some)
            yield [self._windows(*document) for document in zip(titles, bodies, whole, strict=True)]

    def _windows(self, title: str | None, body: str, whole: str) -> list[str]:
        """Windows of a text, each behind the title."""
        assert self._window is not None
        found = windows(sentences(body), self._window, self._stride)
        if not found:  # a title at most
            return [whole] if whole else []
        return [f"{title or ''} {text}".strip() for text in found]

    def pretended(self) -> list[str]:
        """First sentences of some documents, in place of queries that are not known yet."""
        rows = np.unique(np.linspace(0, len(self) - 1, _PRETENDED).astype(np.int64))
        wanted = set(rows.tolist())
        return [sentences(text)[0] for at, text in enumerate(self) if at in wanted]


# -- queries ------------------------------------------------------------------------------------


class Asking(NamedTuple):
    """Those queries that have text; a blank one asks nothing and finds nothing."""

    texts: list[str]
    rows: Ints  # which of all queries they are
    total: int  # how many queries there are in all

    @classmethod
    def of(cls, queries: Queries) -> Asking:
        """Leave out what is blank."""
        texts = queries.frame["text"].to_list()
        rows = [at for at, text in enumerate(texts) if text.strip()]
        return cls([texts[at] for at in rows], np.array(rows, dtype=np.int64), len(texts))

    def spread(self, bounds: Ints) -> Ints:
        """Bounds of the results of all queries, from those of the queries that have text."""
        counts = np.zeros(self.total, dtype=np.int64)
        counts[self.rows] = np.diff(bounds)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


class Ranked(NamedTuple):
    """Documents (by number) of queries one after the other; query ``i`` starts at ``bounds[i]``."""

    bounds: Ints
    docs: Ints
    scores: Floats


def ranked(query: Ints, doc: Ints, score: npt.NDArray[Any], k: int, queries: int) -> Ranked:
    """The best ``k`` documents of each query; of several scores of a document the best counts.

    Equal scores are in the order of the documents' numbers.
    """
    if not np.isfinite(score).all():
        raise InputError(
            "the model gives a score that is infinite or not a number. Check its weights."
        )
    score = score.astype(np.float64)
    order = np.lexsort((-score, doc, query))
    query, doc, score = query[order], doc[order], score[order]
    first = np.ones(len(query), dtype=np.bool_)
    first[1:] = (query[1:] != query[:-1]) | (doc[1:] != doc[:-1])
    query, doc, score = query[first], doc[first], score[first]
    order = np.lexsort((doc, -score, query))
    query, doc, score = query[order], doc[order], score[order]
    kept = np.arange(len(query)) - np.searchsorted(query, query) < k
    bounds = np.searchsorted(query[kept], np.arange(queries + 1))
    return Ranked(bounds, doc[kept], score[kept])


def _share_kept(exact: Ranked, found: Ranked) -> float:
    """What share of the exact results is among those found?"""
    most = max(int(one.docs.max(initial=0)) for one in (exact, found)) + 1
    wanted, there = (
        np.repeat(np.arange(len(one.bounds) - 1), np.diff(one.bounds)) * most + one.docs
        for one in (exact, found)
    )
    return float(np.isin(wanted, there).mean()) if len(wanted) else 1.0


class PassageIndex(Index):
    """Passages in some form (``held``), each of a document (``owner``), and the model of it.

    Members say how queries are encoded and searched. A search that is not exact has something that
    names candidates (``nearby``), and ``recall`` is what share of the exact results it keeps.
    """

    retriever: Any  # Modelled, of the member's own class

    def __init__(
        self, retriever: Modelled, doc_ids: pl.Series, owner: Ints, held: Any, fingerprint: str
    ) -> None:
        self.retriever, self.doc_ids, self.owner = retriever, doc_ids, owner
        self.held, self.fingerprint = held, fingerprint
        self.nearby: Any = None
        self.recall: float | None = None

    def __len__(self) -> int:
        return len(self.doc_ids)

    @classmethod
    def opened(cls, retriever: Modelled, folder: Path, held: Any, fingerprint: str) -> Self:
        """Open what :func:`write_passages` and :func:`nearby.write` left in a folder."""
        documents = open_strings(folder / "documents.arrow")["doc_id"]
        made = cls(retriever, documents, open_array(folder / "owner.npy"), held, fingerprint)
        if (folder / _NEARBY).exists():
            made.nearby = nearby.open_nearby(folder / _NEARBY)
            made.recall = Manifest.read(folder).sizes.get(f"recall_at_{_RECALL}")
        return made

    def approximate(self, by: Any, texts: list[str], folder: Path | None) -> None:
        """Find candidates with this from now on, and measure with these texts what that keeps."""
        self.nearby = by
        self.recall = self.recall_of(texts)
        if folder is not None:
            nearby.write(by, folder / _NEARBY, folder / UNFINISHED)

    @property
    def sizes(self) -> dict[str, Any]:
        """Documents, passages, how they are held and, unless the search is exact, its recall."""
        found = {"documents": len(self), "passages": len(self.owner), **self.held.sizes}
        return found if self.recall is None else {**found, f"recall_at_{_RECALL}": self.recall}

    def recall_of(self, texts: list[str], k: int = _RECALL) -> float:
        """What share of the exact best ``k`` documents of these queries is found."""
        asked = self._encoded(texts)
        return _share_kept(self._exact(asked, k), self._found(asked, k))

    def _using(self, retriever: Retriever) -> Self:
        assert isinstance(retriever, Modelled)  # it has the same content
        other = type(self)(retriever, self.doc_ids, self.owner, self.held, self.fingerprint)
        other.nearby, other.recall = self.nearby, self.recall
        return other

    def _search(self, queries: Queries, k: int, name: str) -> Run:
        self.retriever.check_model(self.fingerprint)
        if self.recall is not None:
            self.report = {f"recall_at_{_RECALL}": self.recall}
        asking = Asking.of(queries)
        return self._answer(queries, asking, self._encoded(asking.texts), k, name)

    def _search_parts(
        self, queries: Queries, parts: Mapping[str, pl.Series], k: int
    ) -> dict[str, Run]:
        """Queries are encoded once. A part is always searched exactly."""
        self.retriever.check_model(self.fingerprint)
        asking = Asking.of(queries)
        asked = self._encoded(asking.texts)
        found = {}
        for name, ids in parts.items():
            part = self._part(numbers_of(self.doc_ids, ids))
            found[name] = part._answer(queries, asking, asked, k, name)
        return found

    def _part(self, docs: Ints) -> Self:
        """Some of the documents (numbers, ascending)."""
        rows = np.flatnonzero(np.isin(self.owner, docs))
        owner = np.searchsorted(docs, self.owner[rows])
        doc_ids, held = self.doc_ids.gather(docs), self.held.part(rows)
        return type(self)(self.retriever, doc_ids, owner, held, self.fingerprint)

    def _answer(self, queries: Queries, asking: Asking, asked: Any, k: int, name: str) -> Run:
        best = self._found(asked, k)
        doc_ids = self.doc_ids.gather(best.docs)
        return run_of(queries, asking.spread(best.bounds), doc_ids, best.scores, name)

    def _found(self, asked: Any, k: int) -> Ranked:
        if not len(self.owner):  # a part of documents without text
            return Ranked(np.zeros(len(asked) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        return self._exact(asked, k) if self.nearby is None else self._by_candidates(asked, k)

    # -- what members say -------------------------------------------------------------------

    def _encoded(self, texts: list[str]) -> Any:
        """Queries, as the model sees them."""
        raise NotImplementedError(f"{type(self).__name__} defines no _encoded")

    def _exact(self, asked: Any, k: int) -> Ranked:
        """The best documents of all."""
        raise NotImplementedError(f"{type(self).__name__} defines no _exact")

    def _by_candidates(self, asked: Any, k: int) -> Ranked:
        """The best documents of those that :attr:`nearby` names."""
        raise NotImplementedError(f"{type(self).__name__} defines no _by_candidates")


# -- files --------------------------------------------------------------------------------------


def write_passages(passages: Passages, folder: Path) -> None:
    """Write the documents, and which of them each passage is of."""
    write_strings(folder / "documents.arrow", passages.documents.to_frame())
    write_array(folder / "owner.npy", passages.owner)


def write_strings(path: Path, columns: pl.DataFrame) -> None:
    """Write columns of texts."""
    with replacing(path) as file:
        columns.write_ipc(file)


def open_strings(path: Path) -> pl.DataFrame:
    """Open columns of texts; they are mapped, not read."""
    try:
        return pl.read_ipc(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _damaged(path, error) from error


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


def open_array(path: Path) -> npt.NDArray[Any]:
    """Open an array; it is mapped, not read."""
    try:
        found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    return found


def _damaged(path: Path, error: Exception) -> FileError:
    reason = first_sentence(error)
    return FileError(path, f"this index is damaged ({reason}). Remove it and index again.")
