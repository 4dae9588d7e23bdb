"""The command line, end to end, as a user runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import polars as pl
import pytest

import farfield as library

QRELS = "1 0 a 1\n1 0 b 2\n2 0 a 1\n3 0 c 1\n"
BASE = "1 Q0 a 1 9.5 base\n1 Q0 b 2 8.5 base\n2 Q0 b 1 3.0 base\n2 Q0 a 2 3.0 base\n"
OTHER = "1 Q0 b 1 2.0 x\n1 Q0 a 2 1.0 x\n2 Q0 a 1 1.0 x\n3 Q0 c 1 1.0 x\n4 Q0 c 1 1.0 x\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "base.trec").write_text(BASE)
    (tmp_path / "other.run.txt").write_text(OTHER)
    return tmp_path


def test_evaluate_prints_what_the_issue_tracker_of_every_user_will_parse(farfield, folder):
    done = farfield(
        *("evaluate", "qrels.txt", "base.trec", "other.run.txt", "-m", "nDCG@10"),
        *("-m", "RR(rel=2)@10", "--per-query", "out.parquet", "--json"),
        cwd=folder,
    )
    assert done.status == 0
    assert done.err == ""
    found = done.json
    assert found["queries"] == 3
    assert found["missing"] == {"base": 1, "other.run": 0}
    assert found["ties"] == {"base": 1, "other.run": 0}
    assert set(found["measures"]) == {"base", "other.run"}
    # RR(rel=2): only document b of query 1 counts. base has it second, other first.
    assert found["measures"]["base"]["RR(rel=2)@10"]["mean"] == pytest.approx(0.5 / 3)
    value = found["measures"]["other.run"]["RR(rel=2)@10"]
    assert value["mean"] == pytest.approx(1 / 3)
    assert value["low"] <= value["mean"] <= value["high"]
    table = pl.read_parquet(folder / "out.parquet")
    assert table.columns == ["query_id", "system", "measure", "value"]
    assert len(table) == 3 * 2 * 2


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "csv.gz"])
def test_the_per_query_table_has_the_format_of_its_suffix(farfield, folder, suffix):
    farfield("evaluate", "qrels.txt", "base.trec", "--per-query", f"pq.{suffix}", cwd=folder)
    table = library.read(folder / f"pq.{suffix}", library.PerQuery)
    assert table == library.evaluate(folder / "qrels.txt", folder / "base.trec").per_query


def test_plain_columns_in_a_pipe(farfield, folder):
    done = farfield("evaluate", "qrels.txt", "base.trec", "-m", "RR", cwd=folder)
    lines = done.out.splitlines()
    # query 1: a first; query 2: tie, b before a; query 3 missing: (1 + 1/2 + 0) / 3
    assert lines[0].split() == ["run", "RR"]
    assert lines[1].split()[:2] == ["base", "0.5000"]
    assert "3 judged queries" in lines[2]
    assert any("missing" in line and "base 1" in line for line in lines)
    assert "\x1b" not in done.out


def test_a_table_on_a_terminal(folder):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "farfield", "evaluate", "qrels.txt", "base.trec"]
    environment = {**os.environ, "COLUMNS": "120", "TERM": "xterm"}
    subprocess.run(command, stdout=follower, cwd=folder, env=environment, check=True)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    assert "─" in shown.decode()
    assert "nDCG@10" in shown.decode()


def test_compare(farfield, folder):
    arguments = ("compare", "qrels.txt", "base.trec", "other.run.txt", "-m", "RR")
    found = farfield(*arguments, "--json", "--test", "randomisation", cwd=folder).json
    row = found["differences"]["other.run"]["RR"]
    # base: 1, 1/2, 0; other: 1, 1, 1
    assert row["difference"] == pytest.approx(0.5)
    assert (row["wins"], row["ties"], row["losses"]) == (2, 1, 0)
    assert row["p"] == pytest.approx(0.5)  # signs of (1/2, 1): 2 of 4 are as extreme
    assert found["baseline"] == "base"
    shown = farfield(*arguments, cwd=folder).out
    assert "against base" in shown
    assert "2 / 1 / 0" in shown


def test_list(farfield):
    found = farfield("list", "measures", "--json").json
    names = [member["name"] for member in found["measures"]]
    assert names == ["AP", "ASL", "Judged", "nDCG", "P", "R", "RR", "Success"]
    assert all(member["summary"] for member in found["measures"])
    assert "nDCG" in farfield("list").out
    wrong = farfield("list", "measure")
    assert (wrong.status, wrong.out) == (2, "")
    assert "Did you mean 'measures'?" in wrong.err


def test_convert(farfield, folder):
    for target in ("run.parquet", "run.jsonl.zst", "run.csv", "run.json", "run.trec.gz"):
        done = farfield("convert", "base.trec", target, cwd=folder)
        assert done.status == 0, done.err
        again = library.read_run(folder / target)
        assert again.frame.equals(library.read_run(folder / "base.trec").frame)
    assert farfield("convert", "base.trec", "top.trec", "-k", "1", "--json", cwd=folder).json == {
        "kind": "run",
        "rows": 2,
        "out": "top.trec",
    }
    assert farfield("convert", "qrels.txt", "qrels.tsv", cwd=folder).status == 0
    assert (folder / "qrels.tsv").read_text().startswith("query-id\tcorpus-id\tscore\n1\ta\t1\n")


def test_lab(farfield, folder):
    done = farfield(
        "lab", "world", "--passages", "200", "--train", "300", "--test", "60", cwd=folder
    )
    assert done.status == 0, done.err
    collection = library.read_collection(folder / "world")
    assert len(collection.corpus) == 200
    assert len(collection.queries_of("train")) == 300
    assert len(collection.queries_of("test")) == 60
    collection.check()
    truth = pl.read_csv(folder / "world" / "truth.csv")
    assert set(truth["query_id"]) == set(collection.queries_of("test").frame["query_id"])
    again = farfield(
        "lab", "again", "--passages", "200", "--train", "300", "--test", "60", cwd=folder
    )
    assert again.status == 0
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "truth.csv"):
        assert (folder / "world" / file).read_bytes() == (folder / "again" / file).read_bytes()


def test_demo(farfield, folder):
    done = farfield("demo", "story", "--quick", cwd=folder)
    assert done.status == 0, done.err
    assert "Near and far" in done.out
    text = (folder / "story" / "RESULT.md").read_text()
    assert "## In words" in text
    found = json.loads((folder / "story" / "evaluation.json").read_text())
    assert found["queries"] == 800
    # What the demo left can be evaluated with the commands it recommends.
    runs = sorted((folder / "story" / "runs").iterdir())
    again = farfield(
        "evaluate", "story/lab/qrels/test.tsv", *runs, "-m", "nDCG@10", "--json", cwd=folder
    )
    for run, values in again.json["measures"].items():
        assert values["nDCG@10"]["mean"] == pytest.approx(found["measures"][run]["nDCG@10"]["mean"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "qrel.txt", "base.trec"], "there is no such file. Did you mean 'qrels.txt'?"),
        (["evaluate", "qrels.txt", "qrels.txt"], "qrels.txt:1: 4 fields in '1 0 a 1'"),
        (["evaluate", "base.trec", "qrels.txt"], "were the two files swapped?"),
        (["evaluate", "qrels.txt", "base.trec", "-m", "NDGC@10"], "Did you mean 'nDCG'?"),
        (["evaluate", "qrels.txt", "base.trec", "--ties", "no"], "is not a rule for ties"),
        (["evaluate", "qrels.txt", "base.trec", "--level", "95"], "level"),
        (["evaluate", "qrels.txt", "base.trec", "--resamples", "0"], "resamples"),
        (["evaluate", "qrels.txt", "base.trec", "./base.trec"], "two runs are called 'base'"),
        (
            ["evaluate", "qrels.txt", "base.trec", "--per-query", "x.doc"],
            "stands for no table format",
        ),
        (["evaluate", "qrels.txt", "base.trec", "-o", "x.doc"], "stands for no table format"),
        (["evaluate", "qrels.txt", "base.trec", "-o", "no/such/x.csv"], "cannot be written"),
        (["compare", "qrels.txt", "base.trec", "other.run.txt", "--test", "f"], "test"),
        (["compare", "qrels.txt", "base.trec", "base.trec"], "name of the baseline"),
        (["convert", "base.trec", "x.nothing"], "stands for no format"),
        (["convert", "base.trec", "x.trec", "--kind", "ran"], "Did you mean 'run'?"),
        (["convert", "qrels.txt", "x.trec", "-k", "3"], "--depth is for runs"),
        (["lab", "qrels.txt"], "this is a file"),
        (["lab", "x", "--passages", "0"], "passages"),
        (["evaluate", "ir:no/such/set", "base.trec"], "ir_datasets has no data set 'no/such/set'"),
    ],
)
def test_bad_input_ends_with_a_message_and_status_2(farfield, folder, arguments, message):
    before = {path.name for path in folder.iterdir()}
    done = farfield(*arguments, cwd=folder)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert message in done.err
    assert {path.name for path in folder.iterdir()} == before


def test_bad_usage_ends_with_status_2(farfield):
    assert farfield("evaluate").status == 2
    assert farfield("no-such-command").status == 2
    assert farfield("evaluate", "a", "b", "--nonsense").status == 2


def test_help_and_version(farfield):
    for command in (
        "evaluate",
        "compare",
        "diagnose",
        "coverage",
        "convert",
        "lab",
        "demo",
        "list",
    ):
        done = farfield(command, "--help")
        assert done.status == 0
        assert "--json" in done.out
    assert farfield("--version").out == f"farfield {library.__version__}\n"


def test_a_closed_pipe_is_no_error(folder):
    command = f"{sys.executable} -m farfield list --json | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""


def test_repeated_judgements_are_noted_on_standard_error(farfield, folder):
    (folder / "twice.txt").write_text("1 0 a 1\n1 0 a 1\n2 0 a 1\n")
    done = farfield("evaluate", "twice.txt", "base.trec", "--json", cwd=folder)
    assert done.status == 0
    assert done.json["queries"] == 2
    assert done.err == (
        "note: twice.txt: 1 judgement is repeated with the same relevance; each is counted once.\n"
    )


def test_a_fault_of_ours_shows_no_traceback(folder):
    code = (
        "import sys, farfield.questions.evaluate as e\n"
        "e.evaluate = lambda *a, **k: 1 / 0\n"
        "sys.argv = ['farfield', 'evaluate', 'qrels.txt', 'base.trec']\n"
        "from farfield.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 70
    assert "internal error: ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


FOLDERS = {"index", "train", "run", "multi-source"}  # what these write with -o


def files_to_write() -> list[tuple[str, str]]:
    """Every option of every command that names a file to write."""
    import typer

    from farfield.cli import app

    names = ("--output", "--figure", "--html", "--per-query", "--run", "--allocation", "--sheet")
    return [
        (name, option)
        for name, command in typer.main.get_command(app).commands.items()
        for parameter in command.params
        for option in parameter.opts
        if option in names and not (option == "--output" and name in FOLDERS)
    ]


@pytest.mark.parametrize(("command", "option"), files_to_write())
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_read(
    command, option, tmp_path
):
    import typer

    from farfield.cli import app
    from farfield.errors import FileError

    command = typer.main.get_command(app).commands[command]
    needed = [f"no-such-{p.name}" for p in command.params if p.required and p.opts[0][0] != "-"]
    suffix = ".html" if option in ("--figure", "--html") or command.name == "report" else ".csv"
    output = ["-o", "x.parquet"] if command.name == "search" and option != "--output" else []
    refused = {
        tmp_path / "x.doc": "the suffix '.doc' stands for no",
        tmp_path / "no" / f"x{suffix}": "cannot be written: there is no folder",
        tmp_path / f"folder{suffix}": "cannot be written: this is a folder",
    }
    if suffix == ".html":
        refused[tmp_path / "x.html.gz"] = "the suffix '.gz' stands for no"
    for file, message in refused.items():
        (tmp_path / f"folder{suffix}").mkdir(exist_ok=True)
        with pytest.raises(FileError, match=message):
            command.main([*needed, *output, option, str(file)], standalone_mode=False)


def test_suffixes_in_capitals_are_suffixes(farfield, folder):
    files = {"-o": "T.CSV", "--per-query": "P.PARQUET", "--html": "R.HTML"}
    arguments = [argument for pair in files.items() for argument in pair]
    assert farfield("evaluate", "qrels.txt", "base.trec", *arguments, cwd=folder).status == 0
    for name in files.values():
        assert (folder / name).stat().st_size > 0
        (folder / name).unlink()
