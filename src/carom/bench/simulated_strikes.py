"""Recordings of simulated strikes with known parameters, as a motion capture system would see them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.rotations import about_z
from carom.engines.contract import Rollout
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.plan.space import approach
from carom.reality import Mocap, sample_commands
from carom.reality.folder import write_strikes
from carom.reality.mocap import RETRACT, Poses, exposures, measured
from carom.reality.settings import STRIKERS
from carom.scenes.load import scene_from_bodies
from carom.scenes.shapes import Body, Shape
from carom.state import Array

STANDOFF = 0.005  #: [m] from which strikers are simulated; before that they come on evenly
FINE = 960.0  #: [1/s] at which simulated motion is kept, to be interpolated
LEAST_GROUND = 0.05  #: friction with which every slide is over in time


def strike_in_mujoco(
    shape: Shape, mass: float, count: int, truth: Mapping[str, float], folder: Path, *, seed: int
) -> Path:
    """A folder with strikes that MuJoCo simulated with these parameters, drawn as the stand-ins' are."""
    bodies = {
        "block": Body("block", "target", shape, mass=mass),
        "striker": Body("striker", "striker", STRIKERS["round"]),
    }
    scene, mocap = scene_from_bodies(bodies), Mocap()
    commands = sample_commands(shape, count, np.random.default_rng([seed, 0]))
    start = approach(scene, commands, standoff=STANDOFF)
    fastest = 2.2 * float(np.linalg.norm(commands.velocity, axis=1).max())
    longest = min(fastest / (GRAVITY * max(truth["ground_friction"], LEAST_GROUND)) + 0.3, mocap.longest)
    frames = int(longest * FINE) + 1
    rolled = MujocoSimulator(scene, truth, threads=1).rollout(start, longest, frames=frames)
    streams = [np.random.default_rng([seed, 1, i]) for i in range(count)]
    heights = (shape.full_height / 2, STRIKERS["round"].full_height / 2)
    sampled = []
    for i, stream in enumerate(streams):
        times = exposures(_rest_time(rolled, i), stream, mocap)
        since_start = times + rolled.contact_time[i]
        velocity = start.striker_velocity[i]
        target = _between(since_start, rolled.time[i], rolled.target_pose[i])
        striker = _struck(since_start, rolled.time[i], rolled.striker_pose[i], velocity)
        sampled.append(measured(_lifted(target, heights[0]), _lifted(striker, heights[1]), stream, mocap))
    return write_strikes(folder, bodies, sampled, {"reality": "MuJoCo"})


def _rest_time(rolled: Rollout, row: int) -> float:
    """When the target came to rest [s], since first touch."""
    moving = np.flatnonzero(np.abs(np.diff(rolled.target_pose[row], axis=0)).max(axis=1) > 1e-7)
    return float(rolled.time[row, moving[-1] + 1] - rolled.contact_time[row]) if len(moving) else 0.0


def _between(times: Array, kept: Array, poses: Array) -> Array:
    """Poses [T, 3] at times [T] of a motion that was kept at other times; held before and after."""
    return np.stack([np.interp(times, kept, column) for column in poses.T], axis=-1)


def _struck(times: Array, kept: Array, poses: Array, velocity: Array) -> Array:
    """Poses [T, 3] of a striker that comes on at `velocity` [3], strikes, and is then drawn back."""
    pose = _between(times, kept, poses)
    stopped = kept[min(int(np.flatnonzero(np.abs(np.diff(poses, axis=0)).max(axis=1) > 0)[-1]) + 1, len(kept) - 1)]
    late = np.maximum(times - stopped, 0.0)[:, None]
    return np.asarray(pose + np.minimum(times, 0.0)[:, None] * velocity - RETRACT * late * velocity / _size(velocity))


def _size(velocity: Array) -> float:
    return max(float(np.linalg.norm(velocity[:2])), 1e-9)


def _lifted(planar: Array, height: float) -> Poses:
    """Poses in space of a frame at this height with planar poses [T, 3] (x, y, yaw)."""
    return np.column_stack([planar[:, :2], np.full(len(planar), height)]), about_z(planar[:, 2])
