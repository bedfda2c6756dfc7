"""Pushes that no policy plans: straight ones at random places, in random directions, at random speeds."""

from __future__ import annotations

import numpy as np

from carom.engines.pushing import PERIOD
from carom.envs.pushing import PushingTask
from carom.envs.pushing.starts import TIP
from carom.reality.push_contract import PushCommands
from carom.scenes.pushing.robots import arm_joints
from carom.state import Array

ASIDE = 0.35  #: [rad] by which a push may miss the block's middle, seen from the tool
SPEEDS = (0.05, 0.3)  #: [m/s]
LENGTHS = (0.08, 0.2)  #: [m] of the tool's way
PERIODS = 40  #: of a push; a tool that has arrived stays
WANDER = 0.5  #: by which a random walk's action changes in a period, for robots of which only the joints are known


def random_pushes(task: PushingTask, count: int, rng: np.random.Generator) -> PushCommands:
    """The tool goes straight at the block, past its middle on either side, and stops; at the speed it has."""
    start, _ = task.sample(count, rng)
    tip = task.scene.tool_position(start.joint_position)
    toward = start.position[:, 0, :2] - tip[:, :2]
    bearing = np.arctan2(toward[:, 1], toward[:, 0]) + rng.uniform(-ASIDE, ASIDE, count)
    speed, length = rng.uniform(*SPEEDS, count), rng.uniform(*LENGTHS, count)
    gone = np.minimum(speed[:, None] * PERIOD * np.arange(1, PERIODS + 1), length[:, None])
    heading = np.stack([np.cos(bearing), np.sin(bearing)], axis=-1)
    if task.scene.own is not None:
        return PushCommands(start, _walk(task, start.joint_position, rng))
    way = tip[:, None, :2] + gone[..., None] * heading[:, None]
    if task.scene.robot == "arm":
        flat = np.column_stack([way.reshape(-1, 2), np.full(count * PERIODS, TIP)])
        return PushCommands(start, _within(task, arm_joints(flat).reshape(count, PERIODS, -1)))
    return PushCommands(start, _within(task, way))


def _within(task: PushingTask, controls: Array) -> Array:
    return np.clip(controls, task.scene.limits[:, 0], task.scene.limits[:, 1])


def _walk(task: PushingTask, joints: Array, rng: np.random.Generator) -> Array:
    """Set-points [N, K, U] of a random walk of the actions."""
    change = rng.normal(size=(len(joints), PERIODS, task.acts)) * WANDER
    action = np.clip(change.cumsum(axis=1), -1, 1)
    return _within(task, joints[:, None, list(task.scene.servos)] + (task.reach * action).cumsum(axis=1))
