"""BEIR folders: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, each perhaps compressed."""

from __future__ import annotations

from pathlib import Path

from farfield.errors import FileError

__all__ = ["files", "find", "is_beir", "splits"]

_ENDINGS = ("", ".gz", ".zst")


def is_beir(path: Path) -> bool:
    """Does this folder look like one of BEIR's?"""
    return path.is_dir() and any((path / f"queries.jsonl{end}").is_file() for end in _ENDINGS)


def find(folder: Path, name: str) -> Path:
    """Return the file with this name, compressed or not."""
    for ending in _ENDINGS:
        path = folder / f"{name}{ending}"
        if path.is_file():
            return path
    raise FileError(
        folder / name,
        "there is no such file. A BEIR folder holds corpus.jsonl, queries.jsonl and qrels/test.tsv "
        "(each may end in .gz or .zst).",
    )


def files(folder: Path) -> list[Path]:
    """Return all files that belong to a folder of BEIR's."""
    names = ("corpus.jsonl", "queries.jsonl")
    found = [folder / f"{name}{end}" for name in names for end in _ENDINGS]
    judged = [path for end in _ENDINGS for path in (folder / "qrels").glob(f"*.tsv{end}")]
    return [*(path for path in found if path.is_file()), *judged]


def splits(folder: Path) -> dict[str, Path]:
    """Return the qrels files by split: train, test …"""
    found: dict[str, Path] = {}
    for path in sorted((folder / "qrels").glob("*.tsv*")):
        split, dot, ending = path.name.partition(".tsv")
        if dot and ending in _ENDINGS:
            if split in found:
                raise FileError(
                    path, f"the split {split} is there twice, also as {found[split].name}."
                )
            found[split] = path
    if not found:
        raise FileError(folder / "qrels", "no qrels here. Expected files like qrels/test.tsv.")
    return found
