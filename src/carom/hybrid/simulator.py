"""The hybrid simulator (CLASH, section III-D): the learned impact in the middle of an engine.

With `sliding="mujoco"` MuJoCo stays in charge: its collision detection finds the contact, the network answers, MuJoCo
integrates the rest. With `sliding="slider"` the approach is closed form and the target slides on its pressure patch,
for whole batches at once. Strikes outside what the model has learned are answered by MuJoCo's own contact, and counted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from carom.core.errors import CaromError, SceneError, unknown_name
from carom.engines.approach import advanced, speed_of, time_to_touch
from carom.engines.contact_frames import SPEED_SCALE
from carom.engines.contract import REST_SPEED, AimedStrikes, Rollout, Validation, no_derivatives
from carom.engines.mujoco.collide import FAILED, Collider
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.engines.planar import Stepping, StrikeEngine, joined, taken
from carom.engines.slider import CHUNK, at_times
from carom.hybrid.learned_impact import LearnedImpact
from carom.hybrid.stepped import Stepped
from carom.learn.impact.student import Perturbed, Student
from carom.scenes.strike import StrikeScene
from carom.state import Array, Status, Strikes, rotate

SLIDING = ("slider", "mujoco")
STREAM = 2048  #: strikes that one thread has in hand: what fits into a cache


@final
class HybridSimulator(StrikeEngine):
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
        self.scene, self.impact, self.sliding, self.threads = impact.scene, impact, sliding, threads
        own = {"ground_friction": impact.slider.friction, **(values or {})}
        self.engine = MujocoSimulator(
            impact.scene, own, threads=threads, answer=None if sliding == "slider" else impact
        )

    def judged(self, scene: StrikeScene) -> Validation:
        """The learned impact belongs to one scene."""
        if scene.signature() != self.scene.signature():
            return Validation(cannot=(f"its impact model was made for scene '{self.scene.name}', not '{scene.name}'",))
        return self.engine.validate(scene) if self.sliding == "mujoco" else Validation()

    def rolled(self, initial: Strikes, times: Array, orders: Array | None, values: Mapping[str, Array]) -> Rollout:
        """See `StrikeEngine`."""
        if self.sliding == "mujoco":
            return self.engine.rolled(initial, times, orders, values)
        stepped = np.any(initial.target_velocity != 0, axis=1) | (orders is not None)
        if not stepped.any():
            return self._streamed(initial, times)
        parts = []
        for rows, run in ((np.flatnonzero(~stepped), self._streamed), (np.flatnonzero(stepped), self._step_by_step)):
            if len(rows):
                parts.append((rows, run(initial[rows], times[rows], None if orders is None else orders[rows])))
        order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
        return taken(joined([part for _, part in parts]), order)

    def stepping(self, start: Strikes, bad: NDArray[np.bool_], values: Mapping[str, Array]) -> Stepping:
        """See `StrikeEngine`."""
        if self.sliding == "mujoco":
            return self.engine.stepping(start, bad, values)
        made = Stepped(self, start, np.full((len(start), 1), np.inf), None)
        made.target[bad] = np.nan
        return made

    def differentiable_rest(self, aimed: AimedStrikes) -> torch.Tensor:
        """See `Simulator`; needs the slider, and an impact that is one network."""
        if self.sliding != "slider":
            raise no_derivatives()
        model = self.impact.model
        student, shift = (model.student, model.shift) if isinstance(model, Perturbed) else (model, np.zeros(3))
        if not isinstance(student, Student):
            raise CaromError("method 'gradient' needs the hybrid's small network, not the corrected model itself")
        pose, point, inward, turn, speed = aimed
        scene, k = self.scene, self.scene.gyration_radius
        columns = [point / k, inward, -turn[:, None], torch.log(speed / SPEED_SCALE)[:, None]]
        columns += [torch.zeros_like(speed)[:, None]] if scene.striker.flat else []
        mean, std = student.local(torch.cat(columns, dim=-1).float())
        local = (mean + std * mean.new_tensor(shift)).double() * speed[:, None]
        tangent = torch.stack([inward[:, 1], -inward[:, 0]], dim=-1)
        velocity = torch.cat([local[:, :1] * tangent + local[:, 1:2] * inward, local[:, 2:] / k], dim=-1)
        x, y, yaw = (float(v) for v in pose)
        c, s = np.cos(yaw), np.sin(yaw)
        vx, vy, spin = velocity.unbind(-1)
        world = torch.stack([c * vx - s * vy, s * vx + c * vy, spin], dim=-1)
        com = np.asarray(scene.target.planar_com)
        first = [x + c * com[0] - s * com[1], y + s * com[0] + c * com[1], yaw]
        start = speed.new_tensor(first).expand(len(speed), 3)
        end = self.impact.slider.ends(start, world)
        ce, se = torch.cos(end[:, 2]), torch.sin(end[:, 2])
        back_x, back_y = ce * com[0] - se * com[1], se * com[0] + ce * com[1]
        return torch.stack([end[:, 0] - back_x, end[:, 1] - back_y, end[:, 2]], dim=-1)

    def _step_by_step(self, initial: Strikes, times: Array, orders: Array | None) -> Rollout:
        return Stepped(self, initial, times, orders).run()

    def _streamed(self, initial: Strikes, times: Array, _: Array | None = None) -> Rollout:
        """Resting targets, each struck once: a few thousand at a time on each thread, so that memory stays flat."""
        count = len(initial)
        if count <= STREAM:
            return self._at_once(initial, times)
        first = self._at_once(initial[:STREAM], times[:STREAM])
        names = Rollout.__dataclass_fields__
        whole = {n: np.empty((count, *getattr(first, n).shape[1:]), getattr(first, n).dtype) for n in names}

        def keep(part: Rollout, low: int) -> None:
            for name, column in whole.items():
                column[low : low + STREAM] = getattr(part, name)

        keep(first, 0)
        with ThreadPoolExecutor(self.threads or os.cpu_count() or 1) as pool:
            rest = range(STREAM, count, STREAM)
            rows = (slice(low, low + STREAM) for low in rest)
            list(pool.map(lambda part, low: keep(self._at_once(initial[part], times[part]), low), rows, rest))
        return Rollout(**whole)

    def _at_once(self, initial: Strikes, times: Array) -> Rollout:
        """Resting targets, each struck once: approach, impact and slide in one go for all of them."""
        count = len(initial)
        reached = time_to_touch(self.scene, initial)
        meets = reached < times[:, -1]
        hit = np.flatnonzero(meets)
        rows = initial if len(hit) == count else initial[hit]
        contact = advanced(rows, reached[hit])
        post, known, guarded = self.impact.outcome(contact, touch=True)
        post, failed = self._own_contact(contact, post, ~known)
        pose = np.repeat(initial.target_pose[:, None], times.shape[1], axis=1)
        velocity = np.zeros_like(pose)
        after = times[hit] - reached[hit, None]
        since = np.where(after > 0, after - self.impact.lag, 0.0)
        pose[hit], velocity[hit] = self.slide(rows.target_pose, post, since)
        slow = speed_of(self.scene, velocity[:, -1]) < REST_SPEED
        slow[hit] &= since[:, -1] > 0  # one that has yet to set out does not rest
        status = np.where(slow, Status.AT_REST, Status.MOVING).astype(np.int8)
        status[~meets] = Status.MISSED
        status[hit[failed]] = Status.FAILED
        pose[hit[failed]] = np.nan
        before = np.minimum(times, reached[:, None])
        striker = initial.striker_pose[:, None] + before[..., None] * initial.striker_velocity[:, None]
        met, struck = _scattered(count, hit, reached[hit]), _scattered(count, hit, post)
        counts = (_counted(count, hit, flags) for flags in (np.ones(len(hit), bool), ~known, guarded))
        return Rollout(times, pose, velocity, striker, status, met, struck, *counts)

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
        centre = pose.copy()
        centre[:, :2] += rotate(com, centre[:, 2])
        poses, velocities = np.empty((*since.shape, 3)), np.zeros((*since.shape, 3))
        moving = np.arange(len(pose))
        if slider.table is not None:  # only what is looked at on its way has to be integrated
            rests = slider.rests(centre, velocity)
            poses[:] = np.where((since > 0)[..., None], rests.pose[:, None], centre[:, None])
            moving = np.flatnonzero(((since > 0) & (since < rests.time[:, None])).any(axis=1))
        with torch.no_grad():
            for low in range(0, len(moving), CHUNK):
                rows = moving[low : low + CHUNK]
                slide = slider.slide(torch.as_tensor(centre[rows]), torch.as_tensor(velocity[rows]))
                p, v = at_times(slide, torch.as_tensor(since[rows]))
                poses[rows], velocities[rows] = p.numpy(), v.numpy()
        poses[..., :2] -= rotate(com, poses[..., 2])
        velocities[since <= 0] = 0.0
        return poses, velocities


def _scattered(count: int, rows: NDArray[np.int64], values: Array) -> Array:
    out = np.full((count, *values.shape[1:]), np.nan)
    out[rows] = values
    return out


def _counted(count: int, rows: NDArray[np.int64], flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    out = np.zeros(count, dtype=np.int64)
    out[rows] = flags
    return out
