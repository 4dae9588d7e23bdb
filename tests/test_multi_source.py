"""Collections of several sources: from tables of records and matches, and by a column."""

from __future__ import annotations

import gzip
import json

import numpy as np
import polars as pl
import pytest

import farfield as ff
from farfield.errors import FileError, InputError
from farfield.questions.multi_source import by_source, multi_source
from farfield.recipes.base import Job
from farfield.tables import Corpus, Qrels, Queries

SHOP = pl.DataFrame(
    {
        "id": ["1", "2", "3", "4", "5", "6"],
        "name": ["Red  Lamp", "Blue Lamp", "Chair", "Desk", "Sofa", "Sofa"],
        "description": [
            "Red lamp - a small light for desks",  # its title goes
            "blue lamp",  # nothing is left
            "four legs and a seat",
            "a table to write on",
            "soft seat for three",
            "seat for two people",
        ],
    }
)
MALL = pl.DataFrame(
    {
        "id": ["1", "2", "3", "4", "5"],
        "title": ["Lamp in red", "Lamp in blue", "chair", "Writing table", "Lamp in red"],
        "description": [
            "lights up every desk",
            "lights up blue rooms",
            "wooden seat, four legs",
            "desk of oak wood",
            "a very red lamp",
        ],
    }
)
MATCHES = pl.DataFrame({"left": ["1", "2", "3", "4"], "right": ["1", "2", "3", "4"]})


@pytest.fixture(scope="module")
def made():
    return multi_source({"shop": SHOP, "mall": MALL}, MATCHES)


def left_out(answer) -> dict[tuple[str, str], int]:
    return {(what, source): count for what, source, count in answer.dropped.iter_rows()}


def relevant(answer, split="test") -> dict[str, set[str]]:
    rows = answer.collection.qrels[split].frame
    return {
        query: set(rows.filter(pl.col("query_id") == query)["doc_id"]) for query in rows["query_id"]
    }


# -- tables of records ----------------------------------------------------------------------------


def test_documents_lack_their_own_titles(made):
    texts = dict(made.collection.corpus.frame.select("doc_id", "text").iter_rows())
    assert texts["shop:1"] == "- a small light for desks"
    assert texts["mall:5"] == "a very red lamp"  # not its title as whole words in a row
    assert "shop:2" not in texts  # "blue lamp" is its title, and nothing else
    assert "title" not in made.collection.corpus.frame.columns
    assert set(made.collection.corpus.frame["source"]) == {"shop", "mall"}


def test_titles_of_matches_ask_for_all_records_of_a_thing(made):
    assert relevant(made) == {
        "shop:1:title": {"shop:1", "mall:1"},
        "shop:3:title": {"shop:3", "mall:3"},
        "shop:4:title": {"shop:4", "mall:4"},
        "mall:4:title": {"shop:4", "mall:4"},
    }
    asked = made.collection.queries.frame
    one = asked.filter(pl.col("query_id") == "mall:4:title").row(0, named=True)
    assert one == {
        "query_id": "mall:4:title",
        "text": "Writing table",
        "source": "mall",
        "item": "shop:4",
    }
    made.collection.check()


def test_what_is_left_out_is_counted(made):
    assert made.matches == (4, 3)  # the match of the blue lamps is of no use
    assert left_out(made) == {
        ("records with fewer than 3 words of text", "shop"): 1,
        ("matches without text in two sources", ""): 1,
        ("queries whose title occurs twice in the source", "mall"): 1,  # Lamp in red
        ("queries whose text is there already", "mall"): 1,  # chair, which the shop has as Chair
        ("training queries whose title occurs twice in the source", "mall"): 1,
        ("training queries whose title occurs twice in the source", "shop"): 2,
    }
    assert made.sizes.to_dicts() == [
        {
            "source": "shop",
            "given": 6,
            "documents": 5,
            "repeated": 0,
            "queries": 3,
            "training": 0,
        },
        {"source": "mall", "given": 5, "documents": 5, "repeated": 0, "queries": 1, "training": 1},
    ]


def test_training_is_on_one_source_and_away_from_the_test(made):
    # Of the mall only the blue lamp is in no test pair and has a title of its own.
    assert relevant(made, "train-mall") == {"mall:2:title": {"mall:2"}}
    assert list(made.collection.qrels) == ["test", "train-mall"]
    (partition,) = made.partitions.values()
    roles = dict(partition.frame.select("query_id", "role").iter_rows())
    assert roles == {
        "mall:2:title": "train",
        "mall:4:title": "near",
        "shop:1:title": "far",
        "shop:3:title": "far",
        "shop:4:title": "far",
    }


