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
from carom.identify.problem import Problem, held_values
from carom.scenes.parameters import TABLE_I
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, rotate


@dataclass(frozen=True, kw_only=True)
class MjxProblem(Problem):
    """Recorded strikes to be explained by MJX. Only parameters of Table I are looked for."""

    scene: StrikeScene
    impacts: Impacts
    run: Callable[[Array], tuple[Any, Any]]  #: outcomes [N, 3] and slopes [N, 3, 4] for values of Table I [4]

    @classmethod
    def of(
        cls, jax: Any, mjx: Any, scene: StrikeScene, impacts: Impacts, fixed: Mapping[str, float] | None
    ) -> MjxProblem:
        """The problem of these strikes; MJX compiles at the first call."""
        parameters = tuple(scene.parameters("mujoco"))
        held = held_values(parameters, [p.name for p in parameters if p.name in TABLE_I], fixed)
        geometry = {name: np.full(len(impacts), value) for name, (value, _) in held.items()}
        run = outcomes_and_slopes(jax, mjx, scene, *first_states(scene, impacts.strikes, geometry))
        return cls(parameters=parameters, held=held, scene=scene, impacts=impacts, run=run)

    @property
    def table(self) -> list[int]:
        """Indices of the parameters of Table I [4]."""
        return [i for i, p in enumerate(self.parameters) if p.name in TABLE_I]

    def linearised(self, unit: Array) -> tuple[Array, Array]:
        """Residuals [S, N, 3] and their derivatives [S, N, 3, A] at unit points [S, A]."""
        table = self.table
        values = self.values(unit)[:, table]
        residual, by_value = self.residuals(values)
        columns = [table.index(i) for i in self.active]
        slopes = [
            values[:, c] * np.log(p.high / p.low) if p.log else np.full(len(values), p.high - p.low)
            for c, p in zip(columns, self.sought, strict=True)
        ]
        return residual, by_value[..., columns] * np.stack(slopes, axis=-1)[:, None, None, :]

    def residuals(self, values: Array) -> tuple[Array, Array]:
        """Residuals [S, N, 3] and their derivatives [S, N, 3, 4] by the values of Table I [S, 4]."""
        start = perf_counter()
        rows = [self.run(value) for value in values]
        self.effort.evaluations += len(values) * len(self.impacts)
        self.effort.engine_seconds += perf_counter() - start
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
