"""Broken input: the right answer or an error that names the line, and nothing else.

A reader of ten lines of plain Python says what is right. Real or made-up files are damaged in
every way a byte can be, and both must agree: on every value, or on the line to blame.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.exceptions import PanicException

import farfield
from farfield.errors import FileError

# Made once: reading a spec takes longer than evaluating a small run.
MEASURES = [farfield.measures.parse(text) for text in ("nDCG@10", "RR", "R@5", "AP")]

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
    check_rows(rows)
    return rows


def check_rows(rows: Rows) -> None:
    for at, _, _, score in rows:
        if math.isnan(score):
            raise Refused(at)
    seen = set()
    for at, query, doc, _ in rows:
        if (query, doc) in seen:
            raise Refused(at)
        seen.add((query, doc))


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
    except FileError as error:
        return str(error)
    frame = found.per_query.frame
    return {(query, measure): value for query, _, measure, value in frame.iter_rows()}


def agree(path: Path, got: Values | str, wanted: Callable[[], Values]) -> None:
    """Both refuse the file because of the same line, or give the same values."""
    expected: Values | int
    try:
        expected = wanted()
    except Refused as refused:
        expected = refused.line
    if isinstance(expected, int):
        assert isinstance(got, str), f"line {expected} was accepted"
        named = re.match(re.escape(str(path)) + r":((\d+):)? ", got)
        assert named is not None, got
        assert expected < 0 or int(named[2] or 0) == expected, got
        return
    assert isinstance(got, dict), f"refused, but nothing is wrong: {got}"
    assert got == pytest.approx(expected, abs=1e-12)


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
            old, new = rng.choice(
                ((b" ", b"\t"), (b" ", b"  "), (b"\n", b"\r\n"), (b"\n", b"\n\n"))
            )
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
    for query, documents in judged.items():
        documents[f"lost-{query}"] = 1
    return judged


@pytest.fixture(scope="module")
def sources() -> list[bytes]:
    rng = random.Random(1)
    five = made_up(rng).replace(b" tag", b"")
    marco = b"".join(
        b"\t".join(line.split()[i] for i in (0, 2, 3)) + b"\n" for line in made_up(rng).splitlines()
    )
    return [*(real_runs() or [made_up(rng), made_up(rng)]), made_up(rng), five, marco]


def shares(total: int, parts: int) -> list[range]:
    """Seeds in parts, so that they can be shared among processes."""
    return [range(at * total // parts, (at + 1) * total // parts) for at in range(parts)]


def case_name(seeds: range) -> str:
    return f"{seeds.start}-{seeds.stop - 1}"


@contextlib.contextmanager
def of_case(seed: int, data: bytes) -> Iterator[None]:
    """Say which case failed."""
    try:
        yield
    except (Exception, PanicException) as error:
        raise AssertionError(f"seed {seed}: {data!r}") from error


def test_what_is_right_by_hand() -> None:
    # Ranked: x, b, a; of the ties at 2.0 the greater id comes first. Relevant: a (2) and b (1).
    rows = parse_run(b"\n1 Q0 a 1 1.5 t\r\n1 Q0\t b 1 2.0 t\n2 Q0 b 1 9 t\n1 Q0 x 9 2e0 t\n")
    assert rows == [(2, "1", "a", 1.5), (3, "1", "b", 2.0), (4, "2", "b", 9.0), (5, "1", "x", 2.0)]
    values = values_of({"1": {"a": 2, "b": 1, "c": 0, "x": -1}, "3": {"a": 1}}, rows)
    # x, b, a: gains 0, 1/log2(3) = 0.63093, 2/log2(4) = 1; ideal 2 + 0.63093.
    assert values["1", "nDCG@10"] == pytest.approx(1.63093 / 2.63093, abs=1e-5)
    assert values["1", "RR"] == 1 / 2
    assert values["1", "R@5"] == 1.0
    assert values["1", "AP"] == (1 / 2 + 2 / 3) / 2
    assert [values["3", measure] for measure in ("nDCG@10", "RR", "R@5", "AP")] == [0.0] * 4
    for line, data in {
        0: b"\n \r\n",
        1: b"1 Q0 a 1 x t\n",
        2: b"1 Q0 a 1 1 t\n1 Q0 b 1\n1 Q0 c 1 x t\n",
        3: b"1 Q0 a 1 1 t\n\n1 Q0 a 1 1 t\n",
        4: b"1 Q0 a 1 1 t\n\n\n1 Q0 b 1 1",
    }.items():
        with pytest.raises(Refused) as raised:
            parse_run(data)
        assert raised.value.line == line


def test_damage_is_sometimes_fatal_and_sometimes_not(sources: list[bytes]) -> None:
    fatal = 0
    for seed in range(1000):
        rng = random.Random(seed)
        try:
            parse_run(damaged(rng.choice(sources), rng))
        except Refused:
            fatal += 1
    assert 300 < fatal < 700


# -- runs and judgements ------------------------------------------------------------------------


def check_run(path: Path, data: bytes, qrels: dict[str, dict[str, int]], table: Any) -> None:
    path.write_bytes(data)
    agree(path, outcome(path, table, path), lambda: values_of(qrels, parse_run(data)))


@pytest.mark.parametrize("seeds", shares(4000, 10), ids=case_name)
def test_damaged_runs(seeds: range, sources: list[bytes], tmp_path: Path) -> None:
    judged = [judgements_for(data, random.Random(2)) for data in sources]
    tables = [farfield.Qrels(qrels) for qrels in judged]
    for seed in seeds:
        rng = random.Random(seed)
        which = rng.randrange(len(sources))
        data = damaged(sources[which], rng)
        with of_case(seed, data):
            check_run(tmp_path / "a.run", data, judged[which], tables[which])


@pytest.mark.parametrize("seeds", shares(1200, 3), ids=case_name)
def test_damaged_judgements(seeds: range, tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    run = farfield.Run({"1": {"1": 3.0, "2": 2.0, "3": 1.0}, "2": {"1": 1.0}})
    rows = [(0, "1", "1", 3.0), (0, "1", "2", 2.0), (0, "1", "3", 1.0), (0, "2", "1", 1.0)]
    made = [(q, d, r) for q in (1, 2, 3) for d, r in ((1, 0), (2, 1), (3, 2), (4, -1), (5, 1))]
    four = "".join(f"{q} 0 {d} {r}\n" for q, d, r in made).encode()
    three = "".join(f"{q}\t{d}\t{r}\n" for q, d, r in made).encode()
    for seed in seeds:
        rng = random.Random(seed)
        data = damaged(rng.choice((four, four, three)), rng)
        path.write_bytes(data)
        with of_case(seed, data):
            got = outcome(path, path, run)
            agree(path, got, lambda data=data: values_of(parse_qrels(data), rows))


words = st.sampled_from(
    [token.decode() for token in NASTY if token.decode(errors="ignore").strip()]
)
numbers = st.one_of(st.floats().map(repr), st.integers(-5, 5).map(str), st.decimals().map(str))
# No small letters: two names of columns in the first line would make it a header.
characters = st.characters(exclude_categories=["Cs", "Ll"])
ids = st.one_of(st.integers(1, 4).map(str), words, st.text(characters, min_size=1, max_size=3))
blanks = st.sampled_from([" ", "\t", "  ", " \t "])
rows_of_text = st.lists(
    st.tuples(
        ids, blanks, words | st.just("Q0"), blanks, ids, blanks, ids, blanks, numbers | words,
        st.sampled_from(["", " tag", "\ttag", " two words", " "]),
        st.sampled_from(["\n", "\n", "\r\n", "\n\n", " \n \r\n", "\r"]),
    ).map("".join),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(max_examples=400)
@given(
    lines=rows_of_text, before=st.sampled_from(["", "\ufeff", "\n", " ", "\r\n"]), cut=st.booleans()
)
@example(lines=["1 Q0 d 1 2.0 tag\r", "1 Q0 e 2 1.0 tag\r"], before="", cut=False)
@example(lines=["1 Q0 d\r 1 2.0 tag\n"], before="", cut=False)
@example(lines=["1 Q0 d 1 2.0\r\r\n"], before="", cut=False)
@example(lines=["1 Q0 d 1 2.0 a b\n", "1 Q0 e 1 2.0 a"], before="", cut=False)
def test_nasty_runs(
    lines: list[str], before: str, cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "nasty.run"
    text = before + "".join(lines)
    data = (text[:-2] if cut else text).encode(errors="surrogatepass")
    qrels = {"1": {"1": 1, "2": 2}, "2": {"1": 1, "3": 1}}
    check_run(path, data, qrels, farfield.Qrels(qrels))


# -- other formats ------------------------------------------------------------------------------


def packed(source: bytes, path: Path) -> bytes:
    """The bytes of a run in the format of the path."""
    plain = path.with_name("plain.run")
    plain.write_bytes(source)
    farfield.write(farfield.read_run(plain), path)
    return path.read_bytes()


@pytest.mark.parametrize(("suffix", "magic"), [(".gz", b"\x1f\x8b"), (".zst", b"\x28\xb5\x2f\xfd")])
def test_damaged_compression(
    suffix: str, magic: bytes, sources: list[bytes], tmp_path: Path
) -> None:
    path = tmp_path / f"a.run{suffix}"
    qrels = judgements_for(sources[0], random.Random(2))
    table, right = farfield.Qrels(qrels), values_of(qrels, parse_run(sources[0]))
    whole = packed(sources[0], path)
    for seed in range(200):
        data = damaged(whole, random.Random(seed))
        path.write_bytes(data)
        with of_case(seed, data):
            got = outcome(path, table, path)
            if not data.startswith(magic):
                agree(path, got, lambda data=data: values_of(qrels, parse_run(data)))
            elif isinstance(got, dict):  # the checksum lets nothing else pass
                assert got == pytest.approx(right, abs=1e-12)
            else:
                assert re.match(rf"{path}: the (gzip|zstd) data is (damaged|cut short)", got)


def parse_jsonl(data: bytes) -> Rows:
    """Rows of a run of one object per line; -1: to be refused for whatever reason."""
    rows: Rows = []
    lines = [(at, line) for at, line in lines_of(data) if line.strip(b" \t\r")]
    for at, line in lines:
        first = at == lines[0][0]
        try:
            pairs = json.loads(
                line.decode(),
                object_pairs_hook=list,
                parse_constant=int,
                parse_float=finite,
                parse_int=whole_number,
            )
            row = dict(reversed(pairs))  # of two entries of one name the first counts
            if any(type(row[name]) is not type(value) for name, value in pairs):
                raise Unclear
            row.pop("", None)  # a column without a name is left out
            json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, TypeError):
            raise Refused(-1 if first else at) from None
        if set(row) != {"query_id", "doc_id", "score", "rank"}:
            raise Refused(-1)
        if type(row["score"]) not in (int, float):
            raise Refused(-1)
        if not all(type(row[name]) in (int, str) for name in ("query_id", "doc_id")):
            raise Unclear
        rows.append((at, str(row["query_id"]), str(row["doc_id"]), float(row["score"])))
    if any(not query or not doc for _, query, doc, _ in rows):
        raise Refused(-1)
    check_rows(rows)
    return rows


class Unclear(Exception):
    """An id that is no text or whole number, 1e-123456, two entries of one name and not of one
    type: to read it is right, and so is to refuse it."""


def whole_number(text: str) -> int:
    if not -(2**127) <= int(text) < 2**127:
        raise ValueError(text)
    return int(text)


def finite(text: str) -> float:
    if re.search("[eE][+-]?[0-9]{6}", text):
        raise Unclear
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


@pytest.mark.parametrize("seeds", shares(400, 2), ids=case_name)
def test_damaged_jsonl(seeds: range, sources: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    qrels = judgements_for(sources[0], random.Random(2))
    table = farfield.Qrels(qrels)
    whole = packed(sources[0], path)
    for seed in seeds:
        data = damaged(whole, random.Random(seed))
        path.write_bytes(data)
        with of_case(seed, data), contextlib.suppress(Unclear):
            got = outcome(path, table, path)
            agree(path, got, lambda data=data: values_of(qrels, parse_jsonl(data)))


READ_MANY = """
import pathlib, sys
import farfield
for name in sys.argv[1:]:
    try:
        answer = f"{len(farfield.read_run(name))} rows"
    except farfield.FileError as error:
        answer = str(error)
    print(name, repr(answer), flush=True)
