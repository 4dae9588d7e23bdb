"""Files in and out: every format, every shape found in the wild, every way to go wrong."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import resource
import signal
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farfield import (
    Allocation,
    Card,
    Collection,
    Corpus,
    FarfieldWarning,
    Partition,
    PerQuery,
    Qrels,
    Queries,
    Run,
    read,
    read_collection,
    read_corpus,
    read_qrels,
    read_queries,
    read_run,
    write,
    write_collection,
)
from farfield.errors import FileError, InputError, MissingDependency
from farfield.io import FORMATS, kind_of, name_of
from farfield.io.text import is_number

INF = float("inf")


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Make a file of this content."""

    def make(content: str | bytes, name: str = "file") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def rows(run: Run) -> list[tuple[str, str, float]]:
    """(query, document, score) in ranked order."""
    return run.frame.select("query_id", "doc_id", "score").rows()


def refused(path: Path, line: int | None, message: str, read: Callable[[Path], Any]) -> None:
    """Reading must fail with an error that names file, line and fault."""
    with pytest.raises(FileError) as raised:
        read(path)
    where = f"{path}: " if line is None else f"{path}:{line}: "
    assert str(raised.value).startswith(where)
    assert re.search(message, str(raised.value)[len(where) :]), raised.value
    assert raised.value.line == line


# -- run files in the wild ----------------------------------------------------------------------


def plainly(data: bytes) -> list[tuple[str, str, float]]:
    """What a TREC run holds, read in the plainest way and ranked as trec_eval does."""
    found: dict[str, list[tuple[float, bytes]]] = {}
    for line in data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n"):
        fields = re.split(r"[ \t]+", line.decode().strip(" \t"))
        if fields != [""]:
            found.setdefault(fields[0], []).append((float(fields[4]), fields[2].encode()))
    return [
        (query, doc.decode(), score)
        for query, ranked in found.items()
        for score, doc in sorted(ranked, reverse=True)
    ]


SIMPLE = b"1 Q0 d1 1 2.5 tag\n1 Q0 d2 2 1.5 tag\n2 Q0 d1 1 9.0 tag\n"
WILD = {
    "plain": SIMPLE,
    "ranks from 0": SIMPLE.replace(b" 1 2.5", b" 0 2.5").replace(b" 2 1.5", b" 1 1.5"),
    "tabs": SIMPLE.replace(b" ", b"\t"),
    "several spaces": SIMPLE.replace(b" ", b"   "),
    "tabs and spaces": SIMPLE.replace(b" Q0 ", b"\tQ0 \t"),
    "a tab in one line": SIMPLE.replace(b"d2 2", b"d2\t2"),
    "two spaces in one line": SIMPLE.replace(b"d2 2", b"d2  2"),
    "leading spaces": SIMPLE.replace(b"1 Q0", b" 1 Q0"),
    "leading tab in the last line": SIMPLE.replace(b"2 Q0", b"\t2 Q0"),
    "trailing spaces": SIMPLE.replace(b"tag\n", b"tag  \n"),
    "trailing space in one line": SIMPLE.replace(b"2.5 tag\n", b"2.5 tag \n"),
    "exponents": b"1 Q0 d1 1 1e-05 t\n1 Q0 d2 2 1E+3 t\n1 Q0 d3 3 -2.5e1 t\n1 Q0 d4 4 1.e2 t\n",
    "zeros": b"1 Q0 d1 1 -0.0 t\n1 Q0 d2 2 0 t\n1 Q0 d3 3 +0.0 t\n",
    "infinities": b"1 Q0 d1 1 inf t\n1 Q0 d2 2 -Infinity t\n1 Q0 d3 3 0.5 t\n1 Q0 d4 3 +INF t\n",
    "CRLF": SIMPLE.replace(b"\n", b"\r\n"),
    "CRLF in one line": SIMPLE.replace(b"2.5 tag\n", b"2.5 tag\r\n"),
    "CR at the very end": SIMPLE.replace(b"\n", b"\r\n")[:-1],
    "byte-order mark": b"\xef\xbb\xbf" + SIMPLE,
    "byte-order mark and CRLF": b"\xef\xbb\xbf" + SIMPLE.replace(b"\n", b"\r\n"),
    "byte-order mark after a blank": b" \xef\xbb\xbf" + SIMPLE,
    "tags of several words": SIMPLE.replace(b"tag", b"my run, v. 2"),
    "tags of several lengths": SIMPLE.replace(b"1.5 tag", b"1.5 a longer tag"),
    "no tag": SIMPLE.replace(b" tag", b""),
    "no tag in some lines": SIMPLE.replace(b"1.5 tag", b"1.5"),
    "a tag in some lines": SIMPLE.replace(b"2.5 tag", b"2.5"),
    "queries not together": b"1 Q0 a 1 3 t\n2 Q0 a 1 3 t\n1 Q0 b 2 2 t\n2 Q0 c 2 4 t\n1 Q0 c 9 5 t",
    "rows not sorted": b"1 Q0 a 1 1 t\n1 Q0 b 2 3 t\n1 Q0 c 3 2 t\n",
    "ties": b"1 Q0 10 1 1 t\n1 Q0 9 2 1.0 t\n1 Q0 a 3 1e0 t\n1 Q0 \xc3\xa9 4 1 t\n",
    "no final line end": SIMPLE[:-1],
    "blank lines": b"\n \t\n" + SIMPLE.replace(b"2.5 tag\n", b"2.5 tag\n\n   \n\t\n") + b"\n\n",
    "blank lines with CR": SIMPLE.replace(b"2.5 tag\n", b"2.5 tag\r\n \r\n\r\n"),
    "one line": b"q Q0 d 1 1 t",
    "quotes, commas and hashes": b"\"1 Q0 d,1\" 1 2 t\n#2 Q0 'd\" 1 2 t\n\"1 Q0 d;2 1 3 t\n",
    "other control characters": b"1\0 Q0 d\x0b1 1 2 t\n1\0 Q0 \x1c\x0cd 1 3 t\n",
    "other kinds of space": "1\u00a0 Q0 d\u2003x 1 2 t\n1\u2028 Q0 d\u0085 1 3 t\n".encode(),
    "words for nothing": b"null Q0 NaN 1 2 t\nNA Q0 None 1 3 t\nnull Q0 true 2 1 t\n",
    "any script": "q\u00e9 Q0 \u6587\u66f8 1 2 t\nq\u00e9 Q0 \U0001f600 2 1 t\n".encode(),
    "names that start like numbers": b"1e5 Q0 0x1 1 2 t\n1e5 Q0 1_0 2 1 t\n",
}  # fmt: skip


@pytest.mark.parametrize("packing", ["plain", "gz", "zst"])
@pytest.mark.parametrize("name", WILD)
def test_run_files_in_the_wild(name: str, packing: str, made: Callable[..., Path]) -> None:
    pack = {"plain": bytes, "gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}[
        packing
    ]
    run = read_run(made(pack(WILD[name])))
    assert rows(run) == plainly(WILD[name])
    # Equal is not enough: -0.0 is equal to 0.0.
    assert list(map(str, run.scores)) == [str(score) for _, _, score in plainly(WILD[name])]


def test_the_plain_reader_by_hand() -> None:
    # Descending scores; of equal ones the greater id first: é (C3 A9) > a > 9 > 10.
    assert plainly(WILD["ties"]) == [("1", doc, 1.0) for doc in ("é", "a", "9", "10")]
    assert plainly(WILD["rows not sorted"]) == [("1", "b", 3.0), ("1", "c", 2.0), ("1", "a", 1.0)]
    together = plainly(WILD["queries not together"])
    assert [(query, doc) for query, doc, _ in together] == [
        ("1", "c"), ("1", "a"), ("1", "b"), ("2", "c"), ("2", "a")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["[1].run", "a*.run", "what?.run", "a b.run", "{x,y}.run", "~.run", "k=v/a.run", "é.run"],
)
def test_names_of_files_mean_only_themselves(name: str, made: Callable[..., Path]) -> None:
    made(b"x Q0 wrong 1 1 t\n", "1.run")
    made(b"x Q0 wrong 1 1 t\n", "ab.run")
    assert rows(read_run(made(SIMPLE, name))) == plainly(SIMPLE)
    parquet = made(b"", name + ".parquet")
    write(read_run(made(SIMPLE, name)), parquet)
    assert rows(read_run(parquet)) == plainly(SIMPLE)