def test_a_recipe_trains_on_the_partition_of_a_source(made):
    pytest.importorskip("torch")
    job = Job.of(made.collection, made.partitions["train-mall"], validation=0, device="cpu")
    assert job.examples.queries == ["Lamp in blue"]


def test_no_training_title_is_a_test_title():
    more = pl.concat(
        [MALL, pl.DataFrame({"id": ["9"], "title": ["red lamp"], "description": ["a b c d"]})]
    )
    answer = multi_source({"shop": SHOP, "mall": more}, MATCHES)
    assert left_out(answer)["training queries whose title is that of a test query", "mall"] == 1


def test_texts_that_are_there_twice_are_counted():
    same = MALL.with_columns(description=pl.lit("the same text for all"))
    answer = multi_source({"shop": SHOP, "mall": same}, MATCHES)
    assert answer.sizes["repeated"].to_list() == [0, 5]
    assert answer.undecidable == 1.0


def test_a_title_that_asks_for_two_things_asks_for_none():
    other = MALL.with_columns(title=pl.Series(["Desk", "b", "c", "d", "e"]))
    answer = multi_source({"shop": SHOP, "mall": other}, MATCHES)
    counts = left_out(answer)
    assert counts["queries whose text asks for different things", "mall"] == 1
    assert counts["queries whose text asks for different things", "shop"] == 1
    assert not {"shop:4:title", "mall:1:title"} & set(relevant(answer))


def test_halves_of_titles_by_hand():
    one = pl.DataFrame({"id": ["1"], "title": ["a b c d e f g"], "brand": ["Acme"]})
    two = pl.DataFrame({"id": ["7"], "title": ["t u v w x y z"], "brand": ["Ajax"]})
    pair = pl.DataFrame({"one": ["1"], "two": ["7"]})
    answer = multi_source({"one": one, "two": two}, pair, text=["brand"], halves=True)
    assert answer.collection.queries.frame["text"].to_list() == ["a c e g", "t v x z"]
    assert answer.collection.corpus.frame["text"].to_list() == ["b d f Acme", "u w y Ajax"]
    alone = multi_source({"one": one, "two": two}, pair, halves=True)
    assert alone.collection.corpus.frame["text"].to_list() == ["b d f", "u w y"]


def test_three_sources_with_holes_make_one_thing():
    tables = {
        name: pl.DataFrame(
            {
                "id": [1, 2],
                "title": [f"{name} one", f"{name} two"],
                "text": [f"what {name} says first", f"what {name} says then"],
            }
        )
        for name in "abc"
    }
    matches = pl.DataFrame({"c": [None, 2, 1], "a": [1, 2, None], "b": [1, None, 1]})
    answer = multi_source(tables, matches)
    assert relevant(answer) == {
        **{key: {"a:1", "b:1", "c:1"} for key in ("a:1:title", "b:1:title", "c:1:title")},
        **{key: {"a:2", "c:2"} for key in ("a:2:title", "c:2:title")},
    }
    items = dict(answer.collection.queries.frame.select("query_id", "item").iter_rows())
    assert items["c:1:title"] == "a:1"
    assert list(answer.collection.qrels) == ["test", "train-b"]


def test_pairs_that_are_labelled_as_none_are_none():
    labelled = MATCHES.with_columns(label=pl.Series([1, 1, 0, 1]))
    answer = multi_source({"shop": SHOP, "mall": MALL}, labelled)
    assert left_out(answer)["pairs that are labelled as no match", ""] == 1
    assert answer.matches == (3, 2)


def test_any_format_is_read(made, tmp_path):
    def written(frame: pl.DataFrame, kind: str, name: str):
        path = tmp_path / kind / name
        path.parent.mkdir(exist_ok=True)
        if kind == "parquet":
            frame.write_parquet(path)
        elif kind == "jsonl":
            path.write_bytes(gzip.compress(frame.write_ndjson().encode()))
        else:
            frame.write_csv(path, separator=kind, quote_style="never" if kind == "\t" else None)
        return path

    for kind in (",", ";", "|", "\t", "parquet", "jsonl"):
        paths = [written(table, kind, name) for name, table in (("shop", SHOP), ("mall", MALL))]
        answer = multi_source(paths, written(MATCHES, kind, "matches"))
        assert answer.collection.fingerprint == made.collection.fingerprint
        assert answer.collection.name == "shop-mall"