"""


def test_damaged_parquet(sources: list[bytes], tmp_path: Path) -> None:
    # polars believes the lengths in a damaged page, and one in some thousand asks for more memory
    # than there is, which ends the process. So the files are read in another process.
    whole = packed(sources[0], tmp_path / "a.parquet")
    rng = random.Random(3)
    cases = {f"cut-{at}": whole[:at] for at in rng.sample(range(4, len(whole)), 40)}
    cases |= {f"bad-{seed}": damaged(whole, random.Random(seed)) for seed in range(160)}
    paths = []
    for name, data in cases.items():
        paths.append(tmp_path / f"{name}.parquet")
        paths[-1].write_bytes(data)
    command = [sys.executable, "-c", READ_MANY, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    answers = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    if done.returncode:
        assert "memory allocation" in done.stderr
    else:
        assert len(answers) == len(paths)
    assert "Traceback" not in done.stderr
    for path in paths[:40]:
        assert answers[str(path)] == repr(
            f"{path}: the parquet data is cut short. Get the file again."
        )
    for path, answer in answers.items():
        assert re.fullmatch(r"'[0-9]+ rows'", answer) or answer[1:].startswith(f"{path}:"), answer


# -- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", shares(24, 4), ids=case_name)
def test_damaged_files_on_the_command_line(
    seeds: range, sources: list[bytes], farfield: Any, tmp_path: Path
) -> None:
    rng = random.Random(4)
    qrels = judgements_for(sources[0], rng)
    judged, run = tmp_path / "qrels", tmp_path / "run"
    judged.write_text("".join(f"{q} 0 {d} {r}\n" for q in qrels for d, r in qrels[q].items()))
    for seed in seeds:
        data = damaged(sources[0], random.Random(seed))
        run.write_bytes(data)
        done = farfield("evaluate", judged, run, "-m", "nDCG@10", "--json")
        try:
            values = values_of(qrels, parse_run(data))
        except Refused as refused:
            line = refused.line
        else:
            line = None
        if line is not None:
            assert (done.status, done.out) == (2, "")
            at = "" if line == 0 else rf":{line}" if line > 0 else r"(:\d+)?"
            assert re.match(rf"error: {re.escape(str(run))}{at}: ", done.err)
            continue
        assert done.status == 0, done.err
        mean = sum(v for (_, m), v in values.items() if m == "nDCG@10") / len(qrels)
        assert done.json["measures"]["run"]["nDCG@10"]["mean"] == pytest.approx(mean, abs=1e-12)
