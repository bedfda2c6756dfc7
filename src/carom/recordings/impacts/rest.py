"""Where a struck or tossed body comes to rest. Read here only, so that all who ask get the same answer."""

from __future__ import annotations

import numpy as np

from carom.recordings.differentiate import measured_rows
from carom.recordings.impacts.measured import Impact, planar_samples
from carom.recordings.sampled import last_motion, moves_again
from carom.recordings.trajectory import Trajectory
from carom.state import Array

WINDOW = 0.2  #: [s] over which a body that rests must keep its pose
READ = 0.1  #: [s] at the end of its rest, over which the pose is read
CREEP, TURN = 0.002, 0.02  #: [m/s], [rad/s]: on a slippery table, a block that is slower than this has stopped
CLEARLY = 3.0  #: standard errors by which a drift must be larger than nothing
BEFORE = 0.02  #: [s] before something else moves the body, left out


def undisturbed_until(trajectory: Trajectory, impact: Impact) -> float:
    """When a target that came to rest after an impact is moved again by something else, or the record's end [s]."""
    return _times(trajectory, impact)[1]


def resting_pose(trajectory: Trajectory, impact: Impact) -> Array | None:
    """Where the target's frame comes to rest after an impact, x, y, yaw [3]; None if the record ends before.

    The first rest, not the record's end: a target is often picked up again while the camera still runs. A block that
    creeps is not at rest: its pose is read at the end of the time in which it keeps it.
    """
    samples = planar_samples(trajectory, impact.target)[:, [0, 1, 5]]
    stop, again = _times(trajectory, impact)
    end = float(trajectory.time[-1])
    until = again - BEFORE if again < end else end
    rows = np.flatnonzero(measured_rows(samples) & (trajectory.time >= stop) & (trajectory.time <= until))
    if stop >= end - 1.5 * trajectory.period or len(rows) < 3:
        return None
    time, pose = trajectory.time[rows], samples[rows]
    span = min(WINDOW, 0.5 * float(time[-1] - time[0]))
    starts = np.flatnonzero(time <= time[-1] - span + 1e-9)
    quiet = np.array([_quiet(time, pose, int(first), span) for first in starts])
    if not quiet.any():
        # after a long creep, the rest that was recorded may be shorter: then all of the record's end must be quiet
        begin = int(np.searchsorted(time, time[-1] - READ - 1e-9))
        return np.asarray(np.median(pose[begin:], axis=0)) if _quiet(time, pose, begin, READ) else None
    first = int(np.argmax(quiet))
    last = first + int(np.argmin(quiet[first:])) - 1 if not quiet[first:].all() else len(quiet) - 1
    over = float(time[time <= time[starts[last]] + span + 1e-9][-1])  # a sample's time: others may be lost
    keep = (time <= over + 1e-9) & (time >= max(over - READ, float(time[starts[first]])))
    return np.asarray(np.median(pose[keep], axis=0))


def end_pose(trajectory: Trajectory, impact: Impact) -> Array:
    """x, y, yaw [3] of the target's frame where it rests; where it does not, at the last sample of its own motion."""
    rest = resting_pose(trajectory, impact)
    if rest is not None:
        return rest
    samples = planar_samples(trajectory, impact.target)[:, [0, 1, 5]]
    until = undisturbed_until(trajectory, impact)
    seen = np.flatnonzero(measured_rows(samples) & (trajectory.time <= until))
    return np.asarray(samples[seen[-1]] if len(seen) else np.full(3, np.nan))


def _times(trajectory: Trajectory, impact: Impact) -> tuple[float, float]:
    """When the target is hardly under way any more, and when it is moved again or the record ends [s]."""
    tossed = impact.kind == "ground"
    path = trajectory.position_world[impact.target] if tossed else trajectory.planar_com(impact.target)
    stop = last_motion(trajectory.time, path, trajectory.period, impact.time)
    return stop, moves_again(trajectory.time, path, trajectory.period, stop)


def _quiet(time: Array, pose: Array, first: int, span: float) -> bool:
    """Whether the pose drifts by no more than noise explains, over `span` seconds from a sample on."""
    keep = slice(first, int(np.searchsorted(time, time[first] + span + 1e-9, side="right")))
    count = keep.stop - first
    if count < 3:
        return False  # samples are lost, or too few to see a drift in
    t = time[keep] - time[keep].mean()
    y = pose[keep] - pose[keep].mean(axis=0)
    weight = float(t @ t)
    slope = t @ y / weight
    left = y - np.outer(t, slope)
    error = np.sqrt((left**2).sum(axis=0) / max(count - 2, 1) / weight)
    drift, doubt = float(np.linalg.norm(slope[:2])), float(np.linalg.norm(error[:2]))
    return drift <= max(CREEP, CLEARLY * doubt) and abs(slope[2]) <= max(TURN, CLEARLY * float(error[2]))
