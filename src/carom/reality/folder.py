"""The folder that a stand-in gives back: one data file per strike, with what a lab would declare of its bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from carom.core.constants import GRAVITY
from carom.core.errors import CaromError
from carom.reality.mocap import Sampled
from carom.recordings import Ground, Recordings, Trajectory, write
from carom.scenes.shapes import Body

HEADER = "recordings.yaml"


def check_new(folder: Path) -> None:
    """Raise if recordings are there already: nothing is written over."""
    if (folder / HEADER).exists():
        raise CaromError(f"{folder} already holds recordings; give a new folder")


def write_strikes(
    folder: Path, bodies: Mapping[str, Body], sampled: Sequence[Sampled], tags: Mapping[str, str]
) -> Path:
    """Write the strikes of a `block` and a `striker` as a recordings folder, and return it."""
    width = max(3, len(str(len(sampled) - 1)))
    trajectories = tuple(
        Trajectory(
            name=f"hit_{index:0{width}d}.csv",
            path=folder / f"hit_{index:0{width}d}.csv",
            time=one.time,
            position_world={"block": one.target_position, "striker": one.striker_position},
            quaternion_world={"block": one.target_quaternion, "striker": one.striker_quaternion},
            bodies=dict(bodies),
            tags=dict(tags),
        )
        for index, one in enumerate(sampled)
    )
    write(folder, Recordings(folder, dict(bodies), trajectories, gravity=GRAVITY, ground=Ground()))
    return folder
