"""Where blocks and tools begin, and where blocks are to go: drawn anew for every episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from carom.core.rotations import about_z
from carom.scenes.pushing import PushScene
from carom.scenes.pushing.robots import ROUND, arm_joints
from carom.state import Array, SceneState

CLEAR = (0.01, 0.06)  #: [m] least and greatest gap between block and tool at the start
TIP = 0.02  #: [m] height of the arm's tip at the start
TRIES = 200  #: of drawing a place that is far enough from another


@final
@dataclass(frozen=True)
class Goals:
    """Where N blocks are to go."""

    position: Array  #: [N, 3] [m]
    quaternion: Array  #: [N, 4] w-first

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, rows: Any) -> Goals:
        return Goals(self.position[rows], self.quaternion[rows])


@final
@dataclass(frozen=True)
class Zone:
    """A part of the table: a sector of a ring about a centre; a whole disc, if it begins at no distance."""

    centre: tuple[float, float] = (0.0, 0.0)  #: [m]
    near: float = 0.0  #: [m]
    far: float = 0.15  #: [m]
    aside: float = np.pi  #: [rad] to either side of x

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Places [N, 2] [m], even over the area."""
        away = np.sqrt(rng.uniform(self.near**2, self.far**2, count))
        bearing = rng.uniform(-self.aside, self.aside, count)
        return np.asarray(self.centre + away[:, None] * np.stack([np.cos(bearing), np.sin(bearing)], axis=-1))

    def outside(self, place: Array) -> Any:
        """Whether places [N, 2] [m] lie outside [N]."""
        off = place - self.centre
        away, bearing = np.hypot(off[:, 0], off[:, 1]), np.abs(np.arctan2(off[:, 1], off[:, 0]))
        return (away > self.far) | (away < self.near) | (bearing > self.aside)


@final
@dataclass(frozen=True)
class Places:
    """From where to where blocks are pushed."""

    start: Zone
    goal: Zone
    least: float  #: [m] between start and goal
    turn: float  #: [rad] greatest turn between them
    border: Zone  #: beyond it an episode is cut off

    def draw(self, scene: PushScene, count: int, rng: np.random.Generator) -> tuple[SceneState, Goals]:
        """Starts at rest and goals; nothing touches."""
        begin, end = self.start.draw(count, rng), self.goal.draw(count, rng)
        for _ in range(TRIES):
            close = np.flatnonzero(np.hypot(*(end - begin).T) < self.least)
            if not len(close):
                break
            end[close] = self.goal.draw(len(close), rng)
        yaw = rng.uniform(-np.pi, np.pi, count)
        block = np.column_stack([begin, yaw])
        tool = tool_starts(scene, block, rng, self.border)
        if scene.own is not None:
            joints = np.tile(scene.home(1).joint_position, (count, 1))
        elif scene.robot == "arm":
            joints = arm_joints(np.column_stack([tool, np.full(count, TIP)]))
        else:
            joints = tool
        turn = yaw + rng.uniform(-self.turn, self.turn, count)
        place = np.column_stack([end, np.full(count, scene.rest_height)])
        return scene.placed(block, joints), Goals(place, about_z(turn))


def tool_starts(scene: PushScene, block: Array, rng: np.random.Generator, border: Zone) -> Array:
    """Places [N, 2] [m] of the tool around blocks at x, y, yaw [N, 3], within the border."""
    reach = float(np.hypot(*np.moveaxis(scene.corners, -1, 0)).max()) + ROUND
    found = np.zeros((len(block), 2))
    left = np.arange(len(block))
    for _ in range(TRIES):
        bearing = rng.uniform(-np.pi, np.pi, len(left))
        away = reach + rng.uniform(*CLEAR, len(left))
        found[left] = block[left, :2] + away[:, None] * np.stack([np.cos(bearing), np.sin(bearing)], axis=-1)
        left = left[border.outside(found[left])]
        if not len(left):
            break
    return found
