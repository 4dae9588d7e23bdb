"""Progress: bars for people, lines for logs, nothing for anybody else."""

from __future__ import annotations

import pytest

from farfield import progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def logged():
    progress.log(10.0)
    yield
    progress.log(None)


def test_nobody_asked(capfd):
    with progress.counting(5, "counting") as count:
        count(1)
    assert list(progress.track([1, 2, 3], "tracking")) == [1, 2, 3]
    assert capfd.readouterr() == ("", "")


def test_lines_say_how_far_how_fast_and_how_long(clock, logged, capfd):
    with progress.counting(1_200, "training") as count:
        clock[0] += 9
        count(1)
        assert capfd.readouterr().err == ""  # not yet
        clock[0] += 1
        count(99, "training, loss 0.500")
        assert capfd.readouterr().err == (
            "training, loss 0.500: 100 of 1,200, 10.0/s, 110 s left\n"
        )
        clock[0] += 9
        count(1)
        assert capfd.readouterr().err == ""


def test_what_was_done_before_says_nothing_of_the_rate(clock, logged, capfd):
    with progress.counting(1_000, "training", done=900) as count:
        clock[0] += 10
        count(50)
    assert capfd.readouterr().err == "training: 950 of 1,000, 5.0/s, 10 s left\n"


def test_tracked_things_have_lines_too(clock, logged, capfd):
    for item in progress.track(["a", "b", "c", "d"], "reading"):
        clock[0] += 20 if item == "b" else 0
    assert capfd.readouterr().err == "reading: 2 of 4, 0.1/s, 20 s left\n"
