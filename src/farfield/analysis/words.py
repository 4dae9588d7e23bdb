"""Where words begin and end, for millions of texts at a time.

Texts are looked at as one array of bytes (UTF-8, lower case): every byte has a class, words are
found where the class changes, and each word is known by a 64-bit hash, so that only the
different ones ever become strings. All of it is vectorised; there is nothing to compile.

Tokenisers:

``standard``  Unicode's rules for word boundaries, as Lucene's tokeniser of this name: letters and
              digits, joined by an apostrophe or colon between letters, by a comma, full stop,
              semicolon or apostrophe between digits, and by underscores; Han and Hiragana one by
              one. Unlike there, a full stop between letters ends a word: in abstracts and web
              pages it is a lost blank ("cells.The") more often than an abbreviation.
``words``     letters and digits, nothing else.
``blanks``    whatever stands between blanks, for texts that were split before.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["TOKENISERS", "Words", "split"]

TOKENISERS = ("standard", "words", "blanks")

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]

# Classes of characters.
_NONE, _LETTER, _DIGIT, _ALONE, _LETTERS_ONLY, _DIGITS_ONLY, _EITHER, _ANY = range(8)

# Bytes that are looked at together: their arrays stay in the cache, and memory is used again.
_SLICE = 1 << 21

# Words of so many bytes are hashed one by one.
_ENDLESS = 256

_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"

# Odd numbers without a pattern, to mix bits.
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Words(NamedTuple):
    """The words of texts in order: which text, which word (a number into ``words``)."""

    text: Codes
    word: Codes
    words: list[str]


def split(texts: pl.Series, tokeniser: str = "standard") -> Words:
    """Find all words, in lower case; a null is an empty text."""
    lower = texts.fill_null("").str.to_lowercase()
    if tokeniser == "standard":
        lower = lower.str.replace_all(_APOSTROPHE, "'", literal=True)
    lengths = lower.str.len_bytes().to_numpy().astype(np.int64) + 1  # and a line end
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    numbers = _Numbers(total // 8)
    found: list[tuple[Codes, Codes]] = []
    first = 0
    while first < len(texts):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _SLICE, side="right")))
        joined = lower.slice(first, last - first).str.join("\n").item() + "\n"
        data = np.frombuffer(joined.encode(), dtype=np.uint8)
        starts, stops = _bounds(data, tokeniser)
        # How many words begin in each text tells which text each word is of.
        marks = np.searchsorted(starts, ends[first:last] - before)
        text = np.repeat(np.arange(first, last, dtype=np.int32), np.diff(marks, prepend=0))
        found.append((text, numbers.of(data, starts, stops)))
        first = last
    if not found:
        return Words(np.empty(0, np.int32), np.empty(0, np.int32), [])
    text, word = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Words(text, word, numbers.words)


# -- where words begin and end ------------------------------------------------------------------


def _bounds(data: Bytes, tokeniser: str) -> tuple[Ints, Ints]:
    """Return where each word starts, and the place behind its last byte."""
    kinds = _ascii(tokeniser)[data]
    alone = _class_others(data, kinds, tokeniser)
    if tokeniser == "standard":
        _join(data, kinds)
    inside = kinds != _NONE
    if not alone:
        edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
        if inside[0]:
            edges = np.concatenate(([0], edges))
        return edges[::2], edges[1::2]  # the last byte is a line end, so all words have one
    # Characters that are words of their own begin one, and what follows them begins another.
    lead = (data & 0xC0) != 0x80
    single = kinds == _ALONE
    begins = inside & lead
    begins[1:] &= ~inside[:-1] | single[1:] | single[:-1]
    ends = inside.copy()
    ends[:-1] &= ~inside[1:] | begins[1:]
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1


def _class_others(data: Bytes, kinds: Bytes, tokeniser: str) -> bool:
    """Give characters beyond ASCII their class; tell whether any of them stands alone."""
    places = np.flatnonzero(data >= 0x80)
    if not len(places):
        return False
    values = data[places]
    lead = values >= 0xC0
    first = places[lead]
    byte = data[first].astype(np.uint32)
    rest = [data[np.minimum(first + i, len(data) - 1)].astype(np.uint32) & 0x3F for i in (1, 2, 3)]
    points = np.where(
        byte < 0xE0,
        (byte & 0x1F) << 6 | rest[0],
        np.where(
            byte < 0xF0,
            (byte & 0x0F) << 12 | rest[0] << 6 | rest[1],
            (byte & 0x07) << 18 | rest[0] << 12 | rest[1] << 6 | rest[2],
        ),
    )
    different, which = np.unique(points, return_inverse=True)
    classes = _classes([chr(point) for point in different], tokeniser)
    kinds[places] = classes[which][np.cumsum(lead) - 1]
    return bool((classes == _ALONE).any())


def _classes(characters: list[str], tokeniser: str) -> Bytes:
    """The class of each character, by Unicode's properties."""
    series = pl.Series(characters, dtype=pl.String)
    kinds = np.zeros(len(series), dtype=np.uint8)
    for pattern, kind in _PATTERNS[tokeniser]:
        kinds[series.str.contains(pattern).to_numpy()] = kind
    return kinds


