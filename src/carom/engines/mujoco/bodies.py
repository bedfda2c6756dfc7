"""Many rollouts of free bodies in `mujoco.batch`, each with its own start and its own parameters; compiled once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from carom.core.errors import SceneError
from carom.engines.mujoco.batch import ModelBatch
from carom.engines.mujoco.layout import layout_of
from carom.scenes.free import FreeScene, timestep
from carom.scenes.free_writing import centres, write_bodies, write_contacts, write_sizes
from carom.scenes.parameters import FREE, Parameter
from carom.state import Array, SceneState

CHUNK = 4096  #: rollouts in one batch


@dataclass(frozen=True)
class FreeStarts:
    """States from which N rollouts of B bodies begin; how they were estimated depends on mass centre and gravity."""

    position: Array  #: [N, B, 3] of the bodies' frames [m]
    quaternion: Array  #: [N, B, 4] w-first, world from body
    velocity: Array  #: [N, B, 3] of the frames, world [m/s]
    spin: Array  #: [N, B, 3] world [rad/s]
    #: [N, B, 3, 3] change of position and of velocity per metre that the mass centre lies off the frame's origin
    position_by_com: Array
    velocity_by_com: Array
    position_by_gravity: Array  #: [N, B, 3] change per m/s^2 of free fall
    velocity_by_gravity: Array  #: [N, B, 3]
    gravity: float = 9.81  #: [m/s^2] that the estimates assumed
    side: Array | None = None  #: [N, 3] direction, in the first body's frame, of a `com_offset`; None: along x

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, rows: slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]) -> FreeStarts:
        picked = {
            f.name: getattr(self, f.name)[rows]
            for f in fields(self)
            if f.name not in ("gravity", "side") and getattr(self, f.name) is not None
        }
        return FreeStarts(**picked, gravity=self.gravity, side=None if self.side is None else self.side[rows])

    @classmethod
    def known(cls, position: Array, quaternion: Array, velocity: Array, spin: Array) -> FreeStarts:
        """Starts that are known, not estimated: they don't depend on anything. Velocities are of the frames."""
        many, count = np.asarray(position).shape[:2]
        none, flat = np.zeros((many, count, 3, 3)), np.zeros((many, count, 3))
        return cls(position, quaternion, velocity, spin, none, none, flat, flat)


@dataclass(frozen=True)
class FreeMotion:
    """What came of N rollouts, sampled at `period`, from the start on."""

    position: Array  #: [N, T, B, 3] m
    quaternion: Array  #: [N, T, B, 4]
    failed: NDArray[np.bool_]  #: [N] the engine gave up: what follows is the last good pose
    engine_seconds: float


@dataclass(frozen=True)
class Keep:
    """Which rollouts are worth going on with, asked once."""

    sample: int  #: after which it is asked
    choose: Callable[[Array, Array], NDArray[np.bool_]]  #: positions and quaternions so far [N, t, B, .] -> go on? [N]


class FreeEngine(Protocol):
    """What rolls out free bodies: MuJoCo (`FreeBatch`) or another engine behind the same call."""

    scene: FreeScene
    parameters: tuple[Parameter, ...]
    period: float

    def run(self, starts: FreeStarts, values: Array, samples: int) -> FreeMotion:
        """Roll out each start with its row of `values` [N, P] for `samples` sample periods, the start included."""


