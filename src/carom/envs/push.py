"""Push one body so that another stops at a goal: one push an episode, in any engine of free bodies.

Goals are where random pushes ended, so each can be reached. A batch of tasks is one rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import gymnasium
import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.rotations import about_z, matrices
from carom.engines.contract import Engine
from carom.engines.mujoco.engine import MujocoEngine
from carom.scenes.free import FreeScene, cubes_scene
from carom.scenes.shapes import Body
from carom.state import Array, SceneState

LOW, HIGH = np.array([0.3, -0.3, -5.0]), np.array([2.5, 0.3, 5.0])  #: of a push: [m/s] ahead, aside, [rad/s]
REACHED = 0.02  #: [m] that the goal may be missed by
SECONDS = 1.0  #: [s] until everything has stopped
LEAST = 0.03  #: [m] that a goal lies away from where the body stands
SCALE = 0.1  #: [m] that observations and misses are measured in
OBSERVED = 7  #: numbers: distance, both headings' cosine and sine, goal ahead and aside
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class PushTasks:
    """K tasks: two bodies that stand, and where the second of them is to stop."""

    start: SceneState  #: K rows of two bodies: the one that is pushed, and the one that is to move
    goal: Array  #: [K, 2] of the second body's frame [m]
    duration: float  #: [s]

    def __len__(self) -> int:
        return len(self.goal)

    def __getitem__(self, rows: NDArray[np.integer] | slice) -> PushTasks:
        parts = {n: getattr(self.start, n)[rows] for n in ("position", "quaternion", "velocity", "spin")}
        return replace(self, start=replace(self.start, **parts), goal=self.goal[rows])

    @property
    def axes(self) -> Array:
        """Unit vectors [K, 2, 2] from the first body to the second, and across."""
        way = self.start.position[:, 1, :2] - self.start.position[:, 0, :2]
        x, y = (way / np.linalg.norm(way, axis=-1, keepdims=True)).T
        return np.stack([np.stack([x, y], axis=-1), np.stack([-y, x], axis=-1)], axis=1)

    @property
    def observation(self) -> Floats:
        """What a policy sees [K, OBSERVED], the same wherever the bodies stand and whichever way they lie."""
        place, axes = self.start.position[..., :2], self.axes
        apart = np.linalg.norm(place[:, 1] - place[:, 0], axis=-1, keepdims=True) / SCALE
        heading = matrices(self.start.quaternion)[..., :2, 0]
        turned = np.einsum("kab,kib->kia", axes, heading).reshape(len(self), 4)
        goal = np.einsum("kab,kb->ka", axes, self.goal - place[:, 1]) / SCALE
        return np.concatenate([apart, turned, goal], axis=-1).astype(np.float32)

    def pushed(self, action: Array) -> SceneState:
        """The starts with the first body going as actions [K, 3] in -1 to 1 say."""
        push = LOW + (np.clip(action, -1.0, 1.0) + 1) / 2 * (HIGH - LOW)
        velocity, spin = np.zeros_like(self.start.velocity), np.zeros_like(self.start.spin)
        velocity[:, 0, :2] = np.einsum("ka,kab->kb", push[:, :2], self.axes)
        spin[:, 0, 2] = push[:, 2]
        return replace(self.start, velocity=velocity, spin=spin)

    def misses(self, engine: Engine, action: Array, values: Mapping[str, float] | None = None) -> Array:
        """How far from its goal the second body stops [K] [m]; what failed misses by a metre."""
        told = {name: np.full(len(self), value) for name, value in (values or {}).items()}
        end = engine.open(self.pushed(action), told).rollout(self.duration, frames=2).position[:, -1, 1, :2]
        miss = np.linalg.norm(end - self.goal, axis=-1)
        return np.where(np.isfinite(miss), np.minimum(miss, 1.0), 1.0)


def push_scene(gravity: float = 9.81) -> FreeScene:
    """Two cubes of the built-in scene on the ground."""
    cube = cubes_scene().bodies[0]
    bodies = tuple(Body(name, "target", cube.shape, cube.mass) for name in ("pushed", "moved"))
    return FreeScene("two-cubes", bodies, gravity)


def push_tasks(
    engine: Engine, count: int, *, values: Mapping[str, float] | None = None, seed: int = 0, duration: float = SECONDS
) -> PushTasks:
    """Random starts; goals are where random pushes bring the second body in this engine."""
    scene = engine.scene
    if not isinstance(scene, FreeScene) or len(scene.bodies) != 2:
        raise CaromError(f"pushes need a scene of two free bodies, got '{scene.name}'")
    rng, kept = np.random.default_rng([seed, 31]), []
    side = float(scene.bodies[0].solid.extent[0])
    heights = [float(body.solid.extent[2]) / 2 + scene.ground_height for body in scene.bodies]
    names = tuple(body.name for body in scene.bodies)
    told = {name: np.full(count, value) for name, value in (values or {}).items()}
    while sum(map(len, kept)) < count:
        position = np.zeros((count, 2, 3))
        position[:, 0, 0], position[:, 0, 1] = -side * rng.uniform(1.5, 2.5, count), 0.15 * side * _even(rng, count)
        position[..., 2] = heights
        turn = about_z(np.stack([0.1 * _even(rng, count), 0.2 * _even(rng, count)], axis=-1))
        start = SceneState(names, position, turn, np.zeros_like(position), np.zeros_like(position))
        tasks = PushTasks(start, np.zeros((count, 2)), duration)
        speed = rng.uniform(0.8, 1.8, count)
        push = np.stack([speed, 0.08 * speed * _even(rng, count), _even(rng, count)], axis=-1)
        run = engine.open(tasks.pushed(2 * (push - LOW) / (HIGH - LOW) - 1), told)
        end = run.rollout(duration, frames=2).position[:, -1, 1, :2]
        away = np.linalg.norm(end - position[:, 1, :2], axis=-1)
        kept.append(replace(tasks, goal=end)[np.flatnonzero(away > LEAST)])
        if away.max() <= LEAST:
            raise CaromError(
                "no random push moves the second body; are the bodies too heavy, or the friction too high?"
            )
    starts = {n: np.concatenate([getattr(t.start, n) for t in kept])[:count] for n in ("position", "quaternion")}
    none = np.zeros((count, 2, 3))
    goals = np.concatenate([t.goal for t in kept])[:count]
    return PushTasks(SceneState(names, velocity=none, spin=none, **starts), goals, duration)


def _even(rng: np.random.Generator, count: int) -> Array:
    return rng.uniform(-1.0, 1.0, count)


def reward(miss: Array) -> Array:
    """The nearer the better, and one more for a goal that is reached."""
    return np.asarray((miss < REACHED) - miss / SCALE)


@final
class PushEnv(gymnasium.Env[Floats, Floats]):
    """One task of a random two; every episode is one push. Any engine with two free bodies; MuJoCo if none is given."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self, *, engine: Engine | None = None, values: Mapping[str, float] | None = None, tasks: PushTasks | None = None
    ) -> None:
        self.engine = engine or MujocoEngine(push_scene(), (), step=0.002, threads=1)
        self.values = dict(values or {})
        self.tasks = tasks or push_tasks(self.engine, 256, values=self.values)
        self.observation_space, self.action_space = push_spaces()
        self._row = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Another task; there are no options."""
        super().reset(seed=seed)
        self._row = int(self.np_random.integers(len(self.tasks)))
        return self.tasks[np.array([self._row])].observation[0], {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """The push."""
        task = self.tasks[np.array([self._row])]
        miss = task.misses(self.engine, np.asarray(action, dtype=np.float64)[None], self.values)
        told = {"miss": float(miss[0]), "is_success": bool(miss[0] < REACHED)}
        return task.observation[0], float(reward(miss)[0]), True, False, told


def push_spaces() -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Of observations and of actions."""
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVED,), np.float32)
    return seen, gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
