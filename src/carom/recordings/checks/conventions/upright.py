"""What stands or slides on a table stands upright and turns about the vertical only; what was tossed lies on a face."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from carom.core.rotations import axes, unit
from carom.recordings.checks.conventions.hypotheses import ANYWHERE, mixed, near_axis, read_as
from carom.recordings.differentiate import measured_rows
from carom.recordings.geometry import corners, lowest_point
from carom.recordings.impacts.ground import LEAST_JUMP, is_tossed, velocity_jumps
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Recordings, Trajectory
from carom.scenes.shapes import Shape
from carom.state import Array

ROCKING = 0.02  #: [rad] by which a sliding body, or its measured orientation, tilts
DRAWN = 0.03  #: [rad] by which frames and grounds are out of true
STRAY = 0.05  #: share of recordings, and of touches, in which something else happens
ODD = 0.01  #: share of folders in which a body's frame was not drawn along its shape
SIZES = 0.02  #: by which stated sizes are off
TRACKED = 0.002  #: [m] by which corners are off
EVENTS = 6  #: touches of a toss that are looked at, the hardest ones
FITS = 0.7  #: share of what a right convention usually gains, below which nothing fits
ROOT = np.sqrt(2 * np.pi)
SIX = np.concatenate([np.eye(3), -np.eye(3)])


def on_the_table(recordings: Recordings, body: str) -> Array | None:
    """Log likelihood [4] of the four ways, for a body that never leaves the table; None if it does not show."""
    moved, stands, noise = [], [], []
    for trajectory in recordings.trajectories:
        quaternion = trajectory.quaternion_world.get(body)
        if quaternion is None or is_tossed(trajectory, body):
            continue
        rows = np.flatnonzero(measured_rows(quaternion))
        if len(rows) < 5:
            continue
        upward = axes(unit(read_as(quaternion[rows], recordings.units.frame)))[..., 2]  # [4, T, 3], in the body's frame
        first = _mean_direction(upward[:, :5])
        away = _angle(upward, first[:, None])
        moved.append(np.quantile(away, 0.98, axis=-1))
        stands.append(first)
        noise.append(_turn_noise(trajectory.time[rows], quaternion[rows]))
    if not moved:
        return None
    rocking = np.hypot(ROCKING, 2 * np.array(noise))[:, None]  # the largest of many angles is some deviations
    slides = mixed([1 - STRAY, STRAY], near_axis(np.array(moved), rocking), np.array(ANYWHERE))
    shape = next((t.bodies[body].shape for t in recordings.trajectories if body in t.bodies), None)
    steady = mixed([1 - ODD, ODD], slides.sum(axis=0), np.array(len(moved) * ANYWHERE))
    return np.asarray(steady + _stands(np.array(stands), shape))


def _stands(upward: Array, shape: Shape | None) -> Array:
    """Log likelihood [4] of the vertical in the body's frame at rest [K, 4, 3], on one face in all recordings."""
    count = len(upward)
    each = near_axis(np.arccos(np.clip(upward @ SIX.T, -1, 1)), DRAWN)  # [K, 4, 6]
    each = mixed([1 - STRAY, STRAY], each, np.array(ANYWHERE)).sum(axis=0)
    own = _mean_direction(np.swapaxes(upward, 0, 1))
    alike = mixed([1 - STRAY, STRAY], near_axis(_angle(upward, own), DRAWN), np.array(ANYWHERE)).sum(axis=0)
    any_way = alike + np.log(2 * np.pi * DRAWN**2 / count) + ANYWHERE
    along = np.logaddexp.reduce(each, axis=-1) - np.log(6.0)
    if shape is None or shape.kind == "sphere":
        return np.asarray(mixed([0.5, 0.5], along, any_way))
    shares = [0.0, 1 - ODD, ODD] if shape.kind == "box" else [0.9, 0.1 - ODD, ODD]
    return np.asarray(mixed(np.maximum(shares, 1e-12), each[:, 2], along, any_way))


