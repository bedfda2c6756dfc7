"""The task of the real-sim-real paper (appendix VIII-B): push a block to a random place, with small moves of joints.

What is observed, what an action does, what is rewarded and what counts as done, for the arm and the planar tool alike.
NumPy only: a policy's task is the same in a simulator and on a robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.rotations import axes
from carom.envs.pushing.starts import Goals, Places, Zone
from carom.scenes.pushing import PushScene, push_scene
from carom.state import Array, SceneState

LENGTH = 0.1  #: [m] in which lengths are observed
LAMBDA_CUBE = (6.0, 3.0)  #: of the distance to the goal, and of tool to block [1/m]
LAMBDA_T = (3.0, 6.0)  #: of the distance to the goal [1/m], and of the turn that is left [1/rad]
NEAR, TURNED = {"cube": 0.02, "t": 0.03}, np.radians(15)  #: [m], [rad] that count as done
REACHES = {"planar": 0.03, "arm": 0.06}  #: greatest displacement in a period [m], [rad]
STEPS = {"planar-cube": 60, "planar-t": 100, "arm-cube": 80, "arm-t": 120}  #: periods of an episode
TILTED = 0.5  #: [rad] a block that leans more lies no longer flat
RISEN = 0.03  #: [m]

_PLANAR = {"start": Zone(far=0.12), "goal": Zone(far=0.18), "border": Zone(far=0.32)}
_ARM = {"start": Zone(near=0.3, far=0.42, aside=0.35), "goal": Zone(near=0.28, far=0.46, aside=0.45)}
PLACES = {
    "planar-cube": Places(**_PLANAR, least=0.05, turn=0.0),
    "planar-t": Places(**_PLANAR, least=0.05, turn=np.pi / 3),
    "arm-cube": Places(**_ARM, least=0.05, turn=0.0, border=Zone(near=0.17, far=0.52, aside=1.0)),
    "arm-t": Places(**_ARM, least=0.05, turn=np.pi / 3, border=Zone(near=0.17, far=0.52, aside=1.0)),
}

Floats = NDArray[np.float32]
Acts = Callable[[Floats], NDArray[Any]]  #: from observations [N, O] to actions [N, A]


@final
@dataclass(frozen=True)
class PushingTask:
    """Pushing in one scene.

    >>> task = pushing_task("planar-cube")
    >>> start, goals = task.sample(2, np.random.default_rng(0))
    >>> task.observe(start, goals).shape, task.reward(start, goals).shape
    ((2, 17), (2,))
    """

    scene: PushScene
    places: Places
    steps: int  #: periods of an episode
    reach: float  #: [m] or [rad] of a joint's set-point from where it is, at an action of 1
    turns: bool = field(default=False)  #: whether the goal has an orientation too, as for the T

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.reach > 0:
            raise CaromError(f"a task needs one step or more and a positive reach, got {self.steps} and {self.reach:g}")

    def sample(self, count: int, rng: np.random.Generator) -> tuple[SceneState, Goals]:
        """Starts of episodes and goals."""
        return self.places.draw(self.scene, count, rng)

    @cached_property
    def observed(self) -> int:
        """Numbers in an observation."""
        start, goals = self.sample(1, np.random.default_rng(0))
        return int(self.observe(start, goals).shape[1])

    @property
    def acts(self) -> int:
        """Numbers in an action."""
        return len(self.scene.servos)

    def observe(self, state: SceneState, goals: Goals) -> Floats:
        """What a policy sees [N, O]: joints, tool, goal, block, goal from block and block from tool; T: both turns.

        Lengths in units of 0.1 m. Quaternions have the sign that brings block and goal on the same side.
        """
        block, tool = state.position[:, 0], self.scene.tool_position(state.joint_position)
        joints = state.joint_position / self._joint_units
        lengths = [tool, goals.position, block, goals.position - block, block - tool]
        parts = [joints, *(part / LENGTH for part in lengths)]
        if self.turns:
            wanted = goals.quaternion * _sign(goals.quaternion[:, :1])
            turn = state.quaternion[:, 0]
            parts += [turn * _sign((turn * wanted).sum(axis=1, keepdims=True)), wanted]
        return np.concatenate(parts, axis=1).astype(np.float32)

    @cached_property
    def _joint_units(self) -> Array:
        slides = np.array([int(self.scene.model.joint(name).type[0]) == 2 for name in self.scene.joint_names])
        return np.where(slides, LENGTH, 1.0)

    def controls(self, state: SceneState, action: NDArray[Any]) -> Array:
        """Set-points [N, U] of actions [N, A] from -1 to 1: displacements of the joints from where they are."""
        now = state.joint_position[:, list(self.scene.servos)]
        moved = now + self.reach * np.clip(np.asarray(action, dtype=np.float64), -1.0, 1.0)
        return np.clip(moved, self.scene.limits[:, 0], self.scene.limits[:, 1])

    def errors(self, state: SceneState, goals: Goals) -> tuple[Array, Array]:
        """How far blocks are from their goals: [N] [m], and the angle between them [N] [rad]."""
        away = np.linalg.norm(state.position[:, 0] - goals.position, axis=1)
        return away, 2 * half_angle(state.quaternion[:, 0], goals.quaternion)

    def reward(self, state: SceneState, goals: Goals) -> Array:
        """The paper's reward of the states [N]."""
        block = state.position[:, 0]
        away = np.linalg.norm(block - goals.position, axis=1)
        if self.turns:
            by_distance, by_turn = LAMBDA_T
            return np.asarray(-by_distance * away - by_turn * half_angle(state.quaternion[:, 0], goals.quaternion))
        by_distance, by_tool = LAMBDA_CUBE
        tool = np.linalg.norm(self.scene.tool_position(state.joint_position) - block, axis=1)
        return np.asarray(-by_distance * away - by_tool * tool)

    def success(self, state: SceneState, goals: Goals) -> NDArray[np.bool_]:
        """Whether blocks are where they should be [N]: within 2 cm; T: within 3 cm and 15 degrees."""
        return self.near(*self.errors(state, goals))

    def near(self, away: Array, turned: Array) -> NDArray[np.bool_]:
        """Whether these errors [N] [m], [N] [rad] count as done [N]."""
        return np.asarray((away <= NEAR["t" if self.turns else "cube"]) & ((turned <= TURNED) | (not self.turns)))

    def outside(self, state: SceneState) -> NDArray[np.bool_]:
        """Whether a block has left the table's part that is in reach, or has tipped over, or the tool has left [N]."""
        block, tool = state.position[:, 0], self.scene.tool_position(state.joint_position)
        left = self.places.border.outside(block[:, :2])
        upright = axes(state.quaternion[:, 0])[:, 2, 2]
        fallen = (upright < np.cos(TILTED)) | (np.abs(block[:, 2] - self.scene.rest_height) > RISEN)
        return np.asarray(left | fallen | self.places.border.outside(tool[:, :2]) | ~state.finite)

    def controller(self, act: Acts, goals: Goals) -> Callable[[SceneState], Array]:
        """From measured states to set-points, with this policy and these goals: what a reality is given."""
        return lambda state: self.controls(state, act(self.observe(state, goals)))


def half_angle(one: Array, other: Array) -> Array:
    """arccos <q_b, q_t> [N] [rad]: half the angle between unit quaternions [N, 4], whichever their signs."""
    return np.asarray(np.arccos(np.clip(np.abs((one * other).sum(axis=1)), 0.0, 1.0)))


def _sign(values: Array) -> Array:
    return np.where(values < 0, -1.0, 1.0)


def pushing_task(scene: str | PushScene) -> PushingTask:
    """The usual task in a built-in scene."""
    scene = push_scene(scene) if isinstance(scene, str) else scene
    name = f"{scene.robot}-{scene.block}"
    return PushingTask(scene, PLACES[name], STEPS[name], REACHES[scene.robot], turns=scene.block == "t")
