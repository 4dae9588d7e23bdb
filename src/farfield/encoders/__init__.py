"""Encoders: queries become vectors whose inner product says how alike they are.

``parse("lsa(dimensions=64)")`` makes one from its spec, ``names()`` lists them, ``@add`` adds one;
``encoder.encode(train, test)`` gives a matrix for each set of queries, in one space.
"""

from __future__ import annotations

from farfield.encoders.base import Encoder
from farfield.registry import Family

__all__ = ["Encoder", "add", "default", "get", "names", "parse"]

family: Family[Encoder] = Family("encoders", Encoder)

add = family.add
get = family.get
names = family.names
parse = family.parse


def default() -> Encoder:
    """The encoder that is taken unless another is asked for: it needs no download."""
    return parse("lsa()")
