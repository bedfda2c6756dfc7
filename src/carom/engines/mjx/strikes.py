"""Strikes from approach to rest in MJX, MuJoCo for accelerators: the same rules as `MujocoSimulator`, in JAX.

All strikes of a batch take the same steps, side by side (`vmap`), `BLOCK` of them in one compiled program. It is
compiled once per batch size, padded to a power of two (20 to 30 s); durations, frames and controls cost no
compilation. On one CPU core MuJoCo's own batch is ten times faster: MJX is for GPUs and TPUs, and for policies in JAX.

JAX comes with the extra `mjx` and is imported where a simulator is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import mujoco
import numpy as np
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.engines.contract import Rollout, Validation
from carom.engines.mjx.load import float64, load, put
from carom.engines.mjx.strike_program import Fixed, Row, program, seen_of
from carom.engines.mujoco.collide import Collider
from carom.engines.over import STEADY_STEPS
from carom.engines.planar import Stepping, StrikeEngine, joined, unknown_to_mujoco
from carom.engines.strike_frames import between
from carom.engines.strike_states import at_point, put_strikes, turned
from carom.scenes.mjcf import strike_spec
from carom.scenes.simplify import simplified
from carom.scenes.strike import StrikeScene
from carom.state import Array, Status, Strikes

CHUNK = 512  #: most strikes that share one program
CORNERS = 20  #: of a target's outline: MJX chooses contact points badly on faces with more
BLOCK = 50  #: steps in one call of it
NEVER = -1000  #: step at which something happened that has not
WRITTEN = ("pair_friction", "pair_solref", "body_ipos", "body_mass", "geom_size", "geom_rbound")


@final
class MjxSimulator(StrikeEngine):
    """Strikes of one scene in MJX, double precision, with parameters by name; what is not given has its default.

    A target's outline is reduced to `corners` (`scenes.simplify`). Friction cones are MuJoCo's; `pyramidal`
    ones, as derivatives need them, compile faster, but bodies slide further in some directions than in others.
    """

    def __init__(
        self,
        scene: StrikeScene,
        values: Mapping[str, float] | None = None,
        *,
        corners: int = CORNERS,
        pyramidal: bool = False,
    ) -> None:
        self._jax, self._mjx = load()
        self.corners, self.pyramidal = corners, pyramidal
        self.scene, self._simple = scene, _reduced(scene, corners)
        parameters = scene.parameters("mujoco")
        self.values = {p.name: float((values or {}).get(p.name, p.default)) for p in parameters}
        known = Collider(self._simple, parameters).model_with(np.array([self.values[p.name] for p in parameters]))
        with float64(self._jax):
            self.model, _, _ = put(self._mjx, self._simple)
            for name in WRITTEN:
                getattr(self.model, name)[:] = getattr(known, name)
            mujoco.mj_setConst(self.model, mujoco.MjData(self.model))
            if not pyramidal:
                self.model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
            self._block = program(self._jax, self._mjx, self.model, scene)

    def judged(self, scene: StrikeScene) -> Validation:
        """Name what only the analytic teacher knows, and where MJX's contacts are not MuJoCo's."""
        ignored = list(unknown_to_mujoco(scene))
        if self.pyramidal:
            ignored.append("elliptic friction cones: pyramids in their place")
        try:
            simple = _reduced(scene, self.corners)
            before, after = len(scene.outline.vertices), len(simple.outline.vertices)
            if simple is not scene:
                ignored.append(f"the target's outline of {before} corners: a mesh of {after} in its place")
            with float64(self._jax):
                put(self._mjx, simple)
        except CaromError as error:
            return Validation(tuple(ignored), (str(error),))
        return Validation(tuple(ignored))

    def rolled(self, initial: Strikes, times: Array, orders: Array | None, values: Mapping[str, Array]) -> Rollout:
        """See `StrikeEngine`."""
        parts = []
        for low in range(0, len(initial), CHUNK):
            rows = slice(low, low + CHUNK)
            parts.append(self._run(initial[rows], times[rows], None if orders is None else orders[rows]))
        return joined(parts)

    def stepping(self, start: Strikes, bad: NDArray[np.bool_], values: Mapping[str, Array]) -> Stepping:
        """See `StrikeEngine`."""
        return _Stepped(self, start, bad)

    def _run(self, initial: Strikes, times: Array, orders: Array | None) -> Rollout:
        """One batch, block by block, until every target rests or its time is over."""
        count, step = len(initial), float(self.model.opt.timestep)
        padded = 1 << (count - 1).bit_length()
        rows = np.minimum(np.arange(padded), count - 1)
        ends = np.ceil(times[:, -1] / step - 1e-9).astype(np.int64)
        fixed, now = self._start(initial[rows], ends[rows], led=orders is not None)
        kept = np.zeros((*times.shape, 9))
        before = seen_of(fixed, now, self.scene)
        _keep(kept, times, before[:, None], 0.0, step)
        with float64(self._jax):
            for done in range(0, int(ends.max()), BLOCK):
                order = _orders(orders, times, done, step)[rows]
                now, states = self._block(fixed, now, order)
                passed = np.concatenate([before[:, None], np.asarray(states)], axis=1)
                _keep(kept, times, passed, done * step, step)
                before = passed[:, -1]
                if ((np.asarray(now.rested) >= 0) | (ends[rows] <= done + BLOCK)).all():
                    break
        return _rollout(times, kept, Row(*(np.asarray(column)[:count] for column in now)), step)

    def _start(self, initial: Strikes, ends: NDArray[np.int64], *, led: bool) -> tuple[Fixed, Row]:
        """States of MuJoCo, and what is remembered, before the first step."""
        count, scene = len(initial), self.scene
        qpos, qvel = np.tile(self.model.qpos0, (count, 1)), np.zeros((count, self.model.nv))
        arm = put_strikes(scene, initial, {k: np.full(count, v) for k, v in self.values.items()}, qpos, qvel)
        speed = np.linalg.norm(initial.striker_velocity[:, :2], axis=-1)
        facing = np.full(count, scene.striker.forward + self.values.get("face_tilt", 0.0))
        never, no = np.full(count, NEVER), np.zeros(count, dtype=bool)
        now = Row(
            qpos,
            qvel,
            np.zeros_like(qvel),
            initial.target_pose[:, 2].copy(),
            np.zeros(count, dtype=np.int64),
            no,
            no,
            never,
            never,
            np.zeros(count, dtype=np.int64),
            np.full((count, 3), np.nan),
            np.zeros((count, STEADY_STEPS, 3)),
            never,
            np.zeros((count, 9)),
            no,
        )
        return Fixed(arm, speed, facing, ends, np.full(count, led)), now


@final
class _Stepped:
    """Strikes advanced bit by bit."""

    def __init__(self, owner: MjxSimulator, initial: Strikes, bad: NDArray[np.bool_]) -> None:
        self.owner, self.count, self.bad, self.posture = owner, len(initial), bad, initial.posture
        rows = np.minimum(np.arange(1 << (self.count - 1).bit_length()), self.count - 1)
        self.fixed, self.row = owner._start(initial[rows], np.zeros(len(rows), dtype=np.int64), led=False)
        self.rows, self.done, self.clock = rows, 0, 0.0

    @property
    def now(self) -> Strikes:
        """Where they are."""
        row = Row(*(np.asarray(column) for column in self.row))
        seen = seen_of(self.fixed, row, self.owner.scene)[: self.count]
        u = at_point(row.qvel[:, 6:9], -turned(self.fixed.arm, row.qpos[:, 9]))[: self.count]
        return Strikes(seen[:, :3], seen[:, 3:6], seen[:, 6:], u, self.posture)

    @property
    def status(self) -> NDArray[np.int8]:
        """How they are doing [N]."""
        first, slow, qpos = (np.asarray(c)[: self.count] for c in (self.row.first, self.row.slow, self.row.qpos))
        failed = self.bad | ~np.isfinite(qpos).all(axis=1)
        status = np.where(first < 0, Status.MISSED, np.where(slow, Status.AT_REST, Status.MOVING))
        return np.where(failed, Status.FAILED, status).astype(np.int8)

    def advance(self, duration: float, orders: Array | None) -> None:
        """Go on for `duration` [s]; strikers follow orders [N, 3], or keep their velocity until they have struck."""
        owner, led = self.owner, np.full(len(self.rows), orders is not None)
        self.clock += duration
        until = round(self.clock / float(owner.model.opt.timestep))
        held = np.zeros((self.count, 3)) if orders is None else orders
        order = np.repeat(held[self.rows, None], BLOCK, axis=1)
        with float64(owner._jax):
            while self.done < until:
                self.done = min(self.done + BLOCK, until)
                fixed = self.fixed._replace(end=np.full(len(self.rows), self.done), led=led)
                row, _ = owner._block(fixed, self.row, order)
                self.row = row._replace(done=np.full(len(self.rows), self.done))


def _reduced(scene: StrikeScene, corners: int) -> StrikeScene:
    """The scene as MJX gets it; raises for a ball."""
    strike_spec(scene)
    return simplified(scene, corners=corners)


def _orders(orders: Array | None, times: Array, done: int, step: float) -> Array:
    """Velocities ordered in the next steps [N, BLOCK, 3]."""
    if orders is None:
        return np.zeros((len(times), BLOCK, 3))
    share = (done + np.arange(BLOCK)) * step / times[:, -1:] * orders.shape[1]
    which = np.clip(share.astype(np.int64), 0, orders.shape[1] - 1)
    return np.asarray(np.take_along_axis(orders, which[..., None], axis=1))


def _keep(kept: Array, times: Array, passed: Array, start: float, step: float) -> None:
    """Keep the frames due within states [N, S, 9], one step apart, the first at `start` [s]: cubic between them."""
    end = start + (passed.shape[1] - 1) * step
    row, frame = np.nonzero((times >= start - 1e-9) & (times <= end + 1e-9))
    place = (times[row, frame] - start) / step
    low = np.clip(np.floor(place).astype(np.int64), 0, max(passed.shape[1] - 2, 0))
    a, b = (passed[row, i] for i in (low, np.minimum(low + 1, passed.shape[1] - 1)))
    kept[row, frame] = between(a, b, np.clip(place - low, 0.0, 1.0), step)


def _rollout(times: Array, kept: Array, row: Row, step: float) -> Rollout:
    """The outcome of a batch; a target that came to rest stays there."""
    later = (row.rested[:, None] >= 0) & (times > row.rested[:, None] * step)
    kept[later] = np.broadcast_to(row.state[:, None], kept.shape)[later]
    pose, velocity, striker = np.split(kept, 3, axis=-1)
    velocity[later] = 0.0
    status = np.where(row.first < 0, Status.MISSED, np.where(row.slow, Status.AT_REST, Status.MOVING)).astype(np.int8)
    failed = ~(np.isfinite(pose).all(axis=(1, 2)) & np.isfinite(row.qpos).all(axis=1))
    status[failed] = Status.FAILED
    pose[failed] = np.nan
    contact = np.where(row.first >= 0, (row.first - 1) * step, np.nan)
    impacts = row.impacts.astype(np.int64)
    guarded = np.zeros(len(times), dtype=np.int64)
    return Rollout(times, pose, velocity, striker, status, contact, row.post, impacts, impacts.copy(), guarded)
