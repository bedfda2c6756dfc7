"""Recordings of free bodies simulated from where they start, by any engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from carom.engines.contract import Engine
from carom.engines.mujoco.engine import Keep, MujocoEngine, MujocoRun
from carom.scenes.free import FreeScene, timestep
from carom.state import Array, Motion, Rows, SceneState


@dataclass(frozen=True)
class Starts:
    """States from which N recordings of B bodies begin; how they were estimated depends on mass centre and gravity."""

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

    def __getitem__(self, rows: Rows) -> Starts:
        picked = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in ("gravity", "side")}
        return Starts(**picked, gravity=self.gravity, side=None if self.side is None else self.side[rows])

    @classmethod
    def known(cls, position: Array, quaternion: Array, velocity: Array, spin: Array) -> Starts:
        """Starts that are known, not estimated: they don't depend on anything. Velocities are of the frames."""
        many, count = np.asarray(position).shape[:2]
        none, flat = np.zeros((many, count, 3, 3)), np.zeros((many, count, 3))
        return cls(position, quaternion, velocity, spin, none, none, flat, flat)

    def offsets(self, length: Array) -> Array:
        """Where centres of mass are that lie off by these lengths [N] towards the sides [N, 3] [m]."""
        side = np.tile([1.0, 0.0, 0.0], (len(self), 1)) if self.side is None else self.side
        return np.asarray(length[:, None] * side)

    def state(self, scene: FreeScene, values: Mapping[str, Array]) -> SceneState:
        """The states as estimated for these parameters [N]."""
        com = scene.centres(values, len(self))
        shift = (values.get("gravity", np.full(len(self), scene.gravity)) - self.gravity)[:, None, None]
        position = self.position + np.einsum("nbij,nbj->nbi", self.position_by_com, com)
        velocity = self.velocity + np.einsum("nbij,nbj->nbi", self.velocity_by_com, com)
        return SceneState(
            tuple(body.name for body in scene.bodies),
            position + shift * self.position_by_gravity,
            self.quaternion,
            velocity + shift * self.velocity_by_gravity,
            self.spin,
        )


@dataclass(frozen=True)
class Sampled:
    """An engine of free bodies whose motions are looked at once per `period`."""

    scene: FreeScene
    engine: Engine
    period: float  #: [s]

    @classmethod
    def in_mujoco(cls, scene: FreeScene, names: tuple[str, ...], *, period: float, threads: int = 0) -> Sampled:
        """MuJoCo for these parameters, with a step that divides the period evenly."""
        return cls(scene, MujocoEngine(scene, names, step=timestep(period), threads=threads), period)

    def simulate(
        self, starts: Starts, values: Mapping[str, Array | float], samples: int, *, keep: Keep | None = None
    ) -> Motion:
        """Each start with its row of parameters [N], or one for all, for so many samples, the start included.

        `keep` stops poor candidates early: asked at its sample with the poses so far, it says which ones go on.
        """
        own = {name: np.broadcast_to(np.asarray(v, dtype=np.float64), (len(starts),)) for name, v in values.items()}
        if "com_offset" in own:
            own["com_offset"] = starts.offsets(own["com_offset"])
        run = self.engine.open(starts.state(self.scene, own), own)
        duration = (samples - 1) * self.period
        if keep is not None and isinstance(run, MujocoRun):
            return run.rollout(duration, frames=samples, keep=keep)
        return run.rollout(duration, frames=samples)
