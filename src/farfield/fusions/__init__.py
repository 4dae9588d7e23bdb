"""Fusions: several rankings become one.

``parse("rrf(k=60)")`` makes one from its spec, ``names()`` lists them, ``@add`` adds one;
``fusion.fuse(runs)`` gives a run.
"""

from __future__ import annotations

from farfield.fusions.base import Fusion
from farfield.registry import Family

__all__ = ["Fusion", "add", "get", "names", "parse"]

family: Family[Fusion] = Family("fusions", Fusion)

add = family.add
get = family.get
names = family.names
parse = family.parse
