"""Which axis is up: free fall, slides and turns show it, and a header that says otherwise is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.rotations import matrices, unit
from carom.recordings.checks.findings import Observation
from carom.recordings.differentiate import measured_rows
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Recordings, Trajectory

SPAN = 0.1  #: [s] of a piece in which a body may fall freely
FALLS = 0.08  #: of gravity, by which the acceleration of free fall may be off
PIECES = 3  #: of a file in free fall, from which it has a direction
SLIDES = 0.03  #: [m] between the ends of a slide that shows its plane
FLAT = 0.02  #: of a slide's length, by which a plane is uneven
OUT_OF_PLANE = 0.2  #: of a slide's length, from where on it leaves a plane
TURNS = 0.15  #: [rad] from the record's beginning to its end that show an axis
SHARE = 0.8  #: of the files that show something, from where on the header is wrong


def check_upward(recordings: Recordings) -> Iterator[Observation]:
    """An error where bodies fall along, slide across or turn about another axis than the header's vertical."""
    votes = [axis for t in recordings.trajectories for name in t.targets if (axis := _upward(t, name)) is not None]
    other = [axis for axis in votes if axis == "y"]
    if not other or len(other) < SHARE * len(votes):
        return
    # files are turned while they are read: what is y here is -z in a file that was declared y-up
    stated = recordings.units.frame
    meant = "y-up" if stated == "z-up" else "z-up"
    yield Observation(
        "error",
        "frame",
        f"the header says frame: {stated}, but bodies fall along, slide across or turn about the other axis "
        f"(in {len(other)} of {len(votes)} motions that show it): state frame: {meant}",
    )


def _upward(trajectory: Trajectory, body: str) -> str | None:
    """The axis that is up in one file, "z" or "y"; None if it does not show."""
    position = trajectory.position_world[body]
    rows = np.flatnonzero(measured_rows(position))
    if len(rows) < 12:
        return None
    fallen = _falls(trajectory, body)
    if max(fallen.values()) >= PIECES:
        return max(fallen, key=lambda axis: fallen[axis])
    way = np.ptp(position[rows], axis=0)
    noise = np.nan_to_num(noise_floor(trajectory.time, position))
    length = float(np.linalg.norm(position[rows[-1]] - position[rows[0]]))
    if length > SLIDES:
        level = way < FLAT * length + 10 * noise + 0.001
        if level[1] and not level[2] and way[2] > OUT_OF_PLANE * length:
            return "y"
        if level[2] and not level[1] and way[1] > OUT_OF_PLANE * length:
            return "z"
    return _turns(trajectory, body)


def _falls(trajectory: Trajectory, body: str) -> dict[str, int]:
    """In how many pieces of a record a body falls freely along each axis."""
    position = trajectory.position_world[body]
    rows = np.flatnonzero(measured_rows(position))
    count = max(round(SPAN / trajectory.period), 6)
    found = {"z": 0, "y": 0}
    for start in range(0, len(rows) - count, max(count // 4, 1)):
        piece = rows[start : start + count]
        t = trajectory.time[piece] - trajectory.time[piece].mean()
        bend = 2 * np.polyfit(t, position[piece], 2)[0]
        for axis, vector in (("z", [0.0, 0.0, -GRAVITY]), ("y", [0.0, -GRAVITY, 0.0])):
            # a slide with friction near 1 is braked as hard, but stays in its plane: a fall speeds up
            speed = float(np.polyfit(t, position[piece] @ np.array(vector), 1)[0])
            if np.linalg.norm(bend - vector) < FALLS * GRAVITY and speed > 0:
                found[axis] += 1
    return found


def _turns(trajectory: Trajectory, body: str) -> str | None:
    quaternion = trajectory.quaternion_world[body]
    if quaternion is None:
        return None
    rows = np.flatnonzero(measured_rows(quaternion))
    if len(rows) < 12:
        return None
    first, last = (matrices(unit(quaternion[piece])).mean(axis=0) for piece in (rows[:3], rows[-3:]))
    turn = last @ first.T  # in the world
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    size = float(np.linalg.norm(axis))
    if size < TURNS:
        return None
    along = np.abs(axis) / size
    return "z" if along[2] > 0.98 else "y" if along[1] > 0.98 else None
