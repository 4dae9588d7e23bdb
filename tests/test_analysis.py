"""Texts become terms."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.analysis import LISTS, STOP_WORDS, TOKENISERS, Analyser, stemmers, words
from farfield.errors import SpecError


def tokens(text: str, tokeniser: str = "standard") -> list[str]:
    plain = Analyser(tokeniser, "none", "none")
    return plain.analyse(pl.Series([text])).listed(1)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Quick fox.", ["the", "quick", "fox"]),
        ("don't won\u2019t o'clock'", ["don't", "won't", "o'clock"]),
        ("3.14 and 1,000.", ["3.14", "and", "1,000"]),
        ("cells.The end", ["cells", "the", "end"]),
        ("x_y a:b b2b covid-19", ["x_y", "a:b", "b2b", "covid", "19"]),
        ("a,b 1.a _ ' .", ["a", "b", "1", "a"]),
        ("Ünïcödé NAÏVE ŁÓDŹ", ["ünïcödé", "naïve", "łódź"]),
        ("日本語のabc カタカナ", ["日", "本", "語", "の", "abc", "カタカナ"]),
        ("€5 ½ ①", ["5", "½", "①"]),
        ("", []),
        ("\n\t \u00a0", []),
        ("end", ["end"]),
    ],
)
def test_standard(text, expected):
    assert tokens(text) == expected


def test_words_know_letters_and_digits_only():
    assert tokens("don't 3.14 x_y a:b", "words") == ["don", "t", "3", "14", "x", "y", "a", "b"]


def test_blanks_leave_the_rest_alone():
    text = "[CLS] ##ing don't\u00a03.14\n日本 x"
    assert tokens(text, "blanks") == ["[cls]", "##ing", "don't", "3.14", "日本", "x"]


texts = st.lists(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60), max_size=8
)


@given(texts)
@settings(max_examples=150, deadline=None)
def test_words_are_what_a_regular_expression_finds(some):
    series = pl.Series(some, dtype=pl.String)
    found = Analyser("words", "none", "none").analyse(series).listed(len(some))
    # Python's \w is letters, digits and _ without marks: ask polars, whose classes are Unicode's.
    lower = series.str.to_lowercase()
    assert found == lower.str.extract_all(r"[\p{L}\p{M}\p{N}]+").to_list()


@given(st.lists(st.text(alphabet="ab1.,':;_ é日\n", max_size=40), max_size=8))
@settings(max_examples=200, deadline=None)
def test_standard_is_what_a_scanner_finds(some):
    series = pl.Series(some, dtype=pl.String)
    found = Analyser("standard", "none", "none").analyse(series).listed(len(some))
    pattern = re.compile(
        r"日|(?:(?<=[a-zé])[':_](?=[a-zé])|(?<=[0-9])['.,;_](?=[0-9])"
        r"|(?<=[a-zé])_(?=[0-9])|(?<=[0-9])_(?=[a-zé])|[a-zé0-9])+"
    )
    assert found == [pattern.findall(text) for text in some]


def test_every_word_gets_its_number_however_many_there_are():
    rng = np.random.default_rng(0)
    some = rng.integers(0, 60_000, 200_000)
    lengths = np.full(2_000, 100)
    parts = np.split(some, np.cumsum(lengths)[:-1])
    series = pl.Series([" ".join(f"w{n}" for n in part) for part in parts])
    found = words.split(series, "words")
    assert [int(found.words[w][1:]) for w in found.word] == some.tolist()
    assert found.text.tolist() == np.repeat(np.arange(2_000), 100).tolist()
    assert len(set(found.words)) == len(found.words) == len(np.unique(some))


def test_long_words_differ_in_any_byte():
    long = ["x" * n + tail for n in (7, 8, 9, 16, 254, 255, 256, 300, 70_000) for tail in "ab"]
    assert tokens(" ".join(long * 2), "words") == long * 2
    assert tokens("y" * 3_000_000, "words") == ["y" * 3_000_000]


def test_lucene_does_so_with_english():
    series = pl.Series(["The runner's running to the houses of John's", None, "it is"])
    found = Analyser().analyse(series)
    assert found.listed(3) == [["runner", "run", "hous", "john"], [], []]
    assert found.terms.to_list() == sorted(found.terms.to_list())


def test_stop_words_go_before_stemming():
    # "being" stems to "be", which Lucene's list has; "being" itself is not on it.
    assert Analyser().analyse(pl.Series(["be being"])).listed(1) == [["be"]]


def test_a_stem_is_never_empty():
    assert Analyser().analyse(pl.Series(["s"])).listed(1) == [["s"]]


def test_languages_have_stemmers():
    german = Analyser(stemmer="german", stopwords="none")
    assert german.analyse(pl.Series(["Häuser Hauses"])).listed(1) == [["haus", "haus"]]
    assert {"none", "porter", "english", "german"} <= set(stemmers())


def test_lists_are_lower_case_words():
    assert LISTS["questions"] == STOP_WORDS
    assert len(LISTS["lucene"]) == 33
    for name in LISTS:
        assert all(word.islower() for word in LISTS[name])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokeniser": "standart"}, "Did you mean 'standard'"),
        ({"stemmer": "klingon"}, "Expected one of none, "),
        ({"stopwords": "lucen"}, "Did you mean 'lucene'"),
    ],
)
def test_unknown_names_are_refused(options, message):
    with pytest.raises(SpecError, match=message):
        Analyser(**options)


def test_no_texts_have_no_terms():
    for tokeniser in TOKENISERS:
        found = Analyser(tokeniser).analyse(pl.Series([], dtype=pl.String))
        assert found.listed(0) == []
        assert len(found.terms) == 0
