"""What was measured: a trajectory of bodies, and a folder of them, always in m, rad, s and z-up."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import made_from
from carom.core.rotations import unwrapped_yaw
from carom.scenes.shapes import Body, Shape
from carom.state import Array, rotate


@lru_cache(maxsize=256)
def _planar_com(shape: Shape | None, com: tuple[float, float, float] | None) -> Array:
    """A body's centre of mass seen from above [2] m, kept because a mesh would be loaded anew for each question."""
    return Body("body", "other", shape, com=com).planar_com


@dataclass(frozen=True)
class Ground:
    """The plane bodies slide on or fall on: the points p with normal . p = height."""

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)  #: unit vector, world frame
    height: float = 0.0  #: along the normal [m]


@dataclass(frozen=True)
class Units:
    """Units and frame that a folder was written in, kept to be reported; the arrays are already converted."""

    length: str = "m"
    angle: str = "rad"
    time: str = "s"
    frame: str = "z-up"


@dataclass(frozen=True)
class Trajectory:
    """One recording: sampled poses of a few bodies. A lost sample is a row of NaN."""

    name: str  #: the data file's name, which is the trajectory's name everywhere
    path: Path  #: the data file itself, for messages
    time: Array  #: [T] s, strictly increasing, starts anywhere
    position_world: Mapping[str, Array]  #: body -> [T, 3] m, origin of the body's frame
    quaternion_world: Mapping[str, Array | None]  #: body -> [T, 4] w-first, world from body; None: not measured
    bodies: Mapping[str, Body]  #: the measured bodies, with this trajectory's own values
    tags: Mapping[str, Any] = field(default_factory=dict)
    controls: Mapping[str, Array] = field(default_factory=dict)  #: name -> [T], in the file's own units
    velocity_world: Mapping[str, Array] = field(default_factory=dict)  #: body -> [T, 3] m/s, where recorded
    angular_velocity_world: Mapping[str, Array] = field(default_factory=dict)  #: body -> [T, 3] rad/s, where recorded
    #: what was worked out from these samples, by what and with which settings; a copy (`replace`) starts without it
    kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def period(self) -> float:
        """Typical time between samples [s]."""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else float("nan")

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the bodies whose motion is of interest."""
        return tuple(name for name, body in self.bodies.items() if body.role == "target")

    def with_role(self, *roles: str) -> tuple[str, ...]:
        """Names of the bodies with one of these roles, in the file's order."""
        return tuple(name for name, body in self.bodies.items() if body.role in roles)

    def yaw(self, body: str) -> Array:
        """Rotation about z [T] rad, unwrapped across lost samples; NaN where it was not measured."""
        quaternion = self.quaternion_world[body]
        return np.full(len(self.time), np.nan) if quaternion is None else unwrapped_yaw(quaternion)

    def planar_com(self, body: str) -> Array:
        """Path of the centre of mass seen from above [T, 2] m; that of the frame where orientation is unknown."""
        position = self.position_world[body][:, :2]
        offset = _planar_com(self.bodies[body].shape, self.bodies[body].com)
        if self.quaternion_world[body] is None or not np.any(offset):
            return position
        return np.asarray(position + rotate(np.broadcast_to(offset, position.shape), self.yaw(body)))

    def until(self, time: float) -> Trajectory:
        """The same recording with every sample after `time` taken away."""
        keep = self.time <= time

        def cut(arrays: Mapping[str, Array]) -> dict[str, Array]:
            return {name: array[keep] for name, array in arrays.items()}

        return Trajectory(
            name=self.name,
            path=self.path,
            time=self.time[keep],
            position_world=cut(self.position_world),
            quaternion_world={n: None if q is None else q[keep] for n, q in self.quaternion_world.items()},
            bodies=self.bodies,
            tags=self.tags,
            controls=cut(self.controls),
            velocity_world=cut(self.velocity_world),
            angular_velocity_world=cut(self.angular_velocity_world),
        )


@dataclass(frozen=True)
class Recordings:
    """A folder of trajectories of the same bodies."""

    path: Path
    bodies: Mapping[str, Body]  #: as declared for the whole folder; a trajectory may override some values
    trajectories: tuple[Trajectory, ...]
    gravity: float | None = None  #: [m/s^2] downwards, if the folder states it
    ground: Ground | None = None  #: if the folder states it
    units: Units = field(default_factory=Units)  #: what the files were written in
    facing: Mapping[str, str] = field(default_factory=dict)  #: strikers whose frames were drawn anew, and how
    tracked: Mapping[str, str] = field(default_factory=dict)  #: bodies whose tracked frame was not their own, and where
    imported: Mapping[str, Any] = field(default_factory=dict)  #: of what other files they were made, and how

    def __len__(self) -> int:
        return len(self.trajectories)

    def made_from(self) -> dict[str, str]:
        """Name and SHA-256 of the folder's files, for the header of what is made from them."""
        files = {self.path, *self.path.glob("recordings.yaml"), *(t.path for t in self.trajectories)}
        return made_from(self.path, [path for path in files if path.is_file()])
