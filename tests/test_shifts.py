"""Shifts: their laws, values worked out by hand, the released sets, what the lab planted."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import polars as pl
import pytest

import farfield as ff
from farfield import lab, shifts
from farfield.errors import InputError, SpecError
from farfield.overlap.labels import shared_labels
from farfield.questions.shift import shift
from farfield.shifts import Groups, Pool
from farfield.shifts.topics import _grown
from farfield.similarity import normal_form

# One or more specs for every member, all of which make sense on the lab.
SPECS = [
    "restrain()",
    "restrain(size=200)",
    "restrain(size=400, match=judgements)",
    "resttest(buckets=4)",
    "resttest(buckets=3, balance=True)",
    "topics(clusters=20, groups=4)",
    "topics(clusters=20, groups=4, size=60, balance=True)",
    "whwords()",
    "whwords(rule=substring, several=listed)",
    "length()",
    "length(cuts=[4, 8])",
    "attribute(topic)",
    "attribute(source, balance=True)",
    "time(date)",
    "documents(clusters=4)",
    "documents(by=source)",
    "cross(length(), whwords())",
    "cross(length(), attribute(source), leave=margins)",
]


@cache
def made() -> ff.Collection:
    return lab.make(passages=600, train=600, test=240, seed=3).collection


@pytest.fixture
def collection() -> ff.Collection:
    return made()


@cache
def dealt_out(spec: str, seed: int = 0) -> shifts.Dealt:
    """What a shift makes of the lab, made once for all the laws that look at it."""
    return shifts.parse(spec).deal(made(), seed=seed)


def small(texts: dict[str, list[str]], columns=None, relevant=None, corpus=None) -> ff.Collection:
    """A collection of a few queries by split; each has a document of its own unless told."""
    rows = [(f"{split}{n}", text) for split, found in texts.items() for n, text in enumerate(found)]
    queries = pl.DataFrame(rows, schema=["query_id", "text"], orient="row")
    if columns:
        queries = queries.with_columns(pl.Series(name, values) for name, values in columns.items())
    docs = relevant or {query: [f"d-{query}"] for query, _ in rows}
    qrels = {
        split: ff.Qrels(
            [
                {"query_id": f"{split}{n}", "doc_id": doc, "relevance": 1}
                for n in range(len(found))
                for doc in docs[f"{split}{n}"]
            ]
        )
        for split, found in texts.items()
    }
    every = sorted({doc for found in docs.values() for doc in found})
    corpus = corpus or ff.Corpus({"doc_id": every, "text": [f"text {doc}" for doc in every]})
    return ff.Collection("small", corpus=corpus, queries=ff.Queries(queries), qrels=qrels)


def roles(dealt: shifts.Dealt) -> dict[str, dict[str, str]]:
    """{fold: {query: role}}."""
    found: dict[str, dict[str, str]] = {}
    for fold, query, role in dealt.partition.frame.iter_rows():
        found.setdefault(fold, {})[query] = role
    return found


# -- laws of every shift ------------------------------------------------------------------------


def test_every_member_is_tried():
    assert {shifts.parse(spec).spec.name for spec in SPECS} == set(shifts.names())


@pytest.mark.parametrize("spec", SPECS)
class TestLaws:
    def test_it_is_deterministic_in_the_seed_and_a_lawful_table(self, spec, collection):
        one, two = dealt_out(spec), shifts.parse(spec).deal(collection, seed=0)
        assert one.partition.frame.equals(two.partition.frame)
        assert ff.Partition(one.partition.frame) == one.partition  # checked: one role in a fold
        assert shifts.parse(str(shifts.parse(spec))) == shifts.parse(spec)

    def test_nothing_is_lost_without_being_counted(self, spec, collection):
        dealt = dealt_out(spec)
        pool = dealt.pool
        judged = {split: set(qrels.query_ids) for split, qrels in collection.qrels.items()}
        assert len(pool) + sum(pool.dropped.values()) == sum(map(len, judged.values()))
        for fold in dealt.folds:
            used = len(fold.train) + len(fold.near) + len(fold.far)
            assert used + sum(fold.dropped.values()) == len(pool), fold.name
            assert all(count > 0 for count in fold.dropped.values())

    def test_no_text_is_on_both_sides_and_each_side_is_of_its_split(self, spec, collection):
        dealt = dealt_out(spec)
        texts = dict(
            zip(
                collection.queries.frame["query_id"],
                normal_form(collection.queries.frame["text"]),
                strict=True,
            )
        )
        trained, tested = (set(collection.qrels[split].query_ids) for split in ("train", "test"))
        for fold, of in roles(dealt).items():
            train = {query for query, role in of.items() if role == "train"}
            test = set(of) - train
            assert train <= trained, fold
            assert test <= tested, fold
            assert not {texts[query] for query in train} & {texts[query] for query in test}

    def test_every_fold_has_something_to_train_on_and_to_test_with(self, spec, collection):
        for fold in dealt_out(spec).folds:
            assert len(fold.train)
            assert len(fold.near) + len(fold.far)
            for role in ("train", "near", "far"):
                assert (np.diff(fold.rows(role)) > 0).all()  # sorted, each once


@pytest.mark.parametrize("spec", [s for s in SPECS if "balance=True" in s])
def test_balanced_folds_train_on_equally_many(spec, collection):
    plain = shifts.parse(spec.replace(", balance=True", "")).deal(collection)
    dealt = dealt_out(spec)
    sizes = [len(fold.train) for fold in dealt.folds]
    assert len(set(sizes)) == 1
    assert sizes[0] == min(len(fold.train) for fold in plain.folds)
    for fold, full in zip(dealt.folds, plain.folds, strict=True):
        assert set(fold.train) <= set(full.train)
        assert fold.dropped.get("to balance training", 0) == len(full.train) - sizes[0]


def test_in_leave_one_out_every_test_query_of_a_group_is_far_once(collection):
    for spec in ("resttest(buckets=4)", "length()"):
        dealt = dealt_out(spec)
        far = np.concatenate([fold.far for fold in dealt.folds])
        assert sorted(far) == sorted(dealt.pool.test)
        for fold in dealt.folds:
            assert len(fold.near) + len(fold.far) == len(dealt.pool.test)


# -- the pool -----------------------------------------------------------------------------------


def test_what_is_not_in_the_pool_is_counted_by_reason():
    given = small({"train": ["Red car?", "blue", "green", "lost"], "test": ["red car", "sky"]})
    train = given.qrels["train"].frame.with_columns(
        relevance=pl.when(pl.col("query_id") == "train3").then(0).otherwise(1)
    )
    both = pl.concat(
        [train, pl.DataFrame({"query_id": "test1", "doc_id": "d", "relevance": 1})],
        how="vertical_relaxed",
    )
    qrels = {"train": ff.Qrels(both), "test": given.qrels["test"]}
    pool = Pool.of(ff.Collection("c", corpus=given.corpus, queries=given.queries, qrels=qrels))
    assert list(pool.queries.frame["query_id"]) == ["test0", "test1", "train1", "train2"]
    assert pool.dropped == {
        "judged in both splits, so not trained on": 1,
        "training queries without a relevant document": 1,
        "training queries with the text of a test query": 1,
    }


def test_a_single_split_is_divided_and_the_same_text_stays_together():
    texts = [f"text {n // 2}" for n in range(200)]
    given = small({"all": texts}, columns={"owner": [n // 20 for n in range(200)]})
    pool = Pool.of(given, share=0.3, seed=1)
    assert len(pool.test) == 60
    assert len(pool.train) == 140
    assert not pool.dropped
    sides = pool.queries.frame.with_columns(test=pl.Series(pool.is_test))
    assert sides.group_by("text").agg(pl.col("test").n_unique())["test"].max() == 1
    owned = Pool.of(given, share=0.3, seed=1, together="owner")
    sides = owned.queries.frame.with_columns(test=pl.Series(owned.is_test))
    assert sides.group_by("owner").agg(pl.col("test").n_unique())["test"].max() == 1
    assert len(owned.test) == 60
    assert Pool.of(given, seed=2).is_test.tolist() != Pool.of(given, seed=3).is_test.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": "trian"}, "no split 'trian'. Did you mean 'train'?"),
        ({"share": 1.5}, "share is 1.5, expected a share"),
        ({"together": "text"}, "is for dividing a single split"),
    ],
)
def test_the_pool_refuses(options, message, collection):
    with pytest.raises(InputError, match=message.replace("?", r"\?").replace(".", r"\.")):
        Pool.of(collection, **options)


def test_a_query_without_a_text_is_named():
    given = small({"train": ["a", "b"], "test": ["c"]})
    qrels = {
        "train": given.qrels["train"],
        "test": ff.Qrels({"query_id": ["ghost"], "doc_id": ["d"], "relevance": [1]}),
    }
    broken = ff.Collection("c", corpus=given.corpus, queries=given.queries, qrels=qrels)
    with pytest.raises(InputError, match="query 'ghost' is judged but has no text"):
        Pool.of(broken)


# -- by hand ------------------------------------------------------------------------------------


def test_words_decide_by_token_or_substring():
    texts = ["What is up", "show me", "who knows what", "meaning", "when and how"]
    pool = Pool.of(small({"train": texts, "test": ["else"]}))
    rows = dict(zip(pool.queries.frame["text"], range(6), strict=True))

    def of(spec):
        groups = shifts.parse(spec).grouping(pool, 0)
        return [groups.of[rows[text]] for text in texts]

    wha, how, who, none = 0, 1, 2, -1
    assert of("whwords()") == [wha, none, who, none, who]
    assert of("whwords(several=listed)") == [wha, none, wha, none, how]
    assert of("whwords(several=none)") == [wha, none, none, none, none]
    assert of("whwords(rule=substring)") == [wha, how, who, none, who]
    assert of("whwords(words=['m: meaning me', 'rest: up how'])") == [1, 0, none, 0, 1]


def test_length_counts_words_or_spaces():
    texts = ["one", "two words", "three  spaced words", "this has four words"]
    pool = Pool.of(small({"train": texts, "test": ["x y"]}))
    rows = dict(zip(pool.queries.frame["text"], range(5), strict=True))

    def of(spec):
        groups = shifts.parse(spec).grouping(pool, 0)
        return groups.names, [int(groups.of[rows[text]]) for text in texts]

    assert of("length(cuts=[3])") == (("short", "long"), [0, 0, 1, 1])
    # "three  spaced words" holds four pieces between single spaces
    assert of("length(cuts=[4], count=spaces)") == (("short", "long"), [0, 0, 1, 1])
    assert of("length(cuts=[4])") == (("short", "long"), [0, 0, 0, 1])
    assert of("length(cuts=[2, 4])") == (("1-1", "2-3", "4+"), [0, 1, 1, 2])
    # words: 1, 2, 3, 4 and 2 of the test query; their median is 2
    assert of("length()")[1] == [0, 1, 1, 1]


def test_an_attribute_makes_groups_and_may_choose_among_them():
    columns = {"kind": ["a", "a", "b", None, "c", "a", "b"]}
    given = small({"train": list("pqrst"), "test": list("uv")}, columns=columns)
    found = roles(shifts.parse("attribute(kind)").deal(given))
    assert set(found) == {"a", "b"}  # c has no test query
    assert found["a"] == {"train2": "train", "train4": "train", "test0": "far", "test1": "near"}
    assert found["b"]["train0"] == "train"
    assert found["b"]["test1"] == "far"
    chosen = shifts.parse("attribute(kind, values=[a, b])").deal(given)
    assert chosen.folds[0].dropped == {
        "in no group": 2,
        "training queries of the group left out": 2,
    }
    largest = shifts.parse("attribute(kind, largest=2)").deal(given)
    assert largest.partition == chosen.partition


def test_numbers_are_groups_in_their_order():
    groups = Groups.named(pl.Series([10, 2, None, 2]))
    assert groups.names == ("2", "10")
    assert groups.of.tolist() == [1, 0, -1, 0]


def test_time_trains_on_the_past():
    columns = {"date": ["2020", "2021-05-02", "2022-01-01", "", "2020-07", "2022-01-01"]}
    given = small({"train": list("pqrs"), "test": list("uv")}, columns=columns)
    dealt = shifts.parse("time(date, cut='2021-06-01')").deal(given)
    assert roles(dealt) == {
        "from 2021-06-01": {
            "train0": "train",
            "train1": "train",
            "test0": "near",
            "test1": "far",
        }
    }
    assert dealt.folds[0].dropped == {"without a date": 1, "training queries from the cut on": 1}
    numbers = small({"train": list("pq"), "test": list("u")}, columns={"year": [1, 5, 9]})
    assert roles(shifts.parse("time(year, cut='5')").deal(numbers)) == {
        "from 5.0": {"train0": "train", "test0": "far"}
    }


def vectors_of(tmp_path, points: dict[str, list[float]]) -> str:
    """Write vectors for an encoder to read, and return its spec."""
    file = tmp_path / "vectors.parquet"
    pl.DataFrame({"query_id": list(points), "vector": list(points.values())}).write_parquet(file)
    return f"vectors(file='{file}')"


def test_restrain_takes_the_nearest_and_the_farthest(tmp_path):
    # On a circle: one test query at 0 degrees, one at 90; training queries in between and away.
    degrees = {"test0": 0, "test1": 90, "train0": 5, "train1": 20, "train2": 80, "train3": 130}
    degrees |= {"train4": 180, "train5": 240}
    points = {q: [np.cos(np.radians(d)), np.sin(np.radians(d))] for q, d in degrees.items()}
    given = small({"train": list("abcdef"), "test": list("uv")})
    encoder = vectors_of(tmp_path, points)
    # Ranks for test0 (0): train0, 1, 2, (5 at 240: cos -0.5), 3 (130: -0.64), 4 (-1).
    # For test1 (90): train2 (10 apart), 3 (40), 1 (70), 0 (85), 4 (90), 5 (150).
    # Best ranks: train0 1, train2 1, train1 2, train3 2, train5 4, train4 5.
    dealt = shifts.parse(f"restrain(size=2, encoder={encoder})").deal(given)
    assert {q for q, role in roles(dealt)["interpolation"].items() if role == "train"} == {
        "train0",
        "train2",
    }
    assert {q for q, role in roles(dealt)["extrapolation"].items() if role == "train"} == {
        "train4",
        "train5",
    }
    assert dealt.facts["I"] == 1
    assert dealt.facts["E"] == 3
    # Of the step from I = 1 to I = 2 the more similar one comes first: train1, 20 degrees away.
    three = shifts.parse(f"restrain(size=3, encoder={encoder})").deal(given)
    assert roles(three)["interpolation"]["train1"] == "train"
    assert roles(three)["extrapolation"]["train3"] == "train"
    assert roles(three)["interpolation"]["test0"] == "near"
    assert roles(three)["extrapolation"]["test0"] == "far"


def test_restrain_matches_on_judgements():
    relevant = {f"train{n}": [f"d{n}-{m}" for m in range(1 + n % 3)] for n in range(30)}
    texts = [f"word{n} common" for n in range(30)]
    given = small({"train": texts, "test": ["word3 words"]}, relevant=relevant | {"test0": ["x"]})
    dealt = shifts.parse("restrain(size=20, match=judgements)").deal(given)
    for fold in dealt.folds:
        lines = int(dealt.pool.judgements[fold.train].sum())
        assert 18 <= lines <= 20
        assert dealt.facts["judgements"][fold.name] == lines


def test_documents_leave_out_what_lies_on_both_sides():
    corpus = ff.Corpus(
        {"doc_id": ["x1", "x2", "y1", "y2"], "text": ["t"] * 4, "source": ["x", "x", "y", "y"]}
    )
    relevant = {"train0": ["x1"], "train1": ["y1"], "train2": ["x1", "y1"]}
    relevant |= {"test0": ["x2"], "test1": ["y2", "y1"], "test2": ["x2", "y2"]}
    given = small({"train": list("abc"), "test": list("uvw")}, relevant=relevant, corpus=corpus)
    dealt = shifts.parse("documents(by=source)").deal(given)
    assert roles(dealt) == {
        "x": {"train1": "train", "test1": "near", "test0": "far"},
        "y": {"train0": "train", "test0": "near", "test1": "far"},
    }
    assert dealt.folds[0].dropped == {
        "training queries with a relevant document in the group left out": 2,
        "test queries with relevant documents on both sides": 1,
    }


def test_cross_leaves_out_a_cell_or_its_margins():
    columns = {"a": ["0", "0", "1", "1", "0", "1"], "b": ["0", "1", "0", "1", "0", "1"]}
    given = small({"train": list("pqrs"), "test": list("uv")}, columns=columns)
    cell = roles(shifts.parse("cross(attribute(a), attribute(b))").deal(given))
    assert cell["0 & 0"] == {
        "train1": "train",
        "train2": "train",
        "train3": "train",
        "test1": "near",
        "test0": "far",
    }
    margins = roles(shifts.parse("cross(attribute(a), attribute(b), leave=margins)").deal(given))
    assert margins["0 & 0"] == {"train3": "train", "test1": "near", "test0": "far"}


def test_clusters_join_the_nearest_group_until_it_is_full():
    # Centroids on a line: groups start at 0 and 10, and grow inwards.
    centroids = np.array([[0.0], [10.0], [1.0], [9.0], [2.0], [5.0]], dtype=np.float32)
    sizes = np.array([10, 10, 5, 5, 6, 50])
    # To 0 joins the cluster at 1 (15), then at 2 (21 is as near to 20 as 15 is not: joins).
    # To 10 joins the cluster at 9 (15); the next, at 5, would make it 65: full.
    found = _grown(centroids, np.array([0, 1]), sizes, 20)
    assert found.tolist() == [0, 1, 0, 1, 0, -1]


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("resttest(buckets=1)", "buckets is 1, expected 2"),
        ("topics(groups=9, clusters=5)", "expected at least 2 groups"),
        ("length(cuts=[5, 3])", "numbers above 0 that rise"),
        ("whwords(words=['only: one'])", "at least two different"),
        ("whwords(words=['nocolon', 'a: b'])", "name: word word"),
        ("restrain(size=0)", "size is 0"),
        ("attribute(topic, values=[a], largest=3)", "Give one of them"),
        ("cross(length())", "expected at least 2"),
        ("cross(length(), restrain())", "makes no groups"),
        ("cross(length(), documents())", "makes no groups"),
        ("cross(length(balance=True), whwords())", "give balance to cross"),
        ("documents(clusters=1)", "clusters is 1"),
    ],
)
def test_a_bad_spec_says_what_is_wrong(spec, message):
    with pytest.raises(SpecError, match=message):
        shifts.parse(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("attribute(colour)", "have no column 'colour'"),
        ("attribute(topic, values=[musik])", "Did you mean 'music'"),
        ("attribute(query_id)", "have no column"),
        ("time(topic)", "expected numbers or dates like 2021-06-30"),
        ("time(date, cut='1900')", "expected some of both"),
        ("time(words, cut=x)", "holds numbers, and the cut 'x' is none"),
        ("restrain(size=100000)", "Expected at most"),
        ("topics(size=100000)", "Expected at most"),
        ("documents(by=nothing)", "have no column 'nothing'"),
        ("length(cuts=[99])", "It needs at least two that have both"),
    ],
)
def test_a_shift_that_does_not_fit_the_data_says_why(spec, message, collection):
    with pytest.raises(InputError, match=message):
        shifts.parse(spec).deal(collection)


# -- what was planted, and what was released ----------------------------------------------------


def rand_index(one, other) -> float:
    """Adjusted Rand index of two groupings."""
    from sklearn.metrics import adjusted_rand_score

    return adjusted_rand_score(one, other)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_planted_topics_are_recovered(seed):
    # As many test as training queries: the topic that is only tested is then as large as others.
    made = lab.make(train=2500, test=2500, seed=seed).collection
    pool = Pool.of(made)
    topic = pool.queries.frame["topic"].to_numpy()
    found = shifts.parse("resttest(buckets=8)").grouping(pool, seed)
    assert rand_index(topic, found.of) >= 0.9
    apart = shifts.parse("topics(clusters=8, groups=5)").grouping(pool, seed)
    inside = apart.of >= 0
    assert rand_index(topic[inside], apart.of[inside]) >= 0.9


def test_the_length_rule_of_the_released_sets(real_data):
    queries = ff.read_queries(real_data / "msmarco" / "topics.msmarco-passage.dev-subset.txt")
    half = len(queries) // 2
    ids = queries.frame["query_id"]
    one, other = (
        ff.Qrels({"query_id": part, "doc_id": ["d"] * len(part), "relevance": [1] * len(part)})
        for part in (ids[:half], ids[half:])
    )
    corpus = ff.Corpus({"doc_id": ["d"], "text": [""]})
    made = ff.Collection("dev", corpus=corpus, queries=queries, qrels={"train": one, "test": other})
    pool = Pool.of(made)
    assert not pool.dropped
    groups = shifts.parse("length(count=spaces)").grouping(pool, 0)
    assert groups.facts["a new group starts at so many words"] == [6]
    assert np.bincount(groups.of).tolist() == [3434, 3546]
    for number, name in enumerate(("short", "long")):
        released = ff.read_queries(real_data / "msmarco" / "ms-shift" / f"queries_{name}.tsv.gz")
        mine = pool.queries.frame["query_id"].filter(pl.Series(groups.of == number))
        assert set(mine) == set(released.frame["query_id"])


def test_the_substring_rule_covers_every_released_query(real_data):
    member = shifts.parse("whwords(rule=substring)")
    exact = shifts.parse("whwords(rule=token)")
    missed = 0
    for number, name in enumerate(("wha", "how", "who")):
        queries = ff.read_queries(real_data / "msmarco" / "ms-shift" / f"queries_{name}.tsv.gz")
        texts = queries.frame["text"].str.to_lowercase()
        words = member._named_words()[number][1]
        assert np.isfinite(member._places(texts, words)).all()
        missed += int(np.isinf(exact._places(texts, words)).sum())
    assert missed > 0  # so the rule is one of letters, not of words


@pytest.mark.filterwarnings("ignore:.*repeated with the same relevance")
def test_what_leaks_through_the_released_restrain_sets(real_data):
    folder = real_data / "msmarco"
    tested = ff.read_qrels(folder / "qrels.dl19-passage.txt")
    shares = {}
    for size in ("14k", "200k"):
        train = ff.read_qrels(folder / "restrain" / f"{size}.extrapolate.train-qrel.txt.gz")
        shared = shared_labels(train, tested, [1])["shared"]
        shares[size] = round(float((shared > 0).mean()), 2)
    assert shares == {"14k": 0.07, "200k": 0.35}


@pytest.mark.parametrize(
    ("name", "spec", "indicators"),
    [
        ("squad-nqg", "resttest(buckets=5)", ["jaccard", "neighbours"]),
        ("debian-desc", "attribute(section, largest=8)", ["jaccard"]),
    ],
)
def test_far_queries_are_farther_on_real_text(real_data, name, spec, indicators):
    made = ff.read_collection(real_data / "beir" / name)
    answer = shift(spec, made)
    table = ff.fold_distances(made, answer.partition, indicators=indicators).table
    # A fold counts as much as it has far queries: squad has one of 33.
    far = table.filter(pl.col("role") == "far").sort("indicator", "fold")
    near = table.filter(pl.col("role") == "near").sort("indicator", "fold")
    apart = pl.Series((far["high"] < near["low"]).to_numpy() * far["queries"].to_numpy())
    assert apart.sum() / far["queries"].sum() > 0.95


# -- the question and the command ---------------------------------------------------------------


def test_the_answer_says_what_leaks(collection):
    answer = shift("attribute(topic)", collection)
    row = answer.overlap.row(0, named=True)
    fold = next(f for f in answer.dealt.folds if f.name == row["fold"])
    train = set(answer.qrels(fold, "train").frame["doc_id"])
    of = answer.qrels(fold, row["role"]).frame.filter(pl.col("relevance") > 0)
    shared = of.group_by("query_id").agg(pl.col("doc_id").is_in(list(train)).any())["doc_id"]
    assert row["shared"] == int(shared.sum())
    assert row["queries"] == len(fold.rows(row["role"]))
    assert row["low"] <= row["share"] <= row["high"]


def test_a_partition_comes_with_a_manifest_that_names_it(collection, tmp_path):
    answer = shift("resttest(buckets=3)", collection, seed=4)
    manifest = json.loads(answer.write(tmp_path / "part.parquet").read_text())
    assert manifest["shift"] == "resttest(buckets=3)"
    assert manifest["seed"] == 4
    again = ff.read(tmp_path / "part.parquet", ff.Partition)
    assert again.fingerprint == manifest["partition"] == answer.partition.fingerprint


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("lab") / "lab"
    ff.write_collection(lab.make(passages=400, train=300, test=120, seed=1).collection, path)
    return path


def test_the_command_writes_folds_that_others_can_train_on(folder, tmp_path, farfield):
    done = farfield(
        *("shift", "length()", folder, "-o", tmp_path / "part.csv", "--json"),
        *("--export", "beir", "--to", tmp_path / "folds", "--figure", tmp_path / "map.html"),
    )
    assert done.status == 0
    document = done.json
    assert {row["fold"] for row in document["sizes"]} == {"short", "long"}
    assert (tmp_path / "map.html").stat().st_size > 100_000
    partition = ff.read(tmp_path / "part.csv", ff.Partition)
    for fold in ("short", "long"):
        made = ff.read_collection(tmp_path / "folds" / fold)
        made.check()
        assert len(made.corpus) == 400
        for role in ("train", "near", "far"):
            mine = partition.frame.filter((pl.col("fold") == fold) & (pl.col("role") == role))
            assert sorted(mine["query_id"]) == sorted(made.qrels[role].query_ids)
    released = farfield(
        *("shift", "restrain(size=100)", folder, "--export", "qrels", "--to", tmp_path / "lines")
    )
    assert released.status == 0
    assert "I: " in released.out
    lines = ff.read_qrels(tmp_path / "lines" / "extrapolation" / "train-qrel.txt")
    assert len(lines.query_ids) == 100
    assert (tmp_path / "lines" / "interpolation" / "interpolate.test-qrel.txt").is_file()


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_the_figure_shows_groups_or_roles(folder, method):
    answer = shift("whwords()", folder)
    names = {trace.name for trace in answer.figure(method=method).data}
    assert {"group wha", "group how", "group who", "near queries", "far queries"} <= names
    roles_of_one = {trace.name for trace in answer.figure(method=method, fold="how").data}
    assert {"train", "near", "far"} <= roles_of_one
    with pytest.raises(InputError, match="no fold is called 'hwo'. Did you mean"):
        answer.figure(fold="hwo")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resttest(bucket=3)", "{folder}"], "Did you mean 'buckets'"),
        (["nonsense()", "{folder}"], "no shift is called 'nonsense'"),
        (["length()", "{folder}/missing"], "is not a folder"),
        (["length()", "{folder}", "--train", "dev"], "has no split 'dev'"),
        (["length()", "{folder}", "--export", "beir"], "go together"),
        (["length()", "{folder}", "--export", "bier", "--to", "x"], "Did you mean 'beir'"),
    ],
)
def test_the_command_refuses_with_a_message(arguments, message, folder, farfield, tmp_path):
    done = farfield("shift", *[a.format(folder=folder) for a in arguments], cwd=tmp_path)
    assert done.status == 2
    assert done.err.startswith("error: ")
    assert message in " ".join(done.err.split())