def test_names_relative_to_the_home_folder_are_not_expanded(
    made: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(SIMPLE, "~/a.run")
    monkeypatch.chdir(tmp_path)
    assert rows(read_run("~/a.run")) == plainly(SIMPLE)


def test_names_that_are_not_text(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.run")
    with open(path, "wb") as file:
        file.write(SIMPLE)
    run = read_run(path)
    assert rows(run) == plainly(SIMPLE)
    assert run.name == "\ufffd"
    write(run, path + ".trec")
    assert read_run(path + ".trec") == run


@pytest.mark.parametrize(
    "packed",
    [SIMPLE, gzip.compress(SIMPLE, mtime=0), b"\xef\xbb\xbf" + SIMPLE],
    ids=["plain", "gzip", "marked"],
)
def test_reading_from_a_pipe(packed: bytes) -> None:
    reading, writing = os.pipe()

    def feed() -> None:
        with os.fdopen(writing, "wb") as file:
            for at in range(0, len(packed), 7):  # in pieces, as pipes do
                file.write(packed[at : at + 7])
                file.flush()

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        assert rows(read_run(f"/dev/fd/{reading}")) == plainly(SIMPLE)
    finally:
        thread.join()
        os.close(reading)


def test_process_substitution(made: Callable[..., Path]) -> None:
    path = made(gzip.compress(SIMPLE))
    script = "import farfield, sys; print(len(farfield.read_run(sys.argv[1])))"
    command = f"{sys.executable} -c '{script}' <(zcat < {path})"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_several_compressed_files_in_one(made: Callable[..., Path]) -> None:
    lines = SIMPLE.splitlines(keepends=True)
    whole = plainly(SIMPLE)
    parts = [gzip.compress(line) for line in lines]
    assert rows(read_run(made(b"".join(parts)))) == whole
    assert rows(read_run(made(b"".join(parts) + bytes(1000)))) == whole  # tapes are padded
    compress = zstandard.ZstdCompressor().compress
    assert rows(read_run(made(b"".join(map(compress, lines))))) == whole
    assert rows(read_run(made(gzip.compress(b"\xef\xbb\xbf" + SIMPLE)))) == whole


def test_a_long_run_takes_the_fast_and_the_slow_way(made: Callable[..., Path]) -> None:
    # Longer than the pieces in which the text is looked at, with the odd line at either end.
    lines = [b"%d Q0 d%d 1 %d tag" % (i // 100, i, -i) for i in range(40_000)]
    for at in (0, 20_000, 39_999):
        odd = [*lines[:at], lines[at].replace(b" Q0 ", b"\tQ0  "), *lines[at + 1 :]]
        run = read_run(made(b"\n".join(odd)))
        assert run.doc_ids.to_list() == [f"d{i}" for i in range(40_000)]
    odd = [*lines[:39_999], lines[39_999].replace(b"-39999", b"x")]
    refused(made(b"\n".join(odd)), 40_000, "score is 'x', which is not a number", read_run)


# -- what is not a run --------------------------------------------------------------------------

OK = "1 Q0 d1 1 2.5 tag\n"
BROKEN_RUNS = {
    "empty": ("", None, "the file is empty"),
    "blank": (" \n\t\r\n\n", None, "the file is empty"),
    "only a mark": (b"\xef\xbb\xbf", None, "the file is empty"),
    "too few fields": (OK + "1 Q0 d2 2\n" + OK, 2, "4 fields in '1 Q0 d2 2'. Expected query Q0"),
    "one field": (OK + "\n" + "x\n", 3, "1 field in 'x'"),
    "too few in the first line": ("1 Q0\n" + OK, 1, "2 fields"),
    "a word for a score": (OK + "1 Q0 d2 2 high tag\n", 2, "score is 'high', which is not a num"),
    "underscores": ("1 Q0 d2 2 1_0 tag\n", 1, "score is '1_0'"),
    "hexadecimal": ("1 Q0 d2 2 0x1p3 tag\n", 1, "score is '0x1p3'"),
    "other digits": ("1 Q0 d2 2 \u0663 tag\n", 1, "score is '\u0663'"),
    "comma": ("1 Q0 d2 2 1,5 tag\n", 1, "score is '1,5'"),
    "NaN": (OK + "\r\n\n1 Q0 d2 2 NaN tag\n", 4, "score is NaN"),
    "negative NaN": (OK + "1 Q0 d2 2 -nan tag\n", 2, "score is NaN"),
    "NaN and blanks": (OK + "\n1  Q0 d2 2 nan tag\n", 3, "score is NaN"),
    "not UTF-8": (OK.encode() + b"1 Q0 d\xff 2 1 tag\n", 2, "is not UTF-8"),
    "a tag that is not UTF-8": (OK.encode() + b"1 Q0 d 2 1 t\xe9\n", 2, "is not UTF-8"),
    "UTF-16": (OK.encode("utf-16"), 1, "is not UTF-8"),
    "binary": (bytes(range(256)) * 4, 1, "1 field in"),
    "old Mac": (OK.replace("\n", "\r") * 2, 1, "carriage return in the middle"),
    "CR in an id": (OK + "1 Q0 d\r2 2 1 tag\n", 2, "carriage return in the middle"),
    "CR after an id": (OK + "1 Q0 d2\r 2 1 tag\n", 2, "carriage return in the middle"),
    "two CRs": (OK.replace("\n", "\r\r\n"), 1, "carriage return in the middle"),
    "cut in the score": (OK + "1 Q0 d2 2 1", 2, "last line has 5 fields and no end.*cut short"),
    "cut in the middle": (OK + "1 Q0 d2", 2, "3 fields .*cut short"),
    "cut with CRLF": (OK.replace("\n", "\r\n") + "1 Q0 d2 2 1 \r", 2, "5 fields and no end"),
    "judgements": ("1 0 d1 1\n1 0 d2 0\n", 1, "4 fields .* were the two files swapped"),
    "MS MARCO with a word": ("1\td1\t1\n1\td2\tx\n", 2, "rank is 'x', which is not a number"),
    "MS MARCO with a fraction": ("1\td1\t1\n\n1\td2\t1.5\n", 3, "rank is 1.5, expected a whole"),
    "MS MARCO with no end": ("1\td1\t1\n1\td2\tinf\n", 2, "rank is inf, expected a whole"),
    "MS MARCO with NaN": ("1\td1\tnan\n", 1, "rank is nan, expected a whole"),
    "MS MARCO and TREC": ("1 d1 1\n1 Q0 2 1 2.5 tag\n", 2, "6 fields .*MS MARCO"),
    "MS MARCO too short": ("1 d1 1\n1 d2\n", 2, "2 fields"),
    "not JSON": ('{"1": {"d1": 2.5}', 1, "this is not JSON"),
    "starts like JSON": ("[1] Q0 d1 1 2.5 tag\n", 1, "this is not JSON"),
    "starts like parquet": ("PAR1 Q0 d1 1 2.5 tag\n", None, "parquet data is cut short"),
}  # fmt: skip


@pytest.mark.parametrize("packing", ["plain", "gz"])
@pytest.mark.parametrize("name", BROKEN_RUNS)
def test_broken_runs_are_refused(name: str, packing: str, made: Callable[..., Path]) -> None:
    content, line, message = BROKEN_RUNS[name]
    data = content.encode() if isinstance(content, str) else content
    refused(made(gzip.compress(data) if packing == "gz" else data), line, message, read_run)


DUPLICATES = {
    "plain": ("q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n", 1, 3),
    "with blank lines": ("\n\nq Q0 a 1 3 t\n\n \nq Q0 a 2 2 t\n", 3, 6),
    "with CRLF": ("q Q0 a 1 3 t\r\n\r\nq Q0 a 2 2 t\r\n", 1, 3),
    "the slow way": ("q  Q0 a 1 3 t\n\nq Q0\ta 2 2 t\n\nq Q0 a 3 3 t", 1, 3),
    "the first of two": ("p Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 b 3 1 t\np Q0 a 2 1 t\n", 2, 3),
    "not together": ("q Q0 a 1 3 t\np Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n", 1, 4),
    "a header of blanks": ("qid docid score\n\nq a 3\n\nq a 2\n", 3, 5),
    "a header of tabs": ("\nquery-id\tcorpus-id\tscore\nq\ta\t3\n\nq\ta\t2\n", 3, 5),
    "csv": ('query_id,doc_id,score\n"q","a\nb",3\n\n"q",c,3\nq,"a\nb",2\n', 2, 6),
    "csv without quotes": ("query_id,doc_id,score\nq,a,3\nq,b,3\nq,a,2\n", 2, 4),
    "jsonl": ('\n{"qid": "q", "pid": "a", "sim": 1}\n\r\n{"qid": "q", "pid": "a", "sim": 2}', 2, 4),
    "MS MARCO": ("q\ta\t1\n\nq\ta\t2\n", 1, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", DUPLICATES)
def test_a_document_given_twice(name: str, made: Callable[..., Path]) -> None:
    content, first, again = DUPLICATES[name]
    message = (
        rf"appears twice for query .* Keep one of the two rows. It is first in line {first}\.$"
    )
    refused(made(content), again, message, read_run)


def test_a_document_given_twice_where_there_are_no_lines(made: Callable[..., Path]) -> None:
    frame = pl.DataFrame(
        {"query_id": ["q"] * 3, "doc_id": ["a", "b", "a"], "score": [3.0, 2.0, 1.0]}
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    refused(made(buffer.getvalue()), None, "in row 3: document 'a'.*It is first in row 1", read_run)
    refused(made(json.dumps(frame.to_dicts())), None, "in row 3: .*first in row 1", read_run)
    # Python keeps the last of two entries, which would hide the fault.
    message = "'a' appears twice in one object"
    refused(made('{"q": {"a": 3.0, "b": 2.0, "a": 1.0}}'), None, message, read_run)


def test_numbers_are_what_polars_takes_for_one() -> None:
    words = """1 1. 1.e5 . .5 +.5e-3 -.5 + - e5 1e 1e+ 1E5 1e5. 1.5f --1 +-1 1e5e5 1.2.3 1d5 0x1
        0x1p3 inf Inf +inf -INF infinity Infinity -Infinity infi infinit infinityy nan NaN -nan +NAN
        na n i 1_000 1,5 "1" '1' null None NA true 1e400 -1e400 1e-400 1e99999999999999999999 00 007
        +0 -0.0 1e+05 1e-05 4.9e-324 2.4703282292062327e-324 1.7976931348623159e308 0.1 \u0661
        \uff11 \u221e 1\x0b \x0c1 1\xa0 1\x00 \x00 ++ .e5 e +e5 1ee5 1e5+ inf.0 -infinity1
        1.7976931348623157e+308""".replace("\n", " ").split(" ")
    words = [word for word in words if word]
    words += ["9" * 400, "0." + "0" * 400 + "1", "0" * 50 + "1.5", "." + "5" * 800, "1e" + "0" * 50]
    column = pl.read_csv(
        io.BytesIO("".join(f"x\t{word}\n" for word in words).encode()),
        separator="\t", has_header=False, quote_char=None, ignore_errors=True,
        schema={"x": pl.String, "number": pl.Float64},
    )["number"]  # fmt: skip
    assert [is_number(word.encode()) for word in words] == column.is_not_null().to_list()
    # Whatever counts as a number, Python reads as the same one.
    for word, value in zip(words, column, strict=True):
        assert value is None or str(float(word)) == str(value)


# -- formats of runs ----------------------------------------------------------------------------

THREE = [("1", "d1", 2.5), ("1", "d2", -1.0), ("2", "d1", 9.0)]
TABLES = {
    "jsonl": '{"query_id": "1", "doc_id": "d1", "score": 2.5}\n\n'
    '{"query_id": 1, "doc_id": "d2", "score": -1}\n'
    '{"query_id": "2", "doc_id": "d1", "score": 9, "rank": 1}\n',
    "other names": '{"qid": 1, "docno": "d1", "sim": 2.5, "rank": 7}\n'
    '{"qid": 1, "docno": "d2", "sim": -1}\n{"qid": 2, "docno": "d1", "sim": 9.0}',
    "nested": '{"1": {"d1": 2.5, "d2": -1}, "2": {"d1": 9}}',
    "nested over lines": '\n{\n "1": {"d2": -1,\n "d1": 2.5},\n "2": {"d1": 9}\n}\n',
    "array": '[{"qid": "1", "docid": "d1", "score": 2.5},\n'
    ' {"qid": "1", "docid": "d2", "score": -1}, {"qid": "2", "docid": "d1", "score": 9}]',
    "csv": "query_id,doc_id,score\n1,d1,2.5\n1,d2,-1\n2,d1,9\n",
    "csv of pandas": ",qid,docno,rank,score\n0,1,d1,0,2.5\n1,1,d2,1,-1\n2,2,d1,0,9\n",
    "csv with quotes": '"qid","docid","score"\r\n"1","d1","2.5"\r\n1,d2," -1"\r\n\r\n2,"d1",9\r\n',
    "tsv": "query_id\tdoc_id\tscore\trun\n1\td1\t2.5\tx\n1\td2\t-1\tx\n2\td1\t9\tx\n",
    "blanks": "qid Q0 docid rank score tag\n1 Q0 d1 1 2.5 t\n1 Q0 d2 2  -1 t t\n\n2 Q0 d1 1 9 t\n",
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_formats_of_runs(name: str, made: Callable[..., Path]) -> None:
    assert rows(read_run(made(TABLES[name]))) == THREE
    assert rows(read_run(made(gzip.compress(b"\xef\xbb\xbf" + TABLES[name].encode())))) == THREE
    assert kind_of(made(TABLES[name])) is Run if not name.startswith("nested") else True


@pytest.mark.parametrize(
    "content",
    [
        "1\td2\t2\n1\td1\t1\n2\td1\t1\n",
        "1 d2 20\n1 d1 10\n2 d1 5.0\n",
        "qid\tpid\trank\n1\td2\t2\n1\td1\t1\n2\td1\t1\n",
        "qid pid rank\n1 d2 2\n1 d1 1\n2 d1 1\n",
        "qid,pid,rank\n1,d2,2\n1,d1,1\n2,d1,1\n",
        '{"qid": "1", "pid": "d2", "rank": 2}\n{"qid": "1", "pid": "d1", "rank": 1}\n'
        '{"qid": "2", "pid": "d1", "rank": 1}\n',
    ],
)
def test_runs_of_ranks(content: str, made: Callable[..., Path]) -> None:
    run = read_run(made(content))
    assert [(query, doc) for query, doc, _ in rows(run)] == [("1", "d1"), ("1", "d2"), ("2", "d1")]
    # The order of the file, as the official measure of MS MARCO takes it.
    assert read_run(made(content), ties="file").doc_ids.to_list() == ["d2", "d1", "d1"]


def test_parquet_of_any_type(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "tag": ["x"] * 3,
            "docno": pl.Series(["d1", "d2", "d1"], dtype=pl.Categorical),
            "qid": pl.Series([1, 1, 2], dtype=pl.Int32),
            "score": pl.Series([2.5, -1.0, 9.0], dtype=pl.Float32),
        }
    )
    frame.write_parquet(tmp_path / "any.parquet")
    assert rows(read_run(tmp_path / "any.parquet")) == THREE


ROW = '{"qid": "1", "pid": "a", "sim": 1}\n'
RECORDS = {
    "no column": ('{"qid": "1", "sim": 1}', None, "no column 'doc_id'"),
    "missing in a row": (ROW + '\n{"qid": "1", "sim": 1}', 3, "doc_id is missing"),
    "score is text": ('{"qid": "1", "pid": "a", "sim": "1"}', None, "holds String, expected"),
    "id is a fraction": ('{"qid": 1.5, "pid": "a", "sim": 1}', None, "holds Float64, expected"),
    "not JSON": (ROW + '{"qid": "1", "pid": "b", "sc', 2, "is not JSON"),
    "not an object": (ROW + '[1]\n', 2, "is not an object"),
    "NaN in jsonl": (ROW + '{"qid": "1", "pid": "b", "sim": NaN}', 2, "NaN is"),
    "too large": (ROW + '{"qid": "1", "pid": "b", "sim": 1e999}', 2, "1e999"),
    "half a pair": (ROW + '{"qid": "1", "pid": "\\ud83d", "sim": 1}', 2, "surrogates"),
    "control character": (ROW + '{"qid": "1", "pid": "\x01", "sim": 1}', 2, "control"),
    "not UTF-8": (ROW.encode() + b'{"qid": "1", "pid": "\xff", "sim": 1}', 2, "not JSON .*utf-8"),
    "unknown column": ('{"qid": "1", "pid": "a", "sim": 1, "x": 2}', None, "unknown column 'x'"),
    "empty id": (ROW + '{"qid": "", "pid": "b", "sim": 1}', 2, "query_id is empty"),
    "deep in jsonl": (ROW + '{"a": ' * 500 + "1" + "}" * 500, 2, "more than 64 deep"),
    "deep in an array": ("[" + '{"a": ' * 500 + "1" + "}" * 500 + "]", None, "more than 64 deep"),
    "deep in nested": ('{"a": ' * 500 + "1" + "}" * 500, None, "more than 64 deep"),
    "deep lists": ('{"q": {"a": ' + "[" * 500 + "]" * 500 + "}}", None, "more than 64 deep"),
    "deep array": ("[" * 100_000, None, "this is not JSON"),
    "deep nested": ('{"q": ' * 100_000, None, "this is not JSON"),
    "nested NaN": ('{"q": {"a": 1.0, "b": NaN}}', None, "in query 'q', document 'b': score is NaN"),
    "nested text": ('{"q": {"a": 1.0, "b": "2"}}', None, "'q', document 'b': .* is not a number"),
    "nested half a pair": ('{"q": {"\\udc00": 1.0}}', None, "surrogates not allowed"),
    "nested too large": ('{"q": {"a": 1' + "0" * 400 + "}}", None, "too large"),
    "nested twice": ('{"q": {"a": 1.0}, "q": {"b": 1.0}}', None, "'q' appears twice"),
    "nested not UTF-8": (b'{"q":\n {"\xff": 1.0}}', 2, "is not UTF-8"),
    "nested and flat": ('{"q": {"a": 1.0}, "b": 2}', None, "no column 'query_id'"),
    "two objects": ('{"q": {"a": 1.0}}\n{"p": {"a": 1.0}}\n', 2, "not JSON: Extra data"),
    "array of numbers": ("[1, 2]", None, "expected a list of objects"),
    "array": (f'[{ROW}, {{"qid": "1", "pid": "b", "sim": NaN}}]', None, "in row 2: score is NaN"),
    "array of nothing": ("[]", None, "no column 'query_id'"),
    "csv too short": ("qid,docid,score\n1,a,2\n\n1,b\n", 4, "2 fields, but the header names 3"),
    "csv too long": ("qid,docid,score\n1,a,2\n1,b,2,3\n", 3, "4 fields, but the header names 3"),
    "csv with a word": ('qid,docid,score\n1,"a\nb",2\n1,b,x\n', 4, "score is 'x'"),
    "csv with no number": ("qid,docid,score\n1,a,2\n1,b,\n", 3, "score is ''"),
    "csv never ends": ('qid,docid,score\n1,a,2\n1,"b,3\n1,c,2\n', 3, "unexpected end of data"),
    "csv after a quote": ('qid,docid,score\n1,a,2\n1,"b"c,3\n', 3, "this is not csv"),
    "csv of an old Mac": ("qid,docid,score\r1,a,2\r", 1, "carriage return in the middle"),
    "csv not UTF-8": (b"qid,docid,score\n1,a,2\n1,\xff,3\n", 3, "is not UTF-8"),
    "csv column twice": ("qid,docid,score,score\n1,a,2,3\n", 1, "column 'score' is there twice"),
    "csv without rows": ("qid,docid,score\n", None, "there are no rows in it"),
    "tsv too short": ("qid\tdocid\tscore\n1\ta\t2\n1\tb\n", 3, "2 fields, but the header names 3"),
    "tsv not UTF-8": (b"qid\tdocid\tscore\n1\ta\t2\n1\t\xff\t3\n", 3, "is not UTF-8"),
    "blanks too short": ("qid docid score\n1 a 2\n1 b\n", 3, "2 fields .*Expected qid docid score"),
    "blanks column twice": ("\nqid docid score score\n1 a 2 3\n", 2, "'score' is there twice"),
    "blanks with a word": ("qid docid score\n1 a 2\n1 b x\n", 3, "score is 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDS)
def test_broken_tables_are_refused(name: str, made: Callable[..., Path]) -> None:
    content, line, message = RECORDS[name]
    refused(made(content), line, message, read_run)


def test_json_that_only_looks_broken(made: Callable[..., Path]) -> None:
    # A backslash before the u, a whole pair, and brackets inside a text.
    texts = ["C:\\ud83d", "\U0001f600", "}" * 500 + "]" * 500, "\u2028\x7f", "\\\\", "\0"]
    lines = [json.dumps({"_id": str(at), "text": text}) for at, text in enumerate(texts)]
    assert read_queries(made("\n".join(lines))).frame["text"].to_list() == texts
    assert read_queries(made(f"[{','.join(lines)}]")).frame["text"].to_list() == texts


def test_damaged_files(made: Callable[..., Path]) -> None:
    buffer = io.BytesIO()
    read_run(made(SIMPLE * 1)).frame.write_parquet(buffer)
    parquet, packed = buffer.getvalue(), gzip.compress(SIMPLE)
    zst = zstandard.ZstdCompressor(write_checksum=True).compress(SIMPLE)
    cases = [
        (packed[:-1], "gzip data is cut short"),
        (packed[:20], "gzip data is cut short"),
        (packed[:3], "gzip data is cut short"),
        (packed[:-6] + b"\0\0" + packed[-4:], "gzip data is damaged"),
        (packed + b"rest", "gzip data is damaged"),
        (zst[:-1], "zstd data is cut short"),
        (zst[:5], "zstd data is cut short"),
        (zst[:-1] + b"\0", "zstd data is damaged"),
        (zst + b"rest", "zstd data is damaged"),
        (parquet[:-1], "parquet data is cut short"),
        (parquet[:100], "parquet data is cut short"),
        (b"PAR1", "parquet data cannot be read"),
        (b"PAR1PAR1", "parquet data cannot be read"),
        (b"PAR1" + bytes(100) + b"PAR1", "parquet data cannot be read"),
        (parquet[:-12] + b"\xff\xff\xff\x7f\xff\xff\xff\x7fPAR1", "parquet data cannot be read"),
    ]
    for data, message in cases:
        refused(made(data), None, message, read_run)


# -- judgements ---------------------------------------------------------------------------------

JUDGED = [("1", "a", 2), ("1", "b", 0), ("2", "a", -1)]
JUDGEMENTS = {
    "TREC": "1 0 a 2\n1 0 b 0\n2 0 a -1\n",
    "TREC with tabs": "1\t0\ta\t2\n\n1\t0\tb\t0\n2\t0\ta\t-1",
    "TREC with any blanks": " 1  0\ta 2 \r\n1 0 b 0\r\n2 0 a -1\r\n",
    "TREC with decimals": "1 Q0 a 2.0\n1 Q0 b 0e0\n2 Q0 a -1.\n",
    "three columns": "1\ta\t2\n1\tb\t0\n2\ta\t-1\n",
    "BEIR": "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n2\ta\t-1\n",
    "BEIR with CRLF": "query-id\tcorpus-id\tscore\r\n1\ta\t2\r\n\r\n1\tb\t0\r\n2\ta\t-1\r\n",
    "BEIR with blanks": "query-id corpus-id score\n1 a 2\n1 b 0\n2 a -1\n",
    "csv": "query_id,doc_id,relevance\n1,a,2\n1,b,0\n2,a,-1\n",
    "csv with other names": "qid,iteration,docno,label\n1,0,a,2\n1,0,b,0\n2,0,a,-1\n",
    "jsonl": '{"query_id": 1, "doc_id": "a", "relevance": 2}\n'
    '{"query_id": 1, "doc_id": "b", "relevance": 0.0}\n'
    '{"query_id": 2, "doc_id": "a", "relevance": -1}\n',
    "nested": '{"1": {"a": 2, "b": 0.0}, "2": {"a": -1}}',
    "array": '[{"qid": 1, "docid": "a", "rel": 2}, {"qid": 1, "docid": "b", "rel": 0},\n'
    ' {"qid": 2, "docid": "a", "rel": -1}]',
}  # fmt: skip


@pytest.mark.parametrize("name", JUDGEMENTS)
def test_formats_of_judgements(name: str, made: Callable[..., Path]) -> None:
    qrels = read_qrels(made(JUDGEMENTS[name]))
    assert qrels.frame.rows() == JUDGED
    assert qrels.frame.schema == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}


BEIR = "query-id\tcorpus-id\tscore\n"
BROKEN_QRELS = {
    "a fraction": ("1 0 a 1\n\n1 0 b 1.5\n", 3, "relevance 1.5 is not a whole number"),
    "infinite": ("1 0 a 1\n1 0 b inf\n", 2, "relevance inf is not a whole number"),
    "NaN": ("1 0 a nan\n1 0 b 1.5\n", 1, "relevance nan is not a whole number"),
    "too large": ("1 0 a 1\n1 0 b 1e19\n", 2, "relevance 1e.19 is not a whole number"),
    "a word": ("1 0 a 1\n1 0 b yes\n", 2, "relevance is 'yes', which is not a number"),
    "a run": (SIMPLE, 1, "6 fields .*were the two files swapped"),
    "a field too many": ("1 0 a 1\n1 0 b 1 1\n", 2, "5 fields"),
    "a field too many in three columns": ("1\ta\t1\n1\t0\tb\t1\n", 2, "4 fields"),
    "a field too few": ("1 0 a 1\n1 0 b", 2, "3 fields .*cut short"),
    "two lines in one": ("1 0 a 1\n1 0 b 11 0 c 1\n1 0 d 1\n", 2, "7 fields"),
    "conflict": ("1 0 a 1\n2 0 a 1\n\n1  0 a 0\n", 4, "judged 0 .* but 1 before.*first in line 1"),
    "conflict in BEIR": (BEIR + "1\ta\t1\n1\ta\t2\n", 3, "judged 2 .* but 1 before.* line 2"),
    "fraction in csv": ("qid,docid,rel\n1,a,1\n1,b,0.5\n", 3, "relevance 0.5 is not a whole"),
    "fraction in jsonl": ('{"qid": 1, "docid": "a", "rel": 0.5}', 1, "relevance 0.5 is not"),
    "fraction in nested": ('{"1": {"a": 1, "b": 0.5}}', None, "'1', document 'b': relevance 0.5"),
    "empty": ("\n", None, "the file is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_QRELS)
def test_broken_judgements_are_refused(name: str, made: Callable[..., Path]) -> None:
    content, line, message = BROKEN_QRELS[name]
    refused(made(content), line, message, read_qrels)


def test_a_judgement_repeated_is_said_and_counted_once(made: Callable[..., Path]) -> None:
    path = made("1 0 a 1\n1 0 b 0\n1 0 a 1\n1 0 a 1\n")
    with pytest.warns(FarfieldWarning) as said:
        qrels = read_qrels(path)
    assert qrels.frame.rows() == [("1", "a", 1), ("1", "b", 0)]
    assert [str(warning.message) for warning in said] == [
        f"{path}: 2 judgements are repeated with the same relevance; each is counted once."
    ]
    assert said[0].filename == __file__


# -- queries and corpora ------------------------------------------------------------------------


def test_queries_of_lines(made: Callable[..., Path]) -> None:
    content = (
        "1\twhat is this\r\n\r\n 2\t  leading, \ta tab and a \rreturn \n \t \n3\t\nfour 4\tend"
    )
    assert read_queries(made(content)).frame.rows() == [
        ("1", "what is this"),
        (" 2", "  leading, \ta tab and a \rreturn "),
        ("3", ""),
        ("four 4", "end"),
    ]


@pytest.mark.parametrize(
    "first",
    [
        "1\twhat is the role of the source text in relevance",
        "1\tid text system measure",
        "id\tthe text of a query",
        "query\tscore, rank, text",
        "1\tquery_id, doc_id",
    ],
)
def test_words_of_a_query_are_no_header(first: str, made: Callable[..., Path]) -> None:
    queries = read_queries(made(first + "\n2\tother\n"))
    assert queries.frame.rows() == [tuple(first.split("\t")), ("2", "other")]


QUERIES = [("1", "a b"), ("2", "c")]
QUERY_FILES = {
    "lines": "1\ta b\n2\tc\n",
    "tsv": "query_id\ttext\n1\ta b\n2\tc\n",
    "tsv with other names": "qid\tquery\n1\ta b\n2\tc\n",
    "csv": 'query_id,text\n1,"a b"\n2,c\n',
    "csv with id": "id,query\n1,a b\n2,c\n",
    "jsonl": '{"query_id": "1", "text": "a b"}\n{"query_id": "2", "text": "c"}\n',
    "BEIR": '{"_id": "1", "text": "a b", "metadata": {}}\n{"_id": "2", "text": "c"}\n',
    "BEIR of numbers": '{"_id": 1, "text": "a b"}\n{"_id": 2, "text": "c"}\n',
    "BEIR of both": '{"_id": 1, "text": "a b"}\n{"_id": "2", "text": "c"}\n',
    "other names": '{"id": "1", "query": "a b"}\n{"id": "2", "query": "c"}\n',
    "array": '[{"qid": 1, "query": "a b"}, {"qid": 2, "query": "c"}]',
}  # fmt: skip


@pytest.mark.parametrize("name", QUERY_FILES)
def test_formats_of_queries(name: str, made: Callable[..., Path]) -> None:
    assert read_queries(made(QUERY_FILES[name])).frame.rows() == QUERIES


def test_attributes_ride_along(made: Callable[..., Path]) -> None:
    # The entry called topic is an attribute here, not the id.
    lines = [
        {"_id": "1", "text": "a", "metadata": {"topic": "birds", "n": 1, "tags": ["x"]}},
        {"_id": "2", "text": "b", "metadata": {"topic": "trees"}},
        {"_id": "3", "text": "c"},
    ]
    queries = read_queries(made("\n".join(map(json.dumps, lines))))
    assert queries.frame.to_dict(as_series=False) == {
        "query_id": ["1", "2", "3"],
        "text": ["a", "b", "c"],
        "topic": ["birds", "trees", None],
        "n": [1, None, None],
        "tags": [["x"], None, None],
    }
    csv = read_queries(made('query_id,text,topic\n1,"a, b",birds\n2,,""\n'))
    assert csv.frame.rows() == [("1", "a, b", "birds"), ("2", "", "")]
    # An entry of metadata that is called like a column stays where it is.
    kept = read_corpus(made('{"_id": "1", "title": "t", "text": "a", "metadata": {"title": "u"}}'))
    assert kept.frame.rows() == [("1", "a", "t", {"title": "u"})]


def test_formats_of_corpora(made: Callable[..., Path]) -> None:
    expected = [("1", "a\nb", "t"), ("2", 'say "c"', "")]
    documents = [{"doc_id": d, "text": text, "title": title} for d, text, title in expected]
    beir = [{"_id": d, "title": title, "text": text} for d, text, title in expected]
    table = 'docno,title,contents\n1,t,"a\nb"\n2,,"say ""c"""\n'
    for content in (
        "\n".join(map(json.dumps, documents)),
        "\r\n".join(map(json.dumps, beir)),
        json.dumps(beir),
        table,
        table.replace("\n", "\r\n").replace("a\r\n", "a\n"),
    ):
        corpus = read_corpus(made(content))
        assert corpus.frame.select("doc_id", "text", "title").rows() == expected
    assert read_corpus(made("1\ta\n2\tb")).frame.rows() == [("1", "a"), ("2", "b")]


def test_texts_of_any_length(made: Callable[..., Path]) -> None:
    long = 'x"' * 200_000  # longer than Python's csv module reads unless told to
    corpus = Corpus({"doc_id": ["1", "2"], "text": [long, "short"]})
    path = made("", "long.csv")
    write(corpus, path)
    assert read_corpus(path) == corpus


BROKEN_TEXTS = {
    "no tab": ("1\ta\n\n2 b\n", 3, "no tab in '2 b'. Expected query_id, a tab and text"),
    "twice": ("1\ta\n\n2\tb\n1\tc\n", 4, "query_id '1' appears more than once.*first in line 1"),
    "no id": ("1\ta\n\tb\n", 2, "query_id is empty"),
    "not UTF-8": (b"1\ta\n2\t\xff\n", 2, "is not UTF-8"),
    "no text": ('{"_id": "1", "text": "a"}\n{"_id": "2"}\n', 2, "text is missing"),
    "null text": ('{"_id": "1", "text": null}\n', 1, "text is missing"),
    "text is a list": ('{"_id": "1", "text": ["a"]}\n', None, "'text' holds List"),
    "csv row too short": ("query_id,text\n1,a\n2\n", 3, "1 field, but the header names 2"),
    "nested": ('{"1": {"a": 1}}', None, "expected one object per line with query_id, text"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_TEXTS)
def test_broken_texts_are_refused(name: str, made: Callable[..., Path]) -> None:
    content, line, message = BROKEN_TEXTS[name]
    refused(made(content), line, message, read_queries)


def test_other_tables_need_a_header(made: Callable[..., Path]) -> None:
    refused(
        made("0 1 train\n"), None, "no header line. Expected .*fold, query_id, role", read_partition
    )
    refused(
        made("fold,query_id,role\n0,1,train\n0,2,test\n"), 3, "role 'test' is not", read_partition
    )
    wanted = [("0", "1", "train"), ("0", "two words", "far")]
    assert read_partition(
        made("fold\tquery_id\trole\n0\t1\ttrain\n0\ttwo words\tfar\n")
    ) == Partition(pl.DataFrame(wanted, schema=["fold", "query_id", "role"], orient="row"))
    with pytest.raises(InputError, match="is not a table of farfield"):
        read(made(""), int)  # type: ignore[type-var]


def read_partition(path: Path) -> Partition:
    return read(path, Partition)


# -- folders ------------------------------------------------------------------------------------


def beir_folder(folder: Path, ending: str = "") -> Path:
    packers: dict[str, Callable[[bytes], bytes]] = {
        "": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress
    }  # fmt: skip
    (folder / "qrels").mkdir(parents=True)
    first = b'{"_id": "a", "title": "t", "text": "x", "metadata": {}}\n'
    corpus = first + b'{"_id": "b", "title": "", "text": "y"}\n'
    for name, content in {
        "corpus.jsonl": corpus,
        "queries.jsonl": b'{"_id": "1", "text": "q"}\n{"_id": "2", "text": "r"}\n',
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\n1\ta\t1\n",
        "qrels/train.tsv": b"query-id\tcorpus-id\tscore\n2\ta\t1\n2\tb\t2\n",
    }.items():
        (folder / f"{name}{ending}").write_bytes(packers[ending](content))
    return folder


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_beir_folders(ending: str, tmp_path: Path) -> None:
    folder = beir_folder(tmp_path / "scifact", ending)
    collection = read_collection(folder)
    assert collection.name == "scifact"
    assert collection.corpus.frame.rows() == [("a", "x", "t"), ("b", "y", "")]
    assert collection.queries.frame.rows() == [("1", "q"), ("2", "r")]
    assert list(collection.qrels) == ["test", "train"]
    assert collection.qrels["train"].frame.rows() == [("2", "a", 1), ("2", "b", 2)]
    assert collection.queries_of("test").frame.rows() == [("1", "q")]
    assert collection.card == Card()
    collection.check()
    assert read_queries(folder) == collection.queries
    assert read_corpus(folder) == collection.corpus


def test_beir_folders_of_mixed_compression(tmp_path: Path) -> None:
    folder = beir_folder(tmp_path / "mixed")
    plain = read_collection(folder).fingerprint
    for name, pack in {"corpus.jsonl": gzip.compress, "qrels/test.tsv": gzip.compress}.items():
        data = (folder / name).read_bytes()
        (folder / name).unlink()
        (folder / f"{name}.gz").write_bytes(pack(data))
    assert read_collection(folder).fingerprint == plain
    (folder / "qrels" / "README.txt").write_text("not a split")
    assert list(read_collection(folder).qrels) == ["test", "train"]


def test_a_card_says_where_a_collection_comes_from(tmp_path: Path) -> None:
    folder = beir_folder(tmp_path / "c")
    card = folder / "card.json"
    card.write_text('{"licence": "CC BY 4.0", "citation": "Müller"}')
    assert read_collection(folder).card == Card(licence="CC BY 4.0", citation="Müller")
    for content, message in {
        '{"license": "MIT"}': "unknown entry 'license'. Did you mean 'licence'",
        '{"licence": 1}': "A card holds texts",
        "[1]": "expected one JSON object",
        "{": "this is not JSON",
        "": "this is not JSON|empty",
    }.items():
        card.write_text(content)
        with pytest.raises(FileError, match=message) as raised:
            read_collection(folder)
        assert str(card) in str(raised.value)


def test_parts_of_a_folder_that_are_not_there(tmp_path: Path) -> None:
    folder = beir_folder(tmp_path / "c")
    (folder / "corpus.jsonl").unlink()
    collection = read_collection(folder)  # parts are read when first used
    assert len(collection.queries) == 2
    with pytest.raises(
        FileError, match=r"corpus.jsonl: there is no such file. A BEIR folder holds"
    ):
        assert collection.corpus
    (folder / "qrels" / "test.tsv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(FileError, match="the split test is there twice, also as test.tsv"):
        read_collection(folder)
    for path in (folder / "qrels").iterdir():
        path.unlink()
    with pytest.raises(FileError, match="no qrels here"):
        read_collection(folder)
    (folder / "queries.jsonl").unlink()
    with pytest.raises(FileError, match="is not a BEIR folder"):
        read_collection(folder)
    with pytest.raises(FileError, match="is not a folder"):
        read_collection(folder / "nowhere")
    with pytest.raises(FileError, match=r"queries.jsonl: there is no such file"):
        read_queries(folder)


def small_collection() -> Collection:
    return Collection(
        "small",
        corpus=Corpus({"doc_id": ["a", "b"], "text": ["x\ny", ""], "title": ["t", ""]}),
        queries=Queries({"query_id": ["1", "2"], "text": ['"q"', "r"], "topic": ["birds", None]}),
        qrels={"train": Qrels({"1": {"a": 1}}), "test": Qrels({"2": {"a": 1, "b": -1}})},
        card=Card(licence="CC0", description="für Tests"),
    )


def test_collections_read_back_the_same(tmp_path: Path) -> None:
    collection = small_collection()
    write_collection(collection, tmp_path / "new" / "small")
    back = read_collection(tmp_path / "new" / "small")
    assert back.fingerprint == collection.fingerprint
    assert (back.name, back.card) == (collection.name, collection.card)
    before = {path: path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()}
    assert len(before) == 5
    write_collection(back, tmp_path / "new" / "small")
    assert {path: path.read_bytes() for path in before} == before


def test_a_collection_is_not_written_over_another(tmp_path: Path) -> None:
    folder = beir_folder(tmp_path / "c")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    with pytest.raises(FileError, match="holds qrels/dev.tsv of another collection"):
        write_collection(small_collection(), folder)
    (folder / "qrels" / "dev.tsv").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(b"")
    with pytest.raises(FileError, match=r"holds corpus.jsonl.gz of another collection"):
        write_collection(small_collection(), folder)
    (folder / "corpus.jsonl.gz").unlink()
    write_collection(small_collection(), folder)
    assert read_collection(folder).fingerprint == small_collection().fingerprint
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="this is a file; expected a folder"):
        write_collection(small_collection(), tmp_path / "file")
    with pytest.raises(FileError, match="cannot be made: Not a directory"):
        write_collection(small_collection(), tmp_path / "file" / "c")


# -- ir_datasets --------------------------------------------------------------------------------


@pytest.fixture
def registered(tmp_path: Path) -> Iterator[str]:
    """The name of a data set that ir_datasets knows during one test, and that needs no network."""
    ir_datasets = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("a\tx y\nb\tz\n")
    (tmp_path / "queries.tsv").write_text("1\tq\n2\tr\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 b 0\n")
    name = "farfield-test/test"
    parts = {"docs_tsv": "docs.tsv", "queries_tsv": "queries.tsv", "qrels_trec": "qrels"}
    dataset = ir_datasets.create_dataset(**{k: str(tmp_path / v) for k, v in parts.items()})
    ir_datasets.registry.register(name, dataset)
    only_docs = ir_datasets.create_dataset(docs_tsv=str(tmp_path / "docs.tsv"))
    ir_datasets.registry.register("farfield-test/docs", only_docs)
    yield f"ir:{name}"
    del ir_datasets.registry._registered[name]
    del ir_datasets.registry._registered["farfield-test/docs"]


def test_data_sets_of_ir_datasets(registered: str) -> None:
    collection = read_collection(registered)
    assert collection.name == "farfield-test/test"
    assert collection.corpus.frame.rows() == [("a", "x y"), ("b", "z")]
    assert collection.queries.frame.rows() == [("1", "q"), ("2", "r")]
    assert dict(collection.qrels) == {"test": Qrels({"1": {"a": 1}, "2": {"b": 0}})}
    assert read_corpus(registered) == collection.corpus
    assert read_queries(registered) == collection.queries
    assert read_qrels(registered) == collection.qrels["test"]


def test_data_sets_that_cannot_be_had(
    registered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        InputError, match="no data set 'farfield-test/tset'. Did you mean 'farfield-te"
    ):
        read_qrels("ir:farfield-test/tset")
    with pytest.raises(InputError, match="ir:farfield-test/docs has no qrels"):
        read_qrels("ir:farfield-test/docs")
    (tmp_path / "queries.tsv").unlink()
    with pytest.raises(
        InputError, match=r"could not provide the queries of ir:farfield-test/test: \w"
    ):
        read_queries(registered)
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingDependency, match=r"pip install 'farfield\[datasets\]'"):
        read_qrels(registered)


def test_fields_of_a_document_become_its_text(tmp_path: Path) -> None:
    from collections import namedtuple

    from farfield.io.irds import _to_frame

    document = namedtuple("document", ["doc_id", "title", "abstract", "year"])
    frame = _to_frame([document("a", "one", "two", 3), document("b", "four", None, 5)], "doc_id")
    assert frame["text"].to_list() == ["one two", "four"]
    assert _to_frame([], "doc_id").is_empty()


# -- files that are not there, or not to be had ---------------------------------------------------


def test_a_file_that_is_not_there(made: Callable[..., Path], tmp_path: Path) -> None:
    made(SIMPLE, "bm25.run")
    refused(
        tmp_path / "bm52.run", None, r"there is no such file. Did you mean 'bm25.run'\?", read_run
    )
    refused(tmp_path / "zzz", None, r"there is no such file\.$", read_run)
    refused(tmp_path / "no" / "run", None, "no such file. Nor is there a folder", read_run)
    refused(tmp_path, None, "this is a folder; expected a file", read_run)
    refused(made(SIMPLE) / "x", None, "cannot be read: Not a directory", read_run)
    refused(tmp_path / ("x" * 300), None, "cannot be read: File name too long", read_run)
    with pytest.raises(FileError, match="cannot be the name of a file"):
        read_run("a\0b")
    with pytest.raises(FileError, match="cannot be the name of a file"):
        write(Run({"q": {"a": 1.0}}), "a\0b.trec")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(made: Callable[..., Path], tmp_path: Path) -> None:
    path = made(SIMPLE)
    path.chmod(0)
    refused(path, None, "cannot be read: Permission denied", read_run)
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="cannot be written: Permission denied"):
        write(Run({"q": {"a": 1.0}}), tmp_path / "new.trec")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bm25.run", "bm25"), ("a/b/bm25.v2.trec.gz", "bm25.v2"), ("x.zst", "x"), ("run", "run"),
        (".run", ".run"), ("run.gz.gz", "run"), ("/dev/fd/63", "63"),
    ],
)  # fmt: skip
def test_a_run_is_called_after_its_file(path: str, name: str) -> None:
    assert name_of(path) == name


# -- telling what a file holds ------------------------------------------------------------------

KINDS = {
    "run": (SIMPLE.decode(), Run),
    "run without a tag": ("1 Q0 d 1 2.5\n", Run),
    "run as csv": ("query_id,doc_id,score,rank\n1,a,2.5,1\n", Run),
    "run as jsonl": ('{"query_id": "1", "doc_id": "a", "score": 1.0, "rank": 1}', Run),
    "run by other names": ("qid docno rank score\n1 a 1 2.5\n", Run),
    "run of ranks": ("qid,pid,rank\n1,a,1\n", Run),
    "qrels": ("1 0 a 1\n", Qrels),
    "qrels of BEIR": ("query-id\tcorpus-id\tscore\n1\ta\t1\n", Qrels),
    "qrels as csv": ("query_id,doc_id,relevance\n1,a,1\n", Qrels),
    "qrels as an array": ('[{"qid": "1", "docid": "a", "label": 1}]', Qrels),
    "queries of BEIR": ('{"_id": "1", "text": "q", "metadata": {}}', Queries),
    "queries as csv": ("query_id,text,topic\n1,q,birds\n", Queries),
    "queries by other names": ('{"qid": "1", "query": "q"}', Queries),
    "corpus of BEIR": ('{"_id": "1", "title": "", "text": "q"}', Corpus),
    "corpus as csv": ("doc_id,text\n1,q\n", Corpus),
    "corpus by other names": ('{"docno": "1", "contents": "q"}', Corpus),
    "corpus with a title": ("id,title,text\n1,t,q\n", Corpus),
    "per query": ("query_id,system,measure,value\n1,a,RR,0.5\n", PerQuery),
    "partition": ("fold\tquery_id\trole\n0\t1\tnear\n", Partition),
    "allocation": ('{"query_id": "1", "source": "web", "budget": 3}', Allocation),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_a_file_holds(name: str, made: Callable[..., Path]) -> None:
    content, kind = KINDS[name]
    assert kind_of(made(content)) is kind
    assert kind_of(made(gzip.compress(b"\n" + content.encode()))) is kind
    table = read(made(content), kind)
    path = made("", "same.parquet")
    write(table, path)
    assert kind_of(path) is kind


@pytest.mark.parametrize(
    "content",
    [
        "1\ta\t1\n",  # a run of ranks, or judgements in three columns
        "1\twhat is the meaning of life\n",  # queries or a corpus
        "id,text\n1,q\n",
        '{"1": {"a": 1}}',  # a run or judgements
        '{"name": "x"}',
        "[1, 2]",
        "[]",
    ],
)
def test_what_a_file_holds_cannot_always_be_told(content: str, made: Callable[..., Path]) -> None:
    refused(made(content), None, "cannot be told what this file holds", kind_of)


# -- writing: exact round trips -----------------------------------------------------------------

quick = settings(max_examples=25)
odd = st.sampled_from(
    ["query_id", "doc_id", "id", "text", "{", "[", "PAR1", "\ufeff", '"', ",", "a,b", '"a"', " ",
     "\t", "\r", "\n", "a b", "a\r", "\ra", "null", "NaN", "1", "-0", "\0", "\x0b", "\u2028", "😀"]
)  # fmt: skip
ids = st.one_of(st.text(min_size=1, max_size=5), odd, st.integers(1, 5).map(str))
texts = st.one_of(st.text(max_size=20), odd, st.just(""))
scores = st.floats(allow_nan=False)
pairs = st.dictionaries(st.tuples(ids, ids), scores, min_size=1, max_size=8)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    drawn = draw(pairs)
    keys = list(drawn)
    return Run(
        {
            "query_id": [query for query, _ in keys],
            "doc_id": [doc for _, doc in keys],
            "score": list(drawn.values()),
        },
        name=draw(st.text(max_size=5)),
    )


@st.composite
def judgements(draw: st.DrawFn) -> Qrels:
    drawn = draw(pairs)
    keys = list(drawn)
    whole = st.lists(st.integers(-(2**53), 2**53), min_size=len(keys), max_size=len(keys))
    return Qrels(
        {
            "query_id": [query for query, _ in keys],
            "doc_id": [doc for _, doc in keys],
            "relevance": draw(whole),
        }
    )


@st.composite
def with_texts(draw: st.DrawFn, kind: type[Queries] | type[Corpus]) -> Queries | Corpus:
    keys = draw(st.lists(ids, min_size=1, max_size=5, unique=True))
    columns: dict[str, Any] = {
        kind.key[0]: keys,
        "text": draw(st.lists(texts, min_size=len(keys), max_size=len(keys))),
    }
    values = st.sampled_from([texts, st.none() | texts, st.integers(-9, 9), scores, st.booleans()])
    names = st.sampled_from(
        ["title", "topic", "n", "_id", "query", "metadata", "é,", '"', "a\tb", ""]
    )
    for name in draw(st.lists(names, max_size=2, unique=True)):
        of = draw(values)
        columns[name] = draw(st.lists(of, min_size=len(keys), max_size=len(keys)))
        if all(value is None for value in columns[name]):
            columns[name][0] = ""
    return kind(pl.DataFrame(columns))


@st.composite
def per_query(draw: st.DrawFn) -> PerQuery:
    keys = draw(st.dictionaries(st.tuples(ids, ids, ids), scores, min_size=1, max_size=5))
    frame = pl.DataFrame(list(keys), schema=["query_id", "system", "measure"], orient="row")
    return PerQuery(frame.with_columns(value=pl.Series(list(keys.values()), dtype=pl.Float64)))


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    roles = st.sampled_from(["train", "near", "far"])
    keys = draw(st.dictionaries(st.tuples(ids, ids), roles, min_size=1, max_size=5))
    rows = [(*key, role) for key, role in keys.items()]
    return Partition(pl.DataFrame(rows, schema=["fold", "query_id", "role"], orient="row"))


@st.composite
def allocations(draw: st.DrawFn) -> Allocation:
    budgets = st.integers(0, 2**53)
    keys = draw(st.dictionaries(st.tuples(ids, ids), budgets, min_size=1, max_size=5))
    rows = [(*key, budget) for key, budget in keys.items()]
    return Allocation(pl.DataFrame(rows, schema=["query_id", "source", "budget"], orient="row"))


def some(frame: pl.DataFrame, pattern: str, names: list[str] | None = None) -> bool:
    """Does a text in one of these columns match?"""
    columns = names or [n for n, dtype in frame.schema.items() if dtype == pl.String]
    values = [value for name in columns for value in frame[name] if value is not None]
    return any(re.search(pattern, value) for value in values)


def endless(frame: pl.DataFrame) -> bool:
    """Is one of its numbers infinite?"""
    floats = [frame[n] for n, dtype in frame.schema.items() if dtype == pl.Float64]
    return any(column.is_infinite().any() for column in floats)


HEADERS = set(
    re.findall(
        r"\S+",
        """_id id query_id query-id qid q_id topic_id query topic doc_id corpus-id docid docno pid
        passage_id document_id doc relevance rel label score grade judgement judgment sim similarity
        text contents passage body rank system measure value fold role source budget""",
    )
)


def taken_for_another(line: str) -> bool:
    """Would a file that starts with this line be read as something else than lines?"""
    if line.lstrip(" \t").startswith(("{", "[")) or line.startswith(("PAR1", "\ufeff")):
        return True  # JSON, parquet, or something with a byte-order mark
    separator = "\t" if "\t" in line else "," if "," in line else " "
    fields = [field.strip(' "') for field in line.split(separator)]
    numbers = any(is_number(field.encode()) for field in fields)
    return len(HEADERS.intersection(fields)) >= 2 and not numbers


def untyped(table: Queries | Corpus) -> bool:
    """Has it columns that csv would not give back: no texts, or texts that are missing?"""
    others = table.frame.columns[2:]
    return any(
        table.frame[n].dtype != pl.String or table.frame[n].null_count() or re.search("[\t\r\n]", n)
        for n in others
    )


def cannot(table: Any, format: str) -> bool:
    """What each format cannot hold, by definition."""
    frame = table.frame
    keys = list(table.key)
    if format == "parquet":
        return False
    if format in ("json", "jsonl"):
        return endless(frame)
    if format == "beir" and not isinstance(table, Qrels):
        return endless(frame) or "_id" in frame.columns
    if format == "csv":
        return isinstance(table, Queries | Corpus) and untyped(table)
    if format in ("tsv", "beir"):
        texts = isinstance(table, Queries | Corpus) and untyped(table)
        return texts or some(frame, "[\t\r\n]")
    if isinstance(table, Queries | Corpus):  # lines of an id, a tab and a text
        return (
            len(frame.columns) > 2
            or some(frame, "\t|^ *$", keys)
            or some(frame, "[\r\n]")
            or taken_for_another("\t".join(frame.row(0)))
        )
    query, doc = frame.select("query_id", "doc_id").row(0)
    first = f"{query}\t{doc}\t1" if format == "msmarco" else f"{query} Q0 {doc} 1 1.0 t"
    return some(frame, "[ \t\r\n]", keys) or taken_for_another(first)


def check_round_trip(table: Any, format: str) -> None:
    """What is written is read back to the last bit; what cannot be is refused, and nothing lost."""
    with contextlib.ExitStack() as stack:
        from tempfile import TemporaryDirectory

        folder = Path(stack.enter_context(TemporaryDirectory()))
        path = folder / "file"
        path.write_bytes(b"old")
        if cannot(table, format):
            with pytest.raises(FileError) as raised:
                write(table, path, format=format)
            assert str(raised.value).startswith(f"{path}: ")
            assert (path.read_bytes(), os.listdir(folder)) == (b"old", ["file"])
            return
        write(table, path, format=format)
        back = read(path, type(table))
        if format == "msmarco" and isinstance(table, Run):  # it has no place for scores
            assert back.frame.select("query_id", "doc_id", "rank").equals(
                table.frame.select("query_id", "doc_id", "rank")
            )
            return
        assert back == table
        keys = list(table.key)
        frame = back.frame.select(table.frame.columns)
        assert frame.sort(keys).rows() == table.frame.sort(keys).rows()
        if isinstance(table, Run):
            assert bits(back) == bits(table)


def bits(run: Run) -> list[bytes]:
    return [struct.pack("<d", score) for score in run.scores]


@pytest.mark.parametrize("format", ["trec", "msmarco", "json", "jsonl", "csv", "tsv", "parquet"])
def test_runs_read_back_the_same(format: str) -> None:
    @quick
    @given(runs())
    @example(Run({"q": {"a": 0.1 + 0.2, "b": 5e-324, "c": 1.7976931348623157e308, "d": -0.0}}))
    @example(
        Run({"q": {"a": INF, "b": -INF, "c": 1 / 3, "d": 0.0, "e": -0.0, "f": 1e22, "g": 1e-7}})
    )
    @example(Run({"{": {"a": 1.0}, "q": {"b": 1.0}}))
    @example(Run({"query_id": {"doc_id": 1.0}}))
    @example(Run({"id,text,x": {"doc_id": 1.0}}))
    @example(Run({"q": {"a b": 1.0, "ab": 1.0}}))
    def check(table: Run) -> None:
        check_round_trip(table, format)

    check()


@pytest.mark.parametrize("format", ["trec", "beir", "json", "jsonl", "csv", "tsv", "parquet"])
def test_judgements_read_back_the_same(format: str) -> None:
    @quick
    @given(judgements())
    @example(Qrels({"query_id": {"doc_id": 1}}))
    def check(table: Qrels) -> None:
        check_round_trip(table, format)

    check()


@pytest.mark.parametrize("format", ["msmarco", "beir", "jsonl", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("kind", [Queries, Corpus])
def test_texts_read_back_the_same(kind: Any, format: str) -> None:
    key = kind.key[0]

    @settings(max_examples=50)
    @given(with_texts(kind))
    @example(kind({key: ["id", "1"], "text": ["text", ""]}))
    @example(kind({key: ["pid", "1"], "text": ["rel\t1", ""]}))
    @example(kind({key: [" ", "1"], "text": ["", " "]}))
    @example(kind({key: ["1", "2"], "text": ["a\tb", "  c "]}))
    @example(kind({key: ["1"], "text": ["a"], "topic": ["birds"], "id": ["7"], "query": ["x"]}))
    @example(kind({key: ["1"], "text": ['"'], "topic": ["1"]}))
    @example(kind({key: ["1"], "text": ["a"], "n": [INF]}))
    def check(table: Queries | Corpus) -> None:
        check_round_trip(table, format)

    check()


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("tables", [per_query(), partitions(), allocations()], ids=str)
def test_other_tables_read_back_the_same(tables: Any, format: str) -> None:
    @quick
    @given(tables)
    def check(table: Any) -> None:
        check_round_trip(table, format)

    check()


@settings(max_examples=300)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_scores_are_exact_to_the_last_bit(values: list[float]) -> None:
    run = Run({"q": {f"d{at}": value for at, value in enumerate(values)}})
    buffer = io.BytesIO()
    FORMATS["trec"](run, buffer, "-")
    written = [float(line.split()[4]) for line in buffer.getvalue().splitlines()]
    assert [struct.pack("<d", v) for v in written] == bits(run)


def test_columns_of_other_types(tmp_path: Path) -> None:
    from datetime import date, datetime

    frame = pl.DataFrame(
        {
            "query_id": ["1", "2"],
            "text": ["a", "b"],
            "day": [date(2020, 1, 2), None],
            "at": [datetime(2020, 1, 2, 3), datetime(2021, 1, 1)],
            "single": pl.Series([0.1, 0.2], dtype=pl.Float32),
            "kind": pl.Series(["x", "y"], dtype=pl.Categorical),
            "many": [["x"], []],
            "inner": [{"a": 1}, {"a": None}],
        }
    )
    queries = Queries(frame)
    for name in ("q.jsonl", "q.parquet"):
        write(queries, tmp_path / name)
        assert read_queries(tmp_path / name) == queries  # dates come back as texts in JSON
    write(queries, tmp_path / "beir.jsonl", format="beir")
    assert read_queries(tmp_path / "beir.jsonl") == queries
    texts = Queries(frame.select("query_id", "text", "at", "kind"))
    write(texts, tmp_path / "q.csv")
    assert read_queries(tmp_path / "q.csv") == texts
    for column, name, message in [
        (pl.Series("n", [[INF], []]), "q.jsonl", "n cannot be JSON"),
        (pl.Series("n", [b"x", b"y"]), "q.jsonl", "n holds Binary, which has no text"),
        (pl.Series("n", [b"x", b"y"]), "q.csv", "n holds Binary, which has no text"),
        (pl.Series("n", [[1], []]), "q.csv", "n holds List.*, which has no text"),
        (pl.Series("n", [1, 2]), "q.csv", "n holds Int64, csv only texts"),
        (pl.Series("n", ["x", None]), "q.csv", "n is missing in some rows"),
        (pl.Series("metadata", [{"a": 1}, {"a": 2}]), "q.jsonl", "metadata would become columns"),
    ]:
        table = Queries(frame.select("query_id", "text").with_columns(column))
        before = (tmp_path / name).read_bytes()
        with pytest.raises(FileError, match=message):
            write(table, tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


def test_what_is_written(tmp_path: Path) -> None:
    run = Run({"1": {"a": 2.5, "b": 1e-7}, "2": {"a": -1.0}}, name="my run")
    qrels = Qrels({"1": {"a": 2, "b": -1}})
    queries = Queries({"query_id": ["1"], "text": ["what, now"]})
    corpus = Corpus({"doc_id": ["a"], "text": ["x"], "title": ["t"], "year": [1999]})
    expected = {
        "r.trec": (run, "1 Q0 a 1 2.5 my_run\n1 Q0 b 2 1e-7 my_run\n2 Q0 a 1 -1.0 my_run\n"),
        "r.tsv": (run, "1\ta\t1\n1\tb\t2\n2\ta\t1\n"),
        "r.json": (run, '{"1": {"a": 2.5, "b": 1e-07}, "2": {"a": -1.0}}\n'),
        "r.csv": (run, "query_id,doc_id,score,rank\n1,a,2.5,1\n1,b,1e-7,2\n2,a,-1.0,1\n"),
        "q.qrels": (qrels, "1 0 a 2\n1 0 b -1\n"),
        "q.tsv": (qrels, "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t-1\n"),
        "q.jsonl": (queries, '{"query_id":"1","text":"what, now"}\n'),
        "t.tsv": (queries, "1\twhat, now\n"),
        "t.csv": (queries, 'query_id,text\n1,"what, now"\n'),
    }
    for name, (table, content) in expected.items():
        write(table, tmp_path / name)
        written = (tmp_path / name).read_text()
        assert written.replace("0.0000001", "1e-7") == content
    write(corpus, tmp_path / "c.jsonl", format="beir")
    assert json.loads((tmp_path / "c.jsonl").read_text()) == {
        "_id": "a", "title": "t", "text": "x", "metadata": {"year": 1999}
    }  # fmt: skip


def test_a_run_without_a_name_has_a_tag_all_the_same(tmp_path: Path) -> None:
    for name, tag in {"": "run", " \t": "run", "a b\nc": "a_b_c", "é": "é"}.items():
        write(Run({"1": {"a": 1.0}}, name=name), tmp_path / "r.trec")
        assert (tmp_path / "r.trec").read_text() == f"1 Q0 a 1 1.0 {tag}\n"


def test_the_suffix_says_the_format(tmp_path: Path) -> None:
    run, queries = Run({"1": {"a": 1.0}}), Queries({"query_id": ["1"], "text": ["a"]})
    for name in (
        "r.trec",
        "r.run",
        "r.res",
        "r.txt",
        "r.TREC",
        "r.tsv",
        "r.json",
        "r.jsonl",
        "r.csv",
    ):
        for ending in ("", ".gz", ".zst"):
            write(run, tmp_path / f"{name}{ending}")
            assert read_run(tmp_path / f"{name}{ending}").doc_ids.to_list() == ["a"]
    known = r"Use one of .trec, .tsv, .csv, .json, .jsonl, .parquet"
    for name in ("r", "r.pkl", "r.gz", "r.xlsx.zst"):
        with pytest.raises(FileError, match=known):
            write(run, tmp_path / name)
        assert not (tmp_path / name).exists()
    for name in ("q.trec", "q.json"):
        with pytest.raises(FileError, match="Queries cannot be written as .* Use .parquet, .jsonl"):
            write(queries, tmp_path / name)
    with pytest.raises(InputError, match="no format is called 'trek'. Did you mean 'trec'"):
        write(run, tmp_path / "r.trec", format="trek")


@pytest.mark.parametrize("name", ["r.trec", "r.trec.gz", "r.trec.zst", "r.jsonl.gz", "r.parquet"])
def test_the_same_content_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    run = Run({str(q): {str(d): 1.0 / (d + 1) for d in range(50)} for q in range(50)})
    written = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(run, tmp_path / folder / name)
        written.append((tmp_path / folder / name).read_bytes())
    assert written[0] == written[1]
    # Neither the time nor the name of the file is in the header of gzip.
    if name.endswith(".gz"):
        assert written[0][3:8] == bytes(5)


# -- writing: the old file or the new one -------------------------------------------------------

OLD, NEW = Run({"1": {"old": 1.0}}), Run({"1": {f"new{i}": -float(i) for i in range(1000)}})


class Stop(BaseException):
    """Neither an error of the disk nor one of ours."""


@pytest.mark.parametrize("failure", [Stop(), RuntimeError("x"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_failure_leaves_the_old_file(
    failure: BaseException, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(table: Run, file: Any, path: str) -> None:
        file.write(b"1 Q0 half")
        raise failure

    path = tmp_path / f"r.trec{ending}"
    write(OLD, path)
    monkeypatch.setitem(FORMATS, "trec", fail)
    with pytest.raises(type(failure)):
        write(NEW, path)
    assert read_run(path) == OLD
    assert os.listdir(tmp_path) == [path.name]


KILLED = """
import os, signal, sys
import farfield
from farfield.io import writing

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

new = farfield.Run({"1": {f"new{i}": -float(i) for i in range(1000)}})
moment, path = sys.argv[1:]
real = os.replace
if moment == "writing":
    trec = writing.FORMATS["trec"]
    def half(table, file, path):
        trec(table, file, path)
        file.flush()
        die()
    writing.FORMATS["trec"] = half
elif moment == "written":
    os.replace = die
else:
    os.replace = lambda *names: (real(*names), die())
farfield.write(new, path)
"""


@pytest.mark.parametrize(
    ("moment", "left"), [("writing", OLD), ("written", OLD), ("replaced", NEW)]
)
def test_a_kill_leaves_the_old_file_or_the_new_one(moment: str, left: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.trec"
    write(OLD, path)
    command = [sys.executable, "-c", KILLED, moment, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert read_run(path) == left


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("format", ["trec", "msmarco", "json", "jsonl", "csv", "tsv", "parquet"])
def test_a_full_disk_leaves_the_old_file(format: str, ending: str, tmp_path: Path) -> None:
    run = Run({"1": {str(i): -float(i) for i in range(20_000)}})
    path = tmp_path / f"r{ending}"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))  # as if there were no more room
    try:
        with pytest.raises(FileError, match=r"cannot be written: .*File too large"):
            write(run, path, format=format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", [path.name])


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.trec").mkdir()
    for path, message in {
        tmp_path / "no" / "r.trec": "cannot be written: No such file or directory",
        tmp_path / "file" / "r.trec": "cannot be written: Not a directory",
        tmp_path / "folder.trec": "cannot be written: Is a directory",
        tmp_path / ("x" * 300 + ".trec"): "cannot be written: File name too long",
    }.items():
        with pytest.raises(FileError, match=message) as raised:
            write(OLD, path)
        assert str(raised.value).startswith(f"{path}: ")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.trec"]


def test_long_names_leave_room_for_a_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".trec")
    write(OLD, path)
    assert read_run(path) == OLD


def test_links_and_pipes_stay_what_they_are(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link.trec", tmp_path / "pipe.trec"
    target.write_bytes(b"")
    link.symlink_to(target)
    write(OLD, link)
    assert link.is_symlink()
    assert read_run(target) == OLD
    os.mkfifo(pipe)
    read_back: list[bytes] = []
    thread = threading.Thread(target=lambda: read_back.append(pipe.read_bytes()))
    thread.start()
    write(OLD, pipe)
    thread.join()
    assert read_back == [target.read_bytes()]
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


def test_a_table_without_rows_is_written_and_not_read(tmp_path: Path) -> None:
    empty = Run(
        pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64})
    )
    for name in ("r.trec", "r.csv", "r.jsonl", "r.json", "r.parquet"):
        write(empty, tmp_path / name)
        refused(tmp_path / name, None, "empty|no rows", read_run)
