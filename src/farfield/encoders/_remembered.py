"""Vectors kept from one time to the next, because making them takes long.

They lie in the folder that FARFIELD_CACHE names (``off``: nothing is kept), else in the user's
cache folder; deleting them costs only time. A name stands for all that decides the vectors: the
texts in their order, the encoder, the libraries. Beside the numbers lies a digest of them; what
does not match it is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.errors import FarfieldWarning, FileError
from farfield.fingerprint import fingerprint_of
from farfield.io.files import replacing

__all__ = ["remembered"]

_FORMAT = 1

Matrix = npt.NDArray[np.float32]


def remembered(
    encoder: dict[str, Any],
    libraries: Sequence[str],
    texts: Sequence[pl.Series],
    make: Callable[[], npt.NDArray[np.floating]],
) -> Matrix:
    """Return what ``make()`` gives, a row for each text, from an earlier time if there was one.

    ``encoder`` says what decides the vectors besides the texts, and ``libraries`` with which
    packages they are made.
    """
    folder = _folder()
    if folder is None:
        return _plain(make())
    every = pl.concat([series.alias("text") for series in texts])
    manifest = {
        "format": _FORMAT,
        "encoder": encoder,
        "libraries": {name: version(name) for name in sorted({*libraries, "farfield"})},
        "texts": fingerprint_of("texts", every.to_frame()),
    }
    name = blake2b(json.dumps(manifest, sort_keys=True).encode(), digest_size=16).hexdigest()
    found = _read(folder / name, len(every))
    if found is None:
        found = _plain(make())
        _write(folder / name, found, manifest)
    return found


def _folder() -> Path | None:
    chosen = os.environ.get("FARFIELD_CACHE")
    if chosen:
        return None if chosen == "off" else Path(chosen).expanduser() / "vectors"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "farfield" / "vectors"


def _plain(vectors: npt.NDArray[np.floating]) -> Matrix:
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _digest(vectors: Matrix) -> str:
    digest = blake2b(f"{vectors.shape}".encode(), digest_size=16)
    digest.update(vectors.data)
    return digest.hexdigest()


def _read(path: Path, rows: int) -> Matrix | None:
    """Return the vectors kept under this name, or nothing if they are not there or damaged."""
    try:
        manifest = json.loads(path.with_suffix(".json").read_bytes())
        vectors = np.load(path.with_suffix(".npy"), allow_pickle=False)
        if vectors.dtype == np.float32 and vectors.shape[:1] == (rows,) and vectors.ndim == 2:
            return vectors if manifest["digest"] == _digest(vectors) else None
    except (OSError, EOFError, ValueError, TypeError, KeyError):
        pass
    return None


def _write(path: Path, vectors: Matrix, manifest: dict[str, Any]) -> None:
    whole = manifest | {"shape": vectors.shape, "digest": _digest(vectors)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path.with_suffix(".npy")) as file:
            np.save(file, vectors, allow_pickle=False)
        with replacing(path.with_suffix(".json")) as file:
            file.write(json.dumps(whole, indent=1, sort_keys=True).encode())
    except (OSError, FileError) as error:
        warn(
            f"the vectors cannot be kept for the next time ({error}). Let FARFIELD_CACHE name a "
            "folder that can be written, or set it to off.",
            FarfieldWarning,
            stacklevel=2,
        )
