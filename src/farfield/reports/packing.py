"""Data inside a page: JSON, compressed, in letters that HTML cannot mistake for anything else.

What comes from queries and documents is never written into the page as text. It travels as base64
of deflated JSON, and the page's script shows it as text, whatever it holds.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import polars as pl

__all__ = ["Packed", "column", "pack", "pack_text", "single_precision"]

#: How many bytes there were before they were compressed, and the letters they became.
Packed = tuple[int, str]

_DIGITS = 6  # significant; the csv that the page gives away has as many


def pack(content: Any) -> Packed:
    """Return how many bytes the content has as JSON, and the letters that carry it."""
    return pack_text(
        json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    )


def pack_text(text: str) -> Packed:
    """The same for a text, like a script."""
    data = text.encode(errors="replace")  # half a surrogate pair is no text
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
    return len(data), base64.b64encode(squeeze.compress(data) + squeeze.flush()).decode()


def column(values: pl.Series) -> Any:
    """Return a column for JSON: a list, or where texts repeat the different ones and their places.

    Numbers have six significant digits; what is no number (NaN, infinite) is null.
    """
    if values.dtype.is_float():
        finite = pl.select(pl.when(values.is_finite()).then(values)).to_series()
        return finite.cast(pl.Float64).round_sig_figs(_DIGITS).to_list()
    if values.dtype.is_integer() or values.dtype == pl.Boolean:
        return values.to_list()
    texts = values.cast(pl.String)
    known = texts.drop_nulls().unique(maintain_order=True)
    if 2 * len(known) > len(texts):
        return texts.to_list()
    place = texts.replace_strict(known, list(range(len(known))), return_dtype=pl.Int64)
    return {"texts": known.to_list(), "places": place.to_list()}


def single_precision(content: Any) -> Any:
    """Return a figure's JSON with its long arrays of numbers in single precision.

    A screen has a few thousand points across. Arrays come as lists or in plotly's own form,
    ``{"dtype": …, "bdata": …}``.
    """
    if isinstance(content, dict):
        if set(content) >= {"dtype", "bdata"} and content["dtype"] == "f8":
            data = np.frombuffer(base64.b64decode(content["bdata"]), dtype="<f8")
            return content | _typed(data)
        return {key: single_precision(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        if len(content) > 50 and all(isinstance(value, float) for value in content):
            return _typed(np.array(content))
        return [single_precision(value) for value in content]
    if isinstance(content, float) and not np.isfinite(content):
        return None
    return content


def _typed(values: np.ndarray) -> dict[str, str]:
    data = values.astype("<f4").tobytes()
    return {"dtype": "f4", "bdata": base64.b64encode(data).decode()}
