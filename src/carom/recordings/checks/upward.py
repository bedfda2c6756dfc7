"""Which axis is up: free fall, slides and turns show it, and a header that says otherwise is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.rotations import matrices, unit
from carom.recordings.checks.findings import Observation
from carom.recordings.differentiate import measured_rows
from carom.recordings.sampled import first_motion, last_motion, noise_floor
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array

SPAN = 0.1  #: [s] of a piece in which a body may fall freely
FALLS = 0.08  #: of gravity, by which the acceleration of free fall may be off
BEND = 26.8  #: error of a quadratic's bend, over noise / (span^2 sqrt(samples))
UNSURE = 0.1  #: of gravity, by which that error may be off
PIECES = 3  #: of a file in free fall, from which it has a direction
SLIDES = 0.03  #: [m] between the ends of a slide that shows its plane
FLAT = 0.02  #: of a slide's length, by which a plane is uneven
OUT_OF_PLANE = 0.2  #: of a slide's length, from where on it leaves a plane
TURNS = 0.15  #: [rad] from the record's beginning to its end that show an axis
STRAIGHT = 0.95  #: distance over way of a slide
NAMES = ("x", "y", "z")
SHARE = 0.8  #: of the files that show something, from where on the header is wrong


def check_upward(recordings: Recordings) -> Iterator[Observation]:
    """An error where bodies fall along, slide across or turn about another axis than the header's vertical."""
    votes = Counter(
        axis for t in recordings.trajectories for name in t.targets if (axis := _upward(t, name)) is not None
    )
    axis, count = votes.most_common(1)[0] if votes else ("z", 0)
    if axis == "z" or count < max(SHARE * votes.total(), 0.5 * len(recordings)):
        return
    # files are turned while they are read: what is y here is -z in a file that was declared y-up
    stated = recordings.units.frame
    meant = "y-up" if stated == "z-up" else "z-up"
    if axis == "y":
        todo = f"the other axis (in {count} of {votes.total()} motions that show it): state frame: {meant}"
    else:
        todo = (
            f"{axis if stated == 'z-up' else 'another axis'} (in {count} of {votes.total()} motions that show it); "
            "frames may be z-up or y-up: turn positions and quaternions to one of them"
        )
    yield Observation(
        "error", "frame", f"the header says frame: {stated}, but bodies fall along, slide across or turn about {todo}"
    )


def _upward(trajectory: Trajectory, body: str) -> str | None:
    """The axis that is up in one file, "z", "y", "x", or one of them downward ("-z"); None if it does not show."""
    position = trajectory.position_world[body]
    rows = np.flatnonzero(measured_rows(position))
    if len(rows) < 12:
        return None
    fallen = falls(trajectory, body)
    if fallen is not None:
        return fallen
    length, path = _slide(trajectory, position)
    way = np.ptp(position[rows], axis=0)
    turned = _turns(trajectory, body)
    if not (length > SLIDES and length > STRAIGHT * path):
        return None if turned == "x" else turned  # numbers that are not w-first seem to turn about x
    level = way < FLAT * length + 10 * np.nan_to_num(noise_floor(trajectory.time, position)) + 0.001
    flat = [name for name, is_level in zip(NAMES, level, strict=True) if is_level]
    if "z" not in flat and way[2] < OUT_OF_PLANE * length:
        return None  # it rocks, or tips over
    if len(flat) == 1:
        return flat[0]
    return turned if turned in flat and not (turned == "x" and "z" in flat) else None


def _slide(trajectory: Trajectory, position: Array) -> tuple[float, float]:
    """Distance [m] and way [m] of a body that is struck and slows down; no distance where it does something else."""
    onset = first_motion(trajectory.time, position, trajectory.period)
    if onset is None:
        return 0.0, 0.0
    stop = last_motion(trajectory.time, position, trajectory.period, onset.time)
    rows = np.flatnonzero(measured_rows(position) & (trajectory.time >= onset.time) & (trajectory.time <= stop))
    coarse = position[rows[:: max(round(0.05 / trajectory.period), 1)]]  # finer, noise would make it longer
    step = np.linalg.norm(np.diff(coarse, axis=0), axis=-1)
    if len(step) < 3 or int(np.argmax(step)) > len(step) // 2:
        return 0.0, 0.0
    return float(np.linalg.norm(coarse[-1] - coarse[0])), float(step.sum())


def falls(trajectory: Trajectory, body: str, factor: float = 1.0) -> str | None:
    """The axis opposite to which a body falls freely, if lengths are `factor` times too large; None if it does not."""
    key = ("bends", body)
    if key not in trajectory.kept:
        trajectory.kept[key] = _bends(trajectory, body)
    slope, bend = (values / factor for values in trajectory.kept[key])
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time, trajectory.position_world[body]))))
    # the error of a quadratic's bend: where it is large, some piece of noise always looks like a fall
    if BEND * noise / (SPAN**2 * np.sqrt(SPAN / trajectory.period)) > UNSURE * GRAVITY * factor:
        return None
    found = Counter[str]()
    for axis, name in enumerate(NAMES):
        for sign, word in ((1.0, name), (-1.0, f"-{name}")):
            vector = np.zeros(3)
            vector[axis] = -sign * GRAVITY
            # a slide with friction near 1 is braked as hard, but stays in its plane: a fall speeds up
            free = (np.linalg.norm(bend - vector, axis=-1) < FALLS * GRAVITY) & (slope @ vector > 0)
            found[word] = int(free.sum())
    way, pieces = found.most_common(1)[0]
    return way if pieces >= PIECES else None


def _bends(trajectory: Trajectory, body: str) -> tuple[Array, Array]:
    """Velocity and acceleration [K, 3] of quadratic fits to pieces of a record that overlap."""
    position = trajectory.position_world[body]
    rows = np.flatnonzero(measured_rows(position))
    count = max(round(SPAN / trajectory.period), 6)
    if len(rows) <= count:
        return np.zeros((0, 3)), np.zeros((0, 3))
    starts = np.arange(0, len(rows) - count, max(count // 4, 1))
    pieces = rows[starts[:, None] + np.arange(count)]
    t = trajectory.time[pieces] - trajectory.time[pieces].mean(axis=1, keepdims=True)
    scale = np.maximum(np.abs(t).max(axis=1), 1e-12)[:, None, None]
    found = np.linalg.pinv((t[..., None] / scale) ** np.arange(3)) @ position[pieces]
    return found[:, 1] / scale[:, 0], 2 * found[:, 2] / scale[:, 0] ** 2


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
    return NAMES[int(np.argmax(along))] if along.max() > 0.98 else None
