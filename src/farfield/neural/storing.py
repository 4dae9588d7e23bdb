"""Encoded texts on disk: written shard by shard, continued after a stop, read without loading.

A folder holds ``manifest.json`` and the arrays of every shard as plain ``.npy`` files. A shard is
always the same texts in the same batches, so a run that was killed and continued gives the same
bytes as one that was not (on a CPU; a GPU may round otherwise from run to run). The manifest counts
a shard only when its files are complete, and knows its texts, so that vectors of other texts or of
another model are never taken for these.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sized
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from farfield.errors import FileError, InputError
from farfield.neural.encoding import (
    CHUNK,
    Encoded,
    Precision,
    encode_chunks,
    joined,
    precision_of,
)
from farfield.neural.models import Task, fingerprint, kind_of, prompt_of
from farfield.neural.tokens import chunked
from farfield.neural.vectors import SparseVectors, TokenVectors
from farfield.progress import track

__all__ = ["Stored", "encode_to", "open_stored"]

_MANIFEST = "manifest.json"
_FORMAT = 1
_HOW = ("precision", "tokens")  # how it was computed matters to what is still to be computed
_ARRAYS = {
    "dense": ("vectors",),
    "sparse": ("indices", "weights", "starts"),
    "multi": ("vectors", "starts"),
}


@dataclass(frozen=True)
class Stored:
    """A complete folder of encoded texts; its arrays are mapped, not read, until they are used."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def kind(self) -> str:
        """Return ``dense``, ``sparse`` or ``multi``."""
        return str(self.manifest["kind"])

    def __len__(self) -> int:
        return sum(shard["texts"] for shard in self.manifest["shards"])

    def shards(self) -> Iterator[Encoded]:
        """Yield the shards one by one, in the order of the texts."""
        for number in range(len(self.manifest["shards"])):
            yield _read_shard(self.folder, self.kind, number)

    def load(self) -> Encoded:
        """Return all of it as one."""
        return joined(list(self.shards()))


def encode_to(
    folder: str | os.PathLike[str],
    model: Any,
    texts: Iterable[str],
    *,
    task: Task | None = None,
    shard: int = CHUNK,
    dtype: npt.DTypeLike = np.float16,
    precision: Precision = "auto",
    tokens: int | None = None,
) -> Stored:
    """Encode texts into a folder, or go on where an earlier call was stopped.

    The texts may come from anywhere, one after the other; those of finished shards are compared
    with what the folder holds, and not encoded again.
    """
    if shard < 1:
        raise InputError(f"a shard of {shard} texts cannot be, expected 1, 2, 3 …")
    path = Path(folder)
    settings = {
        "format": _FORMAT,
        "kind": kind_of(model),
        "model": fingerprint(model),
        "task": task,
        "prompt": prompt_of(model, task),
        "shard": shard,
        "dtype": np.dtype(dtype).name,
        "precision": precision_of(model, precision),
        "tokens": tokens,
    }
    if settings["kind"] not in _ARRAYS:
        raise InputError(f"a {type(model).__name__} scores pairs and encodes no texts.")
    manifest = _continued(path, settings)
    known = [str(entry["digest"]) for entry in manifest["shards"]]
    new: list[dict[str, Any]] = []  # texts and digest of shards on their way through the model

    def missing() -> Iterator[list[str]]:
        number = 0
        for chunk in chunked(texts, shard):
            digest = _digest(chunk)
            if number >= len(known):
                new.append({"texts": len(chunk), "digest": digest})
                yield chunk
            elif known[number] != digest:
                raise _other_texts(path, number)
            number += 1
        if number < len(known):
            raise _other_texts(path, number)

    encoded = encode_chunks(
        model, missing(), task=task, dtype=dtype, precision=precision, tokens=tokens
    )
    for part in _tracked(encoded, texts, shard, len(known)):
        _write_shard(path, part, len(manifest["shards"]))
        manifest["shards"].append(new.pop(0))
        _write_manifest(path, manifest)
    if not manifest["shards"]:
        raise InputError(f"{path}: there are no texts to encode.")
    if not manifest["complete"]:
        manifest["complete"] = True
        _write_manifest(path, manifest)
    return Stored(path, manifest)