class FreeBatch:
    """Rolls out one scene; parameters are written into the compiled model per simulation."""

    def __init__(
        self,
        scene: FreeScene,
        parameters: Sequence[Parameter],
        *,
        period: float,
        step: float | None = None,
        threads: int = 0,
    ) -> None:
        self.scene, self.parameters, self.period, self.threads = scene, tuple(parameters), period, threads
        for p in self.parameters:
            if p.name not in FREE:
                raise SceneError(f"parameter '{p.name}' has no meaning for free bodies; they take: {', '.join(FREE)}")
        self.step = timestep(period) if step is None else period / max(round(period / step), 1)
        self.substeps = round(period / self.step)
        self.model = scene.spec(step=self.step, parameters=[p.name for p in self.parameters]).compile()
        self._layout = layout_of(self.model)
        self._batch: ModelBatch | None = None

    def run(self, starts: FreeStarts, values: Array, samples: int, *, keep: Keep | None = None) -> FreeMotion:
        """Roll out each start with its row of `values` [N, P] for `samples` sample periods, the start included.

        `keep` stops poor candidates early: asked at its sample with the poses so far, it says which rollouts go on.
        The others stand still from there on. It is for batches of at most `CHUNK`.
        """
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (len(starts), len(self.parameters)))
        count, bodies = len(starts), len(self.scene.bodies)
        position, quaternion = np.zeros((count, samples, bodies, 3)), np.zeros((count, samples, bodies, 4))
        failed, engine = np.zeros(count, dtype=bool), 0.0
        for low in range(0, count, CHUNK):
            rows = slice(low, min(low + CHUNK, count))
            pieces = (position[rows], quaternion[rows], failed[rows])
            engine += self._chunk(starts[rows], values[rows], *pieces, keep if count <= CHUNK else None)
        return FreeMotion(position, quaternion, failed, engine)

    def spec_with(self, values: Mapping[str, float]) -> mujoco.MjSpec:
        """The scene's MJCF with these parameters written in, as MuJoCo opens it."""
        return self.scene.spec_with(values, step=self.step)

    def _write(self, batch: Batch, value: Mapping[str, Array], com: Array) -> None:
        """Each simulation's parameters into its model."""
        write_contacts(batch, value)
        write_bodies(self.scene, batch, value, com)
        if {"length_scale", "edge_radius"} & value.keys():
            ones = np.ones(batch.nsim)
            self._write_sizes(batch, value.get("length_scale", ones), value.get("edge_radius", 0 * ones))
        batch.set_const()

    def _write_sizes(self, batch: Batch, scale: Array, radius: Array) -> None:
        write_sizes(self.scene, batch, scale, radius)

    def centres(self, starts: FreeStarts, value: Mapping[str, Array]) -> Array:
        """Centres of mass in the bodies' frames [N, B, 3] [m]."""
        return centres(self.model, len(self.scene.bodies), value, len(starts), starts.side)

    def _chunk(
        self,
        starts: FreeStarts,
        values: Array,
        position: Array,
        quaternion: Array,
        failed: NDArray[np.bool_],
        keep: Keep | None,
    ) -> float:
        value = {p.name: values[:, i] for i, p in enumerate(self.parameters)}
        if self._batch is None or self._batch.model is not self.model:
            self._batch = ModelBatch(self.model, threads=self.threads)
        batch = self._batch.prepare(len(starts))
        com = self.centres(starts, value)
        self._write(batch, value, com)
        at, velocity = self.estimated(starts, value, com)
        qpos, qvel = batch.bind("qpos"), batch.bind("qvel")
        state = SceneState(self._layout.bodies, at, starts.quaternion, velocity, starts.spin)
        self._layout.put(state, qpos, qvel)
        alive, engine = np.arange(len(starts)), self._batch.seconds
        for sample in range(position.shape[1]):
            if sample:
                given_up = self._batch.step(alive, self.substeps)
                failed[given_up] = True
                alive = np.setdiff1d(alive, given_up) if len(given_up) else alive
            self._read(qpos, position[:, sample], quaternion[:, sample], starts.position[..., 2])
            lost = ~np.isfinite(qpos[alive]).all(axis=-1) | (np.abs(qpos[alive]) > 1e3).any(axis=-1)
            if lost.any():
                failed[alive[lost]] = True
                alive = alive[~lost]
            if failed.any() and sample:
                position[failed, sample], quaternion[failed, sample] = (
                    position[failed, sample - 1],
                    quaternion[failed, sample - 1],
                )
            if keep is not None and sample == keep.sample:
                alive = np.intersect1d(
                    alive, np.flatnonzero(keep.choose(position[:, : sample + 1], quaternion[:, : sample + 1]))
                )
            if not len(alive):
                position[:, sample:], quaternion[:, sample:] = position[:, [sample]], quaternion[:, [sample]]
                break
        return self._batch.seconds - engine

    def estimated(self, starts: FreeStarts, value: Mapping[str, Array], com: Array) -> tuple[Array, Array]:
        """Position and velocity of the frames [N, B, 3], as estimated for these centres of mass and this gravity."""
        gravity = value.get("gravity", np.full(len(starts), self.scene.gravity)) - starts.gravity
        shift = gravity[:, None, None]
        position = starts.position + np.einsum("nbij,nbj->nbi", starts.position_by_com, com)
        velocity = starts.velocity + np.einsum("nbij,nbj->nbi", starts.velocity_by_com, com)
        return position + shift * starts.position_by_gravity, velocity + shift * starts.velocity_by_gravity

    def _read(self, qpos: Array, position: Array, quaternion: Array, height: Array) -> None:
        position[:], quaternion[:], _ = self._layout.poses(qpos)
        if self.scene.planar:
            position[..., 2] = height
