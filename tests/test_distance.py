"""How far apart two sets of queries are: published numbers, the question, the command line."""

from __future__ import annotations

import json

import polars as pl
import pytest

import farfield as library
from farfield import lab
from farfield.errors import FileError, InputError
from farfield.tables import Partition, Queries

ENCODER = "lsa(dimensions=16)"
QUICK = ["jaccard(draws=5, permutations=99)", "r", "classifier(permutations=99)"]
TOPICS = {"0": 0.2984, "1": 0.2449, "2": 0.3388, "3": 0.3005, "4": 0.4268}
WORDS = {"wha": 0.2793, "how": 0.2261, "who": 0.2762}
LENGTHS = {"short": 0.3225, "long": 0.3225}


@pytest.fixture(scope="module")
def made():
    return lab.make(passages=400, train=900, test=200)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("distance") / "lab"
    library.write_collection(made.collection, path)
    return path


@pytest.fixture(scope="module")
def topics(made):
    def of(topic):
        rows = (pl.col("split") == "train") & (pl.col("topic") == topic)
        return Queries(made.queries.filter(rows).select("query_id", "text"))

    return of("cooking"), of("machines")


# -- published numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("group", [TOPICS, WORDS, LENGTHS], ids=["topics", "wh", "length"])
def test_jaccard_of_ms_shift(real_data, group):
    """Each set of the released queries against the others together."""
    files = {name: real_data / "msmarco" / "ms-shift" / f"queries_{name}.tsv.gz" for name in group}
    sets = {name: library.read_queries(path) for name, path in files.items()}
    found = {}
    for name, own in sets.items():
        others = [queries for other, queries in sets.items() if other != name]
        answer = library.distance(own, others, indicators=["jaccard(draws=2, permutations=19)"])
        assert answer.apart
        (reading,) = answer.readings.values()
        assert reading.high < reading.same
        found[name] = round(reading.value, 4)
    assert found == group


def test_far_from_training_on_real_queries(real_data, farfield):
    folder = real_data / "msmarco" / "ms-shift"
    done = farfield(
        "distance",
        folder / "queries_wha.tsv.gz",
        folder / "queries_how.tsv.gz",
        "--json",
        "-i",
        "r",
        "-i",
        "classifier(size=500, permutations=99)",
        "--encoder",
        ENCODER,
    )
    found = done.json
    assert found["r"]["difference_high"] < 0
    assert found["classifier(size=500, permutations=99)"]["low"] > 0.9
    assert found["a"] == {"name": "queries_wha", "queries": 6496}


# -- the question -------------------------------------------------------------------------------


def test_topics_are_apart(topics):
    answer = library.distance(*topics, indicators=QUICK, encoder=ENCODER)
    assert answer.apart is True
    assert answer.verdict.startswith("Apart: jaccard(draws=5, permutations=99) and classifier")
    assert "of pairs (guessing: 50%)" in answer.verdict
    table = answer.table
    assert table.columns[:5] == ["indicator", "value", "low", "high", "same"]
    assert table["p"].null_count() == 1  # r is no test
    assert (table["p_adjusted"].drop_nulls() >= table["p"].drop_nulls()).all()
    relative = table["value"][0] / table["same"][0]
    assert table["relative"].to_list()[0] == pytest.approx(relative)
    assert table["relative"][2] is None
    document = answer.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert {"value", "low", "high", "ceiling", "ratio"} <= set(document[QUICK[0]])


def test_halves_are_indistinguishable(made):
    train = made.queries.filter(pl.col("split") == "train").select("query_id", "text")
    alike = 0
    for seed in range(8):
        shuffled = train.sample(fraction=1.0, shuffle=True, seed=seed)
        halves = Queries(shuffled[:300]), Queries(shuffled[300:600])
        answer = library.distance(*halves, indicators=QUICK, encoder=ENCODER, seed=seed)
        alike += not answer.apart
        if not answer.apart:
            assert answer.verdict.startswith("Indistinguishable: no test tells A (300 queries)")
    assert alike >= 6


