"""Pushes that others recorded, poses alone: the tool is led, friction and its patch show, the mass does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded_pushes import poses_folder

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.engines.guided import GuidedSimulator
from carom.identify.pushes import Tuning, guided_scene, led_windows_of, tune
from carom.identify.pushes.led import smoothed
from carom.recordings import Ground, Recordings, Trajectory, read
from carom.recordings.kind import kind_of
from carom.scenes.pushing import GuidedScene
from carom.scenes.shapes import Body, Shape

BLOCK = Body("block", "target", Shape("box", size=(0.06, 0.06, 0.06)), mass=0.2)
TOOL = Body("tool", "tool", Shape("cylinder", radius=0.012, height=0.05))
SCENE = GuidedScene("led", BLOCK, TOOL)
TRUTH = {"ground_friction": 0.3, "striker_friction": 0.25, "pressure_spread": 0.6}


def led_pushes(count: int = 6, seed: int = 0) -> Recordings:
    """Pushes at 0.25 m/s that stop suddenly, by MuJoCo with known parameters, with a tracker's noise, at 200 Hz."""
    rng = np.random.default_rng(seed)
    ticks = 200
    since = SCENE.timestep * np.arange(1, ticks + 1)
    offset = rng.uniform(-0.02, 0.02, count)
    path = np.zeros((count, ticks, 3))
    path[..., 0] = -0.055 + 0.25 * np.minimum(since, 0.5)
    path[..., 1] = offset[:, None]
    yaw = rng.uniform(-0.3, 0.3, count)
    begin = np.column_stack([np.full(count, -0.055), offset, np.zeros(count)])
    start = SCENE.placed(np.column_stack([np.zeros((count, 2)), yaw]), begin)
    simulator = GuidedSimulator(SCENE, tuple(TRUTH), period=SCENE.timestep, threads=1)
    motion = simulator.replay(start, path[:, :, None], TRUTH)
    bodies, made = {"block": BLOCK, "tool": TOOL}, []
    for i in range(count):
        turn = 2 * np.arctan2(motion.quaternion[i, :, 0, 3], motion.quaternion[i, :, 0, 0])
        seen = motion.position[i, :, 0] + 1e-4 * rng.normal(size=(ticks + 1, 3))
        tool = np.column_stack([motion.joint_position[i, :, :2], np.full(ticks + 1, 0.03)])
        made.append(
            Trajectory(
                name=f"{i}.csv",
                path=Path(f"{i}.csv"),
                time=np.asarray(SCENE.timestep * np.arange(ticks + 1), dtype=np.float64),
                position_world={"block": seen, "tool": tool + 1e-4 * rng.normal(size=tool.shape)},
                quaternion_world={"block": about_z(turn + 1e-3 * rng.normal(size=ticks + 1)), "tool": None},
                bodies=bodies,
            )
        )
    return Recordings(Path("led"), bodies, tuple(made), ground=Ground())


def test_friction_and_patch_come_back_and_the_mass_does_not_show() -> None:
    recordings = led_pushes()
    assert kind_of(recordings) == "pushes"
    found = tune(guided_scene(recordings), recordings, Tuning(budget=130), threads=1)
    for name, true in TRUTH.items():
        estimate = found.identification[name]
        assert estimate.value == pytest.approx(true, rel=0.25), name
        assert abs(estimate.value - true) < estimate.high - estimate.low, name
    assert found.identification["mass_scale"].verdict == "not identifiable from these recordings"
    assert found.identification.extra["tool_off_m"] is None


def test_the_tool_goes_where_it_is_led_whatever_it_meets() -> None:
    simulator = GuidedSimulator(SCENE, ("mass_scale",), period=0.05, threads=1)
    start = SCENE.placed(np.zeros((2, 3)), np.tile([-0.05, 0.0, 0.0], (2, 1)))
    path = np.zeros((2, 10, 10, 3))
    path[..., 0] = (-0.05 + 0.001 * np.arange(1, 101)).reshape(10, 10)
    motion = simulator.replay(start, path, {"mass_scale": [0.5, 2.0]})
    np.testing.assert_allclose(motion.joint_position[:, 1:, 0], path[..., -1, 0], atol=1e-6)
    # a block that is pushed along its middle goes ahead of the tool, its side against it
    np.testing.assert_allclose(motion.position[:, -1, 0, 0], path[0, -1, -1, 0] + 0.042, atol=2e-3)
    with pytest.raises(CaromError, match=r"controls: expected an array of shape \(2, K, 10, 3\)"):
        simulator.replay(start, path[:, :, :5])


def test_a_smoothed_path_bridges_gaps_and_keeps_corners_within_its_noise() -> None:
    time = np.linspace(0, 1, 201)
    samples = np.column_stack([np.minimum(time, 0.5), 0 * time]) * 0.2
    samples[40:48] = np.nan
    path = smoothed(time, samples, np.linspace(0, 1, 401))
    np.testing.assert_allclose(path[:, 0], 0.2 * np.minimum(np.linspace(0, 1, 401), 0.5), atol=1.5e-3)


def test_folders_of_a_stand_in_without_commands_are_played_with_a_led_tool(tmp_path: Path) -> None:
    recordings = read(poses_folder(tmp_path / "poses", 3))
    scene = guided_scene(recordings)
    windows = led_windows_of(scene, recordings)
    assert len(windows) == 3
    assert windows.controls.shape[2:] == (10, 3)
    bare = replace(recordings.trajectories[0].bodies["block"], shape=None)
    bodies = {**recordings.bodies, "block": bare}
    lost = replace(recordings, trajectories=tuple(replace(t, bodies=bodies) for t in recordings.trajectories))
    with pytest.raises(CaromError, match=r"'block' has no shape|no recording shows a push"):
        guided_scene(lost)
