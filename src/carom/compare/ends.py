"""Whole motions against recordings: where a struck target ends, simulated from what was known before contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from carom.core.errors import CaromError
from carom.engines.contract import Simulator, Status
from carom.recordings import Recordings, Trajectory, end_pose, undisturbed_until
from carom.recordings.strikes import first_strike
from carom.state import Array, Impacts, wrap_angle

START = 1e-3  #: [m] before contact where a simulated strike starts


@dataclass(frozen=True)
class Ends:
    """How N recorded motions ended."""

    pose: Array  #: [N, 3] x, y, yaw of the target's frame: where it rested, or where it was at the record's end
    time: Array  #: [N] after first motion, until something else moves it or the record ends [s]
    last_pose: Array  #: [N, 3] at the record's last sample, whatever has happened to the target by then


def recorded_ends(recordings: Recordings, impacts: Impacts) -> Ends:
    """The ends of the motions that these impacts began, in their order."""
    by_name = {t.name: t for t in recordings.trajectories}
    pose, time, last = [], [], []
    for name in impacts.names:
        trajectory = by_name[name]
        strike, reason = first_strike(trajectory)
        if strike is None:
            raise CaromError(f"{name}: {reason}")
        pose.append(end_pose(trajectory, strike))
        time.append(undisturbed_until(trajectory, strike) - strike.time)
        last.append(last_seen(trajectory, strike.target))
    return Ends(np.array(pose), np.array(time), np.array(last))


def last_seen(trajectory: Trajectory, body: str) -> Array:
    """x, y, yaw of a body's frame [3] at its last sample that was tracked."""
    frame = np.column_stack([trajectory.position_world[body][:, :2], trajectory.yaw(body)])
    return np.asarray(frame[np.flatnonzero(np.isfinite(frame).all(axis=1))[-1]])


def motion_errors(simulator: Simulator, impacts: Impacts, ends: Ends) -> dict[str, float]:
    """Mean distance [m] and turn [rad] between simulated and recorded ends; a strike that fails stays where it lay."""
    strikes = impacts.strikes
    initial = simulator.before_contact(strikes, START)
    speed = np.linalg.norm(strikes.striker_velocity[:, :2] - strikes.target_velocity[:, :2], axis=1)
    run = simulator.rollout(initial, ends.time + START / speed)
    lost = (run.status == Status.FAILED) | (run.status == Status.MISSED)
    end = np.where(lost[:, None], strikes.target_pose, run.rest)
    found = {}
    for name, pose in (("", ends.pose), ("last-sample-", ends.last_pose)):
        away = np.linalg.norm(end[:, :2] - pose[:, :2], axis=1)
        found[f"{name}position-error-m"] = float(away.mean())
        found[f"{name}yaw-error-rad"] = float(np.abs(wrap_angle(end[:, 2] - pose[:, 2])).mean())
    return found