def open_stored(folder: str | os.PathLike[str]) -> Stored:
    """Open a folder that :func:`encode_to` has finished."""
    path = Path(folder)
    manifest = _read_manifest(path)
    if manifest is None:
        raise FileError(path, f"there are no encoded texts here (no {_MANIFEST}).")
    if not manifest["complete"]:
        raise FileError(path, "encoding was stopped before its end. Call it again: it goes on.")
    return Stored(path, manifest)


def _tracked(
    encoded: Iterator[Encoded], texts: Iterable[str], shard: int, done: int
) -> Iterator[Encoded]:
    if not isinstance(texts, Sized):
        yield from encoded
        return
    ahead = range(max(0, -(-len(texts) // shard) - done))
    yield from (part for _, part in zip(track(ahead, "encoding"), encoded, strict=False))
    yield from encoded  # comparing texts may have more to say


def _continued(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest to go on from; what a killed run left half-written is removed."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(path, f"cannot be made a folder: {error.strerror}.") from None
    held = _read_manifest(path)
    if held is None:
        names = [entry.name for entry in path.iterdir() if not entry.name.startswith(".")]
        if not all(name.endswith(".npy") for name in names):
            raise FileError(path, "this folder holds other files. Give an empty or a new one.")
        held = {**settings, "complete": False, "shards": []}
    for leftover in path.glob(".*.tmp"):
        with suppress(OSError):
            leftover.unlink()
    for number in range(len(held["shards"])):
        if not all(_file(path, name, number).is_file() for name in _ARRAYS[held["kind"]]):
            held["shards"], held["complete"] = held["shards"][:number], False
            break
    for name, value in settings.items():
        if held["complete"] and name in _HOW:
            continue
        if held.get(name) != value:
            raise InputError(
                f"{path} was encoded with another {name} ({held.get(name)}, now {value}). Give "
                "another folder, or delete this one."
            )
    return held


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
        found["shards"], found["complete"], _ARRAYS[found["kind"]]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise FileError(path / _MANIFEST, "this is no manifest of encoded texts.") from None
    return dict(found)


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    from farfield.io.files import replacing

    with replacing(path / _MANIFEST) as file:
        file.write(json.dumps(manifest, indent=1, ensure_ascii=False).encode() + b"\n")


def _file(path: Path, array: str, number: int) -> Path:
    return path / f"{number:06d}.{array}.npy"


def _write_shard(path: Path, part: Encoded, number: int) -> None:
    from farfield.io.files import replacing

    arrays = {"vectors": part} if isinstance(part, np.ndarray) else vars(part)
    for name, array in arrays.items():
        with replacing(_file(path, name, number)) as file:
            np.save(file, array, allow_pickle=False)


def _read_shard(path: Path, kind: str, number: int) -> Encoded:
    arrays = []
    for name in _ARRAYS[kind]:
        file = _file(path, name, number)
        try:
            arrays.append(np.load(file, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError) as error:
            what = "is missing" if isinstance(error, FileNotFoundError) else "is damaged"
            message = f"this shard {what}. Delete the folder and encode again."
            raise FileError(file, message) from None
    if kind == "dense":
        return arrays[0]  # type: ignore[no-any-return]
    return SparseVectors(*arrays) if kind == "sparse" else TokenVectors(*arrays)


def _digest(texts: list[str]) -> str:
    from hashlib import blake2b

    digest = blake2b(digest_size=16)
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def _other_texts(path: Path, number: int) -> InputError:
    return InputError(
        f"{path} holds the encoding of other texts (they differ in shard {number}). Give another "
        "folder, or delete this one."
    )
