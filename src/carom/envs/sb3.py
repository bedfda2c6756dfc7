"""The batch as Stable-Baselines3 wants it: thousands of tasks stepped by one call, without processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, final

import numpy as np
from gymnasium import Wrapper
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices, VecEnvStepReturn

from carom.core.errors import CaromError
from carom.engines.contract import Engine
from carom.envs.batch import StrikeBatch
from carom.envs.push import REACHED, observation, push_of, reward, spaces
from carom.envs.render import checked_mode, frame
from carom.envs.spaces import action_space, observation_space
from carom.plan.push_tasks import PushTasks


class OneBatch(VecEnv):
    """Tasks that are one batch, not one environment each."""

    def close(self) -> None:
        """Nothing is held open."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute that all tasks share."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refused: tasks have no attributes of their own."""
        raise CaromError(f"set_attr: '{attr_name}' cannot be set for single tasks; make another batch")

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Refused: there is one batch and no environment for each task."""
        raise CaromError(f"env_method: '{method_name}' cannot be called for single tasks; call the batch's own")

    def env_is_wrapped(
        self, wrapper_class: type[Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """No task is wrapped."""
        return [False] * len(list(self._get_indices(indices)))


@final
class StrikeVecEnv(OneBatch):
    """N tasks that start anew by themselves; infos tell the reward's terms, and return and length of ended episodes.

    A `VecMonitor` around it works, and is not needed.
    """

    def __init__(self, batch: StrikeBatch, *, render_mode: str | None = None) -> None:
        self.batch, self.render_mode = batch, checked_mode(render_mode)
        self.returns, self.lengths = np.zeros(batch.count), np.zeros(batch.count, dtype=np.int64)
        self._actions: NDArray[np.float32] | None = None
        self._started = perf_counter()
        super().__init__(batch.count, observation_space(len(batch.sides)), action_space())

    def reset(self) -> NDArray[np.float32]:
        """All tasks anew, with the seeds given by `seed`, if any."""
        seeds = [s for s in self._seeds if s is not None]
        self._reset_seeds()
        self._reset_options()
        self.returns[:], self.lengths[:] = 0.0, 0
        return self.batch.reset(seeds=seeds if len(seeds) == self.num_envs else None)

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Keep the actions; everything happens in `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """One strike at each task."""
        if self._actions is None:
            raise CaromError("step_wait: no actions to carry out; call step_async first")
        outcome, self._actions = self.batch.step(self._actions), None
        reward, done = outcome.reward, outcome.terminated
        self.returns += reward
        self.lengths += 1
        infos = outcome.infos()
        observation = outcome.observation
        if done.any():
            rows = np.flatnonzero(done)
            seconds = round(perf_counter() - self._started, 6)
            totals, lengths = self.returns[rows].tolist(), self.lengths[rows].tolist()
            for row, total, length, last in zip(rows.tolist(), totals, lengths, outcome.observation[rows], strict=True):
                info = infos[row]
                info["terminal_observation"], info["TimeLimit.truncated"] = last, False
                info["episode"] = {"r": total, "l": length, "t": seconds}
            self.returns[rows], self.lengths[rows] = 0.0, 0
            observation = outcome.observation.copy()
            observation[rows] = self.batch.observe(self.batch.restart(rows))
        return observation, reward.astype(np.float32), done, infos

    def state(self) -> dict[str, Any]:
        """For a checkpoint: the batch's state, and the running returns and lengths."""
        return {**self.batch.state(), "returns": self.returns.copy(), "lengths": self.lengths.copy()}

    def restore(self, state: Mapping[str, Any]) -> NDArray[np.float32]:
        """Go on from a `state`; gives the observation that the next action answers."""
        if "returns" not in state or "lengths" not in state:
            raise CaromError("state: expected 'returns' and 'lengths' beside the batch's; was it made by StrikeVecEnv?")
        self.batch.restore(state)
        self.returns[:], self.lengths[:] = state["returns"], state["lengths"]
        return self.batch.observe()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """A frame of each task."""
        return [frame(self.batch, row) for row in range(self.num_envs)]


@final
class PushVecEnv(OneBatch):
    """N pushes at once, each of a random task: one rollout of the engine. Every episode is one push."""

    def __init__(
        self, engine: Engine, tasks: PushTasks, count: int, *, values: Mapping[str, float] | None = None
    ) -> None:
        self.engine, self.tasks, self.values = engine, tasks, dict(values or {})
        self.rng = np.random.default_rng(0)
        self._now, self._actions, self.render_mode = tasks, np.zeros((count, 3)), None
        super().__init__(count, *spaces())

    def reset(self) -> NDArray[np.float32]:
        """Other tasks; the first seed given by `seed`, if any, is that of all."""
        given = [s for s in self._seeds if s is not None]
        if given:
            self.rng = np.random.default_rng(given[0])
        self._reset_seeds()
        self._reset_options()
        self._now = self.tasks[self.rng.integers(len(self.tasks), size=self.num_envs)]
        return observation(self._now)

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Keep the actions; everything happens in `step_wait`."""
        self._actions = np.asarray(actions, dtype=np.float64)

    def step_wait(self) -> VecEnvStepReturn:
        """One push at each task."""
        last, miss = observation(self._now), self._now.misses(self.engine, push_of(self._actions), self.values)
        got = reward(miss)
        infos: list[dict[str, Any]] = [
            {
                "terminal_observation": last[row],
                "TimeLimit.truncated": False,
                "is_success": bool(miss[row] < REACHED),
                "miss": float(miss[row]),
                "episode": {"r": float(got[row]), "l": 1, "t": 0.0},
            }
            for row in range(self.num_envs)
        ]
        return self.reset(), got.astype(np.float32), np.ones(self.num_envs, dtype=bool), infos

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Pushes have no pictures."""
        return [None] * self.num_envs
