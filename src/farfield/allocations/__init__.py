"""Allocations: a query goes to several sources and k results come back; who gives how many?

``parse("local()")`` makes a policy from its spec, ``names()`` lists them, ``@add`` adds one.
``gather(runs)`` brings the lists of all sources together; ``policy.pick(lists, k)`` says which
results each query gets (``picks.allocation``, ``picks.run()``). What a policy leaves open is
learned from ``label(lists, qrels)`` by ``policy.fit(lists, labels, k)``.
"""

from __future__ import annotations

from farfield.allocations._labels import Labels, label
from farfield.allocations._lists import Lists, gather
from farfield.allocations._picks import Picks
from farfield.allocations.base import Keyed, Policy, Split
from farfield.registry import Family

__all__ = [
    "Keyed",
    "Labels",
    "Lists",
    "Picks",
    "Policy",
    "Split",
    "add",
    "gather",
    "get",
    "label",
    "names",
    "parse",
]

family: Family[Policy] = Family("allocations", Policy)

add = family.add
get = family.get
names = family.names
parse = family.parse
