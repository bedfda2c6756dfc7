"""What is wrong with the samples of one file: lost, late, frozen, or spiking."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from carom.recordings.checks.dropouts import check_filled, check_frozen, check_lost
from carom.recordings.checks.findings import Observation
from carom.recordings.checks.rows import row_of
from carom.recordings.checks.stamps import FEWEST, check_times
from carom.recordings.checks.units import check_units, check_velocities
from carom.recordings.differentiate import measured_rows
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory, Units

NOISY = 0.0012  #: [m] of noise, in all directions together, in which rest and motion are hard to tell apart


def check_samples(trajectory: Trajectory, units: Units) -> Iterator[Observation]:
    """Everything that can be told from a file's samples without asking what happens in it."""
    yield from check_times(trajectory)
    for body in trajectory.position_world:
        yield from check_lost(trajectory, body)
        if trajectory.bodies[body].role == "target":
            yield from _noise(trajectory, body)
        yield from _spikes(trajectory, body)
        yield from check_frozen(trajectory, body)
        yield from check_filled(trajectory, body)
        yield from _quaternions(trajectory, body)
        yield from check_units(trajectory, body, units)
        yield from check_velocities(trajectory, body)


def _noise(trajectory: Trajectory, body: str) -> Iterator[Observation]:
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(trajectory.time, trajectory.position_world[body]))))
    if noise > NOISY and 1 / trajectory.period > FEWEST:  # of few samples, a path's own bends look like noise
        yield Observation(
            "warning",
            "noise",
            "samples scatter by {value}",
            trajectory.name,
            None,
            f"{body}.x",
            1e3 * noise,
            style="{:.2g} mm",
            advice="rest, first motion and speeds are hard to tell in it: look for a better view of the markers",
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
    step = np.linalg.norm(np.diff(p, axis=0), axis=-1)
    beside = np.maximum(np.concatenate([[0.0], step[:-2]]), np.concatenate([step[2:], [0.0]]))
    # a body that is thrown back turns round within a sample, but its steps before and after are as long
    spike = away > np.maximum(1.2 * across + max(10 * noise, 0.002), 1.5 * beside)
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
