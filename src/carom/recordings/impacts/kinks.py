"""Where two measured paths bend at once: the instants at which two moving bodies meet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.recordings.differentiate import measured_rows
from carom.recordings.geometry import planar_gap
from carom.recordings.impacts.measured import planar_samples
from carom.recordings.sampled import noise_floor, top_speed
from carom.recordings.trajectory import Trajectory
from carom.state import Array

NEAR = 0.05  #: [m] a striker further away than this at contact has not struck


def kinks(trajectory: Trajectory, target: str, striker: str) -> list[float]:
    """Instants at which both paths bend while the bodies are near and closing."""
    ours, theirs = planar_samples(trajectory, target), planar_samples(trajectory, striker)
    rows = np.flatnonzero(measured_rows(ours) & measured_rows(theirs))
    count = max(round(0.03 / trajectory.period), 5)
    if len(rows) < 2 * count + 3:
        return []
    t = trajectory.time[rows]
    bodies = trajectory.bodies
    gap = planar_gap(bodies[target], ours[rows][:, [0, 1, 5]], bodies[striker], theirs[rows][:, [0, 1, 5]])
    if not np.isfinite(gap).any():
        gap = np.linalg.norm(ours[rows, :2] - theirs[rows, :2], axis=-1)
    elif not float(np.nanmin(gap)) < NEAR:
        return []  # they never meet
    size = [b.shape.planar_outline for b in (bodies[target], bodies[striker]) if b.shape is not None]
    margin = max(0.006, 0.1 * min((float(np.ptp(outline)) for outline in size), default=0.0))
    centre = np.arange(count + 1, len(rows) - count - 1)
    jumps, sure = [], np.ones(len(centre), dtype=bool)
    for samples, name in ((ours, target), (theirs, striker)):
        path = samples[rows][:, 3:5]
        pre, post = _slopes(t, path, centre, count)
        noise = max(float(np.linalg.norm(noise_floor(t, path))), 1e-7)
        error = noise / (trajectory.period * np.sqrt(count**3 / 12))
        jumps.append((pre, post))
        if name == target or bodies[name].mass is not None:  # a stiffly held striker need not bend
            sure &= np.linalg.norm(post - pre, axis=-1) > 6 * error
    relative = jumps[0][0] - jumps[1][0]
    bend = np.linalg.norm((jumps[0][1] - jumps[1][1]) - relative, axis=-1)
    towards = theirs[rows[centre], :2] - ours[rows[centre], :2]
    towards = towards / np.maximum(np.linalg.norm(towards, axis=-1, keepdims=True), 1e-9)
    closing = np.sum(relative * towards, axis=-1)
    pace = max(top_speed(t, samples[rows][:, 3:5], trajectory.period) for samples in (ours, theirs))
    allowed = sure & (gap[centre] < np.nanmin(gap) + margin) & (closing > 0.05 * pace) & (bend > 0.1 * pace)
    return _peaks(t[centre], np.where(allowed, bend, 0.0), apart=2 * count * trajectory.period)


def _peaks(time: Array, height: Array, *, apart: float) -> list[float]:
    """Times of the highest places, none within `apart` of a higher one, none below a third of the highest."""
    found: list[float] = []
    top = float(height.max(initial=0.0))
    left = height.copy()
    while top > 0 and left.max() > 0.3 * top:
        at = float(time[int(np.argmax(left))])
        found.append(at)
        left[np.abs(time - at) < apart] = 0.0
    return sorted(found)


def _slopes(time: Array, path: Array, centre: NDArray[np.integer[Any]], count: int) -> tuple[Array, Array]:
    """Velocities [N, 2] of straight fits to the `count` samples before and after each row, the row left out."""
    origin = time[0]
    t = time - origin
    y = path - path[0]

    def sums(values: Array) -> Array:
        return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])

    st, stt, sy, sty = sums(t), sums(t * t), sums(y), sums(t[:, None] * y)

    def slope(start: NDArray[np.integer[Any]]) -> Array:
        end = start + count
        a, b = (st[end] - st[start]) / count, (sy[end] - sy[start]) / count
        var = stt[end] - stt[start] - count * a * a
        return np.asarray((sty[end] - sty[start] - count * a[:, None] * b) / np.maximum(var, 1e-15)[:, None])

    return slope(centre - count), slope(centre + 1)
