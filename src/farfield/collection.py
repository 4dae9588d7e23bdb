"""The bundle everything starts from: a corpus, queries, judgements, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from farfield.errors import InputError, did_you_mean
from farfield.tables import Corpus, Qrels, Queries

__all__ = ["Card", "Collection"]


@dataclass(frozen=True, kw_only=True)
class Card:
    """Where a collection comes from and what one may do with it."""

    licence: str = ""
    citation: str = ""
    revision: str = ""
    description: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the entries that are filled in."""
        return {key: value for key, value in asdict(self).items() if value}


class Collection:
    """A corpus, queries and judgements by split (``train``, ``test`` …).

    Each part may be given as a table or as a function that makes it when it is first asked for:
    who only needs the queries of MS MARCO does not wait for its passages.
    """

    def __init__(
        self,
        name: str,
        *,
        corpus: Corpus | Callable[[], Corpus],
        queries: Queries | Callable[[], Queries],
        qrels: Mapping[str, Qrels | Callable[[], Qrels]],
        card: Card | None = None,
    ) -> None:
        self.name = name
        self.card = card or Card()
        self.qrels: Mapping[str, Qrels] = _Splits(name, qrels)
        self._corpus, self._queries = corpus, queries

    @cached_property
    def corpus(self) -> Corpus:
        """The documents."""
        return self._corpus if isinstance(self._corpus, Corpus) else self._corpus()

    @cached_property
    def queries(self) -> Queries:
        """All queries, of every split."""
        return self._queries if isinstance(self._queries, Queries) else self._queries()

    def queries_of(self, split: str) -> Queries:
        """Return the queries that are judged in a split."""
        return self.queries.select(self.qrels[split].query_ids)

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits that name the content of all parts."""
        from hashlib import blake2b

        digest = blake2b(digest_size=16)
        parts = [self.corpus, self.queries, *(self.qrels[s] for s in sorted(self.qrels))]
        digest.update(" ".join([*sorted(self.qrels), *(p.fingerprint for p in parts)]).encode())
        return digest.hexdigest()

    def check(self) -> None:
        """Raise if a judgement names a query or document that is not in the collection."""
        for split, qrels in self.qrels.items():
            for column, known in (("query_id", self.queries), ("doc_id", self.corpus)):
                stray = qrels.frame.join(known.frame.select(column), on=column, how="anti")
                if len(stray):
                    raise InputError(
                        f"{self.name}: the {split} judgements name {column} {stray[column][0]!r}, "
                        f"which is not among the {len(known):,} {type(known).__name__.lower()} "
                        f"rows ({len(stray):,} such judgements). Add it, or drop the judgements."
                    )

    def __repr__(self) -> str:
        return f"<Collection {self.name!r}: {', '.join(self.qrels)}>"


class _Splits(Mapping[str, Qrels]):
    """Judgements by split, made when first asked for."""

    def __init__(self, name: str, parts: Mapping[str, Any]) -> None:
        self._name, self._parts = name, dict(parts)

    def __getitem__(self, split: str) -> Qrels:
        if split not in self._parts:
            raise InputError(
                f"{self._name} has no split {split!r}.{did_you_mean(split, self._parts)} "
                f"It has {', '.join(self._parts) or 'none'}."
            )
        part: Qrels | Callable[[], Qrels] = self._parts[split]
        if not isinstance(part, Qrels):
            part = self._parts[split] = part()
        return part

    def __contains__(self, split: object) -> bool:
        return split in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)
