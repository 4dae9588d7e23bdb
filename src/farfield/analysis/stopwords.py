"""Words that name nothing."""

from __future__ import annotations

__all__ = ["LISTS", "STOP_WORDS"]

#: Words that name nothing, in questions and keyword queries.
_COMMON = """
a about after all also am an and any anyone are as at be because been before being best between
both but by can could did do does doing done down during each every explain facts few find for
from get give had has have having he her here him his how i if in into is it its just kind know
list long many may me mean meaning means might more most much must my need no nor not now of off
on once one only or other our out over own part please same say she should so some such take
tell than that the their them then there these they thing this those through to too type under
until up us use used using very was way we were what when where whether which while who whom
whose why will with without would you your
"""
STOP_WORDS = frozenset(_COMMON.split())

#: What Lucene leaves out of English texts.
_LUCENE = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""

#: Lists by name: ``lucene`` is short and made for documents, ``questions`` long and ours.
LISTS: dict[str, frozenset[str]] = {
    "lucene": frozenset(_LUCENE.split()),
    "questions": STOP_WORDS,
    "none": frozenset(),
}
