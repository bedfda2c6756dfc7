"""The hybrid simulator (CLASH, section III-D): the learned impact in the middle of an engine.

With `sliding="mujoco"` MuJoCo stays in charge: its collision detection finds the contact, the network answers, MuJoCo
integrates the rest. With `sliding="slider"` the approach is closed form and the target slides on its pressure patch,
for whole batches at once. Strikes outside what the model has learned are answered by MuJoCo's own contact, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from carom.errors import SceneError, unknown_name
from carom.scenes.collide import FAILED, Collider
from carom.scenes.strike import StrikeScene
from carom.scenes.sweep import flat_travel, round_travel
from carom.simulate.contract import (
    REST_SPEED,
    Rollout,
    Status,
    Validation,
    control_array,
    frame_times,
    with_failed,
    without_bad_rows,
)
from carom.simulate.impact import LearnedImpact
from carom.simulate.mujoco_batch import MujocoSimulator
from carom.simulate.slider import CHUNK, at_times
from carom.state import Array, Strikes, rotate

SLIDING = ("slider", "mujoco")
STEP = 0.002  #: [s] of the slider where a striker stays near and may strike again


@final
class HybridSimulator:
    """Strikes of one scene with a learned impact; `values` are the MuJoCo parameters for what it hands back."""

    def __init__(
        self,
        impact: LearnedImpact,
        values: Mapping[str, float] | None = None,
        *,
        sliding: str = "slider",
        threads: int = 0,
    ) -> None:
        if sliding not in SLIDING:
            raise SceneError(unknown_name("sliding", sliding, SLIDING))
        self.impact, self.sliding, self.threads = impact, sliding, threads
        own = {"ground_friction": impact.slider.friction, **(values or {})}
        self.engine = MujocoSimulator(
            impact.scene, own, threads=threads, answer=None if sliding == "slider" else impact
        )

    @property
    def scene(self) -> StrikeScene:
        return self.impact.scene

    def validate(self, scene: StrikeScene) -> Validation:
        """The learned impact belongs to one scene."""
        if scene.signature() != self.scene.signature():
            return Validation(cannot=(f"its impact model was made for scene '{self.scene.name}', not '{scene.name}'",))
        return self.engine.validate(scene) if self.sliding == "mujoco" else Validation()

    def rollout(
        self, initial: Strikes, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2
    ) -> Rollout:
        """See `Simulator`."""
        if self.sliding == "mujoco":
            return self.engine.rollout(initial, duration, controls, frames=frames)
        times, orders = frame_times(duration, len(initial), frames), control_array(controls, len(initial))
        initial, bad = without_bad_rows(initial)
        if orders is not None or np.any(initial.target_velocity):
            return with_failed(_Stepped(self, initial, times, orders).run(), bad)
        return with_failed(self._at_once(initial, times), bad)

    def _at_once(self, initial: Strikes, times: Array) -> Rollout:
        """Resting targets, each struck once: approach, impact and slide in one go for all of them."""
        count = len(initial)
        reached = time_to_touch(self.scene, initial)
        hit = np.flatnonzero(reached < times[:, -1])
        rows = initial[hit]
        contact = advanced(rows, reached[hit])
        post, known, guarded = self.impact.outcome(contact)
        post, failed = self._own_contact(contact, post, ~known)
        pose = np.repeat(initial.target_pose[:, None], times.shape[1], axis=1)
        velocity = np.zeros_like(pose)
        since = times[hit] - reached[hit, None] - self.impact.lag
        pose[hit], velocity[hit] = self.slide(rows.target_pose, post, since)
        slow = speed_of(self.scene, velocity[:, -1]) < REST_SPEED
        status = np.where(slow, Status.AT_REST, Status.MOVING).astype(np.int8)
        status[np.setdiff1d(np.arange(count), hit)] = Status.MISSED
        status[hit[failed]] = Status.FAILED
        pose[hit[failed]] = np.nan
        before = np.minimum(times, np.where(np.isfinite(reached), reached, np.inf)[:, None])
        striker = initial.striker_pose[:, None] + before[..., None] * initial.striker_velocity[:, None]
        return Rollout(
            times, pose, velocity, striker, status, _scattered(count, hit, reached[hit]), _scattered(count, hit, post),
            *(_counted(count, hit, flags) for flags in (np.ones(len(hit), bool), ~known, guarded)),
        )  # fmt: skip

    def _own_contact(self, contact: Strikes, post: Array, rows: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Outcomes of strikes outside what was learned, from MuJoCo's own contact, and whether that failed."""
        failed = np.zeros(len(post), dtype=bool)
        if rows.any():
            names = [p.name for p in self.scene.parameters("mujoco")]
            collider = Collider(self.scene, self.scene.parameters("mujoco"), threads=self.threads)
            values = np.tile([self.engine.values[n] for n in names], (int(rows.sum()), 1))
            run = collider.run(contact[rows], values)
            post[rows], failed[rows] = run.post, run.status == FAILED
        return post, failed

    def slide(self, pose: Array, velocity: Array, since: Array) -> tuple[Array, Array]:
        """Target poses and velocities [N, F, 3] at times [N, F] after a slide began at these poses and velocities."""
        slider, com = self.impact.slider, self.scene.target.planar_com
        poses, velocities = np.empty((*since.shape, 3)), np.empty((*since.shape, 3))
        with torch.no_grad():
            for low in range(0, len(pose), CHUNK):
                rows = slice(low, low + CHUNK)
                centre = pose[rows].copy()
                centre[:, :2] += rotate(np.broadcast_to(com, (len(centre), 2)), centre[:, 2])
                slide = slider.slide(torch.as_tensor(centre), torch.as_tensor(velocity[rows]))
                p, v = at_times(slide, torch.as_tensor(since[rows]))
                poses[rows], velocities[rows] = p.numpy(), v.numpy()
        poses[..., :2] -= rotate(np.broadcast_to(com, (*since.shape, 2)), poses[..., 2])
        velocities[since <= 0] = 0.0
        return poses, velocities


