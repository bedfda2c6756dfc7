"""Ground friction from slides: exact slides, stand-ins with noise, and real ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from carom.core.constants import GRAVITY
from carom.core.errors import RecordingError
from carom.engines.patch import drag, patch_of
from carom.identify import friction_from_slides
from carom.identify.strikes.slides import SlideFriction
from carom.reality import SETTINGS, sample_commands, standin
from carom.recordings import Recordings, Trajectory, read
from carom.scenes.shapes import Body, Shape

BLOCK = Body("block", "target", Shape("box", size=(0.1, 0.1, 0.05)), mass=0.3)


def sliding(spin: float, *, mu: float = 0.3, size: float = 1.0, noise: float = 1e-4, seed: int = 0) -> Trajectory:
    """A block set going at 0.8 m/s after 0.2 s of rest, integrated finely with the patch model, sampled at 200 Hz."""
    patch, step = patch_of(BLOCK), 5e-4
    pose, velocity = np.zeros(3), np.array([0.8, 0.1, spin])
    path = [pose]
    k = BLOCK.gyration_radius
    for _ in range(1600):
        direction, lever = drag(patch, pose[2:], velocity[None], size)
        change = -mu * GRAVITY * np.array([*direction[0], lever[0] / k**2]) * step
        stopped = np.linalg.norm(velocity[:2]) < 2 * np.linalg.norm(change[:2])
        velocity = np.zeros(3) if stopped else velocity + change
        pose = pose + velocity * step
        path.append(pose)
    samples = np.concatenate([np.zeros((40, 3)), np.array(path)[::10]])
    samples = samples + np.random.default_rng(seed).normal(0, [noise, noise, 10 * noise], samples.shape)
    time = np.arange(len(samples)) * 0.005
    quaternion = np.stack([np.cos(samples[:, 2] / 2), 0 * time, 0 * time, np.sin(samples[:, 2] / 2)], axis=-1)
    position = np.c_[samples[:, :2], np.full(len(time), 0.025)]
    name = f"slide_{seed}.csv"
    return Trajectory(name, Path(name), time, {"block": position}, {"block": quaternion}, {"block": BLOCK})


def folder(*trajectories: Trajectory) -> Recordings:
    return Recordings(Path("slides"), {"block": BLOCK}, trajectories, gravity=GRAVITY)


@pytest.mark.parametrize("spin", [0.0, 12.0])
def test_friction_does_not_depend_on_spin(spin):
    found = friction_from_slides(folder(*(sliding(spin, seed=s) for s in range(4))))
    assert found.friction == pytest.approx(0.3, rel=0.03)
    assert found.slides == 4
    low, high = found.interval()
    assert low < found.friction < high


def test_torsional_friction_of_a_smaller_patch():
    found = friction_from_slides(folder(*(sliding(12.0, size=0.7, seed=s) for s in range(4))))
    assert found.friction == pytest.approx(0.3, rel=0.03)
    assert found.torsion_length == pytest.approx(0.7 * found.patch_length, rel=0.08)
    # mean distance from the middle of a square of side a: a (sqrt 2 + asinh 1) / 6
    assert found.patch_length == pytest.approx(0.1 * (np.sqrt(2) + np.arcsinh(1)) / 6, rel=0.02)


def test_no_spin_no_torsion():
    found = friction_from_slides(folder(*(sliding(0.0, seed=s) for s in range(3))))
    assert np.isnan(found.torsion_length)


def test_a_disturbed_slide_is_left_out_and_named():
    odd = sliding(3.0, mu=0.6, seed=9)
    found = friction_from_slides(folder(*(sliding(3.0, seed=s) for s in range(6)), odd))
    assert found.friction == pytest.approx(0.3, rel=0.03)
    assert [name for name, _ in found.skipped] == ["slide_9.csv"]
    assert "something else acts on it" in found.skipped[0][1]


@pytest.mark.parametrize(
    ("setting", "shape"), [("resin-high", "square"), ("nylon-low", "semi-cylinder"), ("petg-cf-low", "triangle")]
)
def test_stand_ins_are_recovered(setting, shape, tmp_path):
    lab = standin(setting, shape, seed=0)
    commands = sample_commands(lab.shape, 10, np.random.default_rng(3))
    found = friction_from_slides(read(lab.execute(commands, tmp_path / "hits", seed=1)))
    assert found.friction == pytest.approx(SETTINGS[setting].ground_friction, rel=0.05)
    assert found.torsion_length == pytest.approx(found.patch_length, rel=0.15)  # their pressure is nearly even


@pytest.mark.parametrize("name", ["D1", "D2"])
def test_robot_hits(name, shared_data):
    recordings = read(shared_data / "robot_hits" / name)
    found = friction_from_slides(replace(recordings, trajectories=recordings.trajectories[:15]))
    assert 0.12 < found.friction < 0.25
    assert found.friction_std < 0.1 * found.friction
    assert 0.3 < found.torsion_length / found.patch_length < 1.1


def test_recordings_without_slides_are_refused():
    still = sliding(0.0, mu=50.0)
    with pytest.raises(RecordingError, match="no slide to take ground friction from"):
        friction_from_slides(folder(still))


def test_the_interval_counts_how_few_slides_there_are_and_what_all_of_them_share():
    each = np.full(3, 0.2)
    few = SlideFriction(0.2, 1e-6, np.nan, np.nan, 3, (), np.nan, each, ("a", "b", "c"))
    low, high = few.interval()
    assert (high - low) / 2 == pytest.approx(
        2.92 * 0.01 * 0.2, rel=1e-3
    )  # Student's factor of two freedoms, one percent
    many = replace(few, slides=40)
    assert np.ptp(many.interval()) < 0.6 * np.ptp(few.interval())
    assert replace(few, friction_std=0.1).interval()[0] == 0.0
