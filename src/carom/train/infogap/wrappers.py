"""Wrappers that add an information term to the reward of any environment: a single one, or a batch for SB3.

PPO and SAC use them unchanged. What the task itself paid and what the term paid are in every `info`, and their means
since the last reset of the log in `log()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat, final

import gymnasium
import numpy as np
from numpy.typing import ArrayLike
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from carom.core.errors import CaromError
from carom.state import Array
from carom.train.infogap.terms import InformationTerm


@dataclass
class TermLog:
    """Running means of what the task and the term paid."""

    steps: int = 0
    task: float = 0.0  #: sum
    information: float = 0.0  #: sum

    def add(self, task: ArrayLike, information: ArrayLike) -> None:
        """Count transitions [N]."""
        self.steps += np.size(task)
        self.task += float(np.sum(task))
        self.information += float(np.sum(information))

    def means(self) -> dict[str, float]:
        """What a transition was paid in the mean."""
        count = max(self.steps, 1)
        return {"steps": self.steps, "task": self.task / count, "information": self.information / count}


@final
class InfoGapEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment with flat observations and actions whose reward has an information term.

    >>> import gymnasium, numpy as np
    >>> class Still:
    ...     weight = 0.5
    ...     def __call__(self, observation, action, following):
    ...         return 0.5 * np.ones(len(observation))
    >>> env = InfoGapEnv(gymnasium.make("Pendulum-v1"), Still())
    >>> _ = env.reset(seed=0)
    >>> _, reward, _, _, info = env.step(np.zeros(1))
    >>> round(float(reward) - info["task_reward"], 6), info["information"]
    (0.5, 0.5)
    """

    def __init__(self, env: gymnasium.Env[Any, Any], term: InformationTerm) -> None:
        super().__init__(env)
        self.term, self.counts = term, TermLog()
        self._before: Array | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._before = _flat(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One transition, with the term in its reward."""
        if self._before is None:
            raise CaromError("step: reset the environment first")
        observation, reward, terminated, truncated, info = self.env.step(action)
        following = _flat(observation)
        told = float(self.term(self._before[None], _flat(action)[None], following[None])[0])
        self._before = following
        self.counts.add([float(reward)], [told])
        more = {"task_reward": float(reward), "information": told}
        return observation, float(reward) + told, terminated, truncated, {**info, **more}

    def log(self) -> dict[str, float]:
        """Means over the transitions so far."""
        return self.counts.means()


@final
class InfoGapVecEnv(VecEnvWrapper):
    """A batch of environments for Stable-Baselines3 whose rewards have an information term.

    Where an episode ends, the term sees its last observation (`terminal_observation`), not the first of the next one.
    """

    def __init__(self, venv: VecEnv, term: InformationTerm) -> None:
        super().__init__(venv)
        self.term, self.counts = term, TermLog()
        self._before = np.zeros((venv.num_envs, 0))
        self._actions = np.zeros((venv.num_envs, 0))

    def reset(self) -> VecEnvObs:
        """All tasks anew."""
        observation = self.venv.reset()
        self._before = np.array(observation, dtype=np.float64)
        return observation

    def step_async(self, actions: Any) -> None:
        """Keep the actions: the term needs them."""
        self._actions = np.array(actions, dtype=np.float64)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """One transition of each, with the term in its reward."""
        observation, reward, done, infos = self.venv.step_wait()
        following = np.array(observation, dtype=np.float64)
        for row in np.flatnonzero(done).tolist():
            if "terminal_observation" in infos[row]:
                following[row] = np.asarray(infos[row]["terminal_observation"], dtype=np.float64)
        told = self.term(self._before, self._actions, following)
        self._before = np.array(observation, dtype=np.float64)
        self.counts.add(reward, told)
        for info, paid, more in zip(infos, np.asarray(reward).tolist(), told.tolist(), strict=True):
            info["task_reward"], info["information"] = paid, more
        return observation, np.asarray(reward + told, dtype=np.float32), done, infos

    def log(self) -> dict[str, float]:
        """Means over the transitions so far."""
        return self.counts.means()

    def state(self) -> dict[str, Any]:
        """For a checkpoint: the batch's own state, and what the term saw last."""
        inner: Any = self.venv
        return {"inner": inner.state(), "before": self._before.copy(), "counts": dict(vars(self.counts))}

    def restore(self, state: Mapping[str, Any]) -> Any:
        """Go on from a `state`."""
        inner: Any = self.venv
        self._before = np.array(state["before"], dtype=np.float64)
        self.counts = TermLog(**state["counts"])
        return inner.restore(state["inner"])


def _flat(values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.dtype == object or isinstance(values, dict | tuple):
        raise CaromError("InfoGap needs observations and actions that are arrays; flatten them first")
    return array.reshape(-1)
