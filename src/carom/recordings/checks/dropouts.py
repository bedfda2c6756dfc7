"""Samples that a tracker did not take: empty cells, and poses that it wrote again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from carom.recordings.checks.findings import Observation
from carom.recordings.checks.rows import row_of
from carom.recordings.differentiate import measured_rows
from carom.recordings.impacts.frozen import HELD, repeats, runs
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory

LONG = 5  #: lost samples in a row that no fit bridges well
FILLED = 8  #: samples in a row that no noise puts on a line
STRAIGHT = 0.05  #: of the noise, by which such samples miss the line
CHANCE = 0.05  #: share of the other samples that may lie on a line as well
DIGITS = 5e-6  #: [m] of noise, below which a file's digits may hide it


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
    begin, end = runs(lost)
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
    rows, moving, stuck = repeats(trajectory, body)
    texts = (
        (moving, "the same place is repeated while the body moves, in {value} of its rows"),
        (stuck, "the same pose is repeated while others move, in {value} of its rows, though they scatter otherwise"),
    )
    for run, text in texts:
        if run.any():
            begin, end = runs(run)
            longest = int((end - begin).max())
            yield Observation(
                "warning",
                "frozen",
                text,
                trajectory.name,
                row_of(trajectory, int(rows[int(begin[0]) + 1])),
                f"{body}.x",
                float(run.sum()),
                style="{:.0f}",
                advice="up to {most} in a row: the tracker dropped out, leave such cells empty"
                if longest >= HELD
                else "two clocks beat, or the tracker dropped out: leave such cells empty",
                most=longest,
            )


def check_filled(trajectory: Trajectory, body: str) -> Iterator[Observation]:
    """Samples that lie on a straight line without any scatter: a gap that was filled in."""
    position = trajectory.position_world[body]
    rows = np.flatnonzero(measured_rows(position))
    if len(rows) < 4 * FILLED:
        return
    noise = noise_floor(trajectory.time, position)
    if not np.isfinite(noise).all() or float(np.linalg.norm(noise)) < DIGITS:
        return  # without noise, every path is as smooth
    t, p = trajectory.time[rows], position[rows]
    share = ((t[1:-1] - t[:-2]) / (t[2:] - t[:-2]))[:, None]
    bent = np.linalg.norm(p[1:-1] - (1 - share) * p[:-2] - share * p[2:], axis=-1)
    step = np.linalg.norm(np.diff(p, axis=0), axis=-1)
    straight = (bent < STRAIGHT * float(np.linalg.norm(noise))) & (np.minimum(step[1:], step[:-1]) > 0)
    begin, end = runs(straight)
    long = (end - begin) >= FILLED
    inside = int((end - begin)[long].sum())
    # where only some samples are off, as when they are late, the others lie on lines anyway
    if long.any() and straight.sum() - inside < CHANCE * (len(straight) - inside):
        at = int(begin[int(np.argmax(long))])
        longest = int((end - begin).max()) + 2
        yield Observation(
            "warning",
            "filled",
            "{value} lie on a straight line without any scatter",
            trajectory.name,
            row_of(trajectory, int(rows[at])),
            f"{body}.x",
            float((end - begin)[long].sum() + 2 * long.sum()),
            style="{:.0f} samples",
            advice="up to {most} in a row: a gap was filled in, leave such cells empty",
            most=longest,
        )
