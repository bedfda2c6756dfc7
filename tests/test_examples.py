"""The examples run, and do what they say."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from carom.loop import loop, read_config
from carom.scenes import load_scene
from carom.train import load_policy

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_ten_strikes():
    done = subprocess.run([sys.executable, EXAMPLES / "ten_strikes.py"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "10 strikes to learn from, 30 predicted" in done.stdout
    assert float(done.stdout.split("'accuracy@0.1': ")[1].split(",")[0]) > 0.5


def test_training_with_the_api_of_stable_baselines(tmp_path):
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    script = EXAMPLES / "train_policy.py"
    assert len(script.read_text().splitlines()) < 30
    done = subprocess.run([sys.executable, script, "192"], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "route 1, in the simulator itself: success rate" in done.stdout
    policy = load_policy(tmp_path / "out" / "policy")
    assert policy.act(np.zeros((2, 6))).shape == (2, 3)


def test_scene_of_ones_own():
    scene = load_scene(EXAMPLES / "my_scene.yaml")
    assert scene.striker.flat
    assert abs(scene.striker.width - 0.04) < 1e-12
    assert {p.name for p in scene.unknown} == {"face_tilt", "com_x", "com_y"}


def test_the_loop_of_the_examples(tmp_path):
    """Its file is as it should be, and runs; with fewer transitions than a policy needs."""
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    config = read_config(EXAMPLES / "planar_loop.yaml")
    assert (config.rounds, config.task, config.scene) == (3, "pushes", "planar-cube")
    small = {"rounds": 1, "recordings": 4, "held_out": 3, "trials": 2, "method": "random"}
    training = {**config.settings()["training"], "steps": 64}
    result = loop(config.model_validate({**config.settings(), **small, "training": training}), tmp_path / "out")
    assert result.rows[0]["recorded"] == 4
    assert result.report.is_file()
