"""Any scene in MuJoCo, thousands of rows at a time: free bodies, or robots with actuators; parameters per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError, SceneError
from carom.engines.contract import Validation, frame_times, held_controls, row_values
from carom.engines.mujoco.batch import ModelBatch
from carom.engines.mujoco.layout import layout_of
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body
from carom.state import Array, Contacts, Motion, SceneState, Status

LOST = 1e3  #: [m] a body that is further off was thrown out of the scene


@final
@dataclass(frozen=True)
class Keep:
    """Which rows are worth going on with, asked once. The others stand still from there on."""

    sample: int  #: frame after which it is asked
    choose: Callable[[Array, Array], NDArray[np.bool_]]  #: positions and quaternions so far [N, t, B, .] -> go on? [N]


@final
class MujocoEngine:
    """One scene, compiled once; `parameters` names those that `open` may be given values of."""

    def __init__(
        self, scene: Scene, parameters: Sequence[str] = (), *, step: float | None = None, threads: int = 0
    ) -> None:
        self._scene, self.parameters, self.threads = scene, tuple(parameters), threads
        scene.check_parameters(self.parameters)
        try:
            self.model = scene.spec(step=step, parameters=self.parameters).compile()
        except ValueError as error:
            raise SceneError(f"scene '{scene.name}' does not compile: {str(error).splitlines()[0]}") from error
        self.layout = layout_of(self.model)
        self._batch = ModelBatch(self.model, threads=threads)

    @property
    def scene(self) -> Scene:
        return self._scene

    @property
    def timestep(self) -> float:
        """[s]"""
        return float(self.model.opt.timestep)

    def home(self, count: int) -> SceneState:
        """The state that the model starts in, `count` times."""
        heights = np.tile([place.height for place in self.layout.places], (count, 1))
        qpos, qvel = np.tile(self.model.qpos0, (count, 1)), np.zeros((count, self.model.nv))
        return self.layout.state(qpos, qvel, heights)

    def validate(self, scene: Scene) -> Validation:
        """MuJoCo runs whatever it can compile."""
        try:
            layout_of(scene.spec(parameters=self.parameters).compile())
        except (ValueError, CaromError) as error:
            return Validation(cannot=(str(error).splitlines()[0],))
        return Validation()

    def open(
        self,
        start: SceneState,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        bodies: Sequence[Sequence[Body]] | None = None,
    ) -> MujocoRun:
        """See `Engine`. The batch is this engine's own: opening it again ends the former run."""
        self.layout.check(start)
        own = row_values(values, len(start), self.parameters)
        if bodies is not None and len(bodies) != len(start):
            raise CaromError(f"bodies: expected those of {len(start)} rows, got {len(bodies)}")
        self._scene.check_rows(bodies)
        return MujocoRun(self, self._batch, start, own, bodies)


