"""What is fitted through MJX: the strikes as its states, the parameters looked for, residuals and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from carom.core.errors import CaromError
from carom.engines.mjx.collide import first_states, outcomes_and_slopes
from carom.identify import trust
from carom.scenes.parameters import TABLE_I, Parameter, defaults
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, rotate


class Problem:
    """What is fitted: the strikes as MuJoCo states, and the parameters looked for among those of Table I."""

    def __init__(self, scene: StrikeScene, impacts: Impacts, fixed: Mapping[str, float] | None) -> None:
        self.scene, self.impacts = scene, impacts
        self.parameters = tuple(scene.parameters("mujoco"))
        self.table: list[Parameter] = [p for p in self.parameters if p.name in TABLE_I]
        self.held = trust.held_values(self.parameters, [p.name for p in self.table], fixed)
        self.active = [i for i, p in enumerate(self.table) if p.name not in self.held]
        geometry = {name: np.full(len(impacts), value) for name, (value, _) in self.held.items()}
        self.qpos, self.qvel = first_states(scene, impacts.strikes, geometry)

    @property
    def where(self) -> list[int]:
        """Indices of the parameters looked for, among all of the scene's."""
        return [self.parameters.index(self.table[i]) for i in self.active]

    def give_up(self, dead: Mapping[str, float]) -> None:
        self.held |= {p.name: (p.default, "") for p in self.table if p.name in dead}
        self.active = [i for i in self.active if self.table[i].name not in dead]

    def values(self, unit: Array) -> Array:
        """Table I parameters [S, 4] for unit candidates [S, A]."""
        values = np.tile(defaults(self.table), (len(unit), 1))
        for i, p in enumerate(self.table):
            if p.name in self.held:
                values[:, i] = self.held[p.name][0]
        for column, i in enumerate(self.active):
            values[:, i] = self.table[i].from_unit(np.clip(unit[:, column], 0.0, 1.0))
        return values

    def slopes(self, values: Array) -> Array:
        """Change of each looked-for parameter's value with its unit one [S, A]."""
        columns = []
        for i in self.active:
            p = self.table[i]
            columns.append(values[:, i] * np.log(p.high / p.low) if p.log else np.full(len(values), p.high - p.low))
        return np.stack(columns, axis=-1)


@dataclass
class Engine:
    """Outcomes and their derivatives through MJX; counts what it simulates."""

    run: Callable[[Array], tuple[Any, Any]]
    scene: StrikeScene
    impacts: Impacts
    evaluations: int = 0
    compile_seconds: float = 0.0

    def __call__(self, values: Array) -> tuple[Array, Array]:
        """Residuals [S, N, 3] and their derivatives [S, N, 3, 4] by the values of Table I [S, 4]."""
        start = perf_counter()
        rows = [self.run(value) for value in values]
        if not self.evaluations:
            self.compile_seconds = perf_counter() - start
        self.evaluations += len(values) * len(self.impacts)
        post, slope = (np.array([row[i] for row in rows]) for i in (0, 1))
        yaw = self.impacts.strikes.target_pose[:, 2]
        post[..., :2] = rotate(post[..., :2], yaw)
        slope[..., :2, :] = _turned(slope, yaw)
        k = self.scene.gyration_radius
        residual = trust.residuals(post, self.impacts.post, k)
        if not np.isfinite(slope).all():
            share = float((~np.isfinite(slope)).mean())
            raise CaromError(f"MJX gives no derivatives for scene '{self.scene.name}': {share:.0%} are not finite")
        return residual, slope * np.array([1.0, 1.0, k])[:, None]


def _turned(slope: Array, yaw: Array) -> Array:
    """The linear part of derivatives [S, N, 3, 4] turned into the world [S, N, 2, 4]."""
    columns = np.moveaxis(slope[..., :2, :], -1, 0)  # [4, S, N, 2]
    return np.moveaxis(rotate(columns, np.broadcast_to(yaw, columns.shape[:-1])), 0, -1)


def build(jax: Any, mjx: Any, problem: Problem) -> Engine:
    """The strikes of a problem in MJX; compiled at the first call."""
    run = outcomes_and_slopes(jax, mjx, problem.scene, problem.qpos, problem.qvel)
    return Engine(run, problem.scene, problem.impacts)
