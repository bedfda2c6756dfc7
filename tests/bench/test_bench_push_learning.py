"""Jobs of the benchmark of pushes, and one piece with a training that is cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom.bench import push_learning
from carom.bench.benchmark import Options
from carom.bench.push_learning import ARM_SEEDS, TRAINED, jobs
from carom.scenes.pushing import OWN


def test_every_setting_has_its_seeds_and_someone_who_does_nothing() -> None:
    found = jobs(5)
    assert len(set(found)) == len(found)
    for setting, method in TRAINED:
        seeds = [draw for s, m, draw in found if (s, m) == (setting, method)]
        assert seeds == list(range(ARM_SEEDS if setting.startswith("arm") else 5))
    assert {s for s, m, _ in found if m == "stands-still"} == set(OWN)
    assert set(jobs(1)) < set(found)


def test_a_piece_is_measured_once_and_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"ppo": {**push_learning.STEPS["ppo"], "planar-cube": 4096}, "sac": push_learning.STEPS["sac"]}
    monkeypatch.setattr(push_learning, "STEPS", steps)
    monkeypatch.setattr("carom.train.pushing.STEPS", steps)
    monkeypatch.setattr(push_learning, "TRIALS", 8)
    options = Options(out=tmp_path, draws=1)
    first = push_learning._piece("planar-cube", "ppo", 0, options)
    told = {row["metric"]: row["value"] for row in first}
    assert told["transitions"] == 4096
    assert 0 < told["training-minutes"] < 5
    assert told["success-rate-low"] <= told["success-rate"] <= told["success-rate-high"]
    assert told["reached-rate"] >= told["success-rate"]
    assert push_learning._piece("planar-cube", "ppo", 0, options) == first  # trained once, its seconds kept
    still = {row["metric"]: row["value"] for row in push_learning._piece("planar-cube", "stands-still", 0, options)}
    assert still["success-rate"] == 0
    assert "training-minutes" not in still
