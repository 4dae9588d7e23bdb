"""Bytes in and out of files: compression, byte-order marks, atomic writing.

What a file holds is told by its first bytes, not its name. What is written replaces the old file
only when it is complete, so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import io
import mmap
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from farfield.errors import FileError, TableError, did_you_mean

__all__ = [
    "Content",
    "PathLike",
    "Where",
    "first_sentence",
    "in_memory",
    "load",
    "name_of",
    "replacing",
    "write_json",
]

PathLike = str | os.PathLike[str]
#: Tells of a row (from 0) the number of its line, or in words where it is.
Where = Callable[[int], int | str]

_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 22
_NO_NAME = "this cannot be the name of a file."


@dataclass(frozen=True)
class Content:
    """What a file holds, decompressed and without a byte-order mark."""

    path: str
    data: Any  # bytes, or a memory map of a plain file: both slice, find and count
    plain: bool  # is the data the file itself, so that others may read it by its path?

    def __len__(self) -> int:
        return len(self.data)

    @property
    def source(self) -> Any:
        """What polars can read: the path, so that nothing is copied, or the bytes."""
        if self.plain and self.path.isprintable():  # other names confuse polars
            return os.path.abspath(self.path)  # it would take ~ for a home folder
        return in_memory(self.data)

    def lines(self, blanks: bytes = b" \t") -> Iterator[tuple[int, bytes]]:
        """Yield (number from 1, line) of all lines that are not blank, without line ends."""
        start, number, size = 0, 0, len(self.data)
        while start < size:
            end = self.data.find(b"\n", start)
            end = size if end < 0 else end
            number += 1
            line = self.data[start:end].removesuffix(b"\r")
            if line.strip(blanks):
                yield number, line
            start = end + 1

    def first_line(self) -> bytes:
        """Return the first line that is not blank."""
        for _, line in self.lines():
            return line
        raise self.error("the file is empty. Expected at least one row.")

    def line_of(self, row: int, blanks: bytes = b" \t") -> int:
        """Return the number of the line that holds this row (rows count from 0)."""
        for at, (number, _) in enumerate(self.lines(blanks)):
            if at == row:
                return number
        raise IndexError(row)

    def text(self) -> str:
        """Return all of it as text, which must be UTF-8."""
        try:
            return bytes(self.data).decode()
        except UnicodeDecodeError as error:
            message = f"this is not UTF-8 ({error.reason}). Convert the file to UTF-8."
            line = bytes(self.data[: error.start]).count(b"\n") + 1
            raise self.error(message, line) from None

    def error(self, message: str, line: int | None = None) -> FileError:
        """Make an error that names this file."""
        return FileError(self.path, message, line=line)

    def table_error(self, error: TableError, where: Where) -> FileError:
        """Turn an error of a table's row into one of this file's line."""
        if error.row is None:
            return self.error(error.message)
        place, message = where(error.row), error.message
        if error.first_row is not None:
            first = where(error.first_row)
            message += f" It is first in {f'line {first}' if isinstance(first, int) else first}."
        if isinstance(place, int):
            return self.error(message, place)
        return self.error(f"in {place}: {message}")


def in_memory(data: Any) -> io.BytesIO:
    """Return a file of these bytes for polars, which takes a byte-order mark away."""
    return io.BytesIO(_MARK + data if data[:3] == _MARK else data)


def load(path: PathLike) -> Content:
    """Read a file, whatever its compression (gzip and zstd are told by their first bytes)."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            return _load(name, file)
    except FileNotFoundError:
        raise FileError(name, f"there is no such file.{_neighbours(name)}") from None
    except IsADirectoryError:
        raise FileError(name, "this is a folder; expected a file.") from None
    except OSError as error:
        raise FileError(name, f"cannot be read: {error.strerror or error}.") from error
    except ValueError:  # Python opens no name that holds a NUL
        raise FileError(repr(name), _NO_NAME) from None


def _load(name: str, file: IO[bytes]) -> Content:
    head = file.read(4)
    if head[:2] == b"\x1f\x8b":
        data = _inflate(name, head, file, "gzip", lambda: zlib.decompressobj(wbits=31), zlib.error)
    elif head == b"\x28\xb5\x2f\xfd":
        import zstandard

        new = zstandard.ZstdDecompressor().decompressobj
        data = _inflate(name, head, file, "zstd", new, zstandard.ZstdError)
    elif file.seekable() and os.fstat(file.fileno()).st_size:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if head[:3] != _MARK:
            return Content(name, mapped, plain=True)
        data = mapped[:]
    else:
        data = head + file.read()
    return Content(name, data.removeprefix(_MARK), plain=False)


def _inflate(
    name: str,
    head: bytes,
    file: IO[bytes],
    kind: str,
    new: Callable[[], Any],
    failure: type[Exception],
) -> bytes:
    """Decompress all of a file, which may be several compressed ones, one after the other."""
    parts: list[bytes] = []
    inflate = new()
    chunk = head
    try:
        while chunk or (chunk := file.read(_CHUNK)):
            parts.append(inflate.decompress(chunk))
            chunk = b""
            if inflate.eof:
                chunk = inflate.unused_data.lstrip(b"\0") or file.read(_CHUNK).lstrip(b"\0")
                inflate = new() if chunk else inflate
    except failure as error:
        message = f"the {kind} data is damaged ({error}). Get the file again."
        raise FileError(name, message) from error
    if not inflate.eof:
        raise FileError(name, f"the {kind} data is cut short. Get the file again.")
    return b"".join(parts)


def _neighbours(name: str) -> str:
    folder = Path(name).parent
    try:
        known = [entry.name for entry in folder.iterdir()]
    except OSError:
        return f" Nor is there a folder {folder}."
    return did_you_mean(Path(name).name, known)


def name_of(path: PathLike) -> str:
    """Return a run's name: its file name without .gz or .zst and the last suffix."""
    name = os.fsencode(Path(path).name).decode(errors="replace")  # a name need not be text
    name = re.sub(r"\.(gz|zst)$", "", name)
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of ``path`` when all went well.

    It is compressed if the path ends in .gz or .zst. The same content gives the same bytes.
    """
    if "\0" in os.fspath(path):
        raise FileError(repr(os.fspath(path)), _NO_NAME)
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary = target.with_name(f".{os.getpid()}-{os.urandom(4).hex()}.tmp")
    special = _is_special(path)  # a pipe or a device is written to, not replaced
    try:
        with open(path if special else temporary, "wb") as raw:
            with _compressing(raw, Path(path).suffix) as file:
                yield file
            raw.flush()
            if not special:
                os.fsync(raw.fileno())
        if not special:
            os.replace(temporary, target)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or first_sentence(error)
        raise FileError(os.fspath(path), f"cannot be written: {reason}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_json(path: PathLike, content: Any) -> None:
    """Write one JSON document, for people to read as well; in place of what was there."""
    import json

    with replacing(path) as file:
        file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def _is_special(path: PathLike) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def first_sentence(error: BaseException) -> str:
    """Return the first line of what another library says, without its full stop."""
    return str(error).strip().split("\n")[0].rstrip(".")


@contextmanager
def _compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        import gzip

        # Neither the time nor the name of the temporary file belongs into the bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as file:
            yield file  # type: ignore[misc]  # it has all that we use
    elif suffix == ".zst":
        import zstandard

        compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        with compressor.stream_writer(raw, closefd=False) as file:
            yield file
    else:
        yield raw
