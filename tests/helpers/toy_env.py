"""A task of one step with a known best action, as an SB3 VecEnv that can be saved and restored."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv


def best(observations: np.ndarray) -> np.ndarray:
    """The best action [N, 3] for observations [N, 6]."""
    return 0.5 * observations[:, :3].clip(-1, 1)


class ToyVecEnv(VecEnv):
    """Reward: minus the squared distance to the best action; every step ends its episode."""

    def __init__(self, num_envs: int) -> None:
        seen = spaces.Box(-10, 10, (6,), dtype=np.float32)
        super().__init__(num_envs, seen, spaces.Box(-1, 1, (3,), dtype=np.float32))
        self.generator = np.random.default_rng(0)
        self.observations = np.zeros((num_envs, 6), dtype=np.float32)

    def _draw(self) -> np.ndarray:
        self.observations = self.generator.uniform(-1, 1, (self.num_envs, 6)).astype(np.float32)
        return self.observations.copy()

    def reset(self) -> np.ndarray:
        if self._seeds[0] is not None:
            self.generator = np.random.default_rng(self._seeds[0])
            self._reset_seeds()
        return self._draw()

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = np.array(actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        reward = -np.square(self.actions - best(self.observations)).sum(axis=1)
        last = self.observations
        infos: list[dict[str, Any]] = [
            {"terminal_observation": last[i], "episode": {"r": float(r), "l": 1, "t": 0.0}}
            for i, r in enumerate(reward)
        ]
        return self._draw(), reward.astype(np.float32), np.ones(self.num_envs, dtype=bool), infos

    def state(self) -> dict[str, Any]:
        return {"observations": self.observations.copy(), "generator": self.generator.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        self.observations = state["observations"].copy()
        self.generator.bit_generator.state = state["generator"]

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **options: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
