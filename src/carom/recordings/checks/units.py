"""Numbers that make no sense in the units that a header states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from carom.core.rotations import matrices, unit
from carom.recordings.checks.findings import Observation
from carom.recordings.differentiate import measured_rows
from carom.recordings.sampled import WINDOW, window_speed
from carom.recordings.trajectory import Trajectory, Units
from carom.state import Array

LARGE = 20.0  #: [m] a tabletop recording is not this wide
ACROSS = 2  #: samples before and after, over which velocities are taken from poses
DIFFERS = 0.25  #: of a velocity, by which a recorded one may differ from that of the poses
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
    # over several samples: stamps that are badly rounded make single steps endlessly fast
    _, speed = window_speed(trajectory.time, position, max(WINDOW, 4 * trajectory.period))
    typical = float(np.quantile(speed, 0.9)) if len(speed) else 0.0
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
    """Velocity columns against the poses' own differences."""
    time, position, quaternion = trajectory.time, trajectory.position_world[body], trajectory.quaternion_world[body]
    recorded, spin = trajectory.velocity_world.get(body), trajectory.angular_velocity_world.get(body)
    if len(time) < 2 * ACROSS + 1:
        return
    lasts = (time[2 * ACROSS :] - time[: -2 * ACROSS])[:, None]
    if recorded is not None:
        measured = (position[2 * ACROSS :] - position[: -2 * ACROSS]) / lasts
        yield from _compared(trajectory, f"{body}.vx", recorded[ACROSS:-ACROSS], measured, 0.05, None)
    if spin is not None and quaternion is not None:
        turns = matrices(unit(quaternion))
        change = turns[2 * ACROSS :] @ np.swapaxes(turns[: -2 * ACROSS], 1, 2)
        skew = change - np.swapaxes(change, 1, 2)  # twice the sine of the angle, about the axis
        sine = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=-1) / 2
        size = np.linalg.norm(sine, axis=-1, keepdims=True)
        measured = sine * np.where(size > 1e-9, np.arcsin(np.clip(size, 0, 1)) / np.maximum(size, 1e-9), 1.0) / lasts
        yield from _compared(trajectory, f"{body}.wx", spin[ACROSS:-ACROSS], measured, 0.2, turns[ACROSS:-ACROSS])


def _compared(
    trajectory: Trajectory, column: str, recorded: Array, measured: Array, least: float, turns: Array | None
) -> Iterator[Observation]:
    """What is between two readings of one velocity [T, 3]; `turns` [T, 3, 3] if it may be given in the body's frame."""
    sizes = np.linalg.norm(recorded, axis=-1), np.linalg.norm(measured, axis=-1)
    keep = np.isfinite(sizes[0]) & np.isfinite(sizes[1]) & (sizes[1] > least)
    if keep.sum() < 8:
        return
    ratio = float(np.median(sizes[0][keep] / sizes[1][keep]))
    if not 0.5 < ratio < 2.0:
        hint = "degrees per second?" if 40 < ratio < 80 else "another unit?"
        text = "recorded velocities are {value} times those of the poses"
        yield Observation(
            "warning", "velocity-unit", text, trajectory.name, None, column, ratio, style="{:.3g}", advice=hint
        )
        return
    own, poses = recorded[keep], measured[keep]
    off = _differ(own, poses)
    if off < DIFFERS:
        return
    ways = {"their signs are the other way round": _differ(-own, poses)}
    if turns is not None:
        ways["they are in the body's frame, not the world's"] = _differ(
            np.einsum("tij,tj->ti", turns[keep], own), poses
        )
    for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        ways["their axes are in another order"] = min(
            ways.get("their axes are in another order", np.inf), _differ(own[:, order], poses)
        )
    best = min(ways, key=lambda way: ways[way])
    yield Observation(
        "warning",
        "velocity-differs",
        "recorded velocities are {value} off those of the poses",
        trajectory.name,
        None,
        column,
        100 * off,
        style="{:.0f} %",
        advice=f"it seems that {best}" if ways[best] < 0.5 * DIFFERS else "poses are used; velocities are not",
    )


def _differ(one: Array, other: Array) -> float:
    """Typical difference between two readings, over their size."""
    return float(np.median(np.linalg.norm(one - other, axis=-1) / np.linalg.norm(other, axis=-1)))
