"""Samples that a tracker did not take: empty cells, and poses that it wrote again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from carom.recordings.checks.findings import Observation
from carom.recordings.checks.rows import row_of
from carom.recordings.differentiate import measured_rows
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory
from carom.state import Array

LONG = 5  #: lost samples in a row that no fit bridges well
HELD = 3  #: repeats in a row from where on a leap behind them is what was missed
STUCK = 8  #: repeats in a row that a pose which scatters otherwise does not show by chance
BESIDE = 6  #: steps beside a run that show whether samples scatter
ELSEWHERE = 0.001  #: [m] another body's way during a run, from where on something happens


def check_lost(trajectory: Trajectory, body: str) -> Iterator[Observation]:
    """Samples without a place, and those with a place but without an orientation."""
    position, quaternion = trajectory.position_world[body], trajectory.quaternion_world[body]
    there = measured_rows(position)
    if not there.any():
        yield Observation("warning", "never-tracked", "no sample of this body", trajectory.name, None, f"{body}.x")
        return
    yield from _gaps(trajectory, there, there, f"'{body}'", f"{body}.x", "samples")
    if quaternion is not None:
        turned = measured_rows(quaternion)
        if (there & ~turned).any() and turned.any():
            what = f"orientation of '{body}'"
            yield from _gaps(trajectory, turned, turned | ~there, what, f"{body}.qw", "orientations")


def _gaps(
    trajectory: Trajectory, there: NDArray[np.bool_], counted: NDArray[np.bool_], what: str, column: str, word: str
) -> Iterator[Observation]:
    first, last = int(np.argmax(there)), len(there) - 1 - int(np.argmax(there[::-1]))
    lead, trail = int((~counted[:first]).sum()), int((~counted[last + 1 :]).sum())
    if lead or trail:
        missing = float(trajectory.time[first] - trajectory.time[0] + trajectory.time[-1] - trajectory.time[last])
        yield Observation(
            "note",
            "part-tracked",
            f"{what} is not tracked for {{value}} at the record's ends",
            trajectory.name,
            None,
            column,
            missing,
            style="{:.2f} s",
            advice="up to {most} samples in a row",
            most=max(lead, trail),
        )
    lost = ~counted[first : last + 1]
    if not lost.any():
        return
    begin, end = _runs(lost)
    longest = int((end - begin).max())
    serious = longest > LONG or float(lost.mean()) > 0.05
    yield Observation(
        "warning" if serious else "note",
        "lost-samples",
        f"{{value}} of the {word} are lost",
        trajectory.name,
        row_of(trajectory, first + int(begin[0])),
        column,
        100 * float(lost.mean()),
        style="{:.1f} %",
        advice="up to {most} in a row" if serious else "",
        most=longest,
    )


def check_frozen(trajectory: Trajectory, body: str) -> Iterator[Observation]:
    """A pose that is repeated exactly while the body moves, or while others do and it would scatter."""
    position, quaternion = trajectory.position_world[body], trajectory.quaternion_world[body]
    pose = position if quaternion is None else np.column_stack([position, quaternion])
    rows = np.flatnonzero(measured_rows(pose))
    if len(rows) < 8:
        return
    same = (np.diff(pose[rows], axis=0) == 0).all(axis=-1)
    if not same.any():
        return
    moving, stuck = _repeats(trajectory, body, rows, same)
    texts = (
        (moving, "the same pose is repeated while the body moves: {value}"),
        (stuck, "the same pose is repeated while others move, though its samples scatter otherwise: {value}"),
    )
    for run, text in texts:
        if run.any():
            begin, end = _runs(run)
            longest = int((end - begin).max())
            yield Observation(
                "warning",
                "frozen",
                text,
                trajectory.name,
                row_of(trajectory, int(rows[int(begin[0]) + 1])),
                f"{body}.x",
                float(run.sum()),
                style="{:.0f} times",
                advice="up to {most} in a row: the tracker dropped out, leave such cells empty"
                if longest >= HELD
                else "two clocks beat, or the tracker dropped out: leave such cells empty",
                most=longest,
            )


def _repeats(
    trajectory: Trajectory, body: str, rows: NDArray[np.int64], same: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Steps [N-1] that repeat a pose while the body moves, and those that do while it would at least scatter."""
    position, time = trajectory.position_world[body], trajectory.time[rows]
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time, position))))
    steps = np.diff(position[rows], axis=0)
    step = np.linalg.norm(steps, axis=-1)
    pace = step / np.diff(time) * trajectory.period  # of one period: a gap in time is no leap
    least = max(4 * noise, 5e-5)  # clearly more than noise and the file's digits
    moving, stuck = np.zeros(len(same), dtype=bool), np.zeros(len(same), dtype=bool)
    for begin, end in zip(*_runs(same), strict=True):
        before = min(step[begin - 2], step[begin - 1]) if begin >= 2 else 0.0
        after = min(step[end], step[end + 1]) if end + 1 < len(step) else 0.0
        # what was missed shows as a leap behind the run: a body that sets off makes its first step the shortest
        leap = end - begin >= HELD and end + 1 < len(step) and pace[end] > 2 * pace[end + 1] + 5 * least
        if (before > least and after > least) or leap:
            moving[begin:end] = True
        elif end - begin >= STUCK and same.sum() - (end - begin) < 0.2 * (len(same) - (end - begin)):
            beside = [steps[max(begin - BESIDE, 0) : begin], steps[end : end + BESIDE]]
            if any(_scatters(piece) for piece in beside) and _others_move(trajectory, body, rows[begin], rows[end]):
                stuck[begin:end] = True
    return moving, stuck


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


def _runs(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where runs of true begin, and the places behind their ends."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return edges[::2], edges[1::2]
