"""One task as a Gymnasium environment: a segment to train on, or a whole route."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, final

import gymnasium
import numpy as np
from numpy.typing import NDArray

from carom.envs.batch import Simulators, make_batch
from carom.envs.render import Pixels, checked_mode, frame
from carom.envs.routes import Route, route_from
from carom.envs.spaces import action_space, observation_space
from carom.envs.starts import RouteStarts, SegmentStarts, Starts
from carom.envs.task import LENGTH, REACH

Observation = NDArray[np.float32]


class _StrikeEnv(gymnasium.Env[NDArray[Any], NDArray[Any]]):
    """A batch of one. `truncated` is never set: running out of strikes is the end of the task."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 2}  # type: ignore[misc]

    def __init__(self, starts: Starts, simulator: Simulators | None, render_mode: str | None) -> None:
        self.batch, self.render_mode = make_batch(simulator, starts), checked_mode(render_mode)
        self.observation_space, self.action_space = observation_space(len(self.batch.sides)), action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new start; there are no options."""
        super().reset(seed=seed)
        return self.batch.reset(seeds=None if seed is None else [seed])[0], {}

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One strike."""
        outcome = self.batch.step(np.asarray(action)[None])
        info: dict[str, Any] = outcome.info()
        terms = {name: float(value[0]) for name, value in info.pop("reward_terms").items()}
        told = {name: value[0].item() for name, value in info.items()}
        return (
            outcome.observation[0],
            float(outcome.reward[0]),
            bool(outcome.terminated[0]),
            False,
            {"reward_terms": terms, **told},
        )

    def render(self) -> Pixels | None:
        """The table from above, or nothing without a render mode."""
        return frame(self.batch) if self.render_mode == "rgb_array" else None


@final
class StrikeSegmentEnv(_StrikeEnv):
    """One straight segment from a random start, to train a policy on (CLASH, section IV-C)."""

    def __init__(
        self,
        *,
        simulator: Simulators | None = None,
        start_radius: float = REACH,
        heading_spread: float = np.pi / 4,
        turn_spread: float = np.pi / 3,
        length: float = LENGTH,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(SegmentStarts(start_radius, heading_spread, turn_spread, length), simulator, render_mode)


@final
class StrikeRouteEnv(_StrikeEnv):
    """A route of segments; a high-level planner gives one sub-goal after the other."""

    def __init__(
        self,
        *,
        route: int | str | Path | Route = 1,
        simulator: Simulators | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(RouteStarts(route_from(route)), simulator, render_mode)
