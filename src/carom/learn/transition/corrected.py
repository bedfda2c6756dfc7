"""An engine of pushes with a learned correction of each control period: for environments, replays and trials alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.rotations import about_z, multiply
from carom.engines.contract import Status
from carom.engines.pushing import PushRun, PushSimulator
from carom.learn.transition.residual import Residual, lever_of, moves_of
from carom.scenes.pushing import PushScene
from carom.state import Array, SceneState, rotate


@final
class CorrectedPushes:
    """A simulator of pushes whose blocks move as an engine says, plus what a residual says."""

    def __init__(self, inner: PushSimulator, residual: Residual) -> None:
        self.inner, self.residual, self.lever = inner, residual, lever_of(inner.scene)

    @property
    def scene(self) -> PushScene:
        """The engine's."""
        return self.inner.scene

    def open(
        self, start: SceneState, values: Mapping[str, ArrayLike] | None = None, *, held: ArrayLike | None = None
    ) -> CorrectedRun:
        """As `PushSimulator.open`."""
        return CorrectedRun(self, start, dict(values or {}), held)

    def moved(self, before: SceneState, after: SceneState) -> SceneState:
        """Where the block really comes to, with a velocity to match; robots stay where the engine has them."""
        moves = moves_of(self.scene, before, after)
        shift = self.residual(moves)
        place, turn = rotate(shift[:, :2], moves.turn), shift[:, 2] / self.lever
        position, velocity, spin = after.position.copy(), after.velocity.copy(), after.spin.copy()
        position[:, 0, :2] += place
        velocity[:, 0, :2] += place / self.inner.period
        spin[:, 0, 2] += turn / self.inner.period
        quaternion = after.quaternion.copy()
        quaternion[:, 0] = multiply(about_z(turn), after.quaternion[:, 0])
        return replace(after, position=position, quaternion=quaternion, velocity=velocity, spin=spin)


@final
class CorrectedRun:
    """N corrected pushes on their way."""

    def __init__(
        self, simulator: CorrectedPushes, start: SceneState, values: dict[str, ArrayLike], held: ArrayLike | None
    ) -> None:
        self.simulator, self._values = simulator, values
        self._run: PushRun = simulator.inner.open(start, values, held=held)
        self.held: Array = self._run.held
        self._status = np.array(self._run.status)

    @property
    def state(self) -> SceneState:
        """Where everything is now."""
        return self._run.state

    @property
    def status(self) -> NDArray[np.int8]:
        """How each row is doing [N]; what once failed stays so."""
        return self._status

    def step(self, controls: ArrayLike) -> SceneState:
        """One control period with these set-points [N, U]."""
        before = self._run.state
        after = self._run.step(controls)
        lost = ~after.finite | (self._run.status == Status.FAILED)
        self._status = np.where(lost | (self._status == Status.FAILED), Status.FAILED, self._run.status).astype(np.int8)
        self.held = self._run.held
        self._run = self.simulator.inner.open(
            _kept(self.simulator.moved(before, after), before, lost), self._values, held=self.held
        )
        return self._run.state


def _kept(state: SceneState, before: SceneState, lost: NDArray[np.bool_]) -> SceneState:
    """A state whose lost rows are as they were, so that the engine can go on with the others."""
    if not lost.any():
        return state
    names = ("position", "quaternion", "velocity", "spin", "joint_position", "joint_velocity")
    parts = {name: getattr(state, name).copy() for name in names}
    for name, part in parts.items():
        part[lost] = getattr(before, name)[lost]
    return replace(state, **parts)
