"""Texts become terms: words, stop words, stems."""

from __future__ import annotations

from farfield.analysis.stopwords import STOP_WORDS

__all__ = ["STOP_WORDS"]
