"""Texts become terms: words, stop words, stems.

``Analyser().analyse(texts)`` gives the terms of many texts in integer codes.
"""

from __future__ import annotations

from farfield.analysis.analyser import Analyser, Terms, stemmers
from farfield.analysis.stopwords import LISTS, STOP_WORDS
from farfield.analysis.words import TOKENISERS

__all__ = ["LISTS", "STOP_WORDS", "TOKENISERS", "Analyser", "Terms", "stemmers"]
