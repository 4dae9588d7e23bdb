"""Indicators: how far apart two sets of queries are.

``parse("r(variant='cosine')")`` makes one from its spec, ``names()`` lists them, ``@add`` adds one;
``indicator.compare(sides)`` gives a reading: a value with its interval, beside what two sets of one
kind would give.
"""

from __future__ import annotations

from farfield.indicators.base import Indicator, Reading, Side, Sides
from farfield.registry import Family

__all__ = ["Indicator", "Reading", "Side", "Sides", "add", "get", "names", "parse"]

family: Family[Indicator] = Family("indicators", Indicator)

add = family.add
get = family.get
names = family.names
parse = family.parse
