"""What form a file has, told by its content, and what other people call our columns."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.io.files import Content
from farfield.io.text import fields_of, is_number
from farfield.tables import Allocation, Corpus, Partition, PerQuery, Qrels, Queries, Run

__all__ = ["Form", "form_of", "renamed"]

# An id is called one of the first names rather than ``id``, and ``id`` rather than one of the
# last: those are also what other columns are called.
_CALLED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "query_id": (("query-id", "qid", "q_id", "topic_id"), ("query", "topic")),
    "doc_id": (("corpus-id", "docid", "docno", "pid", "passage_id", "document_id"), ("doc",)),
    "relevance": (("rel", "label", "score", "grade", "judgement", "judgment"), ()),
    "score": (("sim", "similarity"), ()),
    "text": (("query", "contents", "passage", "body"), ()),
}
_KNOWN = {"_id", "id", "rank"}
_KNOWN |= {name for first, last in _CALLED.values() for name in (*first, *last)}
for _table in (Allocation, Corpus, Partition, PerQuery, Qrels, Queries, Run):
    _KNOWN |= set(_table.columns)


@dataclass(frozen=True)
class Form:
    """How a file is written.

    ``kind`` is ``parquet``, ``array`` or ``object`` (JSON that starts with one), ``header`` (a
    line of names comes first) or ``lines``. Names are separated by ``separator``, or by blanks.
    """

    kind: str
    names: tuple[str, ...] = ()
    separator: str | None = None


def form_of(content: Content) -> Form:
    """Tell the form of a file from its first line."""
    if content.data[:4] == b"PAR1":
        return Form("parquet")
    first = content.first_line()
    start = first.lstrip(b" \t")[:1]
    if start in (b"{", b"["):
        return Form("object" if start == b"{" else "array")
    separator = next((s for s in ("\t", ",") if s.encode() in first), None)
    fields = first.split(separator.encode()) if separator else fields_of(first)
    fields = [field.strip(b' "') for field in fields]
    names = [field.decode(errors="replace") for field in fields]
    if len(_KNOWN.intersection(names)) >= 2 and not any(map(is_number, fields)):
        return Form("header", tuple(names), separator)
    return Form("lines")


def renamed(names: list[str], wanted: list[str]) -> list[str]:
    """Call columns that are known under another name as we do.

    ``_id`` and ``id`` are the id of what the table holds, which is the first one wanted.
    """
    found: dict[str, str] = {}
    for name in wanted:
        if name in names:
            continue
        first, last = _CALLED.get(name, ((), ()))
        called = ("_id", *first, "id", *last) if name == wanted[0] else (*first, *last)
        other = next((c for c in called if c in names and c not in found), None)
        if other is not None:
            found[other] = name
    return [found.get(name, name) for name in names]
