"""Many rollouts of free bodies in `mujoco.batch`, each with its own start and its own parameters; compiled once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Protocol

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from carom.core.errors import SceneError
from carom.core.rotations import about_z, of_tilt, to_body, yaw
from carom.scenes.free import FREE, FreeScene, calibrated, free_spec, pad_size, timestep
from carom.scenes.parameters import Parameter
from carom.state import Array

CHUNK = 4096  #: rollouts in one batch
SOLIMP = ("impedance_least", "impedance_most", "impedance_width", "impedance_midpoint", "impedance_power")


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
        names = {p.name for p in self.parameters}
        self.condim = 6 if "rolling_friction" in names else 4 if "torsional_friction" in names else 3
        self.pads = "face_friction" in names
        self.model = free_spec(scene, step=self.step, condim=self.condim, pads=self.pads).compile()
        self._faces = np.array(["_face_" in self.model.pair(i).name for i in range(self.model.npair)], dtype=bool)
        self._batch: Batch | None = None

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
        pads = "face_friction" in values
        spec = free_spec(calibrated(self.scene, values), step=self.step, condim=self.condim, pads=pads)
        for pair in spec.pairs:
            if pads and "_face_" in pair.name:
                pair.friction[:2] = values["face_friction"]
            elif "friction" in values:
                pair.friction[:2] = values["friction"]
            if "torsional_friction" in values:
                pair.friction[2] = values["torsional_friction"]
            if "rolling_friction" in values:
                pair.friction[3:5] = values["rolling_friction"]
            for forms, sign in ((("stiffness", "damping"), -1.0), (("time_constant", "damping_ratio"), 1.0)):
                if set(forms) & values.keys():
                    pair.solref = [sign * values.get(name, FREE[name].default) for name in forms]
            for i, name in enumerate(SOLIMP):
                if name in values:
                    pair.solimp[i] = values[name]
        self._lean_and_round(spec, values)
        return spec

    def _lean_and_round(self, spec: mujoco.MjSpec, values: Mapping[str, float]) -> None:
        """The ground's lean and the rounding of edges, in a spec."""
        if {"tilt_x", "tilt_y"} & values.keys():
            spec.geom("ground").quat = of_tilt(values.get("tilt_x", 0.0), values.get("tilt_y", 0.0))
        if radius := values.get("edge_radius", 0.0):
            for body in self.scene.bodies:
                if body.shape is not None and body.shape.kind == "box":
                    spec.geom(body.name).size = np.asarray(spec.geom(body.name).size) - radius
            for pair in spec.pairs:
                if "_face_" not in pair.name:
                    pair.margin = radius * (1.0 if "ground-" in pair.name else 2.0)

    def _prepare(self, count: int) -> Batch:
        if self._batch is None or self._batch.nsim != count:
            self._batch = Batch(self.model, count, self.threads)
        self._batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        return self._batch

    def _write(self, batch: Batch, value: Mapping[str, Array], com: Array) -> None:
        """Each simulation's parameters into its model."""
        self._write_contact(batch, value)
        first = 1  # body 0 is the world
        last = first + len(self.scene.bodies)
        scale = value.get("length_scale", np.ones(batch.nsim))
        mass = value.get("mass_scale", np.ones(batch.nsim))
        if "mass_scale" in value:
            batch.expand("body_mass")[:, first:last] = self.model.body_mass[first:last] * mass[:, None]
        if {"mass_scale", "inertia_scale", "length_scale"} & value.keys():
            stretch = mass * value.get("inertia_scale", np.ones(batch.nsim)) * scale**2
            batch.expand("body_inertia")[:, first:last] = self.model.body_inertia[first:last] * stretch[:, None, None]
        if com.any() or {"com_x", "com_y", "com_z", "com_offset"} & value.keys():
            batch.expand("body_ipos")[:, first:last] = com
        if "gravity" in value and not self.scene.planar:
            batch.expand("opt.gravity")[..., 2] = -value["gravity"].reshape(batch.expand("opt.gravity")[..., 2].shape)
        if {"tilt_x", "tilt_y"} & value.keys():
            batch.expand("geom_quat")[:, 0] = of_tilt(value.get("tilt_x", 0.0), value.get("tilt_y", 0.0))
        if {"length_scale", "edge_radius"} & value.keys():
            self._write_sizes(batch, scale, value.get("edge_radius", np.zeros(batch.nsim)))
        batch.set_const()

    def _write_contact(self, batch: Batch, value: Mapping[str, Array]) -> None:
        friction = (("friction", slice(0, 2)), ("torsional_friction", slice(2, 3)), ("rolling_friction", slice(3, 5)))
        for name, columns in friction:
            if name in value:
                batch.expand("pair_friction")[:, :, columns] = value[name][:, None, None]
        if "face_friction" in value:
            faces = np.flatnonzero(self._faces)
            batch.expand("pair_friction")[:, faces, :2] = value["face_friction"][:, None, None]
        for names, sign in ((("stiffness", "damping"), -1.0), (("time_constant", "damping_ratio"), 1.0)):
            if set(names) & value.keys():
                for i, name in enumerate(names):
                    given = value.get(name, np.full(batch.nsim, FREE[name].default))
                    batch.expand("pair_solref")[:, :, i] = sign * given[:, None]
        for i, name in enumerate(SOLIMP):
            if name in value:
                batch.expand("pair_solimp")[:, :, i] = value[name][:, None]

    def _write_sizes(self, batch: Batch, scale: Array, radius: Array) -> None:
        """Lengths, and rounded edges: a box that is smaller by the radius, kept off by a margin of as much."""
        sizes, bounds = batch.expand("geom_size"), batch.expand("geom_rbound")
        for body in self.scene.bodies:
            geom = self.model.geom(body.name).id
            if body.shape is not None and body.shape.kind == "mesh":
                raise SceneError(f"body '{body.name}': lengths of a mesh cannot be identified; fix length_scale")
            kept = self.model.geom_size[geom] * scale[:, None]
            if body.shape is not None and body.shape.kind == "box":
                for axis, name in enumerate("xyz" if self.pads else ""):
                    pad = self.model.geom(f"{body.name}_face_{name}").id
                    sizes[:, pad], bounds[:, pad] = pad_size(kept, axis), self.model.geom_rbound[pad] * scale
                kept = kept - radius[:, None]
            sizes[:, geom] = kept
            bounds[:, geom] = self.model.geom_rbound[geom] * scale
        if radius.any():
            touching = np.array([1.0 if "ground-" in self.model.pair(i).name else 2.0 for i in range(self.model.npair)])
            touching[self._faces] = 0.0
            batch.expand("pair_margin")[:] = radius[:, None] * touching

    def centres(self, starts: FreeStarts, value: Mapping[str, Array]) -> Array:
        """Centres of mass in the bodies' frames [N, B, 3] [m]."""
        many = len(starts)
        scale = value.get("length_scale", np.ones(many))
        com = self.model.body_ipos[1 : 1 + len(self.scene.bodies)] * scale[:, None, None]
        for i, axis in enumerate("xyz"):
            if f"com_{axis}" in value:
                com[..., i] += value[f"com_{axis}"][:, None]
        if "com_offset" in value:
            side = np.tile([1.0, 0.0, 0.0], (many, 1)) if starts.side is None else starts.side
            com[:, 0] += value["com_offset"][:, None] * side
        return np.asarray(com)

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
        batch = self._prepare(len(starts))
        com = self.centres(starts, value)
        self._write(batch, value, com)
        at, velocity = self.estimated(starts, value, com)
        qpos, qvel = batch.bind("qpos"), batch.bind("qvel")
        self._place(qpos, qvel, at, starts.quaternion, velocity, starts.spin)
        alive, engine = np.arange(len(starts)), 0.0
        for sample in range(position.shape[1]):
            if sample:
                before = perf_counter()
                try:
                    batch.step(alive, nstep=self.substeps)
                except mujoco.batch.SimulationError as error:
                    failed[error.ids] = True
                    alive = np.setdiff1d(alive, error.ids)
                engine += perf_counter() - before
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
        return engine

    def estimated(self, starts: FreeStarts, value: Mapping[str, Array], com: Array) -> tuple[Array, Array]:
        """Position and velocity of the frames [N, B, 3], as estimated for these centres of mass and this gravity."""
        gravity = value.get("gravity", np.full(len(starts), self.scene.gravity)) - starts.gravity
        shift = gravity[:, None, None]
        position = starts.position + np.einsum("nbij,nbj->nbi", starts.position_by_com, com)
        velocity = starts.velocity + np.einsum("nbij,nbj->nbi", starts.velocity_by_com, com)
        return position + shift * starts.position_by_gravity, velocity + shift * starts.velocity_by_gravity

    def _place(
        self, qpos: Array, qvel: Array, position: Array, quaternion: Array, velocity: Array, spin: Array
    ) -> None:
        for body in range(len(self.scene.bodies)):
            if self.scene.planar:
                three = slice(3 * body, 3 * body + 3)
                qpos[:, three] = np.column_stack([position[:, body, :2], yaw(quaternion[:, body])])
                qvel[:, three] = np.column_stack([velocity[:, body, :2], spin[:, body, 2]])
                continue
            qpos[:, 7 * body : 7 * body + 3] = position[:, body]
            qpos[:, 7 * body + 3 : 7 * body + 7] = quaternion[:, body]
            qvel[:, 6 * body : 6 * body + 3] = velocity[:, body]
            # the border where MuJoCo wants the angular velocity in the body's frame
            qvel[:, 6 * body + 3 : 6 * body + 6] = to_body(quaternion[:, body], spin[:, body])

    def _read(self, qpos: Array, position: Array, quaternion: Array, height: Array) -> None:
        for body in range(len(self.scene.bodies)):
            if self.scene.planar:
                x, y, angle = qpos[:, 3 * body : 3 * body + 3].T
                position[:, body] = np.column_stack([x, y, height[:, body]])
                quaternion[:, body] = about_z(angle)
            else:
                position[:, body] = qpos[:, 7 * body : 7 * body + 3]
                quaternion[:, body] = qpos[:, 7 * body + 3 : 7 * body + 7]
