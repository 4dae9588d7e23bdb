"""Sentences of a text, and windows of them. Rules only: nothing to install or to fetch."""

from __future__ import annotations

import re

__all__ = ["sentences", "windows"]

# Where a sentence may end: marks (and what closes), then blanks; marks of scripts without blanks;
# an empty line.
_WIDE = "\u3002\uff01\uff1f"
_ENDS = re.compile(
    r"[.!?…]+[\"'\u201d\u2019\u00bb)\]]*\s+"
    rf"|[{_WIDE}]+[\u300d\u300f\u201d]*\s*"
    r"|\s*\n\s*\n\s*"
)
_OPENING = "\"'\u201c\u2018\u00ab([\u00bf\u00a1*-\u2022"
# A full stop after these belongs to them.
_SHORT_WORDS = (
    "al approx art ca cf ch co col corp dept dr e.g ed eds eq eqs esp et etc ex fig "
    "figs gen gov i.e inc jr lt ltd max min mr mrs ms mt no nos nr op p pp prof ref "
    "refs rep resp rev sec sect sen sgt sp spp sr st suppl tab univ viz vol vols vs"
)
_SHORT = frozenset(_SHORT_WORDS.split())
# … unless a sentence may well end there.
_LAST = frozenset({"al", "co", "corp", "etc", "inc", "jr", "ltd", "sr"})


def sentences(text: str) -> list[str]:
    """Split a text where a mark ends a sentence and the next begins like one.

    No sentence ends after an initial ("J. Smith") or a common abbreviation ("Fig. 2", "e.g. this"),
    nor before a small letter.
    """
    found, start = [], 0
    for end in _ENDS.finditer(text):
        if _ends(text, start, end):
            found.append(text[start : end.end()].strip())
            start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    mark = end.group().strip()
    if not mark or not mark.startswith("."):
        # An empty line, or a mark that ends more than abbreviations.
        return not mark or mark[0] in _WIDE or not _small(text, end.end())
    if _small(text, end.end()):
        return False
    words = text[max(start, end.start() - 30) : end.start()].split()
    word = words[-1].lstrip(_OPENING) if words else ""
    if len(word) == 1 and word.isalpha() and word.isupper() and mark == ".":
        return False  # an initial
    known = word.lower()
    if known not in _SHORT:
        return True
    return known in _LAST and not _digit(text, end.end())


def _small(text: str, at: int) -> bool:
    rest = text[at : at + 8].lstrip(_OPENING)
    return bool(rest) and rest[0].islower()


def _digit(text: str, at: int) -> bool:
    return text[at : at + 8].lstrip(_OPENING)[:1].isdigit()


def windows(parts: list[str], window: int, stride: int) -> list[str]:
    """Join ``window`` sentences at a time, the next from ``stride`` further on, up to the end."""
    if not parts:
        return []
    last = max(0, len(parts) - window)
    firsts = range(0, last + stride, stride)
    return [" ".join(parts[first : first + window]) for first in firsts]
