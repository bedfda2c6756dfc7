"""What is wrong with the times of one file: gaps, jumps of the clock, stamps that are too coarse, other units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from carom.recordings.checks.findings import Observation
from carom.recordings.checks.rows import row_of
from carom.recordings.differentiate import fit_polynomial, measured_rows
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory
from carom.state import Array

SLOWEST, FASTEST = 0.5, 1e-5  #: [s] no tracker takes samples more seldom, or more often
FEWEST = 45.0  #: [Hz] below, strikes are doubtful (40) or not found at all (30)
GAP = 1.8  #: periods from where on samples are missing
SCATTER = 0.1  #: periods by which intervals may scatter
BESIDE = 5  #: samples on each side of a gap that show how bodies move
STOOD = 0.3  #: share of a gap's way that bodies go when it was only the clock that jumped


def time_unit(trajectory: Trajectory) -> bool:
    """Whether times must be in another unit than the header says."""
    return not FASTEST <= trajectory.period <= SLOWEST


def check_times(trajectory: Trajectory) -> Iterator[Observation]:
    """Everything that can be told from the time stamps, and from how bodies go on across gaps."""
    name, step, period = trajectory.name, np.diff(trajectory.time), trajectory.period
    if time_unit(trajectory):
        advice = "are the times in another unit? State units: {time: ms} (or s, us)"
        seen = _seen(name, "time-unit", "samples are {value} apart", period, "{:.3g} s", advice)
        yield replace(seen, level="error")
        return
    if 1 / period < FEWEST:
        advice = "strikes need 50 Hz and more"
        yield _seen(name, "low-rate", "sampled at {value}", 1 / period, "{:.3g} Hz", advice)
    coarse = _resolution(trajectory.time)
    if coarse:
        text = "time stamps are all multiples of {value}, which is too coarse for these samples"
        yield _seen(name, "time-resolution", text, 1e3 * coarse, "{:.3g} ms", "write more digits, not float32")
        return
    gaps = step > GAP * period
    if gaps.any():
        at = int(np.argmax(step * gaps))
        row = row_of(trajectory, at + 1)
        if clock_jumps(trajectory, at):
            text = "the clock jumps by {value}, and bodies go on as if nothing had been"
            advice = "subtract it from all later times"
            yield _seen(name, "clock-jump", text, float(step[at]) - period, "{:.3g} s", advice, row)
        else:
            advice = "states near it are doubtful"
            yield _seen(name, "time-gap", "a gap in time of {value}", float(step[at]), "{:.3g} s", advice, row)
    even = step[~gaps]
    scatter = float(np.quantile(np.abs(even - period), 0.9)) / period if len(even) else 0.0
    if scatter > SCATTER:
        text = "intervals between samples scatter by {value} of a period"
        advice = "fits use the stated times; check that they are the times of exposure"
        yield _seen(name, "irregular-rate", text, scatter, "{:.2f}", advice)


def _seen(
    name: str, code: str, text: str, value: float, style: str, advice: str, row: int | None = None
) -> Observation:
    return Observation("warning", code, text, name, row, "time", value, style=style, advice=advice)


def _resolution(time: Array) -> float:
    """What stamps are multiples of [s], where they are those of an even clock but rounded coarsely; 0 if not."""
    step = np.diff(time)
    least = float(step.min())
    whole = step / least
    uneven = float(whole.max()) > 1.5 and float(np.abs(whole - np.round(whole)).max()) < 0.02
    index = np.arange(len(time))
    line = np.polyval(np.polyfit(index, time - time[0], 1), index)
    # where rows are missing, stamps wander off an even clock; where they are rounded, they never do
    return least if uneven and float(np.abs(time - time[0] - line).max()) < 0.75 * least else 0.0


def clock_jumps(trajectory: Trajectory, at: int) -> bool:
    """Whether all bodies that move go on behind row `at` as if the gap in time there were none."""
    time, period = trajectory.time, trajectory.period
    gap = float(time[at + 1] - time[at])
    stood = []
    for position in trajectory.position_world.values():
        rows = np.flatnonzero(measured_rows(position))
        before, after = rows[rows <= at][-BESIDE:], rows[rows > at][:BESIDE]
        if min(len(before), len(after)) < BESIDE:
            continue
        fits = [
            fit_polynomial(time[piece], position[piece], float(time[end]), order=1)
            for piece, end in ((before, before[-1]), (after, after[0]))
        ]
        velocity = 0.5 * (fits[0].velocity + fits[1].velocity)
        speed = float(np.linalg.norm(velocity))
        noise = float(np.linalg.norm(np.nan_to_num(noise_floor(time, position))))
        if speed * (gap - period) > 10 * noise + 0.001:
            moved = float((fits[1].value - fits[0].value) @ velocity) / speed
            stood.append(moved < speed * (period + STOOD * (gap - period)))
    return bool(stood) and all(stood)
