"""What is wrong with the samples of one file: lost, late, frozen, or spiking."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from carom.recordings.checks.dropouts import check_frozen, check_lost
from carom.recordings.checks.findings import Observation
from carom.recordings.checks.rows import row_of
from carom.recordings.checks.units import check_units, check_velocities
from carom.recordings.differentiate import measured_rows
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory, Units


def check_samples(trajectory: Trajectory, units: Units) -> Iterator[Observation]:
    """Everything that can be told from a file's samples without asking what happens in it."""
    yield from _times(trajectory)
    for body in trajectory.position_world:
        yield from check_lost(trajectory, body)
        yield from _spikes(trajectory, body)
        yield from check_frozen(trajectory, body)
        yield from _quaternions(trajectory, body)
        yield from check_units(trajectory, body, units)
        yield from check_velocities(trajectory, body)


def _times(trajectory: Trajectory) -> Iterator[Observation]:
    name, step, period = trajectory.name, np.diff(trajectory.time), trajectory.period
    gaps = step > 1.8 * period
    if gaps.any():
        at = int(np.argmax(step * gaps))
        yield Observation(
            "warning",
            "time-gap",
            "a gap in time of {value}",
            name,
            row_of(trajectory, at + 1),
            "time",
            float(step[at]),
            style="{:.3g} s",
            advice="states near it are doubtful",
        )
    even = step[~gaps]
    scatter = float(np.quantile(np.abs(even - period), 0.9)) / period if len(even) else 0.0
    if scatter > 0.1:
        yield Observation(
            "warning",
            "irregular-rate",
            "intervals between samples scatter by {value} of a period",
            name,
            None,
            "time",
            scatter,
            style="{:.2f}",
            advice="fits use the stated times; check that they are the times of exposure",
        )
    if period > 0.5 or period < 2e-5:
        yield Observation(
            "warning",
            "time-unit",
            "samples are {value} apart",
            name,
            None,
            "time",
            period,
            style="{:.3g} s",
            advice="are the times in another unit? State units: {time: ms} (or s, us)",
        )


def _spikes(trajectory: Trajectory, body: str) -> Iterator[Observation]:
    position = trajectory.position_world[body]
    rows = np.flatnonzero(measured_rows(position))
    if len(rows) < 8:
        return
    p = position[rows]
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time, position))))
    across = np.linalg.norm(p[2:] - p[:-2], axis=-1)
    away = np.linalg.norm(p[1:-1] - 0.5 * (p[2:] + p[:-2]), axis=-1)
    spike = away > 1.2 * across + max(10 * noise, 0.002)
    if spike.any():
        at = int(np.argmax(away * spike)) + 1
        yield Observation(
            "warning",
            "spike",
            "a sample jumps {value} away and back",
            trajectory.name,
            row_of(trajectory, int(rows[at])),
            f"{body}.x",
            1e3 * float(away[at - 1]),
            style="{:.3g} mm",
            advice="remove it (leave its cells empty)",
        )
    step = np.linalg.norm(np.diff(p, axis=0), axis=-1)
    around = np.maximum(np.concatenate([[0.0], step[:-1]]), np.concatenate([step[1:], [0.0]]))
    leap = (step > 15 * around + max(20 * noise, 0.02)) & (np.diff(trajectory.time[rows]) < 1.8 * trajectory.period)
    if leap.any() and not spike.any():
        at = int(np.argmax(step * leap))
        yield Observation(
            "warning",
            "teleport",
            "the body leaps by {value} between two samples",
            trajectory.name,
            row_of(trajectory, int(rows[at + 1])),
            f"{body}.x",
            1e3 * float(step[at]),
            style="{:.3g} mm",
            advice="the tracker has lost it or taken another for it",
        )


def _quaternions(trajectory: Trajectory, body: str) -> Iterator[Observation]:
    quaternion = trajectory.quaternion_world[body]
    if quaternion is None:
        yield Observation(
            "note", "no-orientation", f"orientation of '{body}' is not measured: its spin is unknown", trajectory.name
        )
        return
    rows = np.flatnonzero(measured_rows(quaternion))
    if not len(rows):
        return
    q = quaternion[rows]
    error = np.abs(np.linalg.norm(q, axis=-1) - 1)
    if error.max() > 1e-3:
        at = int(np.argmax(error))
        yield Observation(
            "warning",
            "quaternion-norm",
            "quaternions are not of unit length (off by {value})",
            trajectory.name,
            row_of(trajectory, int(rows[at])),
            f"{body}.qw",
            float(error[at]),
            style="{:.2g}",
            advice="they are used as directions only; write them with more digits",
        )
    flip = np.sum(q[1:] * q[:-1], axis=-1) < 0
    if flip.any():
        yield Observation(
            "note",
            "quaternion-sign",
            "quaternions change sign ({value} times): harmless here, but not for interpolation elsewhere",
            trajectory.name,
            row_of(trajectory, int(rows[int(np.argmax(flip)) + 1])),
            f"{body}.qw",
            float(flip.sum()),
            style="{:.0f}",
        )
    dot = np.clip(np.abs(np.sum(q[2:] * q[:-2], axis=-1)), 0, 1)
    middle = np.clip(np.abs(np.sum(q[1:-1] * q[:-2], axis=-1)), 0, 1)
    away, across = 2 * np.arccos(middle), 2 * np.arccos(dot)
    spike = away > 3 * across + 0.15
    if spike.any():
        at = int(np.argmax(spike)) + 1
        yield Observation(
            "warning",
            "orientation-spike",
            "orientation jumps by {value} and back",
            trajectory.name,
            row_of(trajectory, int(rows[at])),
            f"{body}.qw",
            float(np.rad2deg(away[at - 1])),
            style="{:.3g} deg",
            advice="markers swapped? Remove the sample (leave its cells empty)",
        )
