"""Measures: what a ranking is worth, query by query.

``parse("nDCG@10")`` makes one from its spec, ``names()`` lists them, ``@add`` adds one. Names and
grammar are those of ir_measures; a measure that is not here is handed to ir_measures when that is
installed.
"""

from __future__ import annotations

from farfield.measures.base import Measure
from farfield.registry import Family

__all__ = ["Measure", "add", "get", "names", "parse"]


def _borrowed(text: str) -> Measure | None:
    from farfield.measures._borrowed import borrow

    return borrow(text)


family: Family[Measure] = Family("measures", Measure, otherwise=_borrowed)

add = family.add
get = family.get
names = family.names
parse = family.parse
