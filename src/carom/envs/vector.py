"""Many tasks as one Gymnasium vector environment: row i seeded with seed + i is the single one seeded so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from carom.core.errors import CaromError, unknown_name
from carom.envs.batch import Simulators, make_batch
from carom.envs.outcome import Mask
from carom.envs.render import Pixels, checked_mode, frame
from carom.envs.routes import Route, route_from
from carom.envs.spaces import action_space, observation_space
from carom.envs.starts import RouteStarts, SegmentStarts, Starts

Observations = NDArray[np.float32]
KINDS = ("segment", "route")


@final
class StrikeVectorEnv(VectorEnv[Observations, Observations, NDArray[Any]]):
    """N tasks in one batch; what ended starts anew in the same step, its end is in `final_obs` and `final_info`."""

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["rgb_array"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        kind: str = "segment",
        simulator: Simulators | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        """`options` are the single environments' of this kind."""
        self.num_envs, self.render_mode = num_envs, checked_mode(render_mode)
        self.batch = make_batch(simulator, _starts(kind, options), count=num_envs)
        self.single_observation_space, self.single_action_space = (
            observation_space(len(self.batch.sides)),
            action_space(),
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """All tasks anew; one seed is that of the first row, the others count on from it."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = [seed + row for row in range(self.num_envs)] if isinstance(seed, int | np.integer) else seed
        return self.batch.reset(seeds=seeds), {}

    def step(self, actions: Observations) -> tuple[Observations, NDArray[Any], Mask, Mask, dict[str, Any]]:
        """One strike at each task, in one rollout."""
        outcome = self.batch.step(actions)
        ended, observation, infos = outcome.terminated, outcome.observation, {}
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            for row in np.flatnonzero(ended):
                last[row] = observation[row]
            infos = {
                "final_obs": last,
                "_final_obs": ended.copy(),
                "final_info": _masked(outcome.info(), ended),
                "_final_info": ended.copy(),
            }
            observation = observation.copy()
            index = self.batch.restart(ended)
            observation[index] = self.batch.observe(index)
        if not ended.all():
            infos.update(_masked(outcome.info(), ~ended))
        return observation, outcome.reward, ended, np.zeros(self.num_envs, dtype=bool), infos

    def render(self) -> tuple[Pixels, ...] | None:
        """A frame of each task, or nothing without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(frame(self.batch, row) for row in range(self.num_envs))


def segments(num_envs: int = 1, **options: Any) -> StrikeVectorEnv:
    """Gymnasium's vector entry point of `carom/StrikeSegment-v0`."""
    return StrikeVectorEnv(num_envs, kind="segment", **options)


def routes(num_envs: int = 1, **options: Any) -> StrikeVectorEnv:
    """Gymnasium's vector entry point of `carom/StrikeRoute-v0`."""
    return StrikeVectorEnv(num_envs, kind="route", **options)


def _starts(kind: str, options: dict[str, Any]) -> Starts:
    if kind not in KINDS:
        raise CaromError(unknown_name("kind", kind, KINDS))
    known = [field.name for field in fields(SegmentStarts)] if kind == "segment" else ["route"]
    for name in options:
        if name not in known:
            raise CaromError(unknown_name(f"option of kind '{kind}'", name, known))
    if kind == "segment":
        return SegmentStarts(**options)
    route: int | str | Path | Route = options.get("route", 1)
    return RouteStarts(route_from(route))


def _masked(info: dict[str, Any], rows: Mask) -> dict[str, Any]:
    """Gymnasium's vector infos: each array beside a mask of the rows that have it; zero elsewhere."""
    out: dict[str, Any] = {}
    for name, value in info.items():
        part = _masked(value, rows) if isinstance(value, dict) else np.where(rows, value, np.zeros_like(value))
        out[name], out[f"_{name}"] = part, rows.copy()
    return out