def test_a_beir_folder_holds_two_tables(tmp_path):
    queries = Queries({"query_id": ["1", "2"], "text": ["a b c d e f", "k l m n o p"]})
    corpus = Corpus(
        {"doc_id": ["8", "9"], "title": ["u v w x y z", "k k k k"], "text": ["Acme 1", ""]}
    )
    qrels = Qrels({"query_id": ["1"], "doc_id": ["8"], "relevance": [1]})
    ff.write_collection(
        ff.Collection("pair", corpus=corpus, queries=queries, qrels={"all": qrels}),
        tmp_path / "pair",
    )
    answer = multi_source([tmp_path / "pair"], names=["left", "right"], halves=True)
    assert relevant(answer) == {
        key: {"left:1", "right:8"} for key in ("left:1:title", "right:8:title")
    }
    texts = dict(answer.collection.corpus.frame.select("doc_id", "text").iter_rows())
    assert texts == {"left:1": "b d f", "left:2": "l n p", "right:8": "v x z Acme 1"}
    with pytest.raises(InputError, match="queries has titles .text. but no texts.*--halves"):
        multi_source([tmp_path / "pair"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matches": None}, "which records match"),
        ({"title": ["nam"]}, "no table has a column 'nam'. Did you mean 'name'"),
        ({"text": ["colour"]}, "no table has a column 'colour'"),
        ({"id": "number"}, "shop has no column 'number'"),
        ({"id": "name"}, "the id .name. 'Sofa' is there more than once"),
        ({"words": 0}, "words is 0"),
        ({"words": 50}, "no query is left"),
        ({"title": ["name"]}, "mall has no title: none of name"),
        (
            {"matches": pl.DataFrame({"a": ["1"], "b": ["77"]})},
            "'77' of mall, which is not in its table",
        ),
        ({"matches": pl.DataFrame({"a": ["1"]})}, "expected one for each of shop, mall"),
        ({"matches": MATCHES.head(0)}, "there are no matches"),
        ({"tables": {"shop": SHOP}}, "one table of records"),
        ({"tables": {"shop": SHOP, "a/b": MALL}}, "a source is called 'a/b'"),
        (
            {"tables": {"shop": pl.concat([SHOP, SHOP]), "mall": MALL}},
            "shop: the id .id. '1' is there more than once",
        ),
    ],
)
def test_mistakes_are_named(change, message):
    given = {"tables": {"shop": SHOP, "mall": MALL}, "matches": MATCHES} | change
    with pytest.raises(InputError, match=message):
        multi_source(given.pop("tables"), given.pop("matches"), **given)


# -- by a column ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    return ff.lab.make(passages=300, train=60, test=80, seed=3).collection


def test_sources_of_a_collection_are_told_by_a_column(world):
    answer = by_source(world, "source")
    counts = dict(world.corpus.frame["source"].value_counts().iter_rows())
    assert answer.given == dict(sorted(counts.items()))
    assert dict(answer.sizes.select("source", "documents").iter_rows()) == counts
    kept = answer.collection
    kept.check()
    assert list(kept.qrels) == ["train", "test"]
    dropped = answer.dropped["count"].sum()
    assert len(kept.queries) == len(world.queries) - dropped
    for split in kept.qrels:  # of different splits, texts may be the same
        assert kept.queries_of(split).frame["text"].str.to_lowercase().is_unique().all()


def test_queries_about_one_document_are_one_item():
    corpus = Corpus({"doc_id": list("1234"), "text": list("wxyz")})
    queries = Queries(
        {
            "query_id": list("abcdef"),
            "text": ["p", "q", "r", "p", "s", "S "],
            "section": ["one", "one", "two", "two", "two", "two"],
        }
    )
    pairs = [("a", "1"), ("b", "1"), ("c", "2"), ("d", "3"), ("e", "4"), ("f", "4")]
    qrels = Qrels([{"query_id": q, "doc_id": d, "relevance": 1} for q, d in pairs])
    collection = ff.Collection("c", corpus=corpus, queries=queries, qrels={"all": qrels})
    answer = by_source(collection, "section")
    rows = answer.collection.queries.frame.select("query_id", "source", "item").rows()
    assert rows == [("b", "one", "a"), ("c", "two", "c"), ("e", "two", "e")]
    assert left_out(answer) == {
        ("queries whose text asks for different things", "one"): 1,  # p
        ("queries whose text asks for different things", "two"): 1,
        ("queries whose text is there already", "two"): 1,  # S
    }
    assert answer.collection.corpus.frame["source"].to_list() == ["one", "two", "two", "two"]


