"""The lab: sizes, determinism, readable English, and the laws of its truth."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from farfield import lab
from farfield.errors import InputError
from farfield.lab.phrasing import FORMS, Phrasebook
from farfield.lab.planting import normal
from farfield.lab.topic import ASPECTS, REGISTERS, read_topic

PLANTED = ["exact", "near_duplicate"]
DOC_ATTRIBUTES = ["topic", "source", "date", "entity"]
QUERY_ATTRIBUTES = ["topic", "wh", "words", "source", "date", "split"]
TRUTHS = ["duplicate_of", "shared_label", "shared_answer", "topic_in_training"]
TRUTHS += ["entity", "aspect", "source", "sources"]
WH = ["what", "how", "who", "when", "where", "which", "why"]


@pytest.fixture(scope="module")
def made() -> lab.Lab:
    return lab.make()


@pytest.fixture(scope="module")
def small() -> lab.Lab:
    return lab.make(passages=60, train=80, test=20)


def split(made: lab.Lab, name: str) -> pl.DataFrame:
    return made.queries.filter(pl.col("split") == name)


def as_bytes(made: lab.Lab) -> list[str]:
    frames = [made.corpus, made.queries, made.truth, made.qrels["train"], made.qrels["test"]]
    return [frame.write_csv() for frame in frames]


# ---- sizes and columns


def test_sizes_and_columns(made: lab.Lab) -> None:
    assert made.corpus.height == 2000
    assert split(made, "train").height == 4000
    assert split(made, "test").height == made.truth.height == 800
    assert made.corpus.columns == ["doc_id", "title", "text", *DOC_ATTRIBUTES]
    assert made.queries.columns == ["query_id", "text", *QUERY_ATTRIBUTES]
    assert made.truth.columns == ["query_id", "kind", "edit", *TRUTHS]
    for qrels in made.qrels.values():
        assert qrels.schema == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}


@pytest.mark.parametrize(("passages", "train", "test"), [(60, 80, 20), (48, 7, 1), (333, 50, 77)])
def test_other_sizes(passages: int, train: int, test: int) -> None:
    made = lab.make(passages=passages, train=train, test=test, seed=9)
    assert made.corpus.height == passages
    assert made.queries.height == train + test
    assert_lawful(made)


def test_large() -> None:
    made = lab.make(train=50_000, test=500)
    assert split(made, "train").height == 50_000
    assert split(made, "train")["query_id"][0] == "train-00001"
    assert_lawful(made)


def test_ids_sort_as_they_count() -> None:
    made = lab.make(passages=60, train=100_000, test=5)
    ids = split(made, "train")["query_id"]
    assert ids.is_sorted()
    assert ids[0] == "train-000001"


# ---- determinism


def test_same_arguments_same_bytes(small: lab.Lab) -> None:
    again = lab.make(passages=60, train=80, test=20)
    assert as_bytes(again) == as_bytes(small)
    runs, more = lab.runs(small), lab.runs(again)
    assert all(runs[name].equals(more[name]) for name in runs)


def test_another_seed_differs(small: lab.Lab) -> None:
    other = lab.make(passages=60, train=80, test=20, seed=1)
    assert all(a != b for a, b in zip(as_bytes(other), as_bytes(small), strict=True))


def test_passages_do_not_depend_on_queries(made: lab.Lab) -> None:
    assert lab.make(train=300, test=20).corpus.equals(made.corpus)


def test_training_does_not_depend_on_tests(made: lab.Lab) -> None:
    other = lab.make(test=10, duplicates=1.0)
    assert split(other, "train").equals(split(made, "train"))
    assert other.qrels["train"].equals(made.qrels["train"])


# ---- English


def test_passages_are_readable(made: lab.Lab) -> None:
    texts = made.corpus["text"].to_list()
    assert len(set(texts)) == len(texts)
    for text in [*texts, *made.corpus["title"]]:
        assert text == text.strip()
        assert not re.search(r"[{}|()<>]|  | [.,]|\.\.|,\.", text), text
        assert not re.search(r"\b[Aa] [aeiouAEIOU]", text), text
        assert not re.search(r"\b[Aa]n [^aeiouAEIOU]", text), text
        assert not re.search(r"\b(\w+) \1\b", text), text
        assert text[0].isupper()
    for text in texts:
        assert text.endswith(".")
        sentences = text.split(". ")
        assert 2 <= len(sentences) <= 4
        assert all(sentence[0].isupper() for sentence in sentences), text
        assert 30 <= len(text.split()) <= 80


def test_queries_are_readable(made: lab.Lab) -> None:
    texts = made.queries["text"].to_list()
    for text in texts:
        assert text == text.strip()
        assert not re.search(r"[{}|()<>]|  ", text), text
        assert not re.search(r"\b(\w+) \1\b|\b(a|the) (the|that)\b", text), text
    assert 0.85 < np.mean([text == text.lower() for text in texts]) < 1
    assert 0.02 < np.mean([text.endswith("?") for text in texts]) < 0.2


def test_every_passage_names_its_entity(made: lab.Lab) -> None:
    for entity, title, text in made.corpus.select("entity", "title", "text").iter_rows():
        words = set(re.findall(r"\w+", entity)) & set(re.findall(r"\w+", text))
        assert words, (title, text)


def test_topics_have_words_of_their_own(made: lab.Lab) -> None:
    words = {
        topic: set(re.findall(r"[a-z]{3,}", " ".join(rows["text"])))
        for (topic,), rows in made.corpus.group_by("topic")
    }
    for topic, own in words.items():
        others = set().union(*(words[other] for other in words if other != topic))
        assert len(own - others) > 0.25 * len(own), topic


@pytest.mark.parametrize("name", lab.TOPICS)
def test_topic_files(name: str) -> None:
    topic = read_topic(name)
    assert len(topic.aspects) == ASPECTS
    assert len(topic.mentions) == REGISTERS
    assert all(len(kind.words) == REGISTERS for kind in topic.kinds)
    assert all((*topic.mentions, *topic.intros, *topic.colour))
    for aspect in topic.aspects:
        assert all((*aspect.says, *aspect.asks, *aspect.nouns))
    book = Phrasebook((topic,))
    per_aspect = len(book.patterns) // ASPECTS
    assert per_aspect > 60 * len(FORMS)
    assert len(set(book.patterns)) == len(book.patterns)
    kinds = {"name", "stem", "he", "his", "him", *(f"k{r}" for r in range(REGISTERS))}
    for pattern, turned in zip(book.patterns, book.turned, strict=True):
        assert set(re.findall(r"{(.*?)}", pattern + turned)) <= kinds | set(topic.facts), pattern
        one, two = (re.findall(r"{.*?}|[\w']+", text.lower()) for text in (pattern, turned))
        assert one != two
        assert len(set(one) & set(two)) > 0.5 * len(set(one)), (pattern, turned)
        for words in (one, two):
            assert len(set(words) & set(WH)) <= 1, pattern
            assert not re.search(r"[|()?]|  | ,|\b(off|out|up) {?(him|them)\b", " ".join(words))


# ---- attributes


def test_attributes_are_those_of_the_text(made: lab.Lab) -> None:
    for text, wh, words in made.queries.select("text", "wh", "words").iter_rows():
        found = [word for word in re.findall(r"[a-z]+", text.lower()) if word in WH]
        assert wh == (found[0] if found else "none"), text
        assert len(set(found)) <= 1, text
        assert words == len(text.split())


def test_all_values_occur(made: lab.Lab) -> None:
    for name in ("train", "test"):
        queries = split(made, name)
        shares = dict(queries["wh"].value_counts(normalize=True).iter_rows())
        assert set(shares) == {*WH, "none"}
        assert min(shares.values()) > 0.02
        assert 6 <= queries["words"].median() <= 8
        assert queries["words"].min() <= 4
        assert queries["words"].max() >= 12
        assert set(queries["source"]) == set(lab.SOURCES)
    assert set(made.corpus["source"]) == set(lab.SOURCES)
    assert set(made.corpus["topic"]) == set(lab.TOPICS)
    assert set(made.truth["kind"]) == set(lab.KINDS)
    assert set(made.truth["edit"].drop_nulls()) == set(lab.EDITS)
    assert 0.2 < made.truth["sources"].str.contains("+", literal=True).mean() < 0.5


def test_time_is_real(made: lab.Lab) -> None:
    dates = made.queries["date"]
    assert dates.str.contains(r"^20\d\d-[01]\d-[0-3]\d$").all()
    assert made.corpus["date"].max() < dates.min()
    assert dates.str.head(4).n_unique() == 4
    queries = made.queries.sort("date").with_row_index()
    early, late = queries.head(queries.height // 3), queries.tail(queries.height // 3)
    one, two = (dict(p["topic"].value_counts(normalize=True).iter_rows()) for p in (early, late))
    assert max(two[topic] / one[topic] for topic in one) > 1.5
    assert (early["wh"] == "none").mean() > (late["wh"] == "none").mean() + 0.05


# ---- the laws of the truth


def assert_lawful(made: lab.Lab) -> None:
    """Check the truth against nothing but the tables."""
    train, test = split(made, "train"), split(made, "test")
    of_doc = made.corpus.select("doc_id", "entity", "source", pl.col("topic").alias("doc_topic"))
    assert made.corpus["doc_id"].is_unique().all()
    assert made.queries["query_id"].is_unique().all()
    assert test["query_id"].to_list() == made.truth["query_id"].to_list()

    for name, queries in (("train", train), ("test", test)):
        judged = made.qrels[name].join(of_doc, on="doc_id", validate="m:1")
        assert judged.height == made.qrels[name].height  # every passage exists
        assert not made.qrels[name].select("query_id", "doc_id").is_duplicated().any()
        assert set(judged["relevance"].unique()) <= {1, 2}
        by_query = judged.group_by("query_id").agg(
            pl.col("entity").n_unique().alias("entities"),
            pl.col("doc_topic").first(),
            pl.col("doc_id").n_unique(),
            pl.col("source").filter(pl.col("relevance") == 2).alias("sources"),
            pl.col("source").filter(pl.col("relevance") == 2).n_unique().alias("different"),
        )
        joined = queries.join(by_query, on="query_id", how="left", validate="1:1")
        assert joined["entities"].to_list() == [1] * queries.height  # so every query is judged
        assert (joined["topic"] == joined["doc_topic"]).all()
        assert joined["sources"].list.len().is_between(1, 2).all()
        assert (joined["sources"].list.len() == joined["different"]).all()
        assert joined.select(pl.col("source").is_in(pl.col("sources")).all()).item()

    truth = made.truth.join(test.select("query_id", "text", "topic", "words"), on="query_id")
    for label, least in (("shared_label", 1), ("shared_answer", 2)):
        seen, asked = (
            made.qrels[name].filter(pl.col("relevance") >= least) for name in ("train", "test")
        )
        shared = asked.filter(pl.col("doc_id").is_in(seen["doc_id"].unique().implode()))
        assert set(shared["query_id"]) == set(truth.filter(label)["query_id"])

    known_topics = set(train["topic"])
    assert known_topics == set(made.topics) - {made.test_only}
    assert made.train_only not in set(test["topic"])
    assert truth["topic_in_training"].to_list() == [t in known_topics for t in truth["topic"]]
    near = truth["kind"].is_in(["exact", "near_duplicate", "same_need", "same_entity"])
    assert (near == truth["shared_label"]).all()
    assert ((truth["kind"] != "new_topic") == truth["topic_in_training"]).all()
    assert truth.filter(pl.col("kind") == "new_topic")["topic"].is_in([made.test_only]).all()

    planted = truth["kind"].is_in(PLANTED)
    assert (planted == truth["duplicate_of"].is_not_null()).all()
    assert (planted == truth["edit"].is_not_null()).all()
    assert ((truth["kind"] == "exact") == (truth["edit"] == "exact").fill_null(False)).all()
    texts = dict(train.select("query_id", "text").iter_rows())
    answers = {
        name: {
            key: frozenset(docs)
            for key, docs in made.qrels[name]
            .filter(pl.col("relevance") == 2)
            .group_by("query_id")
            .agg("doc_id")
            .iter_rows()
        }
        for name in ("train", "test")
    }
    known = {normal(text) for text in texts.values()}
    asked_answers = set(answers["train"].values())
    for row in truth.iter_rows(named=True):
        own = answers["test"][row["query_id"]]
        if row["kind"] in PLANTED:
            assert own == answers["train"][row["duplicate_of"]]
        if row["kind"] == "same_need":
            assert own in asked_answers
        if row["kind"] == "exact":
            assert normal(row["text"]) == normal(texts[row["duplicate_of"]])
        else:
            assert normal(row["text"]) not in known, row


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_truth(seed: int) -> None:
    assert_lawful(lab.make(seed=seed))


@settings(max_examples=15, deadline=None)
@given(
    passages=st.integers(48, 120),
    train=st.integers(7, 60),
    test=st.integers(1, 40),
    duplicates=st.sampled_from([0.0, 0.15, 0.5, 1.0]),
    seed=st.integers(0, 10_000),
)
def test_truth_of_small_worlds(
    passages: int, train: int, test: int, duplicates: float, seed: int
) -> None:
    assert_lawful(
        lab.make(passages=passages, train=train, test=test, duplicates=duplicates, seed=seed)
    )


def test_shares_of_kinds(made: lab.Lab) -> None:
    share = dict(made.truth["kind"].value_counts(normalize=True).iter_rows())
    assert share["exact"] + share["near_duplicate"] == pytest.approx(0.15)
    assert made.truth["shared_label"].mean() == pytest.approx(0.4, abs=0.02)
    assert 0.1 < share["same_need"] < share["same_topic"]
    assert share["new_topic"] > 0.15


@pytest.mark.parametrize("duplicates", [0.0, 1.0])
def test_extreme_shares(duplicates: float) -> None:
    made = lab.make(passages=100, train=100, test=50, duplicates=duplicates)
    assert made.truth["duplicate_of"].is_not_null().mean() == duplicates


def test_fewer_topics() -> None:
    made = lab.make(passages=40, train=60, test=30, topics=["music", "birds", "cooking"])
    assert (made.train_only, made.test_only) == ("birds", "cooking")
    assert set(made.corpus["topic"]) == {"music", "birds", "cooking"}
    assert_lawful(made)


def test_queries_are_different(made: lab.Lab) -> None:
    assert split(made, "train")["text"].n_unique() == 4000
    assert split(made, "test")["text"].n_unique() == 800


# ---- planted near-duplicates stand out


def jaccard(texts: list[str], others: list[str], *, words: bool) -> np.ndarray:
    """Return the highest Jaccard similarity of each text to any other, of words or 3-grams."""
    numbers: dict[str, int] = {}

    def matrix(rows: list[str]) -> sparse.csr_array:
        features = [
            set(row.split()) if words else {f" {row} "[i : i + 3] for i in range(len(row))}
            for row in rows
        ]
        columns = [numbers.setdefault(f, len(numbers)) for each in features for f in each]
        ends = np.cumsum([0, *map(len, features)])
        return sparse.csr_array((np.ones(len(columns)), columns, ends), (len(rows), 100_000))

    one, two = matrix(texts), matrix(others)
    both = (one @ two.T).toarray()
    return (both / (one.sum(axis=1)[:, None] + two.sum(axis=1)[None, :] - both)).max(axis=1)


def separation(made: lab.Lab, similarity: np.ndarray) -> float:
    """Return the lesser of precision and recall at the best threshold."""
    planted = made.truth["kind"].is_in(PLANTED).to_numpy()[np.argsort(-similarity)]
    hits = np.cumsum(planted)
    return float(np.minimum(hits / np.arange(1, len(hits) + 1), hits / hits[-1]).max())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_near_duplicates_stand_out(seed: int) -> None:
    made = lab.make(seed=seed)
    tests, trains = ([normal(t) for t in split(made, s)["text"]] for s in ("test", "train"))
    by_words, by_letters = (jaccard(tests, trains, words=words) for words in (True, False))
    assert separation(made, by_words) >= 0.97
    assert separation(made, by_letters) == 1.0
    assert separation(made, np.maximum(by_words, by_letters)) == 1.0
    planted = made.truth["kind"].is_in(PLANTED).to_numpy()
    assert by_letters[planted].min() > by_letters[~planted].max() + 0.05


def test_more_training_brings_fresh_queries_no_nearer() -> None:
    made = lab.make(train=30_000, test=200)
    tests = [normal(t) for t in split(made, "test")["text"]]
    trains = [normal(t) for t in split(made, "train")["text"].unique(maintain_order=True)]
    fresh = ~made.truth["kind"].is_in(PLANTED).to_numpy()
    assert jaccard(tests, trains, words=False)[fresh].max() < 0.72


# ---- runs


def ndcg(made: lab.Lab, run: pl.DataFrame) -> pl.DataFrame:
    qrels = made.qrels["test"]
    discount = 1 / (pl.col("rank") + 1).log(2)
    gain = (pl.col("relevance") * discount).sum()
    ranked = run.with_columns(pl.int_range(1, pl.len() + 1).over("query_id").alias("rank"))
    got = ranked.filter(pl.col("rank") <= 10).join(qrels, on=["query_id", "doc_id"])
    best = qrels.sort("relevance", descending=True).with_columns(
        pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    )
    return (
        made.truth.join(best.group_by("query_id").agg(gain.alias("best")), on="query_id")
        .join(got.group_by("query_id").agg(gain.alias("got")), on="query_id", how="left")
        .with_columns((pl.col("got").fill_null(0) / pl.col("best")).alias("ndcg"))
    )


def test_runs(made: lab.Lab) -> None:
    runs = lab.runs(made)
    assert list(runs) == ["lexical", "lexical-titles", "memory", "random"]
    near = pl.col("kind").is_in(PLANTED)
    scores = {}
    for name, run in runs.items():
        assert run.schema == {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
        assert not run.select("query_id", "doc_id").is_duplicated().any()
        assert run.group_by("query_id").len()["len"].max() <= 100
        assert run["score"].is_finite().all()
        falling = run.select((pl.col("score").diff().over("query_id") <= 0).all()).item()
        assert falling
        assert set(run["query_id"]) <= set(made.truth["query_id"])
        assert run["doc_id"].is_in(made.corpus["doc_id"].implode()).all()
        values = ndcg(made, run)
        scores[name] = tuple(
            values.filter(part)["ndcg"].mean() for part in (pl.lit(True), near, ~near)
        )
    assert 0.5 < scores["lexical"][0] < 0.8
    assert scores["random"][0] < 0.02 < scores["lexical-titles"][0] < scores["lexical"][0]
    assert scores["memory"][1] > 0.9
    assert scores["memory"][2] < 0.5
    # Words match as well near as far; only memory tells the two apart.
    assert abs(scores["lexical"][1] - scores["lexical"][2]) < 0.15


def test_runs_of_a_small_world(small: lab.Lab) -> None:
    for run in lab.runs(small, seed=3).values():
        assert run.group_by("query_id").len()["len"].max() <= 60


def test_random_has_its_own_seed(small: lab.Lab) -> None:
    one, two = lab.runs(small, seed=1), lab.runs(small, seed=2)
    assert one["lexical"].equals(two["lexical"])
    assert not one["random"].equals(two["random"])


# ---- wrong arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"passages": 47}, r"passages=47: expected a whole number of at least 48"),
        ({"passages": 2000.0}, r"passages=2000.0: expected a whole number"),
        ({"train": 6}, r"train=6: expected a whole number of at least 7"),
        ({"test": 0}, r"test=0: expected a whole number of at least 1"),
        ({"test": True}, r"test=True: expected a whole number"),
        ({"seed": -1}, r"seed=-1: expected a whole number of at least 0"),
        ({"duplicates": 1.5}, r"duplicates=1.5: expected a share .* from 0 to 1"),
        ({"duplicates": float("nan")}, r"duplicates=nan: expected a share"),
        ({"duplicates": "many"}, r"duplicates='many': expected a number"),
        ({"topics": ["birds", "music"]}, r"at least three different names"),
        ({"topics": ["birds", "music", "music"]}, r"at least three different names"),
        ({"topics": "birds"}, r"at least three different names"),
        ({"topics": ["birds", "music", "coking"]}, r"'coking' is not .* Did you mean 'cooking'\?"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lab.make(**arguments)
