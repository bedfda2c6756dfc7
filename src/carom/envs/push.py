"""Push one body so that another stops at a goal: one push an episode, in any engine of free bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

import gymnasium
import numpy as np
from numpy.typing import NDArray

from carom.core.rotations import matrices
from carom.engines.contract import Engine
from carom.engines.mujoco.engine import MujocoEngine
from carom.plan.push_tasks import PushTasks, push_scene, push_tasks
from carom.state import Array

LOW, HIGH = np.array([0.3, -0.3, -5.0]), np.array([2.5, 0.3, 5.0])  #: of a push: [m/s] ahead, aside; [rad/s]
REACHED = 0.02  #: [m] that the goal may be missed by
SCALE = 0.1  #: [m] that observations and misses are measured in
OBSERVED = 7  #: numbers: distance, both headings' cosine and sine, goal ahead and aside
TASKS = 256  #: that an environment draws from, where none are given
USUAL = {"friction": 0.25}  #: where no engine is given
Floats = NDArray[np.float32]


def observation(tasks: PushTasks) -> Floats:
    """What a policy sees [K, OBSERVED]: the same wherever the bodies stand and whichever way they lie."""
    axes, names = tasks.axes, tasks.start.bodies
    away = tasks.place(tasks.moved) - tasks.place(tasks.pushed)
    pair = [names.index(tasks.pushed), names.index(tasks.moved)]
    heading = np.einsum("kab,kib->kia", axes, matrices(tasks.start.quaternion[:, pair])[..., :2, 0])
    goal = np.einsum("kab,kb->ka", axes, tasks.goal - tasks.place(tasks.moved))
    parts = [np.linalg.norm(away, axis=-1, keepdims=True) / SCALE, heading.reshape(len(tasks), 4), goal / SCALE]
    return np.concatenate(parts, axis=-1).astype(np.float32)


def push_of(action: Array) -> Array:
    """Pushes [K, 3] of actions [K, 3] from -1 to 1."""
    return np.asarray(LOW + (np.clip(action, -1.0, 1.0) + 1) / 2 * (HIGH - LOW))


def reward(miss: Array) -> Array:
    """The nearer the better, and one more for a goal that is reached."""
    return np.asarray((miss < REACHED) - miss / SCALE)


def spaces() -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """Of observations and of actions."""
    seen = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVED,), np.float32)
    return seen, gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)


@final
class PushEnv(gymnasium.Env[Floats, Floats]):
    """A random task; the episode ends with its one push. `engine` is any with two free bodies; MuJoCo if none is given.

    >>> env = PushEnv()
    >>> seen, _ = env.reset(seed=0)
    >>> _, _, ended, _, info = env.step(env.action_space.sample())
    >>> ended, sorted(info)
    (True, ['is_success', 'miss'])
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self, *, engine: Engine | None = None, values: Mapping[str, float] | None = None, tasks: PushTasks | None = None
    ) -> None:
        self.engine = engine or MujocoEngine(push_scene(), tuple(USUAL), threads=1)
        self.values = dict(values or ({} if engine else USUAL))
        self.tasks = tasks or push_tasks(self.engine, TASKS, values=self.values)
        self.observation_space, self.action_space = spaces()
        self._task = self.tasks[np.array([0])]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Another task; there are no options."""
        super().reset(seed=seed)
        self._task = self.tasks[self.np_random.integers(len(self.tasks), size=1)]
        return observation(self._task)[0], {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """The push."""
        miss = self._task.misses(self.engine, push_of(np.asarray(action, dtype=np.float64)[None]), self.values)
        told = {"miss": float(miss[0]), "is_success": bool(miss[0] < REACHED)}
        return observation(self._task)[0], float(reward(miss)[0]), True, False, told
