"""One batch of strikes on its way through MuJoCo, step by step, with contacts of its own or learned ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, final

import numpy as np
from numpy.typing import NDArray

from carom.core.rotations import about_z, multiply
from carom.engines.approach import speed_of
from carom.engines.contact_frames import contact_frames
from carom.engines.contract import REST_SPEED, Rollout
from carom.engines.mujoco.long_steps import LONG, OFF, LongSteps, steps_alone
from carom.engines.over import QUIET_STEPS, READ_STEPS, STEADY_STEPS, contact_over
from carom.engines.strike_frames import Frames
from carom.engines.strike_states import PLANAR, at_point, put_strikes, seen_states, turned
from carom.state import Array, Status, Strikes

if TYPE_CHECKING:
    from carom.engines.mujoco.strikes import MujocoSimulator

LOOKS = 5  #: steps between looks at a target that slides alone
NEVER = -1000  #: step of a contact that has not been
SEEN, PUSHES = ((-1.0, 1.0), (0.0, 0.0))  #: margin, gap [m] of a pair that is found but makes no force; of a usual one


class Answer(Protocol):
    """What comes of contacts, in place of MuJoCo's own answer."""

    @property
    def lag(self) -> float:
        """Seconds by which the target starts later than an instant impact would have it."""
        ...

    def outcome(self, strikes: Strikes) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
        """Velocities at contact [N, 3], whether they are within what was learned [N], whether they were guarded [N]."""
        ...


