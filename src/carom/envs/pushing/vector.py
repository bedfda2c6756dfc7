"""Pushing tasks as Stable-Baselines3 wants them: all of a batch stepped by one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from carom.core.errors import CaromError
from carom.envs.pushing.batch import PushingBatch
from carom.envs.pushing.single import spaces
from carom.envs.pushing.task import Floats
from carom.envs.sb3 import OneBatch


@final
class PushingVecEnv(OneBatch):
    """N tasks that start anew by themselves; infos of ended episodes tell return, length and success at their end."""

    def __init__(self, batch: PushingBatch) -> None:
        self.batch, self.render_mode = batch, None
        self.returns = np.zeros(batch.count)
        self._actions: NDArray[np.float32] | None = None
        self._started = perf_counter()
        super().__init__(batch.count, *spaces(batch.task))

    def reset(self) -> Floats:
        """All tasks anew; the first seed given by `seed`, if any, is that of all."""
        given = [s for s in self._seeds if s is not None]
        self._reset_seeds()
        self._reset_options()
        self.returns[:] = 0.0
        return self.batch.reset(seed=int(given[0]) if given else None)

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Keep the actions; everything happens in `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """One control period of each task."""
        if self._actions is None:
            raise CaromError("step_wait: no actions to carry out; call step_async first")
        outcome, self._actions = self.batch.step(self._actions), None
        self.returns += outcome.reward
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        observation = outcome.observation
        if outcome.truncated.any():
            seconds = round(perf_counter() - self._started, 6)
            rows = np.flatnonzero(outcome.truncated)
            for row in rows.tolist():
                length = int(self.batch.elapsed[row])
                infos[row] = {
                    "terminal_observation": outcome.observation[row],
                    "TimeLimit.truncated": True,
                    "is_success": bool(outcome.success[row]),
                    "outside": bool(outcome.outside[row]),
                    "episode": {"r": float(self.returns[row]), "l": length, "t": seconds},
                }
            self.returns[rows] = 0.0
            observation = self.batch.reset(rows)
        return observation, outcome.reward.astype(np.float32), outcome.truncated, infos

    def state(self) -> dict[str, Any]:
        """For a checkpoint: the batch's state, and the running returns."""
        return {**self.batch.saved(), "returns": self.returns.copy()}

    def restore(self, state: Mapping[str, Any]) -> Floats:
        """Go on from a `state`; gives the observation that the next actions answer."""
        seen = self.batch.restore(state)
        self.returns[:] = state["returns"]
        return seen

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Batches have no pictures."""
        return [None] * self.num_envs