def test_values_of_queries(topics):
    a, b = topics
    answer = library.distance(a, b, indicators=["r", "neighbours"], encoder=ENCODER)
    frame = answer.per_query.frame
    assert len(frame) == 2 * (len(a) + len(b))
    means = dict(
        frame.group_by("system", "measure")
        .agg(pl.col("value").mean())
        .sort("system", "measure")
        .select(pl.concat_str("system", "measure", separator=" "), "value")
        .iter_rows()
    )
    readings = {str(i): reading for i, reading in answer.readings.items()}
    assert means["A r"] == pytest.approx(readings["r"].value)
    assert means["B neighbours"] == pytest.approx(readings["neighbours"].same)


def test_only_indicators_on_vectors_need_an_encoder(topics):
    answer = library.distance(*topics, indicators="jaccard", encoder="sentence(model='nowhere')")
    assert answer.encoder is None
    assert answer.to_dict()["encoder"] is None
    with pytest.raises(InputError, match="none of the indicators compares vectors"):
        answer.figure()
    no_test = library.distance(*topics, indicators=["r"], encoder=ENCODER)
    assert no_test.apart is None
    assert "None of these indicators is a test" in no_test.verdict


def test_sets_from_several_sources_keep_every_query(folder, made):
    answer = library.distance(
        f"{folder}:test", [f"{folder}:train", folder], indicators=["r"], encoder=ENCODER
    )
    train, every = len(made.collection.queries_of("train")), len(made.collection.queries)
    assert (len(answer.a), len(answer.b)) == (200, train + every)
    assert (answer.a.name, answer.b.name) == ("lab:test", "lab:train + lab")
    assert answer.shared == 200
    assert answer.per_query.frame["system"].unique().sort().to_list() == [
        "lab",
        "lab:test",
        "lab:train",
    ]


def test_a_set_against_itself(topics):
    answer = library.distance(topics[0], topics[0], indicators=QUICK, encoder=ENCODER)
    values = {str(i): reading.value for i, reading in answer.readings.items()}
    assert values[QUICK[0]] == pytest.approx(1.0)
    assert not answer.apart
    assert answer.shared == len(topics[0])


def test_the_figure_shows_both_sets(topics):
    answer = library.distance(*topics, indicators=["r", "neighbours"], encoder=ENCODER)
    figure = answer.figure()
    names = [trace.name for trace in figure.data]
    assert names == ["A: A", "B: B"] * 3
    assert sum(figure.data[0].y) == pytest.approx(1.0)  # shares of queries
    assert len(figure.data[4].x) == len(topics[0])  # the map


# -- folds --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def partition(made):
    """Two folds: one topic is far, some of the others are near, the rest is for training."""
    train = made.queries.filter(pl.col("split") == "train").sort("query_id").with_row_index()
    folds = []
    for topic in ("cooking", "machines"):
        role = pl.when(pl.col("topic") == topic).then(pl.lit("far"))
        role = role.when(pl.col("index") % 4 == 0).then(pl.lit("near")).otherwise(pl.lit("train"))
        folds.append(train.select(pl.lit(topic).alias("fold"), "query_id", role.alias("role")))
    return Partition(pl.concat(folds))


def test_far_queries_are_farther_than_near_ones(made, partition):
    answer = library.fold_distances(
        made.collection, partition, indicators=[*QUICK, "neighbours"], encoder=ENCODER
    )
    table = answer.table
    assert len(table) == 2 * 2 * 4
    for (_, indicator), rows in table.group_by("fold", "indicator"):
        near, far = (
            rows.filter(pl.col("role") == role)["value"].item() for role in ("near", "far")
        )
        assert (far > near) is indicator.startswith("classifier"), indicator
    counts = partition.frame.filter(pl.col("fold") == "cooking")["role"].value_counts()
    sizes = dict(counts.iter_rows())
    row = table.filter((pl.col("fold") == "cooking") & (pl.col("role") == "far"))
    assert (row["queries"][0], row["train"][0]) == (sizes["far"], sizes["train"])
    assert set(answer.to_dict()["folds"]["machines"]) == {"near", "far"}
    assert answer.per_query.frame["system"].n_unique() == 4
    assert [trace.name for trace in answer.figure().data] == ["near", "far"]


