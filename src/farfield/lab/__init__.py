"""The embedded collection: a generated world in which the truth is known.

Entities of several topics, passages that three sources write about them, and queries that ask
about them in many phrasings, split into train and test. It is made from a seed in a second and
needs no download. How near each test query is to training, and why, is recorded, so that a
method can be judged by whether it finds what was planted.

    >>> from farfield import lab
    >>> small = lab.make(passages=60, train=80, test=20)
    >>> small.truth["kind"].n_unique() > 3
    True
"""

from __future__ import annotations

from farfield.lab.making import KINDS, Lab, make
from farfield.lab.planting import EDITS
from farfield.lab.systems import runs
from farfield.lab.topic import SOURCES, TOPICS

__all__ = ["EDITS", "KINDS", "SOURCES", "TOPICS", "Lab", "make", "runs"]
