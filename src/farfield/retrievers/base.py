"""What all retrievers share: an index that is made once, kept in a folder and searched.

A retriever says how documents become an index (:meth:`Retriever._index`) and how one is opened
again (:meth:`Retriever._open`); an index answers queries (:meth:`Index.search`). The rest is done
here: a folder with a manifest, work that continues where it was stopped, and refusing a folder
that holds something else.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import FileError, InputError
from farfield.fingerprint import versions_of
from farfield.io.files import PathLike, load, write_json
from farfield.spec import Member
from farfield.tables import Corpus, Queries, Run

__all__ = ["Index", "Manifest", "Retriever", "divided", "numbers_of", "run_of"]

#: The form of index folders; one more whenever older programs could not read them.
FORMAT = 1

#: Beside what is finished: what was made so far, and of which job.
UNFINISHED = "unfinished"


class Index:
    """Documents, ready to be searched."""

    retriever: Retriever
    #: What the last search has to say about itself, for reports.
    report: Mapping[str, Any] = MappingProxyType({})

    def __len__(self) -> int:
        """Return the number of documents."""
        raise NotImplementedError(f"{type(self).__name__} defines no __len__")

    def search(self, queries: Queries, k: int = 1000, *, name: str | None = None) -> Run:
        """Return the best ``k`` documents of each query.

        Equal scores are ordered by document id, descending, as everywhere, at the cut as well. A
        query for which nothing is found is not in the run. The run is called ``name``, or as the
        retriever is spelled.
        """
        _check_k(k)
        return self._search(queries, k, name or str(self.retriever))

    def search_parts(
        self, queries: Queries, parts: Mapping[str, pl.Series], k: int = 1000
    ) -> dict[str, Run]:
        """Return the best ``k`` documents of each query in each part of the documents.

        ``parts`` are ids of documents by names, which the runs get. What is known of all documents
        (how rare a word is) counts in every part, so that scores of different parts can be
        compared: the runs together are what :meth:`search` finds, only deeper. For other
        statistics, index each part by itself.
        """
        _check_k(k)
        return self._search_parts(queries, parts, k)

    def using(self, retriever: Retriever) -> Index:
        """Return the same documents for another retriever, which must have the same content."""
        if retriever.content != self.retriever.content:
            raise InputError(
                f"the index of {self.retriever} holds {self.retriever.content}; {retriever} needs "
                f"{retriever.content}. Index the documents with {retriever}."
            )
        return self._using(retriever)

    @property
    def sizes(self) -> dict[str, Any]:
        """What there is to know about the size of it, for manifests and reports."""
        return {"documents": len(self)}

    def _using(self, retriever: Retriever) -> Index:
        """Another index on what this one holds, if members of one content may differ."""
        return self

    def _search(self, queries: Queries, k: int, name: str) -> Run:
        raise NotImplementedError(f"{type(self).__name__} defines no _search")

    def _search_parts(
        self, queries: Queries, parts: Mapping[str, pl.Series], k: int
    ) -> dict[str, Run]:
        """Right for any index, but all documents are ranked; members know better."""
        return divided(self._search(queries, len(self), str(self.retriever)), parts, k)


@dataclass(frozen=True, kw_only=True)
class Retriever(Member):
    """Documents become an index that answers queries.

    Members define ``_index(corpus, folder)`` and ``_open(folder)``; one whose index would serve
    other specs as well says in ``content`` what of the spec it depends on.
    """

    #: Does it need the extra ``neural``?
    neural: ClassVar[bool] = False

    @property
    def content(self) -> str:
        """What of the spec decides what is in the index folder; by default all of it."""
        return str(self)

    @property
    def inputs(self) -> dict[str, str]:
        """Fingerprints of what else goes into the index, such as files, by their names."""
        return {}

    def choices(self) -> dict[str, tuple[Any, ...]]:
        """Options that may be searched for the best, with values worth trying."""
        return {}

    def index(self, corpus: Corpus, folder: PathLike | None = None) -> Index:
        """Index documents, in memory or in a folder.

        A folder in which the same work was stopped is continued, one in which it was finished is
        opened. A folder that holds anything else is an error. No two processes may index into the
        same folder at the same time.
        """
        if not len(corpus):
            raise InputError("there are no documents to index.")
        if folder is None:
            return self._index(corpus, None)
        path = Path(folder)
        if not self._is_finished(path, corpus):
            self._claim(path, corpus)
            for cut_short in path.rglob(".*.tmp"):  # by a process that was killed while writing
                cut_short.unlink(missing_ok=True)
            index = self._index(corpus, path)
            Manifest.of(self, corpus, index).write(path)
        shutil.rmtree(path / UNFINISHED, ignore_errors=True)
        return self.open(path)

    def open(self, folder: PathLike) -> Index:
        """Open an index that this retriever, or one with the same content, wrote to a folder."""
        path = Path(folder)
        manifest = Manifest.read(path)
        if manifest.content != self.content:
            raise FileError(
                path,
                f"this index was made by {manifest.spec} and holds {manifest.content}; {self} "
                f"needs {self.content}. Index the documents again into another folder.",
            )
        return self._open(path)

    # -- what members say -------------------------------------------------------------------

    def _index(self, corpus: Corpus, folder: Path | None) -> Index:
        """Make the index; with a folder, put it there and continue what was left unfinished.

        What is only needed until then goes into ``folder / UNFINISHED``, which is removed at the
        end.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no _index")

    def _open(self, folder: Path) -> Index:
        """Open what :meth:`_index` left in the folder."""
        raise NotImplementedError(f"{type(self).__name__} defines no _open")

    # -- inside -----------------------------------------------------------------------------

    def _is_finished(self, folder: Path, corpus: Corpus) -> bool:
        if not (folder / Manifest.FILE).exists():
            return False
        manifest = Manifest.read(folder)
        found = {"content": manifest.content, "corpus": manifest.corpus, "inputs": manifest.inputs}
        self._check_same(folder, found, corpus, "holds an index")
        return True

    def _claim(self, folder: Path, corpus: Corpus) -> None:
        """Note whose unfinished work this folder holds, or see that it is ours."""
        note = folder / UNFINISHED / "job.json"
        if note.exists():
            self._check_same(folder, _read_json(note), corpus, "holds the unfinished index")
            return
        if folder.exists() and not folder.is_dir():
            raise FileError(folder, "this is a file; expected a folder for the index.")
        if folder.exists() and any(entry.name != UNFINISHED for entry in folder.iterdir()):
            raise FileError(folder, "this folder holds other files. Give a new or an empty folder.")
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(folder, f"cannot be made: {error.strerror or error}.") from error
        write_json(note, self._job(corpus))

    def _job(self, corpus: Corpus) -> dict[str, Any]:
        return {"content": self.content, "corpus": corpus.fingerprint, "inputs": self.inputs}

    def _check_same(self, folder: Path, found: dict[str, Any], corpus: Corpus, what: str) -> None:
        ours = self._job(corpus)
        different = [name for name in ours if found.get(name) != ours[name]]
        if not different:
            return
        other = {
            "content": f"of {found.get('content')}",
            "corpus": "of other documents",
            "inputs": "made with other files",
        }[different[0]]
        raise FileError(
            folder,
            f"this folder {what} {other}; {self} on these documents needs another. Give another "
            "folder, or remove this one.",
        )


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What an index folder holds: ``manifest.json``, written when all else is there."""

    FILE: ClassVar = "manifest.json"

    spec: str
    content: str
    corpus: str  # fingerprint
    inputs: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @classmethod
    def of(cls, retriever: Retriever, corpus: Corpus, index: Index) -> Self:
        """Describe an index that was just made."""
        return cls(
            spec=str(retriever),
            content=retriever.content,
            corpus=corpus.fingerprint,
            inputs=retriever.inputs,
            sizes=index.sizes,
            versions=versions_of("farfield", "numpy", "polars"),
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder, or say why there is none."""
        if not (folder / cls.FILE).is_file():
            unfinished = (folder / UNFINISHED).is_dir()
            raise FileError(
                folder,
                "indexing was not finished here. Index again into it to continue."
                if unfinished
                else f"this is not an index: there is no {cls.FILE} in it. Make one with "
                "farfield index SPEC CORPUS -o FOLDER.",
            )
        given = _read_json(folder / cls.FILE)
        if given.get("format") != FORMAT:
            raise FileError(
                folder,
                f"an index of format {given.get('format')!r}, expected {FORMAT}. Index the "
                "documents again with this version of farfield.",
            )
        try:
            return cls(**given)
        except TypeError:
            raise FileError(folder / cls.FILE, "this is not the manifest of an index.") from None

    def write(self, folder: Path) -> None:
        """Write ``manifest.json``."""
        write_json(folder / self.FILE, asdict(self))


