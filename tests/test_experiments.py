"""Experiments: manifests, steps that are never repeated, failures that name themselves."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import farfield as ff
from farfield import experiments, lab
from farfield.errors import FileError, InputError
from farfield.experiments import engine, workers
from farfield.experiments.kinds import KINDS
from farfield.experiments.steps import plan
from farfield.experiments.tables import in_short, together
from farfield.experiments.workers import Processes, ShortOfMemory, Task, carry_out

MANIFEST = """
collection = "lab"
shifts = ["resttest(buckets=2)", "length()"]
measures = ["nDCG@10"]
depth = 50

[systems]
plain = "bm25()"
flat = "bm25(b=0.0)"

[fusions]
both = { fusion = "rrf(k=10)", of = ["plain", "flat"] }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("home")
    made = lab.make(passages=300, train=200, test=100, seed=1).collection
    ff.write_collection(made, place / "lab")
    (place / "experiment.toml").write_text(MANIFEST)
    return place


@pytest.fixture(scope="module")
def finished(home) -> engine.Outcome:
    return engine.run(experiments.read(home / "experiment.toml"), home / "run")


def labels(experiment, place) -> list[str]:
    return [one.step.label for one in engine.survey(experiment, place)]


# -- carrying it out ----------------------------------------------------------------------------


def test_every_step_is_done_and_untrained_systems_lose_nothing(finished, home):
    assert not finished.failed and not finished.skipped  # noqa: PT018
    tables = finished.tables()
    table = tables["table"]
    assert set(table["shift"]) == {"resttest(buckets=2)", "length()"}
    assert set(table["system"]) == {"plain", "flat", "both"}
    assert (table["delta"] == 0).all()
    # The same as asking the library directly.
    made = ff.read_collection(home / "lab")
    run = ff.search("bm25()", made.queries_of("test"), 50, corpus=made)
    direct = ff.evaluate(made.qrels["test"], run, ["nDCG@10"]).summary["mean"][0]
    mine = table.filter((pl.col("system") == "plain") & (pl.col("average") == "micro"))
    assert mine["near"].to_list() == pytest.approx([direct, direct])


def test_groups_are_held_against_similarity_over_all_shifts(finished):
    tables = finished.tables()
    assert tables["points"].select("shift", "group").n_unique() == 4
    assert set(tables["points"]["indicator"]) == {"jaccard", "r"}
    assert tables["by_similarity"]["rel_loss"].to_list() == [0.0] * len(tables["by_similarity"])
    assert not len(tables["correlations"])  # of systems that lose nothing


def test_tables_of_several_shifts_are_correlated_together():
    """Three groups of one shift and three of another, whose losses follow their similarity."""
    similar = [0.1, 0.4, 0.6, 0.2, 0.5, 0.9]
    points = pl.DataFrame(
        {
            "shift": ["one"] * 3 + ["two"] * 3,
            "group": list("abcabc"),
            "system": "dense",
            "measure": "RR",
            "indicator": "r",
            "nearer": True,
            "value": similar,
            "relative": similar,
            "rel_loss": [0.5 - x / 2 for x in similar],
        }
    )
    found = together({"points": points})
    assert set(found["correlations"]["shift"]) == {"all shifts"}
    assert found["correlations"]["n"].unique().to_list() == [6]
    assert found["correlations"]["value"].to_list() == pytest.approx([-1.0, -1.0])
    _, said = in_short(found)
    assert "over 6 groups those that are farther lose more (Spearman -1.00, p 0.0" in said[0]


def test_without_indicators_there_is_no_similarity(home, tmp_path):
    (home / "none.toml").write_text(MANIFEST.replace("depth = 50", "indicators = []"))
    outcome = engine.run(
        experiments.read(home / "none.toml"), tmp_path / "run", only="shift*", workers=Here()
    )
    assert not any("distance" in label for label in outcome.done)


