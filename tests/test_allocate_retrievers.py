"""Allocating with several retrievers: the tables of each, and retrievers two by two."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import farfield
from farfield import lab, retrievers, stats
from farfield.cli import app
from farfield.errors import InputError
from farfield.io import write_collection

BOTH = {"plain": "bm25()", "flat": "bm25(b=0.0, k1=0.1)"}
OPTIONS = {"rel": 2, "k": 6, "resamples": 60, "policies": ["local()", "softmax()"]}


@pytest.fixture(scope="module")
def collection():
    return lab.make(passages=300, train=60, test=120, seed=2).collection


@pytest.fixture(scope="module")
def swept(collection):
    return farfield.allocate(collection, retriever=BOTH, seeds=20, draws=2, **OPTIONS)


@pytest.fixture(scope="module")
def alone(collection):
    """The answer of each retriever by itself."""
    return {
        name: farfield.allocate(collection, retriever=spec, seeds=20, draws=2, **OPTIONS)
        for name, spec in BOTH.items()
    }


def test_every_retriever_has_its_table(swept, alone):
    assert (swept.retriever, list(swept.others)) == ("plain", ["flat"])
    assert swept.table.equals(alone["plain"].table)
    table = swept.by_retriever
    assert table["retriever"].unique(maintain_order=True).to_list() == list(BOTH)
    for name, answer in alone.items():
        part = table.filter(retriever=name)
        assert part.select(answer.table.columns).equals(answer.table)
        for source in answer.sources:
            shares = answer.shares.filter(source=source)
            for column, end in (("share", ""), ("low", "_low"), ("high", "_high")):
                assert part[f"share of {source}{end}"].to_list() == shares[column].to_list()
    whole = sum(table[f"share of {source}"] for source in swept.sources)
    assert np.allclose(whole, 1)


def test_retrievers_are_tried_alike(swept):
    other = swept.others["flat"]
    assert swept.lists.query_ids.equals(other.lists.query_ids)
    for one, two in zip(swept.trials, other.trials, strict=True):
        assert all((a == b).all() for a, b in zip(one, two, strict=True))


def test_retrievers_two_by_two(collection):
    three = ["bm25()", "bm25(b=0.0, k1=0.1)", "rm3(bm25())"]
    answer = farfield.allocate(collection, retriever=three, **{**OPTIONS, "policies": ["local()"]})
    names = [str(retrievers.parse(spec)) for spec in three]
    assert [answer.retriever, *answer.others] == names
    table = answer.between_retrievers
    assert table.select("one", "other").rows() == [
        (names[0], names[1]),
        (names[0], names[2]),
        (names[1], names[2]),
    ]
    assert table["policy"].unique().to_list() == [answer.recommended]
    recalls = [a.outcomes[answer.recommended].recall for a in (answer, *answer.others.values())]
    assert table["difference"][2] == pytest.approx(np.mean(recalls[2] - recalls[1]))
    p = [stats.paired_test(recalls[b], recalls[a]).p for a, b in ((0, 1), (0, 2), (1, 2))]
    assert table["p"].to_list() == pytest.approx(list(stats.adjust(p)))
    assert (table["low"] <= table["difference"]).all()
    assert (table["difference"] <= table["high"]).all()


def test_one_retriever_is_no_sweep(alone):
    answer = alone["plain"]
    assert answer.others == {}
    assert not any("retriever" in name for name in answer.to_dict())
    with pytest.raises(InputError, match="one retriever is no sweep"):
        answer.by_retriever  # noqa: B018
    with pytest.raises(InputError, match="Pass several"):
        answer.between_retrievers  # noqa: B018


def test_the_sweep_is_in_json_and_figure(swept):
    found = json.loads(json.dumps(swept.to_dict(), allow_nan=False))
    assert found["retrievers"] == list(BOTH)
    assert {row["retriever"] for row in found["by_retriever"]} == set(BOTH)
    assert len(found["between_retrievers"]) == 1
    figure = swept.figure()
    assert any("by retriever" in note.text for note in figure.layout.annotations)
    lines = [trace for trace in figure.data if list(trace.x) == list(BOTH)]
    assert {trace.name for trace in lines} >= {"merge()", "equal()", "local()", "oracle()"}


def test_the_command_compares_retrievers(farfield, collection, tmp_path):
    write_collection(collection, tmp_path / "lab")
    arguments = ["allocate", tmp_path / "lab", "-k", 6, "--rel", 2, "-p", "local()"]
    arguments += ["--resamples", 20, "-r", "bm25(k1=0.9, b=0.4)", "-r", "flat=bm25(b=0.0)"]
    done = farfield(*arguments, "--table", "by_retriever", "-o", tmp_path / "t.csv")
    assert done.status == 0, done.err
    for said in ("By retriever", "All else is about bm25(k1=0.9, b=0.4)", "by local()"):
        assert said in done.out
    assert pl.read_csv(tmp_path / "t.csv")["retriever"].unique(maintain_order=True).to_list() == [
        "bm25(k1=0.9, b=0.4)",
        "flat",
    ]
    assert farfield(*arguments, "--json").json["retrievers"] == ["bm25(k1=0.9, b=0.4)", "flat"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-r", "a=bm25()", "-r", "a=bm25(b=0.0)"], "two retrievers are called 'a'"),
        (["-r", "bm25()", "-r", "bm25()"], "two retrievers are called 'bm25()'"),
        (["-r", "=bm25()"], "is no retriever, expected NAME=SPEC"),
        (["-r", "a="], "is no retriever, expected NAME=SPEC"),
        (["-r", "a=bm26()"], "no retriever is called 'bm26'"),
        (["-r", "bm25()", "--table", "by_retriever"], "--retriever, given twice or more"),
        (["-r", "bm25()", "--table", "between_retriever"], "Did you mean 'between_retrievers'"),
    ],
)
def test_bad_input_is_said(collection, tmp_path, arguments, said):
    write_collection(collection, tmp_path / "lab")
    done = CliRunner().invoke(app, ["allocate", str(tmp_path / "lab"), *arguments])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)


def test_lists_of_retrievers_that_cannot_be(collection):
    with pytest.raises(InputError, match="no retriever was given"):
        farfield.allocate(collection, retriever=[])
    with pytest.raises(InputError, match="given twice"):
        farfield.allocate(collection, retriever=["bm25()", "bm25"])
