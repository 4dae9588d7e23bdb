"""Shifts: a collection's queries become folds of training, near and far queries.

``parse("resttest(buckets=5)")`` makes one from its spec, ``names()`` lists them, ``@add`` adds one;
``shift.deal(collection)`` gives the folds, with everything that was left out counted.
"""

from __future__ import annotations

from farfield.registry import Family
from farfield.shifts.base import Dealt, Fold, Grouped, Groups, Pool, Shift

__all__ = ["Dealt", "Fold", "Grouped", "Groups", "Pool", "Shift", "add", "get", "names", "parse"]

family: Family[Shift] = Family("shifts", Shift)

add = family.add
get = family.get
names = family.names
parse = family.parse
