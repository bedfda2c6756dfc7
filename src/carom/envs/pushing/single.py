"""One pushing task as a Gymnasium environment: `gymnasium.make("carom/PushBlock-v0", scene="planar-cube")`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Space

from carom.engines.pushing import push_simulator
from carom.envs.pushing.batch import SEEN, Pushes, PushingBatch
from carom.envs.pushing.task import Floats, PushingTask, pushing_task


def spaces(task: PushingTask) -> tuple[Space[Any], Space[Any]]:
    """Of observations and of actions."""
    return Box(-SEEN, SEEN, (task.observed,), np.float32), Box(-1.0, 1.0, (task.acts,), np.float32)


@final
class PushBlockEnv(gymnasium.Env[Floats, Floats]):
    """A batch of one. `terminated` is never set: all rewards are negative, and an end would teach to leave.

    >>> env = PushBlockEnv(scene="planar-cube")
    >>> seen, _ = env.reset(seed=0)
    >>> _, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> reward < 0, terminated, truncated, sorted(info)
    (True, False, False, ['is_success', 'outside'])
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self,
        *,
        scene: str = "planar-cube",
        task: PushingTask | None = None,
        simulator: Pushes | None = None,
        values: Mapping[str, float] | None = None,
    ) -> None:
        """A built-in `scene`, or a `task` of your own; `values` are parameters that the simulator is opened with."""
        task = pushing_task(scene) if task is None else task
        given = dict(values or {})
        engine = push_simulator(task.scene, tuple(given), threads=1) if simulator is None else simulator
        self.batch = PushingBatch(task, engine, count=1, draws=[given] if given else ())
        self.observation_space, self.action_space = spaces(task)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Another start and another goal; there are no options."""
        super().reset(seed=seed)
        return self.batch.reset(seed=int(self.np_random.integers(2**31)))[0], {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """One control period."""
        outcome = self.batch.step(np.asarray(action)[None])
        told = {"is_success": bool(outcome.success[0]), "outside": bool(outcome.outside[0])}
        return outcome.observation[0], float(outcome.reward[0]), False, bool(outcome.truncated[0]), told
