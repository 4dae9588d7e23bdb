"""Texts as sets: normal forms, words and character 3-grams in integer codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["gram_sets", "normal_form", "rarity", "word_counts", "words"]

Floats = npt.NDArray[np.float64]


def normal_form(texts: pl.Series) -> pl.Series:
    """Lower case, compatible characters folded, letters and digits only, single blanks."""
    return (
        texts.str.normalize("NFKC")
        .str.to_lowercase()
        .str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ")
        .str.strip_chars(" ")
    )


def words(texts: pl.Series) -> pl.DataFrame:
    """The words of texts in normal form, one row each: text (its number), word."""
    frame = pl.DataFrame({"text": np.arange(len(texts)), "word": normal_form(texts)})
    split = frame.with_columns(pl.col("word").str.split(" ")).explode("word")
    return split.filter(pl.col("word") != "")


def word_counts(*groups: pl.Series) -> tuple[list[csr_matrix], pl.Series]:
    """Count words: a matrix of texts by words for each group, with the words in one order."""
    found = [words(texts) for texts in groups]
    every = pl.concat([frame["word"] for frame in found]).unique().sort()
    numbers = every.to_frame("word").with_row_index("number")
    matrices = []
    for texts, frame in zip(groups, found, strict=True):
        coded = frame.join(numbers, on="word", how="left", maintain_order="left")
        matrices.append(
            _matrix(coded["text"].to_numpy(), coded["number"].to_numpy(), len(texts), len(every))
        )
    return matrices, every


def gram_sets(*groups: pl.Series) -> list[csr_matrix]:
    """Character 3-grams of the normal forms, with a blank before and after: 1 where present."""
    # All texts in one array of code points, each as " text \n".
    texts = [normal_form(group) for group in groups]
    padded = "".join(f" {text} \n" for group in texts for text in group)
    points = np.frombuffer(padded.encode("utf-32-le"), dtype=np.uint32)
    text, grams, width = _grams(points)
    matrices, start = [], 0
    for group in groups:
        low, high = np.searchsorted(text, [start, start + len(group)])
        matrix = _matrix(text[low:high] - start, grams[low:high], len(group), width)
        matrix.data[:] = 1.0
        matrices.append(matrix)
        start += len(group)
    return matrices


def rarity(counts: csr_matrix) -> Floats:
    """Inverse document frequency of each column, ln(1 + (n - df + 0.5) / (df + 0.5))."""
    texts = counts.shape[0]
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    found: Floats = np.log1p((texts - df + 0.5) / (df + 0.5))
    return found


def _grams(
    points: npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """(number of the text, number of the 3-gram) of all windows of three, and how many kinds."""
    if len(points) < 3:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), 0
    ends = points == 10
    text = np.cumsum(ends) - ends
    inside = np.flatnonzero(~(ends[:-2] | ends[1:-1] | ends[2:]))
    # Number the characters that occur, so that a window of three is a small number.
    kinds = np.flatnonzero(np.bincount(points))
    number = np.zeros(int(kinds[-1]) + 1, dtype=np.int64)
    number[kinds] = np.arange(len(kinds))
    small = number[points]
    codes = (small[inside] * len(kinds) + small[inside + 1]) * len(kinds) + small[inside + 2]
    if len(kinds) > 300:  # scripts with thousands of characters: a table would be too large
        every, grams = np.unique(codes, return_inverse=True)
        return text[inside], grams.astype(np.int64), len(every)
    return text[inside], codes, len(kinds) ** 3


def _matrix(rows: Any, columns: Any, height: int, width: int) -> csr_matrix:
    from scipy.sparse import coo_matrix

    ones = np.ones(len(rows), dtype=np.float32)
    matrix = coo_matrix((ones, (rows, columns)), shape=(height, width)).tocsr()
    matrix.sum_duplicates()
    return matrix