def run_of(
    queries: Queries,
    bounds: npt.NDArray[np.int64],
    doc_ids: pl.Series,
    scores: npt.NDArray[np.float64],
    name: str,
) -> Run:
    """Make a run of results that are in ranked order already.

    ``bounds`` says where the results of each query start (and, last, how many there are).
    """
    codes = np.repeat(np.arange(len(queries), dtype=np.uint32), np.diff(bounds))
    names = queries.frame["query_id"].cast(pl.Categorical)  # codes in place of texts
    frame = pl.DataFrame({"query_id": names.gather(codes), "doc_id": doc_ids, "score": scores})
    return Run(frame, name=name, ties="file")


def divided(run: Run, parts: Mapping[str, pl.Series], k: int) -> dict[str, Run]:
    """Divide a run by documents; of each part the first ``k`` of every query."""
    rows = run.frame.with_columns(pl.col("query_id").cast(pl.String))
    return {
        name: Run(rows.join(ids.to_frame("doc_id"), on="doc_id", how="semi"), name=name).head(k)
        for name, ids in parts.items()
    }


def numbers_of(doc_ids: pl.Series, wanted: pl.Series) -> npt.NDArray[np.int64]:
    """Return the numbers of some documents among all, ascending."""
    known = doc_ids.to_frame("doc_id").with_row_index("number")
    found = known.join(wanted.to_frame("doc_id"), on="doc_id", how="semi", maintain_order="left")
    if len(found) < wanted.n_unique():
        strange = wanted.to_frame("doc_id").join(known, on="doc_id", how="anti")["doc_id"][0]
        raise InputError(
            f"document {strange!r} is not in the index. Give parts of the documents that were "
            "indexed."
        )
    return found["number"].to_numpy().astype(np.int64)


def _check_k(k: int) -> None:
    if k < 1:
        raise InputError(f"k is {k}, expected 1, 2, 3 … documents for each query.")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(load(path).text())
    except ValueError:
        raise FileError(path, "this is not JSON; the file is damaged.") from None
    if not isinstance(given, dict):
        raise FileError(path, "expected one JSON object.")
    return given