@final
class MujocoRun:
    """N rows of a scene on their way."""

    def __init__(
        self,
        engine: MujocoEngine,
        batch: ModelBatch,
        start: SceneState,
        values: Mapping[str, Array],
        bodies: Sequence[Sequence[Body]] | None,
    ) -> None:
        self.engine, self.layout, self._batch = engine, engine.layout, batch
        self._seconds = batch.seconds
        self._status = np.full(len(start), Status.MOVING, dtype=np.int8)
        self._qpos, self._qvel = np.zeros((0, engine.model.nq)), np.zeros((0, engine.model.nv))
        self._height = start.position[..., 2]  # that bodies which move in a plane keep
        if not len(start):
            return
        made = batch.prepare(len(start), [*values, "bodies"] if bodies is not None else values)
        self._use = batch.uses
        if bodies is not None:
            engine.scene.write_rows(made, values, bodies)
        elif values:
            engine.scene.write(made, values)
        if values or bodies is not None:
            made.set_const()
        self._qpos, self._qvel = made.bind("qpos"), made.bind("qvel")
        good = np.flatnonzero(start.finite)
        self._status[~start.finite] = Status.FAILED
        qpos, qvel = self._qpos[good], self._qvel[good]
        self.layout.put(start[good], qpos, qvel)
        self._qpos[good], self._qvel[good] = qpos, qvel

    def __len__(self) -> int:
        return len(self._status)

    @property
    def status(self) -> NDArray[np.int8]:
        return self._status.copy()

    @property
    def state(self) -> SceneState:
        self._check()
        return self.layout.state(self._qpos.copy(), self._qvel.copy(), self._height)

    def step(self, duration: float, controls: ArrayLike | None = None) -> SceneState:
        """See `Run`; `controls` [N, U] go to the actuators."""
        self._check()
        steps = self._steps_in(duration)
        held = held_controls(controls, len(self), self.engine.model.nu, several=False)
        self._control(None if held is None else held[:, 0])
        self._advance(self._alive(), steps)
        return self.state

    def rollout(
        self, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2, keep: Keep | None = None
    ) -> Motion:
        """See `Run`. Instants are those of the nearest step. `keep` stops rows that are not worth going on with."""
        self._check()
        count, timestep = len(self), self.engine.timestep
        held = held_controls(controls, count, self.engine.model.nu, several=True)
        at = np.rint(frame_times(duration, count, frames) / timestep).astype(np.int64)
        bodies, joints = len(self.layout.bodies), len(self.layout.joints)
        position, quaternion = np.zeros((count, frames, bodies, 3)), np.zeros((count, frames, bodies, 4))
        angles, going, done = np.zeros((count, frames, joints)), np.ones(count, dtype=bool), 0
        if count and (at[:, 1] < 1).any():
            raise CaromError(f"duration: expected the engine's step of {timestep:g} s or more between frames")
        changes, even = self._changes(at, held), bool(count) and bool((at == at[0]).all())
        stops = np.unique(np.concatenate([at, changes], axis=1))
        for stop in stops:
            active = np.flatnonzero(going & (self._status != Status.FAILED) & (at[:, -1] >= stop))
            self._advance(active, int(stop) - done)
            done = int(stop)
            row, frame = (slice(None), np.flatnonzero(at[0] == stop)[:1]) if even else np.nonzero(at == stop)
            if len(frame):
                now = self.layout.poses(self._qpos[row], self._height[row])
                at_once = int(frame[0]) if even else frame
                position[row, at_once], quaternion[row, at_once], angles[row, at_once] = now
            if held is not None:
                self._control(held[np.arange(count), (changes <= stop).sum(axis=1) - 1])
            if keep is not None and (at[:, keep.sample] == stop).all():
                seen = slice(0, keep.sample + 1)
                going = keep.choose(position[:, seen], quaternion[:, seen])
        instants = np.asarray(at * timestep, dtype=np.float64)
        seconds, self._seconds = self._batch.seconds - self._seconds, self._batch.seconds
        return Motion(
            self.layout.bodies, instants, position, quaternion, self.status, self.layout.joints, angles, seconds
        )

    def contacts(self) -> Contacts:
        """See `Run`; impulses are those of a step from here."""
        self._check()
        found: list[tuple[int, tuple[str, str], Array, Array, float, Array]] = []
        for row in self._alive():
            found += _contacts(self._batch, int(row))
        rows, bodies, points, normals, gaps, impulses = zip(*found, strict=True) if found else ((),) * 6
        return Contacts(
            np.array(rows, dtype=np.int64),
            tuple(bodies),
            np.array(points).reshape(-1, 3),
            np.array(normals).reshape(-1, 3),
            np.array(gaps, dtype=np.float64),
            np.array(impulses).reshape(-1, 3),
        )

    def model_and_data(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """A row as MuJoCo knows it, for whoever steps it alone; nothing that is done to these changes the run."""
        self._check()
        model = self._batch.batch.get_model(row)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = self._qpos[row], self._qvel[row]
        return model, data

    def _check(self) -> None:
        if len(self):
            self._batch.check(self._use)

    def _alive(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._status != Status.FAILED)

    def _steps_in(self, duration: float) -> int:
        steps = round(float(duration) / self.engine.timestep) if np.isfinite(duration) else 0
        if steps < 1 or abs(steps * self.engine.timestep - duration) > 1e-6 * duration:
            raise CaromError(
                f"duration: expected a multiple of the engine's step of {self.engine.timestep:g} s, got {duration:g} s"
            )
        return steps

    def _changes(self, at: NDArray[np.int64], held: Array | None) -> NDArray[np.int64]:
        """Steps at which controls change [N, K]; the first is 0."""
        several = 1 if held is None else held.shape[1]
        return np.asarray(np.rint(at[:, -1:] * np.arange(several) / several), dtype=np.int64)

    def _control(self, controls: Array | None) -> None:
        if len(self) and self.engine.model.nu and controls is not None:
            self._batch.bind("ctrl")[:] = controls

    def _advance(self, rows: NDArray[np.int64], steps: int) -> None:
        if not len(rows) or not steps:
            return
        before = self._qpos[rows].copy()
        self._status[self._batch.step(rows, steps)] = Status.FAILED
        now = self._qpos[rows]
        far = np.abs(self.layout.poses(now, self._height[rows])[0]) > LOST
        lost = ~np.isfinite(now).all(axis=-1) | far.any(axis=(1, 2))
        if lost.any():
            self._status[rows[lost]] = Status.FAILED
            self._qpos[rows[lost]], self._qvel[rows[lost]] = before[lost], 0.0


def _contacts(batch: ModelBatch, row: int) -> list[tuple[int, tuple[str, str], Array, Array, float, Array]]:
    """The contacts of one row."""
    model, data = batch.batch.get_model(row), batch.batch.get_data(row)
    mujoco.mj_forward(model, data)
    found, force = [], np.zeros(6)
    for i in range(data.ncon):
        contact = data.contact[i]
        first, second = (model.body(model.geom_bodyid[geom]).name or "world" for geom in contact.geom)
        mujoco.mj_contactForce(model, data, i, force)
        axes = np.asarray(contact.frame).reshape(3, 3)
        impulse = model.opt.timestep * (force[:3] @ axes)
        found.append((row, (first, second), np.array(contact.pos), axes[0].copy(), float(contact.dist), impulse))
    return found
