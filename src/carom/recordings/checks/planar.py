"""Whether the planar picture holds: a struck body slides on level ground and does not tip over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from carom.core.rotations import axes, unit
from carom.recordings.checks.findings import Observation
from carom.recordings.checks.rows import row_of
from carom.recordings.differentiate import measured_rows
from carom.recordings.impacts.ground import is_tossed
from carom.recordings.impacts.measured import Impact
from carom.recordings.trajectory import Recordings, Trajectory
from carom.state import Array

TIPS = np.deg2rad(10.0)  #: by which a body that slides does not lean
LIES = np.cos(np.deg2rad(45.0))  #: an axis that is further off the vertical lies
SLOPE = np.deg2rad(1.0)  #: of a table, from where on slides are longer downhill than uphill
SLID = 0.05  #: [m] of a slide that shows the slope of its path
SURELY = 5.0  #: standard errors beyond which a slope is there
FEW = 3  #: slides


def check_tipping(trajectory: Trajectory, impacts: tuple[Impact, ...]) -> Iterator[Observation]:
    """A struck body that leans over, or whose frame lies."""
    for target in dict.fromkeys(i.target for i in impacts if i.kind == "strike"):
        quaternion = trajectory.quaternion_world[target]
        if quaternion is None or is_tossed(trajectory, target):
            continue
        rows = np.flatnonzero(measured_rows(quaternion))
        if len(rows) < 12:
            continue
        upward = axes(unit(quaternion[rows]))[..., 2]  # the world's z in the body's frame: the same for any yaw
        first = upward[:5].mean(axis=0)
        if abs(first[2]) < LIES:
            yield Observation(
                "warning",
                "lies",
                f"the z axis of '{target}' lies, {{value}} off the vertical, while the body slides on the ground",
                trajectory.name,
                column=f"{target}.qw",
                value=float(np.rad2deg(np.arccos(first[2]))),
                style="{:.0f} degrees",
                advice="its shape is drawn as seen along that axis: say with `tracked:` how the frame lies in it",
            )
        lean = np.arccos(np.clip(upward @ unit(upward[:5].mean(axis=0)), -1, 1))
        steady = np.minimum(np.minimum(lean[1:-1], lean[:-2]), lean[2:])  # not one odd sample
        if float(steady.max()) > TIPS:
            yield Observation(
                "warning",
                "tips",
                f"'{target}' leans over by {{value}}",
                trajectory.name,
                row_of(trajectory, int(rows[int(np.argmax(steady > TIPS)) + 1])),
                f"{target}.qw",
                float(np.rad2deg(steady.max())),
                style="{:.0f} degrees",
                advice="learned impacts are planar: strike lower, or leave it out",
            )


def check_slope(recordings: Recordings, impacts: Mapping[str, tuple[Impact, ...]]) -> Iterator[Observation]:
    """Slides that go up or down, all on one slope."""
    ways, rises = [], []
    for trajectory in recordings.trajectories:
        strike = next((i for i in impacts[trajectory.name] if i.kind == "strike"), None)
        if strike is not None and not is_tossed(trajectory, strike.target):
            moved = _moved(trajectory, strike)
            if moved is not None and float(np.linalg.norm(moved[:2])) > SLID:
                ways.append(moved[:2])
                rises.append(moved[2])
    if len(ways) < FEW:
        return
    way, rise = np.array(ways), np.array(rises)
    # the slope along the ways that were gone; across them, nothing is known where all go the same way
    slope, *_ = np.linalg.lstsq(way, rise, rcond=0.1)
    left = rise - way @ slope
    error = 1.4826 * float(np.median(np.abs(left))) / float(np.sqrt(np.mean(np.sum(way**2, axis=-1)) * len(way)))
    steep = float(np.linalg.norm(slope))
    if np.arctan(steep) > SLOPE and steep > SURELY * error:
        down = np.rad2deg(np.arctan2(-slope[1], -slope[0]))
        yield Observation(
            "warning",
            "ground-tilt",
            f"targets slide on a slope of {np.rad2deg(np.arctan(steep)):.1f} degrees, downwards towards {down:.0f} "
            f"degrees from x (over {len(way)} slides): the table, or the tracker's frame, is not level",
        )


def _moved(trajectory: Trajectory, strike: Impact) -> Array | None:
    """From where to where a target goes [3] m, by its medians before the strike and at the end of the record."""
    position = trajectory.position_world[strike.target]
    rows = np.flatnonzero(measured_rows(position))
    before = rows[trajectory.time[rows] < strike.time][-20:]
    after = rows[trajectory.time[rows] > strike.time + 0.1]
    if len(before) < 5 or len(after) < 20:
        return None
    return np.asarray(np.median(position[after[-10:]], axis=0) - np.median(position[before], axis=0))
