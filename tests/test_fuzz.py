"""Broken input: the right answer or an error that names the line, and nothing else.

A reader of ten lines of plain Python says what is right. Real or made-up files are damaged in
every way a byte can be, and both must agree: on every value, or on the line to blame.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import os
import random
import re
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import farfield
from farfield.errors import FileError, InputError

MEASURES = ["nDCG@10", "RR", "R@5", "AP"]

# -- what is right ------------------------------------------------------------------------------


class Refused(Exception):
    """The file must be refused because of this line; 0: because of the whole file."""

    def __init__(self, line: int) -> None:
        self.line = line


Rows = list[tuple[int, str, str, float]]


def number(text: str) -> float:
    """Decimals with an exponent, or inf, infinity and nan; Python's own reading is more lenient."""
    if set(text) <= set("0123456789+-.eE"):
        return float(text)
    sign, word = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    if word.lower() in ("inf", "infinity", "nan"):
        return float(sign + word)
    raise ValueError(text)


def lines_of(data: bytes) -> list[tuple[int, bytes]]:
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith((b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise Refused(0)
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    kept = [(at, line) for at, line in enumerate(lines, 1) if line.strip(b" \t")]
    if not kept:
        raise Refused(0)
    return kept


def split(line: bytes) -> list[str]:
    if b"\r" in line:
        raise ValueError("a carriage return in the middle")
    return [field for field in re.split("[ \t]+", line.decode()) if field]


def parse(data: bytes, fields: Callable[[int], tuple[int, int, int, bool]]) -> Rows:
    """Rows of (line, query, document, number)."""
    lines = lines_of(data)
    if lines[0][1].lstrip(b" \t")[:1] in (b"{", b"["):
        raise Refused(-1)  # this is to be JSON, which damaged lines never are
    width = len([field for field in re.split(rb"[ \t]+", lines[0][1]) if field])
    doc, value, least, exact = fields(width)
    rows: Rows = []
    for at, line in lines:
        try:
            given = split(line)
            if len(given) < least or (exact and len(given) > least):
                raise ValueError(line)
            rows.append((at, given[0], given[doc], number(given[value])))
        except ValueError:
            raise Refused(at) from None
    last_at, last = lines[-1]
    cut = not data.endswith(b"\n") and last_at == data.count(b"\n") + 1
    if cut and not exact and len(split(last)) < width:
        raise Refused(last_at)
    return rows


def parse_run(data: bytes) -> Rows:
    """Rows of a run, or :class:`Refused`."""
    rows = parse(data, lambda width: (1, 2, 3, True) if width == 3 else (2, 4, 5, False))
    first = [field for field in re.split(rb"[ \t]+", lines_of(data)[0][1]) if field]
    if len(first) == 3:
        for at, _, _, rank in rows:
            if not math.isfinite(rank) or rank != int(rank):
                raise Refused(at)
        rows = [(at, query, doc, -rank) for at, query, doc, rank in rows]
    for at, _, _, score in rows:
        if math.isnan(score):
            raise Refused(at)
    seen = set()
    for at, query, doc, _ in rows:
        if (query, doc) in seen:
            raise Refused(at)
        seen.add((query, doc))
    return rows


def parse_qrels(data: bytes) -> dict[str, dict[str, int]]:
    """Judgements by query, or :class:`Refused`."""
    rows = parse(data, lambda width: (1, 2, 3, True) if width == 3 else (2, 3, 4, True))
    for at, _, _, value in rows:
        if not math.isfinite(value) or value != int(value) or not -(2**63) <= value < 2**63:
            raise Refused(at)
    judged: dict[str, dict[str, int]] = {}
    for at, query, doc, value in rows:
        if judged.setdefault(query, {}).setdefault(doc, int(value)) != int(value):
            raise Refused(at)
    return judged


Values = dict[tuple[str, str], float]


def values_of(qrels: dict[str, dict[str, int]], rows: Rows) -> Values:
    """Every measure for every judged query, by its definition."""
    values: Values = {}
    for query, judged in qrels.items():
        found = [(score, doc.encode()) for _, q, doc, score in rows if q == query]
        found.sort(reverse=True)
        gains = [max(judged.get(doc.decode(), 0), 0) for _, doc in found]
        ideal = sorted((g for g in judged.values() if g > 0), reverse=True)
        values[query, "nDCG@10"] = dcg(gains[:10]) / dcg(ideal[:10]) if ideal else 0.0
        hits = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
        values[query, "RR"] = 1 / hits[0] if hits else 0.0
        values[query, "R@5"] = sum(r <= 5 for r in hits) / len(ideal) if ideal else 0.0
        precisions = [at / rank for at, rank in enumerate(hits, 1)]
        values[query, "AP"] = sum(precisions) / len(ideal) if ideal else 0.0
    return values


def dcg(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


# -- what farfield makes of it ------------------------------------------------------------------


def outcome(path: Path, qrels: Any, run: Any) -> Values | str:
    """Values, or the message of the error; anything else that is raised is a fault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", farfield.FarfieldWarning)
            found = farfield.evaluate(qrels, run, MEASURES)
    except InputError as error:
        assert isinstance(error, FileError), error
        assert str(error).startswith(f"{path}:")
        return str(error)
    frame = found.per_query.frame
    return {(query, measure): value for query, _, measure, value in frame.iter_rows()}


def agree(path: Path, got: Values | str, wanted: Callable[[], Values]) -> None:
    """Both refuse the file because of the same line, or give the same values."""
    try:
        expected = wanted()
    except Refused as refused:
        assert isinstance(got, str), f"line {refused.line} was accepted"
        line = re.match(re.escape(str(path)) + r":(\d+)?", got)
        assert line is not None
        if refused.line >= 0:
            assert int(line[1] or 0) == refused.line, got
        return
    assert isinstance(got, dict), f"refused, but nothing is wrong: {got}"
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        assert got[key] == pytest.approx(value, abs=1e-12), key


# -- damage -------------------------------------------------------------------------------------

NASTY = [
    b"", b" ", b"\t", b"  ", b"\n", b"\r", b"\r\n", b"\n\n", b"\0", b"\x0b", b"\x0c", b"\x1c",
    b"\x85", b"\xc2\x85", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80", b'"', b"'", b",", b"#", b"\\", b"{", b"[", b"PAR1", b"\x1f\x8b",
    b"1", b"0", b"-0.0", b"1e5", b"1.e5", b".", b".5", b"+.5e-3", b"1e", b"1e+", b"e5", b"0x1",
    b"1_0", b"1,5", b"--1", b"+", b"-", b"inf", b"-Infinity", b"+INF", b"nan", b"-NaN", b"null",
    b"1e400", b"-1e400", b"1e-400", b"1e99999999999999999999", b"9" * 400, b"0." + b"0" * 400,
    b"00012.50", b"5e-324", b"1.7976931348623159e308", b"\xd9\xa3", b"Q0", b"a b c", b" 7 \t8 ",
]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the data after one to four accidents."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(made) + 1)
        accident = rng.randrange(9)
        if accident == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif accident == 1:
            made[at:at] = bytes([rng.randrange(256)])
        elif accident == 2:
            del made[at : at + rng.choice((1, 1, 7, 40))]
        elif accident == 3:
            made[at:at] = made[max(0, at - rng.randrange(80)) : at]
        elif accident == 4 and rng.random() < 0.3:
            del made[at:]
        elif accident == 5:
            made[at:at] = rng.choice(NASTY)
        elif accident == 6:  # a field becomes something else
            spans = [found.span() for found in re.finditer(rb"[^ \t\r\n]+", made)]
            if spans:
                low, high = rng.choice(spans)
                made[low:high] = rng.choice(NASTY)
        elif accident == 7:  # two lines change places
            lines = bytes(made).split(b"\n")
            one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[one]
            made = bytearray(b"\n".join(lines))
        elif accident == 8:  # every separator, or every line end, becomes another
            old, new = rng.choice(((b" ", b"\t"), (b" ", b"  "), (b"\n", b"\r\n"), (b"\n", b"\n\n")))
            made = bytearray(bytes(made).replace(old, new))
    return bytes(made)


def made_up(rng: random.Random, queries: int = 4, depth: int = 15) -> bytes:
    """A run as systems write it: TREC with a tag, scores falling and sometimes equal."""
    lines = []
    for query in range(queries):
        score = 30.0
        for rank, doc in enumerate(rng.sample(range(1000, 1100), depth), 1):
            score -= rng.choice((0.0, 0.5, rng.random()))
            lines.append(f"{query + 1} Q0 {doc} {rank} {score} tag")
    return "\n".join(lines).encode() + b"\n"


def real_runs() -> list[bytes]:
    """Heads of real runs, where there are any: four queries of fifteen documents."""
    folder = Path(os.environ.get("FARFIELD_REAL_DATA") or "/nowhere") / "runs" / "dl19"
    heads = []
    for path in sorted(folder.glob("*.gz")):
        by_query: dict[bytes, list[bytes]] = {}
        with gzip.open(path) as file:
            for line in file:
                kept = by_query.setdefault(re.split(rb"[ \t]", line)[0], [])
                if len(by_query) > 4:
                    break
                if len(kept) < 15:
                    kept.append(line)
        heads.append(b"".join(line for lines in list(by_query.values())[:4] for line in lines))
    return heads


def judgements_for(data: bytes, rng: random.Random) -> dict[str, dict[str, int]]:
    """Judge every third document of a run, some that it lacks, and a query that it lacks."""
    judged: dict[str, dict[str, int]] = {"nowhere": {"d": 1}}
    for _, query, doc, _ in parse_run(data):
        if rng.random() < 0.3:
            judged.setdefault(query, {})[doc] = rng.choice((-1, 0, 1, 1, 2, 3))
    for query in judged:
        judged[query][f"lost-{query}"] = 1
    return judged


@pytest.fixture(scope="module")
def sources() -> list[bytes]:
    rng = random.Random(1)
    five = made_up(rng).replace(b" tag", b"")
    marco = b"".join(
        b"\t".join(line.split()[i] for i in (0, 2, 3)) + b"\n" for line in made_up(rng).splitlines()
    )
    return [*(real_runs() or [made_up(rng), made_up(rng)]), made_up(rng), five, marco]


def pytest_seeds(total: int, parts: int) -> list[range]:
    """Seeds in parts, so that they can be shared among processes."""
    return [range(at * total // parts, (at + 1) * total // parts) for at in range(parts)]


def case_name(seeds: range) -> str:
    return f"{seeds.start}-{seeds.stop - 1}"


# -- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", pytest_seeds(8000, 20), ids=case_name)
def test_damaged_runs(seeds: range, sources: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    judged = [judgements_for(data, random.Random(2)) for data in sources]
    tables = [farfield.Qrels(qrels) for qrels in judged]
    for seed in seeds:
        rng = random.Random(seed)
        which = rng.randrange(len(sources))
        data = damaged(sources[which], rng)
        path.write_bytes(data)
        got = outcome(path, tables[which], path)
        try:
            agree(path, got, lambda which=which, data=data: values_of(judged[which], parse_run(data)))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {data!r}") from error
