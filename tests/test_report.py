"""Reports: what goes into the page, and that every answer and a whole run directory have one."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import farfield as ff
from farfield import figures, lab, reports
from farfield.cli import app
from farfield.errors import FileError, InputError
from farfield.experiments.kinds import KINDS
from farfield.experiments.record import write_steps
from farfield.experiments.steps import FORMAT, Step
from farfield.experiments.tables import collect
from farfield.io.files import write_json
from farfield.reports import drawing, packing
from farfield.reports.blocks import Writer, intervals, kind_of
from farfield.reports.parts import known_parts
from farfield.reports.parts.allocation import PART as ALLOCATION
from farfield.reports.rundir import RunDirectory

# Text from the data is data, whatever it holds.
HOSTILE = {
    "script": "</script><script>window.hurt = 1</script>",
    "image": "\"><img src=x onerror='window.hurt = 1'>",
    "link": '<a href="http://example.com/">a link</a> & <b>bold</b>',
    "hebrew": "\u05e9\u05dc\u05d5\u05dd \u202eolleh",  # from right to left, and turned round
    "lines": "one\u2028two\u2029three\x00four",
    "long": "endless " * 12_500,  # 100 kB
}
FUSION = "<i>both</i> & \"'more"
MEASURE = "nDCG@10"
SHIFTS = ("resttest(buckets=2)", "length()")


# -- a small run directory, made without training anything --------------------------------------


def hostile_collection() -> ff.Collection:
    """A small lab whose first test queries, and their relevant documents, hold hostile texts."""
    made = lab.make(passages=150, train=150, test=60, seed=1).collection
    qrels = made.qrels["test"].frame
    chosen = dict(zip(qrels["query_id"].unique().sort(), HOSTILE.values(), strict=False))
    documents: dict[str, str] = {}
    for query, text in chosen.items():
        mine = qrels.filter(pl.col("query_id") == query, pl.col("relevance") > 0)["doc_id"]
        documents[next(doc for doc in mine if doc not in documents)] = text

    def replaced(frame: pl.DataFrame, key: str, texts: dict[str, str]) -> pl.DataFrame:
        return frame.with_columns(
            text=pl.col(key)
            .replace_strict(texts, default=None, return_dtype=pl.String)
            .fill_null(pl.col("text"))
        )

    return ff.Collection(
        "hostile",
        corpus=ff.Corpus(replaced(made.corpus.frame, "doc_id", documents)),
        queries=ff.Queries(replaced(made.queries.frame, "query_id", chosen)),
        qrels={split: made.qrels[split] for split in made.qrels},
    )


def ranking(qrels: pl.DataFrame, place: dict[str, int], seed: int) -> pl.DataFrame:
    """A run that puts the first relevant document of each query at a place, among others."""
    rng = np.random.default_rng(seed)
    first = qrels.filter(pl.col("relevance") > 0).unique("query_id", keep="first")
    rows = []
    for query, doc in first.sort("query_id").select("query_id", "doc_id").iter_rows():
        others = [f"d{n:05d}" for n in rng.choice(np.arange(1, 140), 12, replace=False)]
        listed = [other for other in others if other != doc]
        listed.insert(place[query] - 1, doc)
        rows += [
            {"query_id": query, "doc_id": one, "score": -float(n), "rank": n}
            for n, one in enumerate(listed, start=1)
        ]
    return pl.DataFrame(rows)


class Made:
    """A run directory, step by step, as farfield run would leave it."""

    def __init__(self, place: Path, measures: Sequence[str]) -> None:
        self.place, self.measures, self.steps = place, list(measures), []

    def do(self, step: Step, run: pl.DataFrame | None = None) -> Step:
        out = self.place / "steps" / step.folder
        out.mkdir(parents=True)
        if run is not None:
            run.write_parquet(out / "run.parquet")
        else:
            needs = {name: self.place / "steps" / one.folder for name, one in step.needs.items()}
            KINDS[step.kind](step.spec, needs, out)
        write_json(out / "done.json", {"kind": step.kind, "seconds": 0.5, "bytes": 1000})
        self.steps.append(step)
        return step

    def shift(self, spec: str, collection: Step) -> None:
        about = {"shift": spec, "split": {}, "seed": 0}
        shift = self.do(Step("shift", f"shift {spec}", about, {"collection": collection}))
        folder = self.place / "steps" / shift.folder
        folds = json.loads((folder / "folds.json").read_text())
        qrels = pl.read_parquet(folder / "test.parquet")
        roles = pl.read_parquet(folder / "partition.parquet").filter(pl.col("role") != "train")
        runs = {}
        for system, fold in [
            ("bm25", None),
            *[(name, fold) for name in ("dense", FUSION) for fold in folds],
        ]:
            far = set(roles.filter(fold=fold or "", role="far")["query_id"])
            near, away = (3, 3) if system == "bm25" else (1, 8) if system == "dense" else (1, 2)
            place = {query: away if query in far else near for query in qrels["query_id"]}
            spec_ = {"name": system, "fold": fold}
            step = Step("search", f"search {system} {fold}", spec_, {"shift": shift})
            runs[system, fold, 0] = self.do(step, ranking(qrels, place, len(runs)))
        asked = {"indicators": ["jaccard", "r"], "encoder": "lsa()"}
        needs = {"shift": shift, "collection": collection}
        distance = self.do(Step("distance", "distances", asked, needs))
        about = {"runs": [list(key) for key in runs], "measures": self.measures}
        needs = {f"run {n}": run for n, run in enumerate(runs.values())}
        needs |= {"shift": shift, "distance": distance}
        self.do(Step("nearfar", f"near and far, {spec}", about, needs))


def make_directory(
    place: Path, shifts: Sequence[str] = SHIFTS, measures: Sequence[str] = (MEASURE, "R@10")
) -> Path:
    ff.write_collection(hostile_collection(), place / "hostile")
    run = place / "run"
    made = Made(run, measures)
    source = {"source": str(place / "hostile"), "content": "0" * 32}
    collection = made.do(Step("collection", "read the collection", source))
    for shift in shifts:
        made.shift(shift, collection)
    resolved = {
        "format": FORMAT,
        "name": "a <hostile> experiment",
        "collection": str(place / "hostile"),
        "split": {},
        "shifts": list(shifts),
        "systems": {"bm25": "bm25()", "dense": {"recipe": "contrastive()", "base": "scratch()"}},
        "fusions": {FUSION: {"fusion": "rrf()", "of": ["bm25", "dense"]}},
        "measures": list(measures),
        "seeds": [0],
        "depth": 13,
        "versions": {"farfield": ff.__version__},
    }
    write_json(run / "resolved.json", resolved)
    (run / "experiment.toml").write_text('collection = "hostile"\n')
    write_steps(run, made.steps)
    collect(made.steps, run)
    return run


# -- data in the page ---------------------------------------------------------------------------


def unpacked(packed: packing.Packed) -> object:
    size, letters = packed
    data = zlib.decompress(base64.b64decode(letters), -15)
    assert len(data) == size
    return json.loads(data)


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=20))
def test_what_is_packed_comes_out_again_and_holds_no_markup(content):
    _, letters = packing.pack(content)
    assert re.fullmatch(r"[A-Za-z0-9+/=]*", letters)
    assert unpacked(packing.pack(content)) == content


def test_columns_have_six_digits_and_texts_that_repeat_are_kept_once():
    assert packing.column(pl.Series([1 / 3, float("nan"), None, float("inf")])) == [
        0.333333,
        None,
        None,
        None,
    ]
    assert packing.column(pl.Series([1, None])) == [1, None]
    assert packing.column(pl.Series(["a", "b"])) == ["a", "b"]
    assert packing.column(pl.Series(["a", "b", "a", None, "a"])) == {
        "texts": ["a", "b"],
        "places": [0, 1, 0, None, 0],
    }


def test_intervals_belong_to_their_values():
    names = ["system", "share", "low", "high", "gain", "gain_low", "gain_high", "n", "x_low"]
    found = intervals(names)
    assert found == {"share": ("low", "high"), "gain": ("gain_low", "gain_high")}
    # The ends of a range are no interval of what happens to stand before them.
    assert intervals(["queries", "similarity_low", "similarity_high"]) == {}


def test_numbers_are_written_by_what_they_are():
    kinds = {"p": "p", "p_adjusted": "p", "p95": "number", "alone_share": "share", "mean": "number"}
    assert {name: kind_of(name, pl.Float64()) for name in kinds} == kinds
    assert kind_of("n", pl.UInt32()) == "count"
    assert kind_of("seen", pl.Boolean()) == "flag"
    assert kind_of("text", pl.String()) == "text"


def test_a_table_shows_what_it_is_told_and_keeps_the_rest_for_the_csv():
    frame = pl.DataFrame({"a": [1.0], "b": ["x"], "b_low": [0.5], "a_low": [0.0], "a_high": [2.0]})
    found = reports.Table("t", "T", frame, shown=["b", "a"]).to_dict()
    assert [(c["name"], c["shown"]) for c in found["columns"]] == [
        ("b", True),
        ("a", True),
        ("b_low", False),
        ("a_low", False),
        ("a_high", False),
    ]
    assert (found["columns"][1]["low"], found["columns"][1]["high"]) == (3, 4)
    assert found["data"] == [["x"], [1.0], [0.5], [0.0], [2.0]]


# -- figures ------------------------------------------------------------------------------------


def random_runs(systems: int, queries: int = 30) -> tuple[ff.Qrels, list[ff.Run]]:
    qrels = pl.DataFrame(
        {"query_id": [f"q{n:03d}" for n in range(queries)], "doc_id": "d1", "relevance": 1}
    )
    places = np.random.default_rng(0).integers(1, 9, (systems, queries))
    runs = []
    for number, row in enumerate(places):
        rows = [
            {"query_id": q, "doc_id": f"d{1 if n == at else n + 100}", "score": -float(n)}
            for q, at in zip(qrels["query_id"], row, strict=True)
            for n in range(1, 10)
        ]
        runs.append(ff.Run(rows, name=f"run{number}"))
    return ff.Qrels(qrels), runs


def test_panels_are_taken_apart_and_have_legends_of_their_own():
    found = drawing.panels(ff.coverage(*random_runs(3)).figure())
    assert [panel.title for panel in found] == [
        "TaSC (max), against all others",
        "nDCG@10 of every query, best to worst",
        "mean |difference| of nDCG@10 per query",
        "who to add next",
    ]
    assert [t["name"] for t in found[1].data if t["showlegend"]] == ["run0", "run1", "run2"]
    for panel in found:
        axes = [axis for name, axis in panel.layout.items() if name[1:5] == "axis"]
        assert all(axis["domain"] == [0.0, 1.0] for axis in axes)


def test_what_belongs_together_stays_together():
    bars, *others = drawing.panels(ff.complement(*random_runs(5)).figure())
    kinds = [trace["type"] for trace in bars.data]
    assert kinds[0] == "bar"
    assert "scatter" in kinds  # the dots below the bars
    assert bars.wide
    domains = [bars.layout[name]["domain"] for name in ("yaxis", "yaxis2")]
    assert domains[0][1] == 1.0
    assert domains[1][0] == 0.0
    assert domains[1][1] < domains[0][0]
    assert len(others) == 2  # the headroom of two measures


def test_markup_in_figures_is_that_of_plotly_alone():
    import plotly.graph_objects as go

    text = 'n<br>2 <a href="x">y</a> <script>z</script> <b>w</b>'
    figure = go.Figure(go.Scatter(x=[1], y=[2], text=[text], name="<img src=x>"))
    (panel,) = drawing.panels(figure)
    trace = panel.to_dict()["data"][0]
    assert trace["text"] == ['n<br>2 &lt;a href="x">y&lt;/a> &lt;script>z&lt;/script> <b>w</b>']
    assert trace["name"] == "&lt;img src=x>"
    assert drawing.plain("a<br><sup>b</sup>") == "a — b"


def test_long_arrays_are_single_precision():
    found = packing.single_precision({"x": [0.1] * 60, "y": [0.1], "z": [float("nan")]})
    values = np.frombuffer(base64.b64decode(found["x"]["bdata"]), "<f4")
    assert found["x"]["dtype"] == "f4"
    assert values == pytest.approx([0.1] * 60, abs=1e-7)
    assert found["y"] == [0.1]
    assert found["z"] == [None]


# -- a report of every answer -------------------------------------------------------------------


def near_far() -> ff.NearFar:
    partition = ff.Partition(
        [
            {"fold": fold, "query_id": query, "role": "far" if query[0] == fold else "near"}
            for fold in "ab"
            for query in ("a1", "a2", "b1", "b2")
        ]
    )
    qrels = ff.Qrels(
        {"query_id": ["a1", "a2", "b1", "b2"], "doc_id": ["d"] * 4, "relevance": [1] * 4}
    )

    def run(**ranks: int) -> ff.Run:
        rows = [
            {"query_id": q, "doc_id": "d" if n == at else f"x{n}", "score": -float(n)}
            for q, at in ranks.items()
            for n in range(1, at + 1)
        ]
        return ff.Run(rows)

    runs = [("m", "a", 0, run(a1=2, a2=4, b1=1, b2=2)), ("m", "b", 0, run(a1=1, a2=2, b1=4, b2=2))]
    return ff.near_far(partition, qrels, runs, ["RR"])


def allocated() -> ff.Allocated:
    qrels, runs = random_runs(2)
    # The scores of b are higher, so that merging and an equal split differ.
    sources = {
        name: ff.Run(
            run.frame.select(
                "query_id", pl.col("doc_id") + f"-{name}", pl.col("score") + 2.0 * (name == "b")
            ),
            name=name,
        )
        for name, run in zip("ab", runs, strict=True)
    }
    judged = qrels.frame.with_columns(doc_id=pl.lit("d1-a"))
    return ff.allocate(sources, k=5, qrels=ff.Qrels(judged))


def compared() -> ff.Comparison:
    qrels, (first, *others) = random_runs(3)
    return ff.compare(qrels, first, others, ["nDCG@10"])


def scores() -> pl.DataFrame:
    values = np.random.default_rng(0).random((6, 3))
    named = pl.DataFrame({"system": [f"s{n}" for n in range(6)]})
    return named.hstack(pl.DataFrame(values, schema=["near", "far", "other"]))


def small_lab() -> ff.Collection:
    return lab.make(passages=120, train=80, test=40, seed=2).collection


def of_lab(question: str) -> object:
    made = small_lab()
    qrels = {"train_qrels": made.qrels["train"], "test_qrels": made.qrels["test"]}
    queries = {"train_queries": made.queries, "test_queries": made.queries}
    if question == "Audit":
        return ff.audit(**queries, **qrels)
    if question == "Shifted":
        return ff.shift("length()", made)
    if question == "FoldDistances":
        return ff.fold_distances(made, ff.shift("length()", made).partition, indicators=["r"])
    if question == "Distance":
        return ff.distance(made.queries_of("test"), made.queries_of("train"))
    run = ff.search("bm25()", made.queries_of("test"), 20, corpus=made)
    return ff.diagnose(
        made.qrels["test"],
        {"bm25": run},
        queries=made.queries,
        train_queries=made.queries,
        train_qrels=made.qrels["train"],
        bins=2,
    )


ANSWERS = {
    "Alignment": lambda: ff.align(scores(), ["near", "far"], ["other"]),
    "Allocated": allocated,
    "Comparison": compared,
    "Complement": lambda: ff.complement(*random_runs(3)),
    "Coverage": lambda: ff.coverage(*random_runs(3)),
    "Evaluation": lambda: ff.evaluate(*random_runs(3)),
    "FusionReport": lambda: ff.fuse_and_compare(
        "interpolate()", random_runs(2)[1], random_runs(2)[0], ["nDCG@10"], search=True
    ),
    "NearFar": near_far,
    "Tuning": lambda: ff.tune(*random_runs(2)),
}
ANSWERS |= {
    name: lambda name=name: of_lab(name)
    for name in ("Audit", "Diagnosis", "Distance", "FoldDistances", "Shifted")
}


def test_every_part_of_an_answer_is_tried_here_and_the_order_is_clear():
    assert {part.answer for part in known_parts() if part.answer} == set(ANSWERS)
    orders = [part.order for part in known_parts()]
    assert orders == sorted(set(orders))
    assert all(part.of_answer or part.of_run for part in known_parts())


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_answer_has_a_report(name):
    answer = ANSWERS[name]()
    assert type(answer).__name__ == name
    html = ff.report(answer)
    sections = reports.page_of(answer).sections
    assert sections[-1].title == "To cite"
    for section in sections[:-1]:
        assert section.findings or section.blocks
        assert 1 <= section.reading.count(". ") <= 2  # how to read it, in two sentences or three
        assert f'<section id="{section.name}"' in html
    assert "zhan2022evaluating" in html
    assert len(html) < 3e6
    assert ff.report(answer) == html  # the same answer, the same bytes


def test_an_answer_that_nobody_shows_is_refused():
    with pytest.raises(InputError, match="no report of dict. Give a run directory, or one of A"):
        ff.report({"a": 1})


# -- a report of a run directory ----------------------------------------------------------------


def data_of(page: reports.Page) -> list[object]:
    writer = Writer()
    for section in page.sections:
        section.html(writer)
    return [unpacked(packed) for _, packed in writer.data]


def test_every_finding_of_near_and_far_names_its_shift(page, run_directory):
    (section,) = [section for section in page.sections if section.name == "near-far"]
    shifts = json.loads((run_directory / "resolved.json").read_text())["shifts"]
    assert len(section.findings) >= len(shifts)
    for finding in section.findings:
        assert finding.startswith(tuple(f"{shift}: " for shift in shifts))


def test_the_map_is_the_one_that_the_experiment_drew(page, run_directory):
    (section,) = [section for section in page.sections if section.name == "shifts"]
    (views,) = section.blocks
    shown = {blocks[0].figure.to_json() for blocks in views.choices.values()}
    kept = {figures.load(file).to_json() for file in run_directory.glob("steps/shift-*/map.json")}
    assert shown == kept
    assert len(kept) == len(views.choices) > 0


def test_a_run_directory_becomes_a_page_that_leads_with_the_answer(page, run_directory):
    names = [section.name for section in page.sections]
    assert names == [
        *("answer", "audit", "shifts", "near-far", "left-out", "similarity"),
        *("coverage", "fusion", "queries", "method"),
    ]
    # dense puts the relevant document at rank 1 near and 8 far: 1 / log2(9) of it is left there,
    # where another relevant document does not come by chance.
    table = pl.read_parquet(run_directory / "tables" / "table.parquet")
    row = table.filter(shift=SHIFTS[0], system="dense", measure=MEASURE, average="micro").row(
        0, named=True
    )
    first = page.sections[0].findings[0]
    assert first.startswith(f"{SHIFTS[0]}: of the {MEASURE} that dense reaches near its training")
    assert f"{row['far'] / row['near']:.1%} is left far from them" in first
    assert f"{row['near']:.3f} becomes {row['far']:.3f}" in first
    assert f"Best there is {FUSION}" in first
    assert any(f"use the fusion {FUSION}" in text for text in page.sections[0].findings)


def test_every_system_is_far_by_the_model_that_left_the_query_out(run_directory):
    run = RunDirectory.open(run_directory)
    shift = run.shifts[0]
    assert shift.systems == ("bm25", "dense", FUSION)
    assert shift.trained == ("dense", FUSION)
    relevant = shift.qrels.frame.filter(pl.col("relevance") > 0).unique("query_id", keep="first")
    ranks = shift.far_runs["dense"].frame.join(relevant, on=["query_id", "doc_id"])["rank"]
    assert set(ranks) == {8}
    assert set(shift.far_runs["dense"].query_ids) == set(shift.far["query_id"])


def test_the_explorer_has_ranks_near_and_far(page):
    explorer, _ = (one for one in data_of(page) if one.get("list", {}).get("name") == "queries")
    ranks = next(table for table in explorer["details"] if table["name"] == "ranks")
    columns = [column["name"] for column in ranks["columns"]]
    frame = {name: ranks["data"][columns.index(name)] for name in ("system", "near", "far")}
    systems = [frame["system"]["texts"][n] for n in frame["system"]["places"]]
    found = set(zip(systems, frame["near"], frame["far"], strict=True))
    assert ("dense", 1.0, 8.0) in found
    assert ("bm25", 3.0, 3.0) in found


def test_hostile_texts_are_data(page):
    html = page.html
    for text in HOSTILE.values():
        assert text not in html
    assert FUSION not in html
    assert "<title>How far does it reach? a &lt;hostile&gt; experiment</title>" in html
    assert len(re.findall(r"<script>", html)) == 1
    # They are all there, the long one cut.
    texts = json.dumps(data_of(page), ensure_ascii=False)
    for name, text in HOSTILE.items():
        shown = json.dumps(text[:900], ensure_ascii=False)[1:-1]
        assert shown in texts, name
    assert len(html) < 8e6


def test_nothing_is_fetched(page):
    assert "default-src 'none'" in page.html
    outside = re.sub(r"(?s)<script.*?</script>|<pre.*?</pre>", "", page.html)
    assert not re.search(r'(?:src|href)="(?!#|data:)', outside)


@pytest.fixture
def few_parts(monkeypatch):
    """Make pages of a few sections: the others are tried elsewhere."""
    few = [part for part in known_parts() if part.order in (0, 70, 95, 100)]
    monkeypatch.setattr(reports, "known_parts", lambda: few)
    return few


def test_documents_are_not_shown_where_they_must_not_be(run_directory, few_parts):
    texts = json.dumps(data_of(reports.page_of(run_directory, texts=False)), ensure_ascii=False)
    documents = RunDirectory.open(run_directory).collection.corpus.frame["text"]
    plain = [text for text in documents if text not in HOSTILE.values()]
    assert not any(text in texts for text in plain)


def test_other_answers_get_sections_before_the_method(run_directory, few_parts, monkeypatch):
    also = [allocated(), ff.complement(*random_runs(2))]
    monkeypatch.setattr(reports, "known_parts", lambda: [*few_parts, ALLOCATION])
    names = [section.name for section in reports.page_of(run_directory, also=also).sections]
    # Each has an address of its own.
    assert names == ["answer", "fusion", "fusion-2", "allocation", "queries", "method"]


def test_near_and_far_may_be_different_queries_and_less_may_be_better(tmp_path, few_parts):
    shift = "time(column='date')"
    run = make_directory(tmp_path, [shift], ["ASL"])
    page = reports.page_of(run)
    said = page.sections[0].findings[0]
    # bm25 has the document at rank 3, near and far; of dense, 1 becomes 8, and there it is worst.
    assert said.startswith(f"{shift}: the ASL of dense changes from near to far: ")
    assert "Near and far are different queries here" in said
    assert f"Best there is {FUSION}" in said
    names = [section.name for section in page.sections]
    assert names == ["answer", "fusion", "queries", "method"]
    assert "no report" not in page.html


def test_a_part_that_fails_does_not_take_the_others_with_it(run_directory, few_parts, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise InputError("no such thing.")

    monkeypatch.setattr("farfield.reports.parts.complement.complement", fail)
    sections = {section.name: section for section in reports.page_of(run_directory).sections}
    assert sections["complement"].findings == ["This part failed: no such thing."]
    assert "queries" in sections


# -- what cannot be reported --------------------------------------------------------------------


def test_folders_that_are_no_finished_run_are_refused(tmp_path, run_directory):
    with pytest.raises(FileError, match="there is no such folder"):
        ff.report(tmp_path / "nowhere")
    with pytest.raises(FileError, match="it has no resolved.json"):
        ff.report(tmp_path)
    write_json(tmp_path / "resolved.json", {"format": 99})
    with pytest.raises(FileError, match="of format 99, expected 1"):
        ff.report(tmp_path)
    (tmp_path / "resolved.json").write_text("{")
    with pytest.raises(FileError, match="this is no JSON"):
        ff.report(tmp_path)
    write_json(
        tmp_path / "resolved.json", json.loads((run_directory / "resolved.json").read_text())
    )
    with pytest.raises(FileError, match="it has no steps.json"):
        ff.report(tmp_path)
    write_json(tmp_path / "steps.json", json.loads((run_directory / "steps.json").read_text()))
    with pytest.raises(FileError, match="17 of 17 steps are not finished, the first is: read the"):
        ff.report(tmp_path)


def test_a_page_needs_a_name_that_a_browser_opens(run_directory, tmp_path):
    with pytest.raises(FileError, match=r"the suffix '.pdf' stands for no page. Use .html"):
        ff.report(run_directory, tmp_path / "report.pdf")


# -- the command line ---------------------------------------------------------------------------


def test_the_command_writes_the_page_and_says_the_answer(farfield, run_directory, tmp_path, page):
    out = tmp_path / "report.html"
    done = farfield("report", run_directory, "-o", out)
    assert done.status == 0
    assert done.out.startswith(page.sections[0].findings[0])
    assert f"{out}: 10 sections" in done.out
    assert out.read_text() == page.html


def test_the_command_answers_in_json(run_directory, tmp_path, few_parts):
    out = tmp_path / "report.html"
    options = ["-o", str(out), "--title", "mine", "--no-texts", "--json"]
    done = CliRunner().invoke(app, ["report", str(run_directory), *options])
    found = json.loads(done.stdout)
    assert found["title"] == "How far does it reach? mine"
    assert found["bytes"] == out.stat().st_size
    assert found["sections"][0]["name"] == "answer"
    assert found["sections"][0]["findings"][0].startswith(SHIFTS[0])


def test_mistakes_end_with_a_message(farfield, tmp_path):
    done = farfield("report", tmp_path, "-o", tmp_path / "report.html")
    assert done.status == 2
    assert "this is not the directory of a finished farfield run" in done.err
    done = farfield("report", tmp_path, "-o", tmp_path / "report.txt")
    assert done.status == 2
    assert "Use .html" in done.err


def test_every_question_on_the_command_line_gives_a_page(farfield, tmp_path):
    qrels, (run, other) = random_runs(2)
    ff.write(qrels, tmp_path / "qrels.tsv")
    for one in (run, other):
        ff.write(one, tmp_path / f"{one.name}.trec")
    done = farfield(
        *("coverage", "qrels.tsv", "run0.trec", "run1.trec", "--html", "c.html"), cwd=tmp_path
    )
    assert done.status == 0
    assert "Who covers what others leave uncovered?" in (tmp_path / "c.html").read_text()
    done = farfield("fuse", "rrf()", "run0.trec", "run1.trec", "--html", "f.html", cwd=tmp_path)
    assert done.status == 2
    assert "--html needs judgements. Give --qrels FILE." in done.err or "-o FILE" in done.err


def test_commands_that_answer_a_question_can_write_a_page():
    commands = {c.name or c.callback.__name__: c.callback for c in app.registered_commands}
    questions = [
        *("evaluate", "audit", "compare", "diagnose", "coverage", "shift", "distance"),
        *("nearfar", "align", "fuse", "complement", "allocate"),
    ]
    lacking = [name for name in questions if "html" not in commands[name].__annotations__]
    assert not lacking
