"""`carom bench loop`: what it runs, and that a first round which several methods share is the same for all of them."""

from __future__ import annotations

import json

import pytest
from jobs import content

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom.bench.loop import METHODS, PUSHES, ROUNDS, _borrow, _bounded, config_of, jobs
from carom.core.errors import CaromError
from carom.loop import loop


def test_every_setting_has_the_issues_methods_with_as_many_real_pushes():
    for setting in ("planar-cube", "planar-t", "arm-cube", "arm-t"):
        own = {job.method for job in jobs(5) if job.place == setting}
        assert own == set(METHODS)
        configs = [config_of(job, 0) for job in jobs(5) if job.place == setting]
        assert {c.rounds * c.recordings for c in configs} == {ROUNDS * PUSHES}
    assert ROUNDS * PUSHES <= 60
    assert {job.seed for job in jobs(5) if job.setting == "planar-t"} == set(range(5))
    ten, six = (
        config_of(next(j for j in jobs(1) if j.method == m and j.setting == "strikes"), 0)
        for m in ("random-ten", "ensemble")
    )
    assert (ten.rounds * ten.recordings, six.rounds * six.recordings) == (10, 6)


def test_a_shared_first_round_is_what_a_method_would_have_made_itself(tmp_path):
    small = {"trials": 2, "recordings": 3, "held_out": 2, "rounds": 1, "training": {"steps": 64}}
    found = {}
    for job in (j for j in jobs(1) if j.method in ("task-only", "ensemble")):
        if job.setting == "strikes":
            continue
        config = type(config_of(job, 3)).model_validate({**config_of(job, 3).settings(), **small})
        with pytest.raises(CaromError, match="train the policy for longer"):  # one update teaches nobody to push
            loop(config, tmp_path / job.method)
        found[job.method] = content(tmp_path / job.method / "round-01")
    assert found["task-only"] == found["ensemble"]
    _borrow(tmp_path / "task-only", tmp_path / "infogap")
    assert content(tmp_path / "infogap" / "round-01") == found["task-only"]
    times = [json.loads(line) for line in (tmp_path / "infogap" / "times.jsonl").read_text().splitlines()]
    assert {row["round"] for row in times} == {1}
    assert {row["step"] for row in times} == {"tune", "train", "deploy"}


def test_a_ratio_has_the_interval_of_its_logarithm():
    values = [{"setting": "a", "method": "b", "metric": "gap-ratio", "value": v} for v in (1.0, 100.0)]
    rows = {row.metric: row.mean for row in _bounded(values)}
    assert rows["gap-ratio-low"] * rows["gap-ratio-high"] == pytest.approx(100.0)  # around the geometric mean of 10
