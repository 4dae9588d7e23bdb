"""Members from files, entry points and notebooks; no name is taken twice."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import dataclass

import pytest

from farfield import measures
from farfield.errors import SpecError
from farfield.measures import Measure

PLUGIN = """
from dataclasses import dataclass
from farfield.measures.base import Measure

@dataclass(frozen=True, kw_only=True)
class {name}(Measure):
    '''The number of judged documents found, for the test of entry points.'''
    bounded = False
    factor: int = 1

    def _values(self, judged):
        return self.factor * judged.total(judged.within(self.cutoff))
"""


def install(folder, package: str, entries: dict[str, str], source: str) -> None:
    """Put a package with entry points where Python finds it, as pip would."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{package}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "\n".join(f"{name} = {target}" for name, target in entries.items())
    (info / "entry_points.txt").write_text(f"[farfield.measures]\n{lines}\n")


def run(folder, code: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_a_package_adds_a_measure_by_entry_point(tmp_path):
    install(tmp_path, "found_docs", {"Found": "found_docs:Found"}, PLUGIN.format(name="Found"))
    done = run(
        tmp_path,
        """
        import farfield
        from farfield import measures
        assert "Found" in measures.names()
        member = measures.parse("Found(factor=3)@2")
        assert str(member) == "Found(factor=3)@2" and measures.parse(str(member)) == member
        qrels, run = {"q": {"a": 1, "b": 0, "c": 1}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
        answer = farfield.evaluate(farfield.Qrels(qrels), farfield.Run(run), ["Found(factor=3)@2"])
        print(answer.per_query.frame["value"][0])
        """,
    )
    assert done.stdout == "6.0\n", done.stderr


@pytest.mark.parametrize(
    ("entries", "source", "message"),
    [
        ({"nDCG": "bad_pack:nDCG"}, PLUGIN.format(name="nDCG"), "a name that farfield uses itself"),
        ({"ndcg": "bad_pack:ndcg"}, PLUGIN.format(name="ndcg"), "a name that farfield uses itself"),
        ({"Found": "bad_pack:Missing"}, PLUGIN.format(name="Found"), "cannot be loaded"),
        ({"Found": "bad_pack:Found"}, "raise RuntimeError('no')", "cannot be loaded: RuntimeError"),
        ({"Other": "bad_pack:Found"}, PLUGIN.format(name="Found"), "registered as 'Other'"),
        ({"Found": "bad_pack:Found"}, "class Found: pass", "is not a Measure"),
        (
            {"Found": "bad_pack:Found"},
            "from farfield.measures import Measure\nclass Found(Measure): pass",
            "is not a frozen dataclass",
        ),
    ],
)
def test_a_bad_package_is_refused_by_name(tmp_path, entries, source, message):
    install(tmp_path, "bad_pack", entries, source)
    done = run(tmp_path, "from farfield import measures; measures.names()")
    if "frozen" not in message:
        assert "bad_pack" in done.stderr
    assert "SpecError" in done.stderr
    assert message in done.stderr


def test_a_shipped_name_cannot_be_shadowed(tmp_path):
    install(tmp_path, "shadow", {"RR": "shadow:RR"}, PLUGIN.format(name="RR"))
    done = run(
        tmp_path,
        "from farfield import measures; print(type(measures.parse('RR@10')).__module__)",
    )
    assert done.stdout == "farfield.measures.rr\n"


def test_two_packages_with_one_name_are_refused(tmp_path):
    install(tmp_path / "1", "first_one", {"Found": "first_one:Found"}, PLUGIN.format(name="Found"))
    install(
        tmp_path / "2", "second_one", {"Found": "second_one:Found"}, PLUGIN.format(name="Found")
    )
    done = run(
        tmp_path,
        f"""
        sys.path[:0] = [{str(tmp_path / "1")!r}, {str(tmp_path / "2")!r}]
        from farfield import measures
        measures.parse("Found")
        """,
    )
    assert "two packages (first_one and second_one) add a measure called 'Found'" in done.stderr


def test_a_notebook_adds_a_measure_and_may_run_the_cell_again(own_members):
    def cell():
        @measures.add
        @dataclass(frozen=True, kw_only=True)
        class Half(Measure):
            """One half, whatever the ranking."""

            def _values(self, judged):
                return judged.total(judged.relevance) * 0 + 0.5

        return Half

    first, second = cell(), cell()
    assert measures.get("Half") is second
    assert first is not second
    assert "Half" in measures.names()


def test_a_notebook_cannot_take_a_name_that_is_taken(own_members):
    with pytest.raises(SpecError, match="measure 'RR' exists already"):

        @measures.add
        @dataclass(frozen=True, kw_only=True)
        class RR(Measure):
            """Not that one."""


def test_a_class_that_is_no_member_is_refused_at_the_door():
    with pytest.raises(SpecError, match="is not a Measure"):
        measures.add(dict)  # type: ignore[type-var]
    with pytest.raises(SpecError, match="is not a frozen dataclass"):

        @measures.add
        class Plain(Measure):
            """Without the decorator."""
