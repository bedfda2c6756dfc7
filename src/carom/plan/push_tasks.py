"""Tasks of pushing: bodies that stand, one of which is set going so that another stops at a goal. In any engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.engines.contract import Engine
from carom.scenes.free import FreeScene, cubes_scene
from carom.scenes.shapes import Body
from carom.state import Array, SceneState

SECONDS = 1.0  #: until everything has stopped
LEAST = 0.03  #: [m] that a goal lies away from where the body stands
ROUNDS = 20  #: of random pushes, in search of goals
LOST = 1.0  #: [m] that a push counts as missing by at most; one that failed misses by as much


@dataclass(frozen=True)
class PushTasks:
    """K tasks with the same bodies. A push is the velocity ahead and aside of the pushed body, and its spin: [K, 3]."""

    start: SceneState  #: K rows of bodies that stand
    goal: Array  #: [K, 2] of the moved body's frame [m]
    duration: float = SECONDS  #: [s] after which the moved body is looked at
    pushed: str = "pushed"
    moved: str = "moved"

    def __post_init__(self) -> None:
        for name in (self.pushed, self.moved):
            if name not in self.start.bodies:
                raise CaromError(f"expected one of the bodies {', '.join(self.start.bodies)}, got '{name}'")
        if self.goal.shape != (len(self.start), 2) or not np.isfinite(self.goal).all():
            raise CaromError(f"goal: expected two finite numbers [m] for each of {len(self.start)} tasks")

    def __len__(self) -> int:
        return len(self.goal)

    def __getitem__(self, rows: NDArray[np.integer]) -> PushTasks:
        return replace(self, start=self.start[rows], goal=self.goal[rows])

    def place(self, name: str) -> Array:
        """Where a body stands [K, 2] [m]."""
        return np.asarray(self.start.position[:, self.start.bodies.index(name), :2])

    @property
    def axes(self) -> Array:
        """Unit vectors [K, 2, 2]: from the pushed body to the moved one, and across."""
        way = self.place(self.moved) - self.place(self.pushed)
        x, y = (way / np.linalg.norm(way, axis=-1, keepdims=True)).T
        return np.stack([np.stack([x, y], axis=-1), np.stack([-y, x], axis=-1)], axis=1)

    def started(self, push: Array) -> SceneState:
        """The starts with one body going as pushes [K, 3] say [m/s, m/s, rad/s]."""
        at, velocity, spin = self.start.bodies.index(self.pushed), 0 * self.start.velocity, 0 * self.start.spin
        velocity[:, at, :2] = np.einsum("ka,kab->kb", push[:, :2], self.axes)
        spin[:, at, 2] = push[:, 2]
        return replace(self.start, velocity=velocity, spin=spin)

    def ends(self, engine: Engine, push: Array, values: Mapping[str, float] | None = None) -> Array:
        """Where the moved body is at the end [K, 2] [m], NaN where the engine failed; `values` are its parameters."""
        told = {name: np.full(len(self), value) for name, value in (values or {}).items()}
        motion = engine.open(self.started(push), told).rollout(self.duration, frames=2)
        end = motion.position[:, -1, self.start.bodies.index(self.moved), :2]
        return np.where(motion.failed[:, None], np.nan, end)

    def misses(self, engine: Engine, push: Array, values: Mapping[str, float] | None = None) -> Array:
        """How far from its goal the moved body stops [K] [m]."""
        miss = np.linalg.norm(self.ends(engine, push, values) - self.goal, axis=-1)
        return np.where(np.isfinite(miss), np.minimum(miss, LOST), LOST)


def push_scene(gravity: float = 9.81) -> FreeScene:
    """Two cubes of the built-in scene on the ground."""
    cube = cubes_scene().bodies[0]
    return FreeScene("two-cubes", tuple(Body(n, "target", cube.shape, cube.mass) for n in ("pushed", "moved")), gravity)


def push_tasks(
    engine: Engine, count: int, *, values: Mapping[str, float] | None = None, seed: int = 0, duration: float = SECONDS
) -> PushTasks:
    """Random starts of `push_scene`. Goals are where random pushes end in this engine, so each can be reached."""
    scene = engine.scene
    if not isinstance(scene, FreeScene) or [body.name for body in scene.bodies] != ["pushed", "moved"]:
        raise CaromError(f"push_tasks needs the scene of push_scene(), got '{scene.name}'")
    if count < 1:
        raise CaromError(f"count: expected one task or more, got {count}")
    rng = np.random.default_rng([seed, 31])
    kept: list[PushTasks] = []
    sides = [float(body.solid.extent[0]) for body in scene.bodies]
    for _ in range(ROUNDS):
        position = np.zeros((count, 2, 3))
        position[:, 0, 0] = -sides[0] * rng.uniform(1.5, 2.5, count)
        position[:, 0, 1] = 0.15 * sides[0] * rng.uniform(-1, 1, count)
        position[..., 2] = np.array(sides) / 2 + scene.ground_height
        turn = about_z(rng.uniform(-1, 1, (count, 2)) * [0.1, 0.2])
        none = np.zeros_like(position)
        tasks = PushTasks(SceneState(("pushed", "moved"), position, turn, none, none), none[:, 0, :2], duration)
        speed = rng.uniform(0.8, 1.8, count)
        push = np.stack([speed, 0.08 * speed * rng.uniform(-1, 1, count), rng.uniform(-1, 1, count)], axis=-1)
        end = tasks.ends(engine, push, values)
        away = np.linalg.norm(end - tasks.place("moved"), axis=-1)
        far = np.flatnonzero(np.isfinite(away) & (away > LEAST))
        kept.append(replace(tasks, goal=np.where(np.isfinite(end), end, 0.0))[far])
        if sum(len(part) for part in kept) >= count:
            return joined(kept)[np.arange(count)]
    found = sum(len(part) for part in kept)
    raise CaromError(f"of {ROUNDS * count} random pushes {found} move the second body; is the friction too high?")


def joined(parts: list[PushTasks]) -> PushTasks:
    """Tasks with the same bodies, one after the other."""
    position, quaternion, velocity, spin = (
        np.concatenate([getattr(part.start, name) for part in parts])
        for name in ("position", "quaternion", "velocity", "spin")
    )
    start = SceneState(parts[0].start.bodies, position, quaternion, velocity, spin)
    return replace(parts[0], start=start, goal=np.concatenate([part.goal for part in parts]))
