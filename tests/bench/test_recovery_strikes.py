"""Simulated strikes with known parameters, and the benchmark that looks for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from carom.bench import recovery_strikes, run_benchmark
from carom.bench.recovery_strikes import METHODS, RANGES, REALITIES, UNSEEN, recorded, truth_of
from carom.bench.results import read as read_results
from carom.bench.simulated_strikes import strike_in_mujoco
from carom.engines.mujoco.collide import Collider
from carom.reality import SHAPES
from carom.recipes.strikes import slides_of, usable_impacts
from carom.recordings import read, scene_of

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "recovery-strikes.json"
TRUTH = {
    "striker_friction": 0.2,
    "ground_friction": 0.25,
    "striker_damping": 0.2,
    "ground_damping": 1.0,
    "com_x": 0.0,
    "com_y": 0.0,
}


def test_truths_are_within_their_ranges_and_reproducible() -> None:
    for trial in range(30):
        shape, truth = truth_of(trial, 0)
        assert (shape, truth) == truth_of(trial, 0)
        assert truth != truth_of(trial, 1)[1]
        for name, (low, high, _) in RANGES.items():
            assert low <= truth[name] <= high, name


def test_recordings_show_what_mujoco_simulated(tmp_path: Path) -> None:
    recordings = read(strike_in_mujoco(SHAPES["square"], 0.3, 4, TRUTH, tmp_path / "strikes", seed=3))
    impacts, scene = usable_impacts(recordings), scene_of(recordings)
    assert len(impacts) == 4
    values = np.tile([TRUTH[p.name] for p in scene.parameters("mujoco")], (4, 1))
    post = Collider(scene, scene.parameters("mujoco"), threads=1).run(impacts.strikes, values).post
    scale = [1.0, 1.0, scene.gyration_radius]
    error = np.linalg.norm((impacts.post - post) * scale, axis=1) / np.linalg.norm(post * scale, axis=1)
    assert np.median(error) < 0.06  # noise, MuJoCo's scatter, and when contact is over
    slides = slides_of(recordings)
    assert slides is not None
    assert slides.friction == pytest.approx(TRUTH["ground_friction"], rel=0.03)


def test_the_truth_of_a_stand_in_is_what_it_was_made_with(tmp_path: Path) -> None:
    recordings, truth = recorded("stand-in", 1, 0, tmp_path / "strikes")
    assert set(truth) == {"striker_friction", "ground_friction", "com_x", "com_y"}
    _, drawn = truth_of(1, 0)
    assert truth["striker_friction"] == drawn["striker_friction"]
    bounds = {p.name: p.high for p in scene_of(recordings).parameters("mujoco")}
    assert all(abs(truth[name]) < bounds[name] for name in ("com_x", "com_y"))


def test_every_parameter_and_method_gets_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery_strikes, "METHODS", ("grid",))
    monkeypatch.setattr(recovery_strikes, "STRIKES", 4)
    results = run_benchmark("recovery-strikes", draws=1, out=tmp_path, threads=1)
    rows = {(row.setting, row.metric): row for row in results.rows}
    assert results.command == "carom bench recovery-strikes --draws 1"
    for reality in REALITIES:
        for name in ("striker_friction", "ground_friction", "com_x"):
            assert rows[f"{name}, {reality}", "identified"].mean in (0.0, 1.0)
            assert rows[f"{name}, {reality}", "error-percent"].mean >= 0
    assert rows[f"{UNSEEN}, MuJoCo", "refused"].mean == 1.0
    assert {row.method for row in results.rows} == {"grid"}


def test_stated_intervals_hold_the_truth() -> None:
    """Of what is called identified, where ten trials or more say so: 85 % by the default, of CMA-ES one trial less."""
    rows = [row for row in read_results(RESULTS).rows if row.metric == "covered-if-identified"]
    assert {row.method for row in rows} == set(METHODS)
    told = [row for row in rows if row.n >= 10]
    assert {row.setting for row in told} >= {"striker_friction, MuJoCo", "ground_friction, stand-in"}
    for row in told:
        assert row.mean >= (0.85 if row.method == "gradient" else 0.84), row