def time_to_touch(scene: StrikeScene, state: Strikes) -> Array:
    """Seconds [N] until strikers touch their targets if both keep their velocities, spins apart; inf: never."""
    yaw = state.target_pose[:, 2]
    local = rotate(state.striker_pose[:, :2] - state.target_pose[:, :2], -yaw)
    relative = rotate(state.striker_velocity[:, :2] - state.target_velocity[:, :2], -yaw)
    speed = np.linalg.norm(relative, axis=-1)
    towards = relative / np.maximum(speed, 1e-12)[:, None]
    if scene.striker.flat:
        direction = state.striker_pose[:, 2] + scene.striker.forward - yaw
        facing = np.stack([np.cos(direction), np.sin(direction)], axis=-1)
        width = np.full(len(local), float(scene.striker.width or 0.0))
        way = flat_travel(scene.outline, local, towards, facing, width)
    else:
        way = round_travel(scene.outline, local, towards, float(scene.striker.radius or 0.0))
    ahead = np.isfinite(way) & (way > -ALREADY) & (speed > 1e-9)
    return np.where(ahead, np.maximum(way, 0.0) / np.maximum(speed, 1e-9), np.inf)


ALREADY = 0.003  #: [m] a striker that is this deep in the target touches now; one that is further has passed it


def advanced(state: Strikes, time: Array) -> Strikes:
    """States as they are after `time` [N] [s] without contact; targets that rest stay."""
    step = time[:, None]
    return Strikes(
        state.target_pose + step * state.target_velocity, state.target_velocity,
        state.striker_pose + step * state.striker_velocity, state.striker_velocity, state.posture,
    )  # fmt: skip


def speed_of(scene: StrikeScene, velocity: Array) -> Array:
    """|(vx, vy, k wz)| [N] [m/s]."""
    return np.asarray(np.linalg.norm(velocity * [1.0, 1.0, scene.gyration_radius], axis=-1))


