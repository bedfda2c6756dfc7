"""Strikes run in MuJoCo, thousands at a time, each with its own parameters: `S_post = Sim(S_pre, P)` (Eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import mujoco
import numpy as np
from mujoco.batch import Batch

from carom.engines.mujoco.batch import ModelBatch
from carom.engines.over import HORIZON, READ_STEPS, STEADY_STEPS, contact_over
from carom.engines.strike_states import PLANAR, at_point, put_touching
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes, rotate

CHUNK = 512  #: strikes that share one batch: more cost memory and gain nothing
SEPARATED, PUSHING, MISSED, FAILED = 0, 1, 2, 3  #: statuses


@dataclass(frozen=True)
class Collisions:
    """Outcome of N simulated strikes."""

    post: Array  #: [N, 3] vx, vy, wz of the target's declared centre of mass at separation [m/s, m/s, rad/s]
    post_mass_centre: Array  #: [N, 3] the same of the actual centre of mass, where `com_x` and `com_y` moved it
    status: np.ndarray  #: [N] SEPARATED, PUSHING (still touching at the horizon), MISSED (never touched) or FAILED
    lasting: Array  #: [N] from the first touch to the last [s]; 0: never touched
    engine_seconds: float  #: wall time spent inside MuJoCo
    seconds: float  #: wall time in all


class Collider:
    """Runs strikes of one scene in MuJoCo with per-strike parameters; compiles the model once."""

    def __init__(self, scene: StrikeScene, parameters: Sequence[Parameter], *, threads: int = 0) -> None:
        self.scene, self.parameters, self.threads = scene, tuple(parameters), threads
        self.model = scene.spec().compile()
        self._batch = ModelBatch(self.model, threads=threads)
        scene.check_parameters([p.name for p in self.parameters])

    def run(self, strikes: Strikes, values: Array) -> Collisions:
        """Simulate each strike with its row of `values` [N, P] until separation."""
        start, engine = perf_counter(), self._batch.seconds
        post, status = np.zeros((len(strikes), 3)), np.zeros(len(strikes), dtype=np.int8)
        lasting = np.zeros(len(strikes))
        for low in range(0, len(strikes), CHUNK):
            rows = slice(low, min(low + CHUNK, len(strikes)))
            post[rows], status[rows], lasting[rows] = self._run_chunk(strikes[rows], values[rows])
        seconds = self._batch.seconds - engine, perf_counter() - start
        return Collisions(self._declared(strikes, values, post), post, status, lasting, *seconds)

    def model_with(self, values: Array) -> mujoco.MjModel:
        """The compiled model with one set of parameters [P] written into it."""
        batch = Batch(self.model, 1, 1)
        self.scene.write(batch, {p.name: np.array([v]) for p, v in zip(self.parameters, values, strict=True)})
        batch.set_const()
        return batch.get_model(0)

    def _declared(self, strikes: Strikes, values: Array, post: Array) -> Array:
        """Velocities of the declared centre of mass [N, 3] from those of the actual one: what a recording shows."""
        offset = np.zeros((len(post), 2))
        for i, p in enumerate(self.parameters):
            if p.name in ("com_x", "com_y"):
                offset[:, int(p.name == "com_y")] = values[:, i]
        arm = rotate(offset, strikes.target_pose[:, 2])
        return np.asarray(at_point(post, -arm))

    def _run_chunk(self, strikes: Strikes, values: Array) -> tuple[Array, np.ndarray, Array]:
        count, timestep = len(strikes), self.model.opt.timestep
        geometry = {p.name: values[:, i] for i, p in enumerate(self.parameters)}
        batch = self._batch.prepare(count)
        self.scene.write(batch, geometry)
        batch.set_const()
        com = self.scene.mass_centres(geometry, count)
        qpos, qvel, touch = batch.bind("qpos"), batch.bind("qvel"), batch.bind("sensordata")[:, 0]
        put_touching(self.scene, strikes, geometry, com, qpos, qvel)
        active = np.arange(count)
        last_touch, past = np.full(count, -1), np.zeros((STEADY_STEPS, count, 3))
        scale = np.array([1.0, 1.0, self.scene.gyration_radius])
        speed = np.linalg.norm(strikes.striker_velocity[:, :2], axis=-1)
        post, status = np.zeros((count, 3)), np.full(count, PUSHING, dtype=np.int8)
        for step in range(int(HORIZON / timestep)):
            failed = self._batch.step(active)
            status[failed] = FAILED
            active = np.setdiff1d(active, failed) if len(failed) else active
            met = touch[active] > 0
            last_touch[active[met]] = step
            fresh = active[step - last_touch[active] <= READ_STEPS]
            post[fresh] = _velocity(qpos[fresh], qvel[fresh], com[fresh], strikes.target_pose[fresh, 2])
            change = np.linalg.norm((post[active] - past[step % STEADY_STEPS, active]) * scale, axis=-1)
            past[step % STEADY_STEPS] = post
            hit = last_touch[active] >= 0
            # contacts begin at once: strikers start a hair away
            parted, over = contact_over(step, step - last_touch[active], met, change, speed[active], timestep=timestep)
            missed = ~hit & (step > HORIZON / timestep / 3)
            status[active[hit & parted]], status[active[missed]] = SEPARATED, MISSED
            active = active[~((hit & over) | missed)]
            if not len(active):
                break
        return post, status, (last_touch + 1) * timestep  # contacts begin in the first step


def _velocity(qpos: Array, qvel: Array, com: Array, yaw: Array) -> Array:
    """World velocity of the centre of mass, and spin [n, 3], of targets that began at this yaw; tipping is left out."""
    local = at_point(qvel[:, PLANAR], rotate(com, 2 * np.arctan2(qpos[:, 6], qpos[:, 3])))
    return np.column_stack([rotate(local[:, :2], yaw), local[:, 2]])