class Here:
    """Workers that do everything in this process, one thing after the other."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def room(self, running: int) -> bool:
        return running == 0

    def submit(self, task: Task) -> Future[str]:
        self.tasks.append(task)
        done: Future[str] = Future()
        done.set_result(carry_out(task))
        return done

    def fewer(self, than: int) -> None:
        raise AssertionError("nothing here is short of memory")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_other_workers_give_the_same_tables(finished, home, tmp_path):
    here = Here()
    outcome = engine.run(experiments.read(home / "experiment.toml"), tmp_path / "run", workers=here)
    assert {task.kind for task in here.tasks} >= {"collection", "distance", "nearfar"}
    ours, theirs = outcome.tables(), finished.tables()
    assert list(ours) == list(theirs)
    assert all(ours[name].equals(theirs[name]) for name in ours)


class Narrow(Processes):
    """Processes with memory for so many steps at a time: what is one too many says so."""

    def __init__(self, memory: int) -> None:
        super().__init__(3)
        self.memory, self.shortages = memory, 0
        self.running: set[Future[str]] = set()

    def submit(self, task: Task) -> Future[str]:
        self.running = {job for job in self.running if not job.done()}
        if len(self.running) < self.memory:
            job = super().submit(task)
            self.running.add(job)
        else:
            self.shortages += 1
            job = Future()
            job.set_exception(ShortOfMemory("OutOfMemoryError: CUDA out of memory"))
        return job


def test_a_step_short_of_memory_is_done_with_fewer_beside_it(finished, home, tmp_path):
    narrow, told = Narrow(memory=1), []
    experiment = experiments.read(home / "experiment.toml")
    outcome = engine.run(experiment, tmp_path / "run", jobs=3, workers=narrow, tell=told.append)
    assert not outcome.failed
    assert sum("too little memory" in line for line in told) == narrow.shortages > 0
    assert not narrow.room(1)  # one at a time from then on
    assert outcome.tables()["table"].equals(finished.tables()["table"])


def test_several_short_of_memory_at_once_count_as_one():
    with Processes(6) as processes:
        for _ in range(3):
            processes.fewer(than=6)
        assert processes.room(3)
        assert not processes.room(4)
        processes.fewer(than=1)
        assert processes.room(0)
        assert not processes.room(1)


def test_after_steps_that_went_well_one_more_is_tried(monkeypatch):
    well, short = Future(), Future()
    well.set_result("")
    short.set_exception(ShortOfMemory("CUDA out of memory"))
    with Processes(3) as processes:

        def carry_out(*jobs: Future[str]) -> None:
            left = iter(jobs)
            monkeypatch.setattr(processes._pool, "submit", lambda *_: next(left))
            for _ in jobs:
                processes.submit(Task("", "fuse", "fuse-0", {}, {}))

        processes.fewer(than=3)
        carry_out(*[well] * 5, short, *[well] * 5)
        assert not processes.room(2)  # never six in a row
        carry_out(well)
        assert processes.room(2)
        carry_out(*[well] * 20)
        assert not processes.room(3)  # no more than there are processes


def test_nothing_begins_beside_others_when_memory_is_short(monkeypatch):
    with Processes(2) as processes:
        monkeypatch.setattr(workers, "_memory_is_short", lambda: True)
        assert processes.room(0)
        assert not processes.room(1)


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="needs /proc")
@pytest.mark.parametrize(("spare", "short"), [((0.0, 0.0), False), ((1e18, 1.0), True)])
def test_memory_is_short_when_less_is_free_than_should_be(spare, short, monkeypatch):
    monkeypatch.setattr(workers, "_SPARE", spare)
    assert workers._memory_is_short() == short


def test_a_step_that_is_short_of_memory_alone_has_failed(home, tmp_path):
    experiment = experiments.read(home / "experiment.toml")
    outcome = engine.run(experiment, tmp_path / "run", jobs=3, workers=Narrow(memory=0))
    assert outcome.failed == {"read the collection": "OutOfMemoryError: CUDA out of memory"}


def raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError("no room"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("shapes do not match"), False),
        (
            InputError("the model cannot be loaded (AcceleratorError: CUDA error: out of memory)"),
            True,
        ),
        (raised_from(InputError("the model cannot be loaded"), MemoryError()), True),
        (InputError("the model cannot be loaded"), False),
    ],
)
def test_want_of_memory_is_told_from_other_failures(error, short, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setitem(KINDS, "fuse", fail)
    task = Task(str(tmp_path), "fuse", "fuse-0", {}, {})
    message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    if short:
        with pytest.raises(ShortOfMemory, match=re.escape(message)) as raised:
            carry_out(task)
        assert raised.value.__context__ is None  # which would keep the memory of the step
    else:
        assert carry_out(task) == message
    assert not (tmp_path / "steps" / "fuse-0" / "done.json").exists()


def test_the_directory_says_what_was_done(finished, home):
    place = home / "run"
    assert (place / "experiment.toml").read_text() == MANIFEST
    resolved = json.loads((place / "resolved.json").read_text())
    assert resolved["format"] == 1
    assert resolved["systems"]["plain"] == "bm25()"
    assert resolved["seeds"] == [0]
    assert "polars" in resolved["versions"]
    for folder in (place / "steps").iterdir():
        record = json.loads((folder / "done.json").read_text())
        assert record["seconds"] >= 0
        assert (place / "logs" / f"{folder.name}.log").exists()


def test_finished_steps_are_not_repeated(finished, home):
    again = engine.run(experiments.read(home / "experiment.toml"), home / "run")
    assert again.done == []
    assert sorted(again.reused) == sorted(finished.done)
    assert all(
        one.done for one in engine.survey(experiments.read(home / "experiment.toml"), home / "run")
    )


def test_a_change_repeats_only_what_depends_on_it(finished, home, tmp_path):
    place = shutil.copytree(home / "run", tmp_path / "moved")  # a directory may be moved
    (home / "other.toml").write_text(MANIFEST.replace("nDCG@10", "RR@10"))
    changed = engine.run(experiments.read(home / "other.toml"), place)
    assert {label.split(",")[0] for label in changed.done} == {"near and far"}
    (home / "third.toml").write_text(MANIFEST.replace("b=0.0", "b=0.1"))
    third = engine.run(experiments.read(home / "third.toml"), place)
    kinds = {label.split()[0] for label in third.done}
    assert kinds == {"index", "search", "fuse", "near"}
    assert "search plain" not in third.done


def test_keys_name_all_that_decides_a_result(home):
    experiment = experiments.read(home / "experiment.toml")

    def keys(source: str) -> set[str]:
        return {step.key for step in plan(experiment, source, lambda _: ["0", "1"], lambda _: [])}

    assert keys("a") == keys("a")
    assert not keys("a") & keys("b")  # everything comes from the collection


def test_it_does_not_matter_where_the_collection_lies(finished, home, tmp_path):
    shutil.copytree(home / "lab", tmp_path / "lab")
    shutil.copytree(home / "run", tmp_path / "run")
    shutil.copy(home / "experiment.toml", tmp_path)
    outcome = engine.run(experiments.read(tmp_path / "experiment.toml"), tmp_path / "run")
    assert not outcome.done


def test_it_does_not_matter_where_models_lie_but_what_they_are(home, tmp_path):
    def keys(folder: str, content: str) -> dict[str, str]:
        model = tmp_path / folder
        model.mkdir(exist_ok=True)
        (model / "config.json").write_text(content)
        trained = f'flat = {{ recipe = "contrastive()", base = "{model}" }}'
        text = MANIFEST.replace('flat = "bm25(b=0.0)"', trained)
        text = text.replace('plain = "bm25()"', f"plain = \"dense(model='{model}')\"")
        (home / "models.toml").write_text(text)
        experiment = experiments.read(home / "models.toml")
        steps = plan(experiment, "a", lambda _: ["0"], partial(engine._models, Path()))
        return {step.label: step.key for step in steps}

    one, moved, other = keys("one", "{}"), keys("two", "{}"), keys("one", '{"a": 1}')
    assert one["train flat, fold 0"] == moved["train flat, fold 0"]
    for label in ("train flat, fold 0", "index plain"):
        assert one[label] != other[label]


def test_paths_in_specs_count_from_the_manifest(home, tmp_path):
    shutil.copytree(home / "lab", tmp_path / "lab")
    (tmp_path / "empty").mkdir()
    text = MANIFEST.replace('plain = "bm25()"', "plain = \"dense(model='empty')\"")
    (tmp_path / "experiment.toml").write_text(text)
    experiment = experiments.read(tmp_path / "experiment.toml")
    outcome = engine.run(experiment, tmp_path / "run", only="index plain", workers=Here())
    assert outcome.failed["index plain"].startswith("empty: this folder holds no model")


def test_the_base_is_part_of_what_decides_a_model(home):
    def keys(base: str) -> set[str]:
        trained = f'flat = {{ recipe = "contrastive()", base = "{base}" }}'
        (home / "bases.toml").write_text(MANIFEST.replace('flat = "bm25(b=0.0)"', trained))
        experiment = experiments.read(home / "bases.toml")
        steps = plan(experiment, "a", lambda _: ["0"], partial(engine._models, Path()))
        return {step.key for step in steps if step.kind == "train"}

    assert not keys("scratch(layers=1)") & keys("scratch(layers=2)")


def test_indicators_and_pictures_change_no_key_of_what_is_trained_and_searched(home):
    trained = 'flat = { recipe = "contrastive()" }'
    text = MANIFEST.replace('flat = "bm25(b=0.0)"', trained)

    def keys(extra: str) -> dict[str, set[str]]:
        (home / "keys.toml").write_text(text.replace("depth = 50", f"depth = 50\n{extra}"))
        steps = plan(
            experiments.read(home / "keys.toml"), "a", lambda _: ["0", "1"], lambda _: ["x"]
        )
        found: dict[str, set[str]] = {}
        for step in steps:
            found.setdefault(step.kind, set()).add(step.key)
        return found

    plain, more = keys("indicators = []"), keys("pictures = true")
    assert set(more) - set(plain) == {"distance", "picture"}
    assert len(more["picture"]) == 2  # one for each shift
    changed = {kind for kind in plain if plain[kind] != more[kind]}
    assert changed == {"nearfar"}


def test_a_number_of_training_queries_changes_the_keys_of_its_own_steps_alone(home):
    trained = 'flat = { recipe = "contrastive()" }\nfew = { recipe = "contrastive()" }'
    text = MANIFEST.replace('flat = "bm25(b=0.0)"', trained)

    def planned(most: str):
        (home / "most.toml").write_text(text.replace('()" }\nfew', f'()"{most} }}\nfew'))
        experiment = experiments.read(home / "most.toml")
        return experiment, plan(experiment, "a", lambda _: ["0", "1"], lambda _: ["x"])

    (plain, before), (limited, after) = planned(""), planned(", most = 50")
    assert not any("most" in step.spec for step in before)
    assert plain.to_dict()["systems"]["flat"] == {"recipe": "contrastive()", "base": "scratch()"}
    assert limited.to_dict()["systems"]["flat"]["most"] == 50
    changed = {new.label for old, new in zip(before, after, strict=True) if old.key != new.key}
    assert any(label.startswith("train flat") for label in changed)
    assert not any("few" in label or "plain" in label or "shift" in label for label in changed)
    assert {step.spec["most"] for step in after if "most" in step.spec} == {50}


def test_only_some_steps(home, tmp_path):
    experiment = experiments.read(home / "experiment.toml")
    outcome = engine.run(experiment, tmp_path / "run", only="index flat", workers=Here())
    assert "index flat" in outcome.done
    assert not any(label.startswith(("search", "near")) for label in outcome.done)
    assert not (tmp_path / "run" / "tables").exists()
    planned = engine.survey(experiment, tmp_path / "run", only="index flat")
    assert sorted(one.step.label for one in planned) == sorted(outcome.done)


def test_a_failed_step_names_itself_and_the_rest_goes_on(home, tmp_path, farfield):
    missing = "broken = \"expand(bm25(), file='missing.jsonl')\""
    (home / "broken.toml").write_text(
        MANIFEST.replace('flat = "bm25(b=0.0)"', missing).replace('"flat"]', '"broken"]')
    )
    done = farfield("run", home / "broken.toml", "-o", tmp_path / "run", "--keep-going")
    assert done.status == 1
    assert "index broken" in done.err
    assert "missing.jsonl" in done.err
    assert "Run the same command again" in done.err
    finished = [path.parent.name for path in (tmp_path / "run" / "steps").glob("*/done.json")]
    assert any(name.startswith("search") for name in finished)
    # The cause removed, the same command goes on.
    repaired = (home / "broken.toml").read_text().replace(missing, 'broken = "bm25(k1=2.0)"')
    (home / "broken.toml").write_text(repaired)
    assert farfield("run", home / "broken.toml", "-o", tmp_path / "run").status == 0


def command(home: Path, place: Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "farfield",
        "run",
        str(home / "experiment.toml"),
        "-o",
        str(place),
    ]


def test_two_processes_in_one_directory(home, tmp_path, finished):
    place = tmp_path / "run"
    running = [
        subprocess.Popen(command(home, place), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in running:
        _, err = process.communicate(timeout=110)
        assert process.returncode == 0, err
    one, other = (pl.read_parquet(p / "tables" / "table.parquet") for p in (place, home / "run"))
    assert one.equals(other)


def test_what_another_process_is_at_is_left_to_it(finished, home, tmp_path):
    place, experiment = tmp_path / "run", experiments.read(home / "experiment.toml")
    planned = engine.survey(experiment, place)
    folder = next(one.step.folder for one in planned if one.step.label == "index plain")
    (place / "steps" / folder).mkdir(parents=True)
    shutil.copy(home / "run" / "resolved.json", place)
    begun: list[str] = []
    with open(place / "steps" / folder / "lock", "w") as lock:

        def let_go() -> None:
            fcntl.flock(lock, fcntl.LOCK_UN)

        def tell(line: str) -> None:
            begun.append(line)
            if line.startswith("index flat:"):
                let_go()

        fcntl.flock(lock, fcntl.LOCK_EX)
        at_the_latest = threading.Timer(30, let_go)
        at_the_latest.start()
        outcome = engine.run(experiment, place, tell=tell)
        at_the_latest.cancel()
    assert begun.index("index flat …") < begun.index("index plain …")
    assert outcome.tables()["table"].equals(finished.tables()["table"])


def test_killed_at_any_moment_it_continues(home, tmp_path, finished):
    place = tmp_path / "run"
    for delay in (0.9, 1.7, 2.6):
        process = subprocess.Popen(
            command(home, place),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    engine.run(experiments.read(home / "experiment.toml"), place)
    one, other = (pl.read_parquet(p / "tables" / "table.parquet") for p in (place, home / "run"))
    assert one.equals(other)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see children")
def test_when_only_the_first_process_is_killed_the_others_end(home, tmp_path):
    process = subprocess.Popen(
        [*command(home, tmp_path / "run"), "-j", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    threads = Path(f"/proc/{process.pid}/task")
    workers: list[str] = []
    deadline = time.monotonic() + 60
    while not any(is_worker(pid) for pid in workers):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
        workers = [pid for t in threads.glob("*/children") for pid in t.read_text().split()]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(is_worker(pid) for pid in workers):
        assert time.monotonic() < deadline, "workers outlive the process that began them"
        time.sleep(0.05)


def is_worker(pid: str) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_the_command_shows_the_plan_and_the_result(home, tmp_path, farfield):
    planned = farfield("run", home / "experiment.toml", "-o", tmp_path / "new", "--dry-run")
    assert planned.status == 0
    assert "read the collection" in planned.out
    assert "minutes" in planned.out
    assert not (tmp_path / "new").exists()
    document = farfield("run", home / "experiment.toml", "-o", home / "run", "--json").json
    assert document["failed"] == {}
    assert {row["system"] for row in document["tables"]["table"]} >= {"plain", "both"}


# -- manifests ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("collection = ", "this is not toml"),
        ("shifts = ['length()']\n[systems]\na = 'bm25()'", "collection is missing"),
        (MANIFEST.replace("shifts =", "shift ="), "no entry 'shift'. Did you mean 'shifts'"),
        (MANIFEST.replace("depth = 50", "depth = 'x'"), "depth is 'x', expected a whole number"),
        (MANIFEST.replace("depth = 50", "depth = 0"), "depth is 0"),
        (MANIFEST.replace("depth = 50", "seeds = [0, 0]"), "expected different whole numbers"),
        (MANIFEST.replace("buckets=2", "bucket=2"), "Did you mean 'buckets'"),
        (MANIFEST.replace('"length()"', '"resttest(buckets=2)"'), "is given twice"),
        (MANIFEST.replace("bm25(b=0.0)", "bm26()"), "systems.flat: no retriever is called 'bm26'"),
        (MANIFEST.replace('"bm25(b=0.0)"', "3"), "systems.flat is 3"),
        (
            MANIFEST.replace('"bm25(b=0.0)"', '{ recipe = "contrastive()", most = 0 }'),
            "systems.flat: most is 0, expected 1, 2, 3",
        ),
        (
            MANIFEST.replace('"bm25(b=0.0)"', '{ recipe = "contrastive()", most = true }'),
            "most is True",
        ),
        (MANIFEST.replace('"plain", "flat"]', '"plain", "flt"]'), "no system 'flt'"),
        (MANIFEST.replace("both =", "flat ="), "a system is called 'flat' too"),
        (MANIFEST.replace("rrf(k=10)", "oracle()"), "needs judgements"),
        (MANIFEST.replace("nDCG@10", "nDGC@10"), "measures"),
        (MANIFEST.replace("depth = 50", "indicators = ['jacard']"), "Did you mean 'jaccard'"),
        (MANIFEST.replace("depth = 50", "encoder = 'lsb()'"), "encoder: no encoder is called"),
        (MANIFEST.replace("depth = 50", "pictures = 1"), "pictures is 1, expected true or false"),
        (MANIFEST.replace("depth = 50", "pictures = true"), "no system is trained that has one"),
    ],
)
def test_a_bad_manifest_says_what_is_wrong(text, message, tmp_path):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(FileError, match=message.replace("(", r"\(")):
        experiments.read(tmp_path / "bad.toml")


def test_a_directory_of_something_else_is_refused(home, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(FileError, match="holds other files"):
        engine.run(experiments.read(home / "experiment.toml"), tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "precious"
    (tmp_path / "resolved.json").write_text('{"format": 99}')
    with pytest.raises(FileError, match="format 99"):
        engine.run(experiments.read(home / "experiment.toml"), tmp_path)
