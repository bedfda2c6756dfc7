"""Strikes step by step: targets that already move, and strikers that follow orders and may strike again."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from numpy.typing import NDArray

from carom.engines.approach import speed_of, time_to_touch
from carom.engines.contact_frames import contact_frames
from carom.engines.contract import REST_SPEED, Rollout
from carom.engines.mujoco.strike_run import MujocoStrikes
from carom.state import Array, Status, Strikes, rotate

if TYPE_CHECKING:
    from carom.hybrid.simulator import HybridSimulator

STEP = 0.002  #: [s] of the slider where a striker stays near and may strike again


@final
class Stepped:
    """Targets that already move, or strikers that follow orders: step by step, since they may meet again."""

    def __init__(self, owner: HybridSimulator, initial: Strikes, times: Array, controls: Array | None) -> None:
        self.owner, self.scene, self.times, self.controls = owner, owner.scene, times, controls
        count = len(initial)
        self.target, self.velocity = initial.target_pose.copy(), initial.target_velocity.copy()
        self.striker, self.striking = initial.striker_pose.copy(), initial.striker_velocity.copy()
        self.posture = initial.posture
        self.contact_time, self.post = np.full(count, np.nan), np.full((count, 3), np.nan)
        self.impacts, self.from_engine, self.guarded = np.zeros((3, count), dtype=np.int64)
        self.gone = np.zeros(count, dtype=bool)
        shape = (*times.shape, 3)
        self.kept = [np.zeros(shape) for _ in range(3)]
        for kept, value in zip(self.kept, (self.target, self.velocity, self.striker), strict=True):
            kept[:, 0] = value
        self.handed_at = np.zeros(count)  # when MuJoCo took over [s]
        self.hold = np.zeros(count)  # how long a struck target still stands [s]
        self.clock = 0.0  # [s] when stepped bit by bit
        self.in_mujoco: list[tuple[NDArray[np.int64], MujocoStrikes]] = []  # strikes handed over then, one by one

    def run(self) -> Rollout:
        """Step until the last duration is over; strikes handed to MuJoCo go on there."""
        steps = int(np.ceil(self.times[:, -1].max() / STEP - 1e-9))
        handed = np.zeros(len(self.target), dtype=bool)
        for i in range(steps):
            start, end = i * STEP, (i + 1) * STEP
            active = np.flatnonzero(~handed & (self.times[:, -1] > start + 1e-12))
            if not len(active):
                break
            self._follow(active, start)
            before = [column[active].copy() for column in (self.target, self.velocity, self.striker)]
            slow = self._advance(active, start, STEP)
            self._keep(active, start, end, before)
            handed[slow] = True
        if handed.any():
            self._hand_over(np.flatnonzero(handed))
        return self._rollout()

    @property
    def now(self) -> Strikes:
        """Where they are."""
        return self._state(np.arange(len(self.target)))

    @property
    def status(self) -> NDArray[np.int8]:
        """How they are doing [N]."""
        status = self._ends(self.target, self.velocity)
        for rows, engine in self.in_mujoco:
            status[rows] = engine.status
        return status

    def advance(self, duration: float, orders: Array | None) -> None:
        """Go on for `duration` [s]; strikers follow orders [N, 3], or keep their velocity until they have struck."""
        self.controls = None if orders is None else orders[:, None]
        rows = np.setdiff1d(np.flatnonzero(np.isfinite(self.target).all(axis=1)), self._handed())
        left = duration
        while left > 1e-12:
            step = min(STEP, left)
            self._follow(rows, 0.0)
            slow = self._advance(rows, self.clock, step)
            self._go_on_in_mujoco(step, orders)
            if len(slow):
                self._open_in_mujoco(slow, orders, self.clock + step - self.handed_at[slow])
                rows = np.setdiff1d(rows, slow)
            self.clock, left = self.clock + step, left - step

    def _handed(self) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(0, dtype=np.int64), *(rows for rows, _ in self.in_mujoco)])

    def _open_in_mujoco(self, rows: NDArray[np.int64], orders: Array | None, late: Array) -> None:
        """Hand strikes over for good, each `late` [s] behind the clock."""
        for i, row in enumerate(rows):
            engine = deepcopy(self.owner.engine)
            own, times = self._state(rows[i : i + 1]), np.full((1, 1), np.inf)
            self.in_mujoco.append((np.array([row]), MujocoStrikes(engine, own, times, None)))
            self._read_mujoco(*self.in_mujoco[-1], float(late[i]), orders)

    def _go_on_in_mujoco(self, step: float, orders: Array | None) -> None:
        for rows, engine in self.in_mujoco:
            self._read_mujoco(rows, engine, step, orders)

    def _read_mujoco(self, rows: NDArray[np.int64], engine: MujocoStrikes, step: float, orders: Array | None) -> None:
        engine.advance(step, None if orders is None else orders[rows])
        now = engine.now
        self.target[rows], self.velocity[rows] = now.target_pose, now.target_velocity
        self.striker[rows], self.striking[rows] = now.striker_pose, now.striker_velocity

    def _state(self, rows: NDArray[np.int64]) -> Strikes:
        columns = (self.target, self.velocity, self.striker, self.striking, self.posture)
        return Strikes(*(column[rows] for column in columns))

    def _follow(self, rows: NDArray[np.int64], time: float) -> None:
        if self.controls is not None:
            share = time / self.times[rows, -1] * self.controls.shape[1]
            which = np.clip(share.astype(np.int64), 0, self.controls.shape[1] - 1)
            self.striking[rows] = self.controls[rows, which]

    def _advance(self, rows: NDArray[np.int64], start: float, step: float) -> NDArray[np.int64]:
        """One step [s] of these; returns those whose contact the learned impact does not cover."""
        state = self._state(rows)
        reached = np.where(self.gone[rows], np.inf, time_to_touch(self.scene, state))
        reached[~self._closing(state, reached)] = np.inf
        meets = reached < step
        met = rows[meets]
        unknown = np.zeros(0, dtype=np.int64)
        rest_of_step = np.full(len(rows), step)
        if len(met):
            self._move(met, reached[meets])
            post, known, guarded = self.owner.impact.outcome(self._state(met))
            self.impacts[met] += 1
            first = met[self.impacts[met] == 1]
            self.contact_time[first] = start + reached[meets][self.impacts[met] == 1]
            unknown, learned = met[~known], met[known]
            self.handed_at[unknown] = start + reached[meets][~known]
            self.from_engine[unknown] += 1
            self.guarded[learned] += guarded[known]
            self.velocity[learned] = post[known]
            self.hold[learned] = self.owner.impact.lag
            opening = learned[self.impacts[learned] == 1]
            self.post[opening] = self.velocity[opening]
            rest_of_step[meets] -= reached[meets]
            if self.controls is None:
                self.gone[learned] = True
                self.striking[learned] = 0.0
        going = ~np.isin(rows, unknown)
        self._move(rows[going], rest_of_step[going])
        return unknown

    def _closing(self, state: Strikes, reached: Array) -> NDArray[np.bool_]:
        """Whether the contact point itself closes in: a struck target that turns away is not struck again."""
        soon = np.isfinite(reached)
        closing = np.zeros(len(reached), dtype=bool)
        if soon.any():
            closing[soon] = contact_frames(self.scene, state[soon]).velocity[:, 1] > 1e-6
        return closing

    def _move(self, rows: NDArray[np.int64], time: Array) -> None:
        """Slide targets and move strikers freely for these times [n]."""
        if not len(rows):
            return
        self.striker[rows] += time[:, None] * self.striking[rows]
        hold = self.hold[rows]
        self.hold[rows], time = np.maximum(hold - time, 0.0), np.maximum(time - hold, 0.0)
        com, pose = self.scene.target.planar_com, self.target[rows]
        pose[:, :2] += rotate(com, pose[:, 2])
        state = (torch.as_tensor(pose), torch.as_tensor(self.velocity[rows]), torch.as_tensor(time))
        with torch.no_grad():
            pose, self.velocity[rows] = (c.numpy() for c in self.owner.impact.slider.advance(*state))
        pose[:, :2] -= rotate(com, pose[:, 2])
        self.target[rows] = pose

    def _keep(self, rows: NDArray[np.int64], start: float, end: float, before: list[Array]) -> None:
        due = (self.times[rows] > start + 1e-12) & (self.times[rows] <= end + 1e-12)
        row, frame = np.nonzero(due)
        s = ((self.times[rows[row], frame] - start) / (end - start))[:, None]
        now = (self.target, self.velocity, self.striker)
        for kept, old, new in zip(self.kept, before, now, strict=True):
            kept[rows[row], frame] = old[row] + s * (new[rows[row]] - old[row])

    def _hand_over(self, rows: NDArray[np.int64]) -> None:
        """MuJoCo goes on, to their end, with strikes whose contact lies outside what was learned; it keeps them."""
        start, end = self.handed_at[rows], self.times[rows, -1]
        left, orders = np.maximum(end - start, 1e-9), None
        if self.controls is not None:
            count = self.controls.shape[1]
            middle = (np.arange(int(np.ceil(left.max() / STEP))) + 0.5) / np.ceil(left.max() / STEP)
            share = (start[:, None] + left[:, None] * middle) / end[:, None] * count
            orders = self.controls[rows[:, None], np.clip(share.astype(np.int64), 0, count - 1)]
        finished = self.owner.engine.rollout(self._state(rows), left, orders, frames=self.times.shape[1] * 8)
        for i, row in enumerate(rows):
            later = np.flatnonzero(self.times[row] > start[i])
            at = self.times[row, later] - start[i]
            sources = (finished.target_pose, finished.target_velocity, finished.striker_pose)
            for kept, source in zip(self.kept, sources, strict=True):
                for c in range(3):
                    kept[row, later, c] = np.interp(at, finished.time[i], source[i, :, c])
        opening = self.impacts[rows] == 1
        self.post[rows[opening]] = finished.post[opening]
        again = np.maximum(finished.impacts - 1, 0)  # the first is the one that was handed over
        self.impacts[rows] += again
        self.from_engine[rows] += again

    def _ends(self, pose: Array, velocity: Array) -> NDArray[np.int8]:
        """How strikes end [N], from poses [N, ...] and last velocities [N, 3] of their targets."""
        slow = speed_of(self.scene, velocity) < REST_SPEED
        status = np.where(slow, Status.AT_REST, Status.MOVING).astype(np.int8)
        status[self.impacts == 0] = Status.MISSED
        status[~np.isfinite(pose).all(axis=1)] = Status.FAILED
        return status

    def _rollout(self) -> Rollout:
        pose, velocity, striker = self.kept
        status = self._ends(pose.reshape(len(pose), -1), velocity[:, -1])
        counts = self.impacts, self.from_engine, self.guarded
        return Rollout(self.times, pose, velocity, striker, status, self.contact_time, self.post, *counts)