@final
class MujocoStrikes:
    """One batch of strikes on its way from approach to rest; `values` are parameters of each one [N], by name."""

    def __init__(
        self,
        owner: MujocoSimulator,
        initial: Strikes,
        times: Array,
        controls: Array | None,
        values: Mapping[str, Array] | None = None,
    ) -> None:
        self.owner, self.scene, self.times, self.controls = owner, owner.scene, times, controls
        self.count, self.timestep = len(initial), float(owner.model.opt.timestep)
        self.geometry = {k: np.full(self.count, v) for k, v in owner.values.items()} | dict(values or {})
        self.batch = owner.batch
        made = self.batch.prepare(self.count, values or ())
        self.use = self.batch.uses
        if values:
            self.scene.write(made, self.geometry)
            made.set_const()
        self.qpos, self.qvel = self.batch.bind("qpos"), self.batch.bind("qvel")
        self.touch = self.batch.bind("sensordata")
        self.longer: LongSteps | None = None
        self.stride = LOOKS if owner.slower is None else LONG
        if owner.slower is not None:
            self.longer = LongSteps(owner.slower, self.timestep, (self.qpos, self.qvel))
        self.pair = owner.model.pair("striker").id
        self.margin, self.gap = self.batch.expand("pair_margin"), self.batch.expand("pair_gap")
        self._pair_mode(np.arange(self.count), SEEN if owner.answer else PUSHES)
        # the face's middle from the striker's frame, and where it looks, as the face and the frame have them
        arm = put_strikes(self.scene, initial, self.geometry, self.qpos, self.qvel)
        self.face = arm, self.scene.striker.forward + self.geometry.get("face_tilt", np.zeros(self.count))
        self.yaw = initial.target_pose[:, 2].copy()  # unwrapped
        self.posture = initial.posture
        self.done, self.clock = 0, 0.0  # steps taken, and time [s], when stepped bit by bit
        self.engine = np.full(self.count, owner.answer is None)
        self.gone = np.zeros(self.count, dtype=bool)
        self.last_touch, self.first_touch = np.full(self.count, NEVER), np.full(self.count, NEVER)
        self.contact_time, self.post = np.full(self.count, np.nan), np.full((self.count, 3), np.nan)
        self.impacts, self.from_engine, self.guarded = np.zeros((3, self.count), dtype=np.int64)
        self.status = np.full(self.count, Status.MISSED, dtype=np.int8)
        self.release, self.pending = np.full(self.count, np.inf), np.zeros((self.count, 3))  # when targets set out
        self.past = np.zeros((STEADY_STEPS, self.count, 3))
        self.speed = np.linalg.norm(initial.striker_velocity[:, :2], axis=-1)
        self.frames = Frames(times)
        start = self._state(np.arange(self.count))
        self.frames.keep(np.arange(self.count), 0.0, 0.0, (start, start))

    def _pair_mode(self, rows: NDArray[np.int64], mode: tuple[float, float]) -> None:
        self.margin[rows, self.pair], self.gap[rows, self.pair] = mode

    def _state(self, rows: NDArray[np.int64]) -> Array:
        """What is seen of these [n, 9]; see `strike_states`."""
        arm, facing = self.face
        own = (arm[rows], facing[rows])
        state = seen_states(self.qpos[rows], self.qvel[rows], self.yaw[rows], self.scene.target.planar_com, own)
        self.yaw[rows] = state[:, 2]
        return np.asarray(state)

    @property
    def now(self) -> Strikes:
        """Where they are, as strikes."""
        self.batch.check(self.use)
        state, striking = self._state(np.arange(self.count)), self._striking(np.arange(self.count))
        return Strikes(state[:, :3], state[:, 3:6], state[:, 6:], striking, self.posture)

    def _striking(self, rows: NDArray[np.int64]) -> Array:
        """Velocities of the striker's frame [n, 3]."""
        return np.asarray(at_point(self.qvel[rows, 6:9], -self._lever(rows)))

    def _lever(self, rows: NDArray[np.int64]) -> Array:
        """From the striker's frame to the middle of its face, world [n, 2] [m]."""
        return np.asarray(turned(self.face[0][rows], self.qpos[rows, 9]))

    def advance(self, duration: float, orders: Array | None) -> None:
        """Go on for `duration` [s]; strikers follow orders [N, 3], or keep their velocity until they have struck."""
        self.batch.check(self.use)
        self.controls = None if orders is None else orders[:, None]
        going = self.status != Status.FAILED
        if orders is None:
            going &= ~((self.status == Status.AT_REST) & self.gone)
        active, forever = np.flatnonzero(going), np.full(self.count, np.iinfo(np.int64).max)
        self.clock += duration
        for done in range(self.done, round(self.clock / self.timestep)):
            active, self.done = self._advance(active, done, 1, forever), done + 1

    def run(self) -> Rollout:
        """Step until every target rests or its time is over."""
        ends = np.ceil(self.times[:, -1] / self.timestep - 1e-9).astype(np.int64)
        late, done = self._late(ends), 0
        active = np.flatnonzero(late == 0)
        while len(active) or done <= late.max():
            if done:
                active = np.sort(np.concatenate([active, self._arrive(np.flatnonzero(late == done), done)]))
            # whether a row is looked at less often depends on nothing but itself
            alone = (
                self.gone[active]
                & ~np.isfinite(self.release[active])
                & (ends[active] - done >= self.stride)
                & (self.controls is None)
            )
            longer, watched = alone & (self.longer is not None and self.longer.settled(active, done)), active[~alone]
            sliding = [self._advance(active[alone & ~longer], done, self.stride, ends)]
            sliding.append(self._advance(active[longer], done, self.stride, ends, self.longer))
            for i in range(self.stride):
                watched = self._advance(watched, done + i, 1, ends)
            active, done = np.sort(np.concatenate([*sliding, watched])), done + self.stride
        return self._rollout()

    def _late(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Steps [N] in which a striker only comes nearer, and nothing has to be simulated."""
        if self.longer is None or self.controls is not None or {"face_tilt", "face_offset"} & set(self.geometry):
            return np.zeros(self.count, dtype=np.int64)
        return steps_alone(self.scene, self.now, self.timestep, ends - self.stride) // self.stride * self.stride

    def _arrive(self, rows: NDArray[np.int64], done: int) -> NDArray[np.int64]:
        """Begin to simulate these rows, at the place that their strikers have come to in so many steps."""
        before = self._state(rows)
        self.qpos[rows, 7:10] += done * self.timestep * self.qvel[rows, 6:9]
        self.frames.keep(rows, 0.0, done * self.timestep, (before, self._state(rows)))
        return rows

    def _advance(
        self,
        active: NDArray[np.int64],
        done: int,
        stride: int,
        ends: NDArray[np.int64],
        longer: LongSteps | None = None,
    ) -> NDArray[np.int64]:
        """Step these rows, in one longer step if `longer` is given; returns those that go on."""
        if not len(active):
            return active
        before = self._state(active)
        self._follow(active, done * self.timestep)
        failed = longer.step(active, done) if longer else self.batch.step(active, stride)
        if len(failed):
            self.status[failed] = Status.FAILED
            kept = ~np.isin(active, failed)
            active, before = active[kept], before[kept]
        done += stride
        if stride == 1:
            self._contacts(active, done)
            self._set_out(active, done)
        now = self._state(active)
        self.frames.keep(active, (done - stride) * self.timestep, done * self.timestep, (before, now))
        return np.asarray(active[~self._finished(active, now, done, ends)])

    def _follow(self, active: NDArray[np.int64], time: float) -> None:
        """Strikers that touch nothing move as ordered; one that pushes is left to its mass."""
        if self.controls is None:
            return
        share = time / self.times[active, -1] * self.controls.shape[1]
        order = self.controls[active, np.clip(share.astype(np.int64), 0, self.controls.shape[1] - 1)]
        free = ~((self.touch[active, 0] > 0) & self.engine[active])
        rows = active[free]
        self.qvel[rows, 6:9] = at_point(order[free], self._lever(rows))

    def _contacts(self, active: NDArray[np.int64], done: int) -> None:
        met = active[(self.touch[active, 0] > 0) & ~self.gone[active]]
        fresh = met[self.last_touch[met] < done - QUIET_STEPS]
        self.impacts[fresh] += 1
        first = fresh[self.first_touch[fresh] < 0]
        self.first_touch[first] = done
        self.contact_time[first] = (done - 1) * self.timestep
        self.status[first] = Status.MOVING
        if self.owner.answer is not None:
            own = fresh[self.engine[fresh]]  # those handed over now are counted there
            self._answer(met[~self.engine[met] & ~np.isfinite(self.release[met])], done)
            fresh = own
        self.from_engine[fresh] += 1
        self.last_touch[met] = done
        own = active[self.engine[active] & (self.last_touch[active] >= 0) & ~self.gone[active]]
        self._let_go(own, done)

    def _let_go(self, own: NDArray[np.int64], done: int) -> None:
        """Strikers that have struck, or push steadily, in MuJoCo's own contact."""
        if not len(own):
            return
        velocity = self._state(own)[:, 3:6]
        touching = self.last_touch[own] == done
        recent = done - self.last_touch[own] <= READ_STEPS
        opening = recent & (self.impacts[own] == 1)
        self.post[own[opening]] = velocity[opening]
        change = speed_of(self.scene, velocity - self.past[done % STEADY_STEPS, own])
        self.past[done % STEADY_STEPS, own] = velocity
        since_first, since_last = done - self.first_touch[own], done - self.last_touch[own]
        parted, over = contact_over(since_first, since_last, touching, change, self.speed[own], timestep=self.timestep)
        if self.controls is None:
            self._withdraw(own[over])
        elif self.owner.answer is not None:
            self.engine[own[parted]] = False
            self._pair_mode(own[parted], SEEN)

    def _withdraw(self, rows: NDArray[np.int64]) -> None:
        self.gone[rows] = True
        self.qvel[rows, 6:9] = 0.0
        self._pair_mode(rows, (OFF, 0.0))

    def _answer(self, rows: NDArray[np.int64], done: int) -> None:
        """Learned outcomes of contacts that MuJoCo has just found, from the instant of contact on."""
        if not len(rows) or self.owner.answer is None:
            return
        state, u, posture = self._state(rows), self._striking(rows), self.posture[rows]
        pose, velocity, striker = state[:, :3], state[:, 3:6], state[:, 6:]
        # The sensor tells how deep they were one step ago; they have closed in at this speed since they touched.
        closing = contact_frames(self.scene, Strikes(pose, velocity, striker, u, posture)).velocity[:, 1]
        late = self.timestep - self.touch[rows, 1] / np.maximum(closing, 1e-6)
        since = np.clip(late, 0.0, 3 * self.timestep)[:, None]
        strikes = Strikes(pose - velocity * since, velocity, striker - u * since, u, posture)
        post, known, guarded = self.owner.answer.outcome(strikes)
        handed = rows[~known]
        self.engine[handed] = True
        self.from_engine[handed] += 1
        self._pair_mode(handed, PUSHES)
        rows, post, since = rows[known], post[known], since[known]
        self.guarded[rows] += guarded[known]
        first = self.impacts[rows] == 1
        self.post[rows[first]] = post[first]
        self.contact_time[rows[first]] = done * self.timestep - since[first, 0]
        self.release[rows], self.pending[rows] = done * self.timestep - since[:, 0] + self.owner.answer.lag, post
        if self.controls is None:
            self._withdraw(rows)

    def _set_out(self, rows: NDArray[np.int64], done: int) -> None:
        """Give targets the velocity that they were struck with, once their lag is over."""
        due = rows[self.release[rows] <= done * self.timestep]
        if len(due):
            state = self._state(due)
            late = (done * self.timestep - self.release[due])[:, None]
            self._set_target(due, state[:, :3] + (self.pending[due] - state[:, 3:6]) * late, self.pending[due])
            self.release[due] = np.inf
            if self.longer is not None:
                self.longer.set_out(due, done)

    def _set_target(self, rows: NDArray[np.int64], pose: Array, velocity: Array) -> None:
        turn = about_z(pose[:, 2] - self.yaw[rows])
        self.qpos[rows, :2], self.qpos[rows, 3:7] = pose[:, :2], multiply(turn, self.qpos[rows, 3:7])
        self.yaw[rows] = pose[:, 2]
        self.qvel[rows[:, None], PLANAR] = at_point(velocity, -turned(self.scene.target.planar_com, pose[:, 2]))

    def _finished(self, active: NDArray[np.int64], now: Array, done: int, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        slow = speed_of(self.scene, now[:, 3:6]) < REST_SPEED
        left_alone = self.gone[active] if self.controls is None else self.last_touch[active] >= 0
        rest = slow & left_alone & (self.controls is None) & ~np.isfinite(self.release[active])
        self.status[active[rest]] = Status.AT_REST
        over = done >= ends[active]
        still = over & slow & (self.last_touch[active] >= 0)
        self.status[active[still]] = Status.AT_REST
        self.frames.hold(active[rest], now[rest])
        return np.asarray(rest | over)

    def _rollout(self) -> Rollout:
        pose, velocity, striker = np.split(self.frames.kept, 3, axis=-1)
        self.status[~np.isfinite(pose).all(axis=(1, 2))] = Status.FAILED
        pose[self.status == Status.FAILED] = np.nan
        counts = self.impacts, self.from_engine, self.guarded
        return Rollout(self.times, pose, velocity, striker, self.status, self.contact_time, self.post, *counts)