def on_the_ground(recordings: Recordings, body: str) -> Array | None:
    """Log likelihood [4] of the four ways for a tossed body: corners touch when its path bends, a face at the end."""
    lowest, events, rests = [], [], []
    for trajectory in recordings.trajectories:
        quaternion, shape = trajectory.quaternion_world.get(body), None
        if quaternion is not None and is_tossed(trajectory, body):
            shape = trajectory.bodies[body].shape
        if quaternion is None or shape is None or shape.kind == "sphere":
            continue
        rows = np.flatnonzero(measured_rows(np.column_stack([trajectory.position_world[body], quaternion])))
        if len(rows) < 12:
            continue
        ways = unit(read_as(quaternion[rows], recordings.units.frame))
        position = trajectory.position_world[body][rows]
        height = np.stack([lowest_point(shape, position, way) for way in ways])  # [4, T]
        error = np.hypot(TRACKED, SIZES * shape.full_height)
        error = np.hypot(error, _reach(shape) * _turn_noise(trajectory.time[rows], quaternion[rows]))
        lowest.append((height[:, -5:].mean(axis=-1), height.min(axis=-1), shape.full_height, error))
        events.append(_touches(trajectory, rows, position, height, float(error)))
        still = float(np.linalg.norm(np.ptp(position[-5:], axis=0))) < 0.002
        if shape.kind == "box" and still:
            rests.append(_mean_direction(axes(ways[:, -5:])[..., 2]))
    if not lowest:
        return None
    end, deepest = (np.array([row[i] for row in lowest]) for i in (0, 1))  # [K, 4] each
    size, error = (np.array([row[i] for row in lowest])[:, None] for i in (2, 3))
    ground = np.median(end, axis=0)
    parts = [_gained(((deepest - ground) / error) ** 2, -np.log(ROOT * error), -np.log(2 * size), 1)]
    for (touched, errors), tall in zip(events, size, strict=True):
        off = ((touched - ground[:, None]) / errors).T ** 2
        parts.append(_gained(off, -np.log(ROOT * errors[:, None]), -np.log(2 * tall), 1))
    if rests:
        angle = np.arccos(np.clip(np.abs(np.array(rests)).max(axis=-1), -1, 1))  # to the nearest face's normal
        peak = near_axis(np.zeros((len(rests), 1)), DRAWN) - np.log(6.0)
        parts.append(_gained((angle / DRAWN) ** 2, peak, np.array([ANYWHERE]), 2))
    gain, usual = np.sum([part[0] for part in parts], axis=0), sum(part[1] for part in parts)
    # a frame that is not the shape's fits nowhere, or somewhat by chance: then nothing can be said
    return np.asarray(np.where(gain > FITS * usual, gain, np.log(ODD)))


def _gained(off: Array, peak: Array, anywhere: Array, directions: int) -> tuple[Array, float]:
    """What normal densities of squared deviations [K, 4] gain over any value's, summed [4], and what is usual.

    `peak` [K, 1] is the log density at no deviation; on average it is half a unit less for each direction.
    """
    gain = mixed([1 - STRAY, STRAY], peak - 0.5 * off, anywhere + 0 * off) - anywhere
    return gain.sum(axis=0), float((peak - 0.5 * directions - anywhere).sum())


def _touches(
    trajectory: Trajectory, rows: NDArray[np.int64], position: Array, height: Array, error: float
) -> tuple[Array, Array]:
    """Heights [4, E] of the lowest point where the path bends, which needs no orientation, and their errors [E]."""
    t = trajectory.time[rows]
    jump = velocity_jumps(t, position)
    found: list[int] = []
    while len(found) < EVENTS and jump.max(initial=0.0) > LEAST_JUMP:
        found.append(int(np.argmax(jump)))
        jump[max(found[-1] - 4, 0) : found[-1] + 5] = 0.0
    at = np.array(found, dtype=int)
    before = np.abs(position[np.maximum(at - 3, 0), 2] - position[at, 2]) / (3 * trajectory.period)
    return height[:, at], np.hypot(error, trajectory.period * before)


def _reach(shape: Shape) -> float:
    return float(np.linalg.norm(corners(shape), axis=-1).max())


def _turn_noise(time: Array, quaternion: Array) -> float:
    """Noise of an orientation about one axis [rad], which is the same however its numbers are read."""
    flips = np.where(np.sum(quaternion[1:] * quaternion[:-1], axis=-1) < 0, -1.0, 1.0)
    even = quaternion * np.concatenate([[1.0], np.cumprod(flips)])[:, None]
    return 2 * float(np.sqrt(np.mean(np.nan_to_num(noise_floor(time, even)) ** 2)))


def _mean_direction(vectors: Array) -> Array:
    """Mean direction [..., 3] of unit vectors [..., T, 3]."""
    return unit(vectors.mean(axis=-2) + 1e-12)


def _angle(one: Array, other: Array) -> Array:
    return np.asarray(2 * np.arcsin(np.clip(0.5 * np.linalg.norm(one - other, axis=-1), 0, 1)))