def test_partitions_that_do_not_fit(made, partition):
    def compare(frame):
        return library.fold_distances(made.collection, Partition(frame), indicators=["jaccard"])

    frame = partition.frame
    with pytest.raises(InputError, match="names query 'stray', which is not among"):
        compare(pl.concat([frame, pl.DataFrame({"fold": "a", "query_id": "stray", "role": "far"})]))
    with pytest.raises(InputError, match="neither near nor far"):
        compare(frame.filter(pl.col("role") == "train"))
    with pytest.raises(InputError, match="fold 'cooking' has 0 train queries, expected at least 2"):
        compare(frame.filter(pl.col("role") != "train"))


# -- the command line ---------------------------------------------------------------------------


def options(*more):
    chosen = [x for spec in QUICK for x in ("-i", spec)]
    return [*chosen, "--encoder", ENCODER, *more]


def test_the_command(farfield, folder, tmp_path):
    files = [tmp_path / name for name in ("t.csv", "q.parquet", "f.html")]
    flags = zip(("-o", "--per-query", "--figure"), files, strict=True)
    done = farfield(
        "distance", f"{folder}:test", f"{folder}:train", *options(), *(x for f in flags for x in f)
    )
    assert done.status == 0, done.err
    assert "A: lab:test (200 queries), B: lab:train (900 queries)" in done.out
    assert "of A's queries are in B word for word" in done.out
    assert "Apart:" in done.out or "Indistinguishable:" in done.out
    assert pl.read_csv(files[0])["indicator"].to_list() == QUICK
    assert set(pl.read_parquet(files[1])["measure"]) == {"r", QUICK[2]}
    assert "<html" in files[2].read_text()[:200]


def test_the_command_prints_json_that_python_gives(farfield, folder):
    done = farfield("distance", f"{folder}:test", f"{folder}:train", *options("--json"))
    answer = library.distance(
        f"{folder}:test", f"{folder}:train", indicators=QUICK, encoder=ENCODER
    )
    assert done.json[QUICK[0]] == answer.to_dict()[QUICK[0]]
    assert done.json["r"]["value"] == pytest.approx(answer.to_dict()["r"]["value"], abs=1e-6)
    for name in QUICK:
        found = done.json[name]
        assert found["low"] <= found["value"] <= found["high"]


def test_the_command_on_folds(farfield, folder, partition, tmp_path):
    file = tmp_path / "part.parquet"
    library.write(partition, file)
    arguments = ["distance", folder, "--partition", file, "-i", "r", "--encoder", ENCODER]
    done = farfield(*arguments)
    assert done.status == 0, done.err
    assert [line.split()[:2] for line in done.out.splitlines()[2:4]] == [
        ["cooking", "r"],
        ["machines", "r"],
    ]
    found = farfield(*arguments, "--json").json
    near, far = (found["folds"]["cooking"][role]["r"]["value"] for role in ("near", "far"))
    assert far < near


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to compare with. Give B"),
        (["{lab}:train", "-i", "jacard"], "Did you mean 'jaccard'?"),
        (["{lab}:dev"], "has no split 'dev'"),
        (["nowhere.tsv"], "nowhere.tsv"),
        (["{lab}", "--encoder", "lsa(dimensions=1)"], "dimensions is 1"),
        (["{lab}", "--level", "1.5"], "level is 1.5"),
        (["{lab}", "--partition", "x.parquet"], "is one too many"),
        (["{lab}", "-i", "jaccard(size=100000)"], "expected 1 to"),
    ],
)
def test_mistakes_are_told(farfield, folder, arguments, message):
    filled = [argument.format(lab=folder) for argument in arguments]
    done = farfield("distance", f"{folder}:test", *filled)
    assert done.status == 2
    assert message in done.err


def test_sets_that_are_too_small(tmp_path):
    one = Queries({"query_id": ["1"], "text": ["a"]})
    two = Queries({"query_id": ["1", "2"], "text": ["a", "b"]})
    with pytest.raises(InputError, match="A has 1 queries, expected at least 2"):
        library.distance(one, two)
    with pytest.raises(InputError, match="B names no queries"):
        library.distance(two, [])
    with pytest.raises(InputError, match="no indicator was asked for"):
        library.distance(two, two, indicators=[])
    with pytest.raises(FileError):
        library.distance(two, tmp_path / "nothing.tsv")
    answer = library.distance(two, two, encoder="lsa(dimensions=2)")
    assert answer.table["value"].is_finite().all()