def test_large_sources_are_kept_and_cut(world):
    answer = by_source(world, "topic", largest=3, most=10, seed=5)
    sizes = dict(world.corpus.frame["topic"].value_counts().iter_rows())
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:3]
    assert set(answer.given) == set(largest)
    assert answer.sizes["documents"].to_list() == [10, 10, 10]
    again = by_source(world, "topic", largest=3, most=10, seed=5)
    assert again.collection.fingerprint == answer.collection.fingerprint
    other = by_source(world, "topic", largest=3, most=10, seed=6)
    assert other.collection.fingerprint != answer.collection.fingerprint


def test_columns_and_numbers_that_cannot_be(world):
    with pytest.raises(InputError, match="column 'sorce'.*mean 'source'"):
        by_source(world, "sorce")
    with pytest.raises(InputError, match="largest is 1, expected 2, 3"):
        by_source(world, "source", largest=1)
    with pytest.raises(InputError, match="most is 0"):
        by_source(world, "source", most=0)
    with pytest.raises(InputError, match="not a folder"):
        by_source("nowhere", "source")


# -- command line ---------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    SHOP.write_csv(tmp_path / "shop.csv", separator="|")
    MALL.write_csv(tmp_path / "mall.csv")
    MATCHES.write_csv(tmp_path / "same.csv", separator=";")
    return tmp_path


def test_the_command_line(farfield, files, made):
    tables = [files / "shop.csv", files / "mall.csv", "--matches", files / "same.csv"]
    said = farfield("multi-source", *tables)
    assert said.status == 0, said.err
    assert "shop-mall: 2 sources, 5 queries" in said.out
    assert "3 of 4 matches are used." in said.out
    assert "records with fewer than 3 words of text" in said.out
    assert not (files / "out").exists()
    done = farfield("multi-source", *tables, "-o", files / "out", "--json")
    assert done.status == 0, done.err
    assert done.json["splits"] == {"test": 4, "train-mall": 1}
    assert done.json["fingerprint"] == made.collection.fingerprint
    found = ff.read_collection(files / "out")
    assert found.fingerprint == made.collection.fingerprint
    assert (files / "out" / "train-mall.csv").read_text().startswith("fold,query_id,role\n")
    again = farfield("multi-source", files / "out", "--by", "source", "--json")
    assert again.status == 0, again.err
    assert [row["documents"] for row in again.json["sources"]] == [5, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shop.csv", "mall.csv"], "which records match"),
        (["shop.csv", "mall.csv", "--largest", "3"], "--largest and --most go with --by"),
        (["shop.csv", "mall.csv", "--by", "source"], "--by goes with one collection"),
        (["shop.csv", "nowhere.csv", "--matches", "same.csv"], "nowhere.csv"),
        (["shop.csv", "mall.csv", "--matches", "same.csv", "--names", "a"], "1 names for 2"),
        (["shop.csv", "mall.csv", "--matches", "same.csv", "--names", "a,a"], "are called 'a'"),
    ],
)
def test_mistakes_end_with_a_message(farfield, files, arguments, message):
    done = farfield("multi-source", *arguments, cwd=files)
    assert done.status == 2
    assert message in done.err


def test_a_folder_of_another_collection_is_left_alone(files):
    answer = multi_source({"shop": SHOP, "mall": MALL}, MATCHES)
    (files / "qrels").mkdir()
    (files / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    with pytest.raises(FileError, match="of another collection"):
        answer.write(files)


# -- real tables ----------------------------------------------------------------------------------


def test_abt_buy_has_the_known_sizes(real_data):
    folder = real_data / "products" / "abt-buy"
    answer = multi_source([folder / "abt.csv", folder / "buy.csv"], folder / "gt.csv")
    assert answer.sizes["documents"].to_list() == [1075, 535]
    assert answer.matches == (1076, 535)
    assert len(answer.collection.qrels["test"].query_ids) == 1063
    assert len(answer.collection.qrels["train-abt"].query_ids) == 540


def test_walmart_amazon_has_the_sizes_in_the_documentation(real_data):
    folder = real_data / "beir" / "walmart-amazon"
    answer = multi_source([folder], names=["walmart", "amazon"], halves=True)
    assert answer.sizes["documents"].to_list() == [2550, 22051]
    assert answer.matches == (853, 853)
    assert len(answer.collection.qrels["test"].query_ids) == 1595


def test_json_is_plain(made):
    assert json.loads(json.dumps(made.to_dict()))["undecidable"] == 0.0
    assert np.isfinite(made.undecidable)
