"""The audit: label overlap by hand and as published, what the lab planted, people's labels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import farfield as library
from farfield import Qrels, Queries, lab
from farfield.errors import FileError, InputError
from farfield.overlap.annotation import kappa, read_labels, sheet
from farfield.overlap.entities import terms
from farfield.overlap.labels import shared_labels
from farfield.overlap.vocabulary import vocabulary_overlap, weighted_jaccard
from farfield.questions.audit import audit

TRAIN = Qrels({"t1": {"a": 1, "b": 1, "z": 0}, "t2": {"c": 1}})
TEST = Qrels({"1": {"a": 3, "b": 1}, "2": {"c": 2, "x": 3}, "3": {"z": 3}, "4": {"a": 0}})


def test_shared_labels_by_hand():
    # z is judged 0 in training, so query 3 shares nothing; query 4 has nothing relevant.
    found = {(r, q): (n, s) for r, q, n, s in shared_labels(TRAIN, TEST).iter_rows()}
    assert found[3, "1"] == (1, 1)
    assert found[1, "1"] == (2, 2)
    assert found[3, "2"] == (1, 0)
    assert found[2, "2"] == (2, 1)
    assert found[1, "3"] == (1, 0)
    assert found[1, "4"] == (0, 0)


def test_label_overlap_is_a_share_of_all_judged_queries():
    answer = audit(train_qrels=TRAIN, test_qrels=TEST)
    shares = {
        (r["relevance"], r["min_shared"]): r["share"] for r in answer.label_overlap.to_dicts()
    }
    assert shares == {
        (3, 1): 1 / 4,
        (2, 1): 2 / 4,
        (1, 1): 2 / 4,
        (3, 2): 0,
        (2, 2): 0,
        (1, 2): 1 / 4,
    }
    assert answer.leaked.to_list() == ["1", "2"]
    assert answer.leaking.to_list() == ["t1", "t2"]


def test_the_published_table_and_its_correction(real_data, farfield):
    """Zhan et al., Table 3 (TREC DL 2019): 26, 60 and 79 % count two shared passages, not one."""
    found = farfield(
        *("audit", "--train-qrels", real_data / "msmarco" / "qrels.train.txt.gz"),
        *("--test-qrels", real_data / "msmarco" / "qrels.dl19-passage.txt", "--json"),
    ).json["label_overlap"]
    shares = {(row["relevance"], row["min_shared"]): round(row["share"], 3) for row in found}
    assert [shares[r, 1] for r in (3, 2, 1)] == [0.558, 0.767, 0.907]
    assert [shares[r, 2] for r in (3, 2, 1)] == [0.256, 0.605, 0.791]


@pytest.fixture(scope="module", params=[0, 1])
def planted(request):
    made = lab.make(passages=600, train=1200, test=300, seed=request.param)
    both = made.collection
    answer = audit(
        train_queries=both.queries_of("train"),
        test_queries=both.queries_of("test"),
        train_qrels=both.qrels["train"],
        test_qrels=both.qrels["test"],
    )
    return made, answer


def precision_and_recall(found: set[str], true: set[str]) -> tuple[float, float]:
    return len(found & true) / len(found), len(found & true) / len(true)


def test_planted_near_duplicates_are_recovered(planted):
    made, answer = planted
    near = answer.pairs.filter(pl.col("exact") | (pl.col("ngram") >= answer.threshold))
    true = made.truth.filter(pl.col("kind").is_in(["exact", "near_duplicate"]))
    precision, recall = precision_and_recall(set(near["query_id"]), set(true["query_id"]))
    assert precision >= 0.95
    assert recall >= 0.95
    exact = answer.pairs.filter("exact")
    known = made.truth.filter(pl.col("kind") == "exact")
    assert set(exact["query_id"]) == set(known["query_id"])
    # And the training query it was made from is among the candidates.
    pairs = set(answer.pairs.select("query_id", "train_id").iter_rows())
    assert all(pair in pairs for pair in true.select("query_id", "duplicate_of").iter_rows())


def test_planted_shared_labels_are_recovered_exactly(planted):
    made, answer = planted
    rows = answer.labels.filter((pl.col("relevance") == 1) & (pl.col("shared") > 0))
    assert set(rows["query_id"]) == set(made.truth.filter("shared_label")["query_id"])
    # Passages that answer a training query and a test query.
    qrels = made.collection.qrels
    answers = shared_labels(qrels["train"], qrels["test"], [2], train_relevance=2)
    found = answers.filter(pl.col("shared") > 0)["query_id"]
    assert set(found) == set(made.truth.filter("shared_answer")["query_id"])


def test_the_leak_curve_falls(planted):
    _, answer = planted
    for _, rows in answer.leak_curve.group_by("method"):
        shares = rows.sort("threshold")["share"].to_numpy()
        assert (np.diff(shares) <= 1e-12).all()
    assert set(answer.leak_curve["method"]) == {"ngram", "cosine"}


def test_shares_of_a_question_sum_to_one(planted):
    _, answer = planted
    for table in (answer.query_overlap, answer.entity_overlap, answer.intent_overlap):
        assert table["share"].sum() == pytest.approx(1.0)
        assert (table["low"] <= table["share"]).all()
        assert (table["share"] <= table["high"]).all()


def test_evidence_is_true(planted):
    made, answer = planted
    texts = dict(made.queries.select("query_id", "text").iter_rows())
    for row in answer.pairs.sample(50, seed=1).iter_rows(named=True):
        assert row["text"] == texts[row["query_id"]]
        assert row["train_text"] == texts[row["train_id"]]
        for word in row["shared_terms"].split():
            assert word in row["text"].lower()
            assert word in row["train_text"].lower()
        relevant = [
            set(
                made.qrels[s].filter((pl.col("query_id") == row[k]) & (pl.col("relevance") > 0))[
                    "doc_id"
                ]
            )
            for s, k in (("test", "query_id"), ("train", "train_id"))
        ]
        assert set(row["shared_passages"].split()) == relevant[0] & relevant[1]


def test_content_words_are_the_rare_ones():
    texts = pl.Series(["who built the tower", "tower height", "who sang the song"] * 40)
    found = terms(pl.concat([texts, pl.Series(["what is a zebra"])]))
    assert found[-1].to_list() == ["zebra"]
    assert found[0].to_list() == []  # "tower" and "built" are in a third of all texts


# -- people -------------------------------------------------------------------------------------

PAIRS = pl.DataFrame(
    {
        "query_id": ["1", "1", "2"],
        "text": ["a", "a", "b"],
        "train_id": ["x", "y", "x"],
        "train_text": ["c", "d", "c"],
    }
)


def annotated(path, entity: list[str], intent: list[str]):
    frame = sheet(PAIRS).with_columns(pl.Series("entity", entity), pl.Series("intent", intent))
    frame.write_csv(path)
    return path


def test_labels_of_three_annotators(tmp_path):
    files = [
        annotated(tmp_path / "a.csv", ["full", "zero", "zero"], ["2", "0", "0"]),
        annotated(tmp_path / "b.csv", ["partial", "zero", "partial"], ["1", "0", "1"]),
        annotated(tmp_path / "c.csv", ["Full", "zero ", "partial"], ["duplicate", "0", "1"]),
    ]
    found = read_labels(files)
    labels = {(q, question): label for q, question, label in found.labels.iter_rows()}
    # Medians: entity full, zero, partial; intent duplicate, dissimilar, similar.
    assert labels == {
        ("1", "entity"): "full",
        ("2", "entity"): "partial",
        ("1", "intent"): "duplicate",
        ("2", "intent"): "similar",
    }
    assert found.annotators == 3
    # a and c agree on 2 of 3 labels; chance: full 1/9, zero 2/3 * 1/3, partial 0: 1/3 in all.
    assert kappa([2, 0, 0], [2, 0, 1]) == pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3))
    answer = audit(labels=files)
    assert answer.entity_overlap["share"].to_list() == [0.5, 0.5, 0.0]
    assert answer.entity_overlap["source"].unique().to_list() == ["annotated"]


def test_kappa_of_full_agreement_and_of_none():
    assert kappa([0, 1, 2], [0, 1, 2]) == 1.0
    assert kappa([1, 1], [1, 1]) == 1.0
    assert kappa([0, 1], [1, 0]) == -1.0


def test_a_label_that_is_none_names_its_line(tmp_path):
    path = annotated(tmp_path / "a.csv", ["full", "most", "zero"], ["0", "0", "0"])
    with pytest.raises(
        FileError, match=r"a\.csv:3: entity is 'most'\. Expected zero, partial, full"
    ):
        read_labels([path])
    other = annotated(tmp_path / "b.csv", ["0"] * 3, ["0"] * 3)
    pl.read_csv(other).head(2).write_csv(tmp_path / "c.csv")
    with pytest.raises(FileError, match="its pairs differ"):
        read_labels([other, tmp_path / "c.csv"])


# -- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("audit")
    library.write_collection(lab.make(passages=300, train=500, test=120).collection, path / "lab")
    return path


def test_the_command_writes_what_it_promises(farfield, folder):
    done = farfield(
        *("audit", "--collection", "lab", "--sheet", "sheet.csv", "-o", "pairs.parquet"),
        *("--figure", "audit.html", "--clean", "clean", "--json"),
        cwd=folder,
    )
    assert done.status == 0, done.err
    found = done.json
    assert found["queries"] == 120
    assert {"label_overlap", "query_overlap", "leak_curve", "entity_overlap", "power"} <= set(found)
    assert "plotly" in (folder / "audit.html").read_text()
    pairs = pl.read_parquet(folder / "pairs.parquet")
    assert {"shared_terms", "shared_passages", "ngram", "entity", "intent"} <= set(pairs.columns)
    # The cleaned training set has no leak left.
    again = farfield(
        *("audit", "--train-queries", "clean/train-queries.jsonl", "--test-queries", "lab"),
        *("--train-qrels", "clean/train-qrels.tsv", "--test-qrels", "lab/qrels/test.tsv", "--json"),
        cwd=folder,
    )
    assert again.json["leaked"] == 0
    assert found["leaked"] > 0
    # Annotators fill in the sheet; the command reads three of them back.
    frame = pl.read_csv(folder / "sheet.csv", infer_schema=False)
    for number in range(3):
        labelled = frame.with_columns(entity=pl.lit("1"), intent=pl.lit(str(number)))
        labelled.write_csv(folder / f"{number}.csv")
    labels = farfield("audit", "--labels", "0.csv", "1.csv", "2.csv", "--json", cwd=folder).json
    assert labels["annotation"]["annotators"] == 3
    assert labels["entity_overlap"][1] | {"low": 0, "high": 0} == {
        "overlap": "partial",
        "source": "annotated",
        "share": 1.0,
        "low": 0,
        "high": 0,
        "queries": labels["queries"],
    }
    shown = farfield("audit", "--labels", "0.csv", "1.csv", "2.csv", cwd=folder)
    assert "Cohen's kappa of 3 annotators: entity 1.00" in shown.out


def test_cleaning_the_test_side(farfield, folder):
    done = farfield(
        *("audit", "--collection", "lab", "--clean", "fresh", "--clean-side", "test"),
        *("--encoder", "none", "--json"),
        cwd=folder,
    )
    left = library.read_queries(folder / "fresh" / "test-queries.jsonl")
    assert len(left) == 120 - done.json["leaked"]
    assert "test queries are left" in done.json["power"]
    assert {row["method"] for row in done.json["leak_curve"]} == {"ngram"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to compare"),
        (["--train-qrels", "lab/qrels/train.tsv"], "nothing to compare"),
        (["--collection", "lab", "--threshold", "2"], "threshold is 2.0"),
        (["--collection", "lab", "--entities", "spacey"], "Did you mean 'spacy'?"),
        (["--collection", "lab", "--encoder", "lsaa()"], "no encoder is called 'lsaa'"),
        (["--collection", "lab", "--clean-side", "both"], "expected train or test"),
        (["--collection", "nowhere"], "no qrels here"),
        (["stray.csv"], "unexpected argument 'stray.csv'"),
        (["--collection", "lab", "--figure", "x.png"], "Use .html or .json"),
    ],
)
def test_bad_input(farfield, folder, arguments, message):
    done = farfield("audit", *arguments, cwd=folder)
    assert done.status == 2
    assert message in done.err
    assert done.out == ""


def test_only_what_was_given_is_answered():
    answer = audit(
        train_queries=Queries({"query_id": ["a"], "text": ["x y"]}),
        test_queries=Queries({"query_id": ["b"], "text": ["x z"]}),
        encoder=None,
    )
    assert answer.label_overlap is None
    assert answer.pairs["shared_terms"].to_list() == ["x"]
    with pytest.raises(InputError, match="candidates_each is 0"):
        audit(train_qrels=TRAIN, test_qrels=TEST, candidates_each=0)


# -- what depends on size -----------------------------------------------------------------------


def test_weighted_jaccard_by_hand():
    # Shares: a 2/3, b 1/3 against a 1/2, c 1/2. Common: 1/2; larger: 2/3 + 1/3 + 1/2 = 3/2.
    assert weighted_jaccard(pl.Series(["A b", "a"]), pl.Series(["a c"])) == pytest.approx(0.5 / 1.5)
    assert weighted_jaccard(pl.Series(["x y"]), pl.Series(["y x"])) == pytest.approx(1.0)
    assert weighted_jaccard(pl.Series(["x"]), pl.Series(["y"])) == 0.0


def test_weighted_jaccard_of_ms_shift(real_data):
    """On the published queries: each wh class against the other two, long against short."""
    folder = real_data / "msmarco" / "ms-shift"

    def texts(name):
        return library.read_queries(folder / f"queries_{name}.tsv.gz").frame["text"]

    classes = {name: texts(name) for name in ("wha", "how", "who")}
    found = {
        name: weighted_jaccard(own, pl.concat([t for other, t in classes.items() if other != name]))
        for name, own in classes.items()
    }
    assert {name: round(value, 3) for name, value in found.items()} == {
        "wha": 0.279,
        "how": 0.226,
        "who": 0.276,
    }
    assert round(weighted_jaccard(texts("long"), texts("short")), 3) == 0.322


def test_equal_sizes_make_vocabularies_comparable():
    made = lab.make(passages=600, train=3000, test=400)
    train = made.queries.filter(pl.col("split") == "train")["text"]
    halves = train.gather_every(2), train.gather_every(2, 1)
    same = vocabulary_overlap(*halves, size=150, draws=6)
    # Two halves of one set are as alike as samples of one half, whatever the size.
    assert same.ratio == pytest.approx(1.0, abs=0.05)
    assert same.whole > same.jaccard + 0.05  # the whole sets look more alike than samples do
    topics = [
        made.queries.filter((pl.col("split") == "train") & (pl.col("topic") == t))["text"]
        for t in ("cooking", "machines")
    ]
    assert vocabulary_overlap(*topics, size=100, draws=6).ratio < 0.8
    with pytest.raises(InputError, match="expected 1 to 750"):
        vocabulary_overlap(*halves, size=751)


def test_a_sample_of_the_training_set_leaks_less(planted):
    made, answer = planted
    both = made.collection
    few = audit(
        train_queries=both.queries_of("train"),
        test_queries=both.queries_of("test"),
        train_qrels=both.qrels["train"],
        test_qrels=both.qrels["test"],
        sample=100,
        encoder=None,
    )
    assert len(few.train) == 100
    assert len(few.leaked) < len(answer.leaked)
    with pytest.raises(InputError, match="sample is 9,999"):
        audit(train_qrels=TRAIN, test_qrels=TEST, sample=9999)
