"""Names for content and for what made it.

The same rows give the same 32 hex digits, on every machine and version.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

__all__ = ["fingerprint_of", "versions_of"]


def fingerprint_of(kind: str, frame: pl.DataFrame) -> str:
    """Hash names, types and values, column by column, in a layout of our own that will stay."""
    from hashlib import blake2b

    digest = blake2b(digest_size=16)
    digest.update(f"farfield-1 {kind} {len(frame)}".encode())
    for name in sorted(frame.columns):
        column = frame[name]
        digest.update(f"\n{name}:".encode())
        for start in range(0, len(column), 1_000_000):
            _hash_column(digest, column.slice(start, 1_000_000))
    return digest.hexdigest()


def _hash_column(digest: Any, column: pl.Series) -> None:
    if column.dtype.is_integer() or column.dtype == pl.Boolean:
        kind, values = b"i", column.cast(pl.Int64)
    elif column.dtype.is_float():
        kind, values = b"f", column.cast(pl.Float64)
    else:
        kind = b"s"
        if column.dtype.is_nested():  # lists and structs that ride along
            column = pl.Series(
                [None if v is None else repr(v) for v in column.to_list()], dtype=pl.String
            )
        values = column.cast(pl.String)
    digest.update(kind)
    digest.update(np.packbits(values.is_null().to_numpy()).tobytes())
    if kind == b"s":
        values = values.fill_null("")
        digest.update(values.str.len_bytes().to_numpy().astype("<u4").tobytes())
        digest.update("".join(values.to_list()).encode())
    else:
        digest.update(
            values.fill_null(0).to_numpy().astype("<i8" if kind == b"i" else "<f8").tobytes()
        )


def versions_of(*names: str) -> dict[str, str]:
    """Return the versions of those of these packages that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
