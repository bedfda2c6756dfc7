"""The clock and the jobs of the benchmark of trainings; training itself is tested in tests/train."""

import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom.bench import training_time
from carom.bench.results import summarise
from carom.bench.training_time import (
    AFTER,
    CANDIDATES,
    CHOSEN,
    COMPARED,
    FORMER,
    MARKS,
    RANDOMISED,
    SETTINGS,
    _Curve,
    jobs,
    remarks,
    rows_of,
)
from carom.reality import ALL_SETTINGS


def test_quick_is_trained_everywhere_and_the_others_where_they_are_compared():
    found = jobs(3)
    assert len(set(found)) == len(found)
    for setting in ("nylon-padded", "nylon-low"):
        assert [draw for name, on, draw in found if (name, on) == (CHOSEN, setting)] == [0, 1, 2]
    for name in (FORMER, RANDOMISED):
        assert [draw for other, on, draw in found if (other, on) == (name, COMPARED[0])] == [0, 1, 2]
    others = {name for name, _, _ in found} - {CHOSEN, RANDOMISED}
    assert {FORMER, "ppo-large"} <= others <= set(CANDIDATES)
    assert all({on for name, on, _ in found if name == other} == set(COMPARED) for other in others)
    assert {stand_in for stand_in, _ in SETTINGS.values()} <= set(ALL_SETTINGS)


class Clock:
    """Seconds of the processor, as a test says."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(training_time, "process_time", clock)
    monkeypatch.setattr(training_time, "policy_of", lambda learner: learner)
    return clock


def test_trials_stop_the_clock_and_the_last_mark_the_training(clock, monkeypatch):
    curve = _Curve(None, None, 0)

    def tried(self, policy):
        clock.now += 7.0  # trials take long
        return 0.5, 0.25

    monkeypatch.setattr(_Curve, "rates", tried)
    curve.begin("a learner")
    for _ in range(11):
        curve.look("train", 0, 1)
        clock.now += 1.0
    assert curve.found == {10: (0.5, 0.25)}
    assert curve.seconds() == 11.0  # of training
    clock.now += MARKS[2] - 11.0  # one update went beyond the second mark
    curve.look("train", 0, 1)
    assert sorted(curve.found) == [MARKS[0], MARKS[2]]
    clock.now += AFTER
    with pytest.raises(KeyboardInterrupt):
        curve.look("train", 0, 1)
    assert not curve.left


def test_rows_say_when_and_where():
    rows = rows_of("nylon-low", "quick", {20: (0.9, 1.0), 10: (0.1, 0.2)}, {"training-seconds": 40.0})
    assert [(r["setting"], r["metric"], r["value"]) for r in rows] == [
        ("nylon-low, 10 s", "success-rate", 0.1),
        ("nylon-low, 10 s", "in-simulator-success-rate", 0.2),
        ("nylon-low, 20 s", "success-rate", 0.9),
        ("nylon-low, 20 s", "in-simulator-success-rate", 1.0),
        ("nylon-low", "training-seconds", 40.0),
    ]


def test_what_was_left_out_is_named():
    rows = summarise(
        [{"setting": "nylon-low", "method": name, "metric": "transitions", "value": 1.0} for name in (CHOSEN, FORMER)]
    )
    (said,) = remarks(rows)
    assert "ppo-large" in said
    assert RANDOMISED in said
    assert FORMER not in said
