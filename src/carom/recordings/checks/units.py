"""Numbers that make no sense in the units that a header states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from carom.recordings.checks.findings import Observation
from carom.recordings.differentiate import measured_rows
from carom.recordings.trajectory import Trajectory, Units
from carom.state import Array

LARGE = 20.0  #: [m] a tabletop recording is not this wide
FAST = 30.0  #: [m/s] nothing that is struck or tossed by a robot is this fast


def check_units(trajectory: Trajectory, body: str, units: Units) -> Iterator[Observation]:
    """Places and speeds that no tabletop has."""
    position = trajectory.position_world[body]
    p = position[measured_rows(position)]
    if len(p) < 3:
        return
    far = float(np.abs(p).max())
    if far > LARGE:
        yield Observation(
            "warning",
            "length-unit",
            f"'{body}' is {{value}} from the origin",
            trajectory.name,
            None,
            f"{body}.x",
            far,
            style="{:.4g} m",
            advice=f"are these millimetres? The header says length: {units.length}",
        )
    elif units.length != "m" and far < 0.005:
        yield Observation(
            "warning",
            "length-unit",
            f"'{body}' stays within {{value}} of the origin",
            trajectory.name,
            None,
            f"{body}.x",
            1e3 * far,
            style="{:.2g} mm",
            advice=f"are these metres? The header says length: {units.length}",
        )
    rows = np.flatnonzero(measured_rows(position))
    speed = np.linalg.norm(np.diff(p, axis=0), axis=-1) / np.diff(trajectory.time[rows])
    typical = float(np.quantile(speed, 0.9))
    if typical > FAST and far <= LARGE:
        yield Observation(
            "warning",
            "speed-unit",
            f"'{body}' moves at {{value}}",
            trajectory.name,
            None,
            f"{body}.x",
            typical,
            style="{:.3g} m/s",
            advice=f"check the units: the header says length: {units.length}, time: {units.time}",
        )


def check_velocities(trajectory: Trajectory, body: str) -> Iterator[Observation]:
    """Velocity columns against the poses' own differences: a factor between them is a unit."""
    recorded = trajectory.velocity_world.get(body)
    if recorded is not None:
        position = trajectory.position_world[body]
        measured = np.gradient(position, trajectory.time, axis=0)
        yield from _factor(trajectory, f"{body}.vx", recorded, measured, 0.05)
    spin = trajectory.angular_velocity_world.get(body)
    quaternion = trajectory.quaternion_world[body]
    if spin is not None and quaternion is not None and len(quaternion) > 2:
        turn = np.clip(np.abs(np.sum(quaternion[2:] * quaternion[:-2], axis=-1)), 0, 1)
        rate = 2 * np.arccos(turn) / (trajectory.time[2:] - trajectory.time[:-2])
        yield from _factor(trajectory, f"{body}.wx", spin[1:-1], rate[:, None], 0.2)


def _factor(
    trajectory: Trajectory, column: str, recorded: Array, measured: Array, least: float
) -> Iterator[Observation]:
    sizes = np.linalg.norm(recorded, axis=-1), np.linalg.norm(measured, axis=-1)
    keep = np.isfinite(sizes[0]) & np.isfinite(sizes[1]) & (sizes[1] > least)
    if keep.sum() < 8:
        return
    ratio = float(np.median(sizes[0][keep] / sizes[1][keep]))
    if not 0.5 < ratio < 2.0:
        hint = "degrees per second?" if 40 < ratio < 80 else "another unit?"
        yield Observation(
            "warning",
            "velocity-unit",
            "recorded velocities are {value} times those of the poses",
            trajectory.name,
            None,
            column,
            ratio,
            style="{:.3g}",
            advice=hint,
        )
