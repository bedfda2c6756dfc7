"""Jobs and intervals of the benchmark of policies; training itself is tested in tests/train."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom.bench.routes import METHODS, REALITIES, TOGETHER, _preset, jobs, widened
from carom.reality import ALL_SETTINGS


def test_every_simulator_is_trained_in_with_every_seed_and_the_papers_preset_once():
    found = jobs(3)
    assert len(set(found)) == len(found)
    for method in METHODS:
        assert {d for on, m, d, preset in found if (on, m, preset) == (REALITIES[0], method, "fast")} == {0, 1, 2}
    assert {m for _, m, _, preset in found if preset == "paper"} == {"hybrid", "mujoco"}
    for easier in REALITIES[1:]:
        assert [(m, d) for on, m, d, _ in found if on == easier] == [("hybrid", 0), ("mujoco", 0)]


def test_every_reality_is_a_stand_in_and_the_first_the_one_made_harder():
    assert set(REALITIES) <= set(ALL_SETTINGS)
    assert REALITIES[0] == "nylon-padded"


def test_the_papers_preset_updates_once_for_each_transition():
    paper = _preset("paper")
    assert (paper.envs, paper.updates, paper.gamma, paper.batch) == (TOGETHER, TOGETHER, 0.99, 256)


def _rows(metric, values, method="hybrid"):
    return [{"setting": "route-1", "method": method, "metric": metric, "value": v} for v in values]


def test_intervals_are_the_wider_of_trials_and_seeds():
    scattered = [
        *_rows("success-rate", (0.5, 0.6, 0.7)),
        *_rows("success-rate-low", (0.4, 0.5, 0.6)),
        *_rows("success-rate-high", (0.6, 0.7, 0.8)),
    ]
    ends = {row["metric"]: row["value"] for row in widened(scattered)}
    half = 4.302653 * 0.1 / np.sqrt(3)  # Student's t for 2 degrees of freedom
    assert ends["success-rate-low"] == pytest.approx(0.6 - half, abs=1e-6)
    assert ends["success-rate-high"] == pytest.approx(0.6 + half, abs=1e-6)
    alike = [
        *_rows("success-rate", (1.0,) * 3),
        *_rows("success-rate-low", (0.96,) * 3),
        *_rows("success-rate-high", (1.0,) * 3),
    ]
    ends = {row["metric"]: row["value"] for row in widened(alike)}
    assert (ends["success-rate-low"], ends["success-rate-high"]) == (0.96, 1.0)
    assert widened(_rows("total-s", (3.0,))) == _rows("total-s", (3.0,))
