"""Pushes by a tool that is led along a path, many at once in MuJoCo: what comes of the block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import CaromError
from carom.engines.contract import row_values
from carom.engines.mujoco.batch import ModelBatch
from carom.engines.mujoco.layout import layout_of
from carom.scenes.pushing import GuidedScene
from carom.state import Motion, SceneState, Status


@final
class GuidedSimulator:
    """A scene with a led tool. In every step the tool gets the velocity that brings it to its next place."""

    def __init__(self, scene: GuidedScene, parameters: Sequence[str] = (), *, period: float, threads: int = 0) -> None:
        scene.check_parameters(parameters)
        self.scene, self.parameters, self.period = scene, tuple(parameters), period
        self.ticks = round(period / scene.timestep)  #: of the engine's step between instants
        self._model = scene.spec(parameters=self.parameters).compile()
        self._layout = layout_of(self._model)
        self._batch = ModelBatch(self._model, threads=threads)

    def replay(
        self,
        start: SceneState,
        controls: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        held: ArrayLike | None = None,
    ) -> Motion:
        """What comes of paths [N, K, ticks, 3] (x, y, yaw after each step of K periods): poses at K + 1 instants.

        `held` means nothing here: a tool that is led is where it is.
        """
        path, count = np.asarray(controls, dtype=np.float64), len(start)
        if path.ndim != 4 or path.shape[0] != count or path.shape[2:] != (self.ticks, 3):
            raise CaromError(f"controls: expected an array of shape ({count}, K, {self.ticks}, 3), got {path.shape}")
        own, before = row_values(values, count, self.parameters), self._batch.seconds
        made = self._batch.prepare(count, own)
        if own:
            self.scene.write(made, own)
            made.set_const()
        qpos, qvel = made.bind("qpos"), made.bind("qvel")
        places, speeds = qpos.copy(), qvel.copy()
        self._layout.put(start, places, speeds)
        qpos[:], qvel[:] = places, speeds
        status = np.full(count, Status.MOVING, dtype=np.int8)
        kept = [self._layout.poses(qpos.copy(), start.position[..., 2])]
        joints, dofs = list(self._layout.joint_qpos), list(self._layout.joint_qvel)
        for period in range(path.shape[1]):
            for tick in range(self.ticks):
                qvel[:, dofs] = (path[:, period, tick] - qpos[:, joints]) / self.scene.timestep
                alive = np.flatnonzero(status != Status.FAILED)
                status[self._batch.step(alive)] = Status.FAILED
            kept.append(self._layout.poses(qpos.copy(), start.position[..., 2]))
        status[~np.isfinite(qpos).all(axis=1)] = Status.FAILED
        position, quaternion, angles = (np.stack(part, axis=1) for part in zip(*kept, strict=True))
        time = np.tile(self.period * np.arange(path.shape[1] + 1), (count, 1))
        seconds = self._batch.seconds - before
        return Motion(self._layout.bodies, time, position, quaternion, status, self._layout.joints, angles, seconds)