def _scattered(count: int, rows: NDArray[np.int64], values: Array) -> Array:
    out = np.full((count, *values.shape[1:]), np.nan)
    out[rows] = values
    return out


def _counted(count: int, rows: NDArray[np.int64], flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    out = np.zeros(count, dtype=np.int64)
    out[rows] = flags
    return out


@dataclass
class _Handed:
    """Strikes that MuJoCo finishes, and from when on."""

    rows: NDArray[np.int64]
    time: Array


@final
class _Stepped:
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
            slow = self._advance(active, start)
            self._keep(active, start, end, before)
            if len(slow):
                handed[slow] = True
                self._hand_over(slow)
        return self._rollout()

    def _state(self, rows: NDArray[np.int64]) -> Strikes:
        columns = (self.target, self.velocity, self.striker, self.striking, self.posture)
        return Strikes(*(column[rows] for column in columns))

    def _follow(self, rows: NDArray[np.int64], time: float) -> None:
        if self.controls is not None:
            share = time / self.times[rows, -1] * self.controls.shape[1]
            which = np.clip(share.astype(np.int64), 0, self.controls.shape[1] - 1)
            self.striking[rows] = self.controls[rows, which]

    def _advance(self, rows: NDArray[np.int64], start: float) -> NDArray[np.int64]:
        """One step of these; returns those whose contact the learned impact does not cover."""
        state = self._state(rows)
        reached = np.where(self.gone[rows], np.inf, time_to_touch(self.scene, state))
        reached[~self._closing(state, reached)] = np.inf
        meets = reached < STEP
        met = rows[meets]
        unknown = np.zeros(0, dtype=np.int64)
        rest_of_step = np.full(len(rows), STEP)
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
            from carom.distill.frames import contact_frames

            closing[soon] = contact_frames(self.scene, state[soon]).velocity[:, 1] > 1e-6
        return closing

    def _move(self, rows: NDArray[np.int64], time: Array) -> None:
        """Slide targets and move strikers freely for these times [n]."""
        if not len(rows):
            return
        com, pose = self.scene.target.planar_com, self.target[rows]
        pose[:, :2] += rotate(np.broadcast_to(com, (len(rows), 2)), pose[:, 2])
        state = (torch.as_tensor(pose), torch.as_tensor(self.velocity[rows]), torch.as_tensor(time))
        with torch.no_grad():
            pose, self.velocity[rows] = (c.numpy() for c in self.owner.impact.slider.advance(*state))
        pose[:, :2] -= rotate(np.broadcast_to(com, (len(rows), 2)), pose[:, 2])
        self.target[rows] = pose
        self.striker[rows] += time[:, None] * self.striking[rows]

    def _keep(self, rows: NDArray[np.int64], start: float, end: float, before: list[Array]) -> None:
        due = (self.times[rows] > start + 1e-12) & (self.times[rows] <= end + 1e-12)
        row, frame = np.nonzero(due)
        s = ((self.times[rows[row], frame] - start) / (end - start))[:, None]
        now = (self.target, self.velocity, self.striker)
        for kept, old, new in zip(self.kept, before, now, strict=True):
            kept[rows[row], frame] = old[row] + s * (new[rows[row]] - old[row])

    def _hand_over(self, rows: NDArray[np.int64]) -> None:
        """MuJoCo goes on with strikes whose contact lies outside what was learned, to their end."""
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

    def _rollout(self) -> Rollout:
        pose, velocity, striker = self.kept
        slow = speed_of(self.scene, velocity[:, -1]) < REST_SPEED
        status = np.where(slow, Status.AT_REST, Status.MOVING).astype(np.int8)
        status[self.impacts == 0] = Status.MISSED
        status[~np.isfinite(pose).all(axis=(1, 2))] = Status.FAILED
        return Rollout(
            self.times, pose, velocity, striker, status, self.contact_time, self.post, self.impacts, self.from_engine,
            self.guarded,
        )  # fmt: skip
