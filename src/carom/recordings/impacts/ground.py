"""Impacts of a tossed body on the ground: kinks of its flight where its lowest point touches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.rotations import to_world, yaw
from carom.recordings.differentiate import fit_polynomial, fit_rotation, measured_rows
from carom.recordings.geometry import lowest_point
from carom.recordings.impacts.measured import BodyMotion, Impact
from carom.recordings.impacts.quality import judged
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory
from carom.state import Array

TOUCHING = 0.010  #: [m] above the ground within which a kink is an impact
SPAN = 0.06  #: [s] of the one-sided fits
SIDE = 4  #: samples on each side of a kink
LEAST_JUMP = 0.15  #: [m/s] change of velocity that counts as an impact


def is_tossed(trajectory: Trajectory, body: str) -> bool:
    """Whether a body falls somewhere, by more than a slide does; one that is lifted off at the end does not."""
    z = trajectory.position_world[body][:, 2]
    z = z[np.isfinite(z)]
    if len(z) < 8:
        return False
    shape = trajectory.bodies[body].shape
    fallen = float((np.maximum.accumulate(z) - z).max())
    return fallen > max(0.02, 0.2 * (shape.full_height if shape is not None else 0.1))


def clearance(trajectory: Trajectory, body: str) -> Array:
    """Height [T] m of the body's lowest point above where it comes lowest at the end (NaN: no shape, no pose)."""
    shape, quaternion = trajectory.bodies[body].shape, trajectory.quaternion_world[body]
    if shape is None or quaternion is None:
        low = trajectory.position_world[body][:, 2].copy()
    else:
        low = lowest_point(shape, trajectory.position_world[body], quaternion)
    good = low[np.isfinite(low)]
    if not len(good):
        return low
    # the end of a toss is rest on the ground; a record that ends in flight has been lower before
    return np.asarray(low - min(float(np.median(good[-8:])), float(np.quantile(good, 0.1))))


def ground_impacts(trajectory: Trajectory, body: str, *, settle: float | None) -> tuple[Impact, ...]:
    """The impacts of a tossed body, in order; those that follow each other too fast are marked as such."""
    position = trajectory.position_world[body]
    rows = np.flatnonzero(measured_rows(position))
    if len(rows) < 12:
        return ()
    t, p = trajectory.time[rows], position[rows]
    height = clearance(trajectory, body)[rows]
    jump = velocity_jumps(t, p)
    noise = float(np.linalg.norm(noise_floor(t, p)))
    least = max(LEAST_JUMP, 8 * noise / (trajectory.period * 4))
    candidates = np.where((height < TOUCHING) & (jump > least), jump, 0.0)
    instants: list[int] = []
    while candidates.max(initial=0.0) > 0:
        best = int(np.argmax(candidates))
        instants.append(best)
        candidates[max(best - 3, 0) : best + 4] = 0.0
    instants.sort()
    times = [_refined(t, p, index) for index in instants]
    impacts = []
    for number, time in enumerate(times):
        since = times[number - 1] if number else -np.inf
        until = times[number + 1] if number + 1 < len(times) else np.inf
        impacts.append(_impact(trajectory, body, time, since, until, settle, float(height[instants[number]])))
    return tuple(impacts)


def velocity_jumps(t: Array, p: Array) -> Array:
    """Change of velocity [T] m/s across each row, from straight fits to `SIDE` samples on each side.

    The smaller of two readings: with free fall taken out, which is nothing in flight, and as measured, which is
    nothing for a body that lies or slides. Only an impact is large in both.
    """
    jump = np.zeros(len(t))
    if len(t) < 2 * SIDE + 1:
        return jump
    windows = np.lib.stride_tricks.sliding_window_view(t, SIDE)
    offset = windows - windows.mean(axis=1, keepdims=True)
    readings = []
    for fall in (0.0, 0.5 * GRAVITY):
        path = p + np.outer(fall * (t - t[0]) ** 2, [0.0, 0.0, 1.0])
        pieces = np.lib.stride_tricks.sliding_window_view(path, SIDE, axis=0)
        slope = (pieces * offset[:, None, :]).sum(axis=-1) / (offset**2).sum(axis=-1)[:, None]
        readings.append(np.linalg.norm(slope[SIDE + 1 :] - slope[: -SIDE - 1], axis=-1))
    jump[SIDE : len(t) - SIDE] = np.minimum(readings[0], readings[1])
    return jump


