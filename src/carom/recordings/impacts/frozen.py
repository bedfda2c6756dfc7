"""Poses that a tracker wrote again and again while the body moved on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from carom.recordings.differentiate import measured_rows
from carom.recordings.impacts.measured import Impact
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory
from carom.state import Array

HELD = 3  #: repeats in a row from where on a leap behind them is what was missed
STUCK = 8  #: repeats in a row that a pose which scatters otherwise does not show by chance
BESIDE = 6  #: steps beside a run that show whether samples scatter
LEAST = 2e-4  #: [m] of a step, from where on a body is on its way
AROUND = 4  #: steps before and after a run that show whether a body is on its way
STEPS = 5  #: in which a body that slows down comes to rest, at most, when it is nearly there
ELSEWHERE = 0.001  #: [m] another body's way during a run, from where on something happens


def repeats(trajectory: Trajectory, body: str) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Measured rows [N], steps [N-1] that repeat a place on the way, and those that repeat a resting pose."""
    position, quaternion = trajectory.position_world[body], trajectory.quaternion_world[body]
    pose = position if quaternion is None else np.column_stack([position, quaternion])
    rows = np.flatnonzero(measured_rows(pose))
    nowhere = np.zeros(max(len(rows) - 1, 0), dtype=bool)
    if len(rows) < 8:
        return rows, nowhere, nowhere
    step = np.linalg.norm(np.diff(position[rows], axis=0), axis=-1)
    same = (np.diff(pose[rows], axis=0) == 0).all(axis=-1)
    moving = _held_on_the_way(trajectory, body, rows, step)
    stuck = _held_at_rest(trajectory, body, rows, same & ~moving) if same.any() else nowhere
    return rows, moving, stuck


def frozen_at(trajectory: Trajectory, impact: Impact) -> str | None:
    """The body, target or striker, whose pose is frozen when the two meet."""
    for body in (impact.target, *trajectory.with_role("striker")):
        rows, moving, stuck = repeats(trajectory, body)
        for begin, end in zip(*runs(moving | stuck), strict=True):
            first, last = trajectory.time[rows[begin]], trajectory.time[rows[end]]
            near = first - 2 * trajectory.period < impact.time < last + 2 * trajectory.period
            if end - begin >= HELD and near:
                return body
    return None


def is_frozen(trajectory: Trajectory, body: str, after: float) -> bool:
    """Whether a body's pose is frozen for several samples somewhere after a time [s]."""
    rows, moving, stuck = repeats(trajectory, body)
    begin, end = runs(moving | stuck)
    return bool(((end - begin >= HELD) & (trajectory.time[rows[end]] > after)).any()) if len(begin) else False


def _held_on_the_way(trajectory: Trajectory, body: str, rows: NDArray[np.int64], step: Array) -> NDArray[np.bool_]:
    """Steps that repeat a place: a recorder may write positions late though orientations go on."""
    position, time = trajectory.position_world[body][rows], trajectory.time[rows]
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time, trajectory.position_world[body]))))
    pace = step / np.diff(time) * trajectory.period  # of one period: a gap in time is no leap
    held = step == 0
    # noise never repeats a place to the last digit, unless there are few digits: then steps must be larger than it
    least = max(4 * noise if held.mean() > 0.2 else min(4 * noise, LEAST), 5e-5)
    moving = np.zeros(len(step), dtype=bool)
    for begin, end in zip(*runs(held), strict=True):
        # over some steps, because a recorder that holds a place once often does so again soon
        before = _way(position, max(begin - AROUND, 0), begin) if begin >= AROUND else 0.0
        after = _way(position, end, end + AROUND) if end + AROUND < len(position) else 0.0
        # what was missed shows as a leap behind the run: a body that sets off makes its first step the shortest
        leap = end - begin >= HELD and end + 1 < len(step) and pace[end] > 2 * pace[end + 1] + 5 * least
        if min(before, after) > AROUND * least or leap or (end == len(step) and _stops_dead(step[:begin], least)):
            moving[begin:end] = end - begin < len(step)
    return moving


def _way(position: Array, first: int, last: int) -> float:
    return float(np.linalg.norm(position[last] - position[first]))


def _stops_dead(step: Array, least: float) -> bool:
    """Whether a body that is written at the same place until the end was far from coming to rest before that."""
    if len(step) < BESIDE:
        return False
    last = step[-BESIDE:]
    slowing = max(float(last[0] - last[-1]) / (BESIDE - 1), 0.2 * least)
    return float(last.min()) > max(STEPS * slowing, least)


def _held_at_rest(
    trajectory: Trajectory, body: str, rows: NDArray[np.int64], same: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Steps that repeat a pose while others move, of a body whose samples scatter beside them."""
    steps = np.diff(trajectory.position_world[body][rows], axis=0)
    stuck = np.zeros(len(same), dtype=bool)
    for begin, end in zip(*runs(same), strict=True):
        if end - begin < STUCK or same.sum() - (end - begin) >= 0.2 * (len(same) - (end - begin)):
            continue
        beside = [steps[max(begin - BESIDE, 0) : begin], steps[end : end + BESIDE]]
        if any(_scatters(piece) for piece in beside) and _others_move(trajectory, body, rows[begin], rows[end]):
            stuck[begin:end] = True
    return stuck


def _scatters(steps: Array) -> bool:
    """Whether these steps go to and fro, as noise does, and none is empty."""
    size = np.linalg.norm(steps, axis=-1)
    return len(steps) == BESIDE and bool((size > 0).all()) and np.linalg.norm(steps.sum(axis=0)) < 0.5 * size.sum()


def _others_move(trajectory: Trajectory, body: str, first: int, last: int) -> bool:
    for name, path in trajectory.position_world.items():
        piece = path[first : last + 1]
        piece = piece[measured_rows(piece)]
        if name != body and len(piece) > 1 and float(np.linalg.norm(piece[-1] - piece[0])) > ELSEWHERE:
            return True
    return False


def runs(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where runs of true begin, and the places behind their ends."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return edges[::2], edges[1::2]
