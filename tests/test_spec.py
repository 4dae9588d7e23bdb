"""One spelling: ``parse(str(x)) == x``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield import measures
from farfield.errors import SpecError
from farfield.registry import Family
from farfield.spec import Member, parse


@dataclass(frozen=True, kw_only=True)
class Retriever(Member):
    """A family for the tests: members hold numbers, texts, and one another."""


toys: Family[Retriever] = Family("toys", Retriever, package="farfield.questions")
# The package holds no toys; all of them are added below.
toys._files = list  # type: ignore[method-assign]


@toys.add
@dataclass(frozen=True, kw_only=True)
class bm25(Retriever):
    """Words."""

    k1: float = 0.9
    b: float = 0.4
    stemmer: str | None = None
    variant: Literal["lucene", "terrier"] = "lucene"


@toys.add
@dataclass(frozen=True, kw_only=True)
class rm3(Retriever):
    """Words, and words that go with them."""

    base: Retriever
    docs: int = 10
    exact: bool = False


@toys.add
@dataclass(frozen=True, kw_only=True)
class hybrid(Retriever):
    """Several together."""

    parts: tuple[Retriever, ...]
    weights: tuple[float, ...] = ()


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ("bm25()", bm25()),
        ("bm25(k1=1.2)", bm25(k1=1.2)),
        ("bm25(k1=1.0)", bm25(k1=1.0)),
        (
            "bm25(stemmer='snow ball', variant='terrier')",
            bm25(stemmer="snow ball", variant="terrier"),
        ),
        ("rm3(bm25(k1=0.5), docs=5)", rm3(base=bm25(k1=0.5), docs=5)),
        ("rm3(rm3(bm25()), exact=True)", rm3(base=rm3(base=bm25()), exact=True)),
        ("hybrid(bm25(), rm3(bm25()))", hybrid(parts=(bm25(), rm3(base=bm25())))),
        (
            "hybrid(bm25(), bm25(b=0.1), weights=[0.3, 0.7])",
            hybrid(parts=(bm25(), bm25(b=0.1)), weights=(0.3, 0.7)),
        ),
    ],
)
def test_a_spec_is_read_and_written(text, member):
    assert toys.parse(text) == member
    assert str(member) == text


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ("bm25", bm25()),
        (" bm25( k1 = 1 ) ", bm25(k1=1.0)),
        ("bm25(variant=terrier)", bm25(variant="terrier")),
        ("bm25(0.5, 0.6)", bm25(k1=0.5, b=0.6)),
        ("rm3(bm25)", rm3(base=bm25())),
        ("rm3(base=bm25(), docs=3)", rm3(base=bm25(), docs=3)),
        ("bm25(k1=-1.5)", bm25(k1=-1.5)),
        ("bm25(stemmer=None)", bm25()),
    ],
)
def test_other_ways_to_write_the_same(text, member):
    assert toys.parse(text) == member


@given(
    st.builds(
        bm25,
        k1=st.floats(allow_nan=False, allow_infinity=False),
        stemmer=st.none() | st.text(max_size=8),
        variant=st.sampled_from(["lucene", "terrier"]),
    ).flatmap(
        lambda base: st.builds(rm3, base=st.just(base), docs=st.integers(), exact=st.booleans())
    )
)
def test_reading_undoes_writing(member):
    assert toys.parse(str(member)) == member


MEASURES = [
    *("nDCG@10", "nDCG(dcg='exp-log2')@5", "RR(rel=2)@10", "R@1000", "AP", "P@5", "Success@1"),
    *("Judged@10", "ASL(bound=50, offset=1)", "nDCG(judged_only=True)", "Bpref(rel=2)"),
]


@pytest.mark.parametrize("text", MEASURES)
def test_reading_undoes_writing_for_measures(text):
    member = measures.parse(text)
    assert str(member) == text
    assert measures.parse(str(member)) == member


def test_the_names_of_ir_measures_are_understood():
    assert str(measures.parse("MRR@10")) == "RR@10"
    assert str(measures.parse("NDCG@10")) == "nDCG@10"
    assert str(measures.parse("MAP")) == "AP"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg@10", "no measure is called 'ndcg'. Did you mean 'nDCG'?"),
        ("nDCG(dgc='log2')", "has no option 'dgc'. Did you mean 'dcg'?"),
        ("nDCG(dcg='exp')", "expected one of 'log2', 'exp-log2'"),
        ("R(rel=1.5)", "rel is 1.5, expected a whole number"),
        ("R(rel=True)", "rel is True, expected a whole number"),
        ("R(rel='1')", "rel is '1', expected a whole number"),
        ("P", "needs a cutoff, like P@10"),
        ("P@0", "the cutoff after @ is 0, expected 1, 2, 3"),
        ("P@ten", "the cutoff after @ is ten"),
        ("ASL@10", "takes bound=… in place of a cutoff"),
        ("ASL(offset=2)", "offset is 2, expected 0 or 1"),
        ("nDCG@10@5", "cutoff"),
        ("nDCG(", "cannot read 'nDCG('"),
        ("", "cannot read ''"),
        ("a.b", "cannot read"),
        ("R(**x)", "cannot read"),
        ("R(rel=2, rel=3)", "given twice"),
        ("R(1, False, 3)", "takes 2 arguments, 3 given"),
        ("R(rel=f'{x}')", "cannot read"),
        ("__import__('os')", "no measure is called '__import__'"),
        ("R\0", "cannot read"),
        ("(" * 1900, "cannot read"),
        ("R" * 3000, "a spec of 3,000 characters"),
    ],
)
def test_what_cannot_be_read_says_what_was_expected(text, message):
    with pytest.raises(SpecError) as caught:
        measures.parse(text)
    assert message in str(caught.value)


def test_a_nested_mistake_is_found():
    with pytest.raises(SpecError, match="k1 is 'x', expected a number"):
        toys.parse("rm3(bm25(k1=x))")
    with pytest.raises(SpecError, match="base is 3, expected a retriever"):
        toys.parse("rm3(3)")
    with pytest.raises(SpecError, match="needs base=…"):
        toys.parse("rm3(docs=3)")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        spec = parse(text)
    except SpecError:
        return
    assert spec.name in text


def test_something_that_is_not_a_text_is_refused():
    with pytest.raises(SpecError, match="17 is int, expected a measure"):
        measures.parse(17)