_WORDS = [(r"[\p{L}\p{M}\p{N}]", _LETTER), (r"\p{Nd}", _DIGIT)]
_PATTERNS = {
    "standard": [
        *_WORDS,
        (r"[\p{Han}\p{Hiragana}&&\p{Lo}]", _ALONE),
        (":", _LETTERS_ONLY),
        ("[,;.]", _DIGITS_ONLY),
        ("'", _EITHER),
        ("_", _ANY),
    ],
    "words": _WORDS,
    "blanks": [(r"\S", _LETTER)],
}


@cache
def _ascii(tokeniser: str) -> Bytes:
    """The class of each byte that is a character of its own."""
    table = np.zeros(256, dtype=np.uint8)
    table[:128] = _classes([chr(value) for value in range(128)], tokeniser)
    return table


def _join(data: Bytes, kinds: Bytes) -> None:
    """Make characters between two letters, or two digits, a part of the word, where they may be."""
    places = np.flatnonzero(kinds > _ALONE)
    kind = kinds[places]
    kinds[places] = _NONE
    ok = (places > 0) & (places < len(data) - 1)
    places, kind = places[ok], kind[ok]
    left, right = kinds[places - 1], kinds[places + 1]
    letters = (left == _LETTER) & (right == _LETTER) & np.isin(kind, (_LETTERS_ONLY, _EITHER))
    digits = (left == _DIGIT) & (right == _DIGIT) & np.isin(kind, (_DIGITS_ONLY, _EITHER))
    either = (kind == _ANY) & np.isin(left, (_LETTER, _DIGIT)) & np.isin(right, (_LETTER, _DIGIT))
    kinds[places[letters | digits | either]] = _LETTER


# -- numbers for words --------------------------------------------------------------------------


class _Numbers:
    """Numbers the different words, in order of appearance, many at a time.

    A hash points to a place in a table. Where another word holds it, the next table is tried.
    Two words with the same 64 bits would be taken for one: among a million, a chance of 3 in 100
    million.
    """

    def __init__(self, expected: int) -> None:
        self.words: list[str] = []
        self._bits = int(np.clip(np.ceil(np.log2(max(expected, 1))), 8, 20))
        self._tables: list[tuple[Hashes, Codes]] = []

    def of(self, data: Bytes, starts: Ints, stops: Ints) -> Codes:
        """Return the numbers of words in a text."""
        hashes = _hash(data, starts, stops)
        numbers = np.empty(len(starts), dtype=np.int32)
        left = np.arange(len(starts))
        raw = data.tobytes()
        level = 0
        while len(left):
            held, number = self._table(level)
            wanted = hashes[left]
            # Every table looks at other bits.
            turned = wanted * (_MIX_AGAIN + np.uint64(2 * level))
            place = (turned >> np.uint64(64 - self._bits)).astype(np.int64)
            found = held[place]
            free = np.flatnonzero(found == 0)
            if len(free):
                held[place[free]] = wanted[free]
                found = held[place]
                new = free[found[free] == wanted[free]]
                _, first = np.unique(place[new], return_index=True)
                new = new[np.sort(first)]
                number[place[new]] = np.arange(len(self.words), len(self.words) + len(new))
                at = left[new]
                self.words += [
                    raw[a:b].decode()
                    for a, b in zip(starts[at].tolist(), stops[at].tolist(), strict=True)
                ]
            ours = found == wanted
            numbers[left[ours]] = number[place[ours]]
            left = left[~ours]
            level += 1
        return numbers

    def _table(self, level: int) -> tuple[Hashes, Codes]:
        if level == len(self._tables):
            size = 1 << self._bits
            self._tables.append((np.zeros(size, np.uint64), np.zeros(size, np.int32)))
        return self._tables[level]


def _hash(data: Bytes, starts: Ints, stops: Ints) -> Hashes:
    """Hash words, eight bytes at a time; never 0."""
    padded = np.concatenate((data, np.zeros(8, np.uint8)))
    eights = np.lib.stride_tricks.as_strided(padded[:8].view(np.uint64), (len(data),), (1,))
    length = stops - starts
    hashes = _mixed(_eight(eights, starts, length))
    long = np.flatnonzero(length > 8)
    done = 8
    while len(long) and done < _ENDLESS:
        more = _eight(eights, starts[long] + done, length[long] - done)
        hashes[long] = _mixed((hashes[long] + np.uint64(done)) * _MIX_AGAIN ^ more)
        done += 8
        long = long[length[long] > done]
    for at in long.tolist():  # not a word of any language, but there may be megabytes of it
        whole = blake2b(data[starts[at] : stops[at]].tobytes(), digest_size=8).digest()
        hashes[at] = int.from_bytes(whole, "little")
    found: Hashes = np.maximum(hashes ^ length.astype(np.uint64), np.uint64(1))
    return found


def _eight(eights: Hashes, starts: Ints, length: Ints) -> Hashes:
    """The first eight bytes from each place, as far as the word goes, as a number."""
    taken: Hashes = eights[starts] & _MASKS[np.minimum(length, 8)]
    return taken


_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """Spread every bit over all others."""
    values = values * _MIX
    values ^= values >> np.uint64(29)
    values *= _MIX_AGAIN
    values ^= values >> np.uint64(32)
    return values