def _refined(t: Array, p: Array, row: int) -> float:
    """Where the vertical paths before and after a kink meet [s], within a sample of it."""
    pieces = [slice(max(row - 4, 0), row), slice(row + 1, row + 5)]
    level = p[:, 2] + 0.5 * GRAVITY * (t - t[row]) ** 2
    fits = [fit_polynomial(t[s], level[s], float(t[row]), order=1) for s in pieces]
    bend = float(fits[1].velocity[0] - fits[0].velocity[0])
    if abs(bend) < 1e-6:
        return float(t[row])
    shift = float(fits[0].value[0] - fits[1].value[0]) / bend
    return float(np.clip(t[row] + shift, t[row - 1], t[row + 1]))


def _impact(
    trajectory: Trajectory, body: str, time: float, since: float, until: float, settle: float | None, gap: float
) -> Impact:
    period = trajectory.period
    chosen = 0.0 if settle is None else settle  # a rigid corner's contact is shorter than a sample
    pre = side_motion(trajectory, body, time, max(time - SPAN, since), time)
    post = side_motion(trajectory, body, time + chosen, time + chosen, min(time + chosen + SPAN, until))
    impact = Impact(
        trajectory=trajectory.name,
        kind="ground",
        time=time,
        time_std=period / np.sqrt(12),
        target=body,
        striker=None,
        pre=pre,
        post=post,
        striker_pre=None,
        settle=chosen,
        span=SPAN,
        gap=gap,
        timing_jitter=float("nan"),
        quality="good",
        reason="",
    )
    few = [(m.count, f"only {m.count} samples {side}") for m, side in ((pre, "before it"), (post, "after it"))]
    wrong = [text for count, text in few if count < 3]
    return judged(impact, wrong, [text for count, text in few if 3 <= count < 6], [])


def side_motion(trajectory: Trajectory, body: str, at: float, start: float, end: float) -> BodyMotion:
    """State of a free body at `at` from its samples in [start, end], in all six directions."""
    position, quaternion = trajectory.position_world[body], trajectory.quaternion_world[body]
    index = np.flatnonzero((trajectory.time >= start - 1e-9) & (trajectory.time <= end + 1e-9))
    if start < at:
        index = index[trajectory.time[index] < at]
    t = trajectory.time[index]
    order = 2 if len(index) >= 6 else 1
    frame = fit_polynomial(t, position[index], at, order=order)
    unknown = np.full(3, np.nan)
    motion = BodyMotion(
        time=at,
        position_world=frame.value,
        position_std=frame.value_std,
        quaternion_world=np.full(4, np.nan),
        yaw=float("nan"),
        yaw_std=float("nan"),
        velocity_world=frame.velocity,
        velocity_std=frame.velocity_std,
        angular_velocity_world=unknown,
        angular_velocity_std=unknown,
        count=frame.count,
    )
    if quaternion is None:
        return motion
    orientation, spin = fit_rotation(t, quaternion[index], at, order=order)
    velocity, velocity_std = frame.velocity, frame.velocity_std
    com = trajectory.bodies[body].com
    if com is not None and np.any(com):
        arm = to_world(orientation, np.asarray(com, dtype=float))
        velocity = velocity + np.cross(spin.velocity, arm)
        velocity_std = np.sqrt(velocity_std**2 + np.cross(spin.velocity_std, arm) ** 2)
    return replace(
        motion,
        quaternion_world=orientation,
        yaw=float(yaw(orientation)),
        yaw_std=float(spin.value_std[2]),
        velocity_world=velocity,
        velocity_std=velocity_std,
        angular_velocity_world=spin.velocity,
        angular_velocity_std=spin.velocity_std,
    )
