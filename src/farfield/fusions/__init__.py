"""Fusions: several rankings become one.

``parse("rrf(k=60)")`` makes one from its spec, ``names()`` lists them, ``@add`` adds one;
``fusion.fuse(runs)`` gives a run; ``export(fusion, "qdrant", names)`` says it to an engine.
"""

from __future__ import annotations

from farfield.fusions._engines import ENGINES, Snippet, export
from farfield.fusions.base import Fusion
from farfield.registry import Family

__all__ = ["ENGINES", "Fusion", "Snippet", "add", "export", "get", "names", "parse"]

family: Family[Fusion] = Family("fusions", Fusion)

add = family.add
get = family.get
names = family.names
parse = family.parse
