"""States shared by all stages: bodies and joints at an instant, bodies over time, and strikes as a planar view of them.

Conventions, stated once: SI units and radians; quaternions w-first, world from body; linear and angular
velocity in the world frame; last axis = component, time before it, batch first; float64.

A *planar pose* is (x, y, yaw) of a body's frame [m, m, rad]. A *planar velocity* is (vx, vy, wz)
[m/s, m/s, rad/s]; the target's is that of its centre of mass, the striker's that of its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError

Array = NDArray[np.float64]


def _rows(name: str, value: ArrayLike, count: int, width: int = 3) -> Array:
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape != (count, width):
        expected = f"({count}, {width})"
        raise CaromError(f"{name}: expected an array of shape {expected}, got {array.shape}")
    return array


Rows = slice | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]


class Status(IntEnum):
    """How one row of a batch ended."""

    AT_REST = 0  #: it was struck and came to rest
    MOVING = 1  #: it moves, or nobody asked whether it rests
    MISSED = 2  #: a striker was sent and touched nothing
    FAILED = 3  #: the engine gave up, or its numbers are not finite: what follows means nothing


@dataclass(frozen=True)
class SceneState:
    """N scenes at one instant: the bodies that move freely, and the joints of robots."""

    bodies: tuple[str, ...]  #: B names
    position: Array  #: [N, B, 3] of the bodies' frames [m]
    quaternion: Array  #: [N, B, 4] w-first, world from body
    velocity: Array  #: [N, B, 3] of the frames, world [m/s]
    spin: Array  #: [N, B, 3] world [rad/s]
    joints: tuple[str, ...] = ()  #: J names
    joint_position: Array = field(default_factory=lambda: np.zeros((0, 0)))  #: [N, J] rad, or m for a slide
    joint_velocity: Array = field(default_factory=lambda: np.zeros((0, 0)))  #: [N, J] rad/s, or m/s

    def __post_init__(self) -> None:
        count = len(np.asarray(self.position))
        for name, width in (("position", 3), ("quaternion", 4), ("velocity", 3), ("spin", 3)):
            self._set(name, (count, len(self.bodies), width))
        for name in ("joint_position", "joint_velocity"):
            if not np.asarray(getattr(self, name)).size:
                object.__setattr__(self, name, np.zeros((count, len(self.joints))))
            self._set(name, (count, len(self.joints)))

    def _set(self, name: str, shape: tuple[int, ...]) -> None:
        array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
        if array.shape != shape:
            raise CaromError(f"{name}: expected an array of shape {shape}, got {array.shape}")
        object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, rows: Rows) -> SceneState:
        columns = ("position", "quaternion", "velocity", "spin", "joint_position", "joint_velocity")
        return SceneState(
            bodies=self.bodies, joints=self.joints, **{name: getattr(self, name)[rows] for name in columns}
        )

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Whether all numbers of a row are finite [N]."""
        columns = (self.position, self.quaternion, self.velocity, self.spin, self.joint_position, self.joint_velocity)
        rows = [np.isfinite(c).all(axis=tuple(range(1, c.ndim))) for c in columns]
        return np.asarray(np.all(rows, axis=0))


@dataclass(frozen=True)
class Motion:
    """Bodies over time, N times: what a recording, a rollout, a data set, a trial and a viewer share."""

    bodies: tuple[str, ...]  #: B names
    time: Array  #: [N, T] since the start [s]
    position: Array  #: [N, T, B, 3] of the bodies' frames [m]
    quaternion: Array  #: [N, T, B, 4] w-first, world from body
    status: NDArray[np.int8]  #: [N] `Status`
    joints: tuple[str, ...] = ()  #: J names
    joint_position: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))  #: [N, T, J] rad, or m
    engine_seconds: float = 0.0  #: wall time spent inside the engine

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, rows: Rows) -> Motion:
        columns = ("time", "position", "quaternion", "status")
        joints = self.joint_position[rows] if self.joints else self.joint_position
        picked = {name: getattr(self, name)[rows] for name in columns}
        return replace(self, joint_position=joints, **picked)

    @classmethod
    def of(cls, bodies: Sequence[str], period: float, position: Array, quaternion: Array) -> Motion:
        """Poses [N, T, B, .] that are `period` [s] apart, all of them good."""
        count, samples = position.shape[:2]
        time = np.tile(period * np.arange(samples), (count, 1))
        return cls(tuple(bodies), time, position, quaternion, np.full(count, Status.MOVING, dtype=np.int8))

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Whether the engine gave a row up [N]: what follows is the last good pose."""
        return np.asarray(self.status == Status.FAILED)


@dataclass(frozen=True)
class Contacts:
    """C contacts in some of the rows of a batch, as an engine has them."""

    row: NDArray[np.int64]  #: [C]
    bodies: tuple[tuple[str, str], ...]  #: C pairs of names; "world" is the ground and all that stands on it
    point: Array  #: [C, 3] world [m]
    normal: Array  #: [C, 3] from the first body to the second, world
    distance: Array  #: [C] negative: they overlap [m]
    impulse: Array  #: [C, 3] on the second body during one step of the engine, world [N s]


@dataclass(frozen=True)
class Strikes:
    """`S_pre` of N strikes: where target and striker are, and how they move, as they touch."""

    target_pose: Array  #: [N, 3] x, y, yaw of the target's frame [m, m, rad]
    target_velocity: Array  #: [N, 3] vx, vy, wz of the target's centre of mass [m/s, m/s, rad/s]
    striker_pose: Array  #: [N, 3] x, y, yaw of the striker's frame [m, m, rad]
    striker_velocity: Array  #: [N, 3] vx, vy, wz of the striker's frame [m/s, m/s, rad/s]
    #: [N, 4] what a planar picture leaves out of the striker: its height [m], its pitch and roll (elevation of its
    #: x axis, turn about it) [rad], its vertical speed [m/s]; zero where it was not measured
    posture: Array = field(default_factory=lambda: np.zeros((0, 4)))

    def __post_init__(self) -> None:
        count = len(np.asarray(self.target_pose))
        if not len(self.posture):
            object.__setattr__(self, "posture", np.zeros((count, 4)))
        for column in fields(self):
            width = 4 if column.name == "posture" else 3
            object.__setattr__(self, column.name, _rows(column.name, getattr(self, column.name), count, width))

    def __len__(self) -> int:
        return len(self.target_pose)

    def __getitem__(self, rows: Rows) -> Strikes:
        return Strikes(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(frozen=True)
class Impacts:
    """N measured (or simulated) impacts: `S_pre`, and the target's velocity at separation, `S_post`."""

    strikes: Strikes
    post: Array  #: [N, 3] vx, vy, wz of the target's centre of mass at separation [m/s, m/s, rad/s]
    post_std: Array  #: [N, 3] standard error of `post`, same units
    names: tuple[str, ...]  #: where each came from, for instance its data file

    def __post_init__(self) -> None:
        count = len(self.strikes)
        object.__setattr__(self, "post", _rows("post", self.post, count))
        object.__setattr__(self, "post_std", _rows("post_std", self.post_std, count))
        object.__setattr__(self, "names", tuple(self.names))
        if len(self.names) != count:
            raise CaromError(f"names: expected {count} names, one for each strike, got {len(self.names)}")

    def __len__(self) -> int:
        return len(self.strikes)

    def __getitem__(self, rows: Rows) -> Impacts:
        every = np.arange(len(self))
        index = (
            every[rows] if isinstance(rows, slice) or len(rows) else every[:0]
        )  # an empty list has no type of its own
        names = tuple(self.names[i] for i in index)
        return Impacts(self.strikes[index], self.post[index], self.post_std[index], names)


@dataclass(frozen=True)
class StrikeCommands:
    """N strikes a striker is asked for: where on the resting target, how fast, and where the target lies."""

    contact_point: Array  #: [N, 2] a point of the target's outline, in the target's body frame [m]
    velocity: Array  #: [N, 2] of the striker at contact, in the target's body frame at rest [m/s]
    target_pose: Array  #: [N, 3] x, y, yaw of the target's frame before the strike, world [m, m, rad]

    def __post_init__(self) -> None:
        count = len(np.atleast_1d(np.asarray(self.target_pose)))
        for column, width in zip(fields(self), (2, 2, 3), strict=True):
            array = np.ascontiguousarray(getattr(self, column.name), dtype=np.float64)
            if array.shape != (count, width):
                raise CaromError(f"{column.name}: expected an array of shape ({count}, {width}), got {array.shape}")
            if not np.isfinite(array).all():
                worst = int(np.argmax(~np.isfinite(array).all(axis=1)))
                raise CaromError(f"strike {worst}: {column.name}: expected finite numbers, got {array[worst].tolist()}")
            object.__setattr__(self, column.name, array)

    def __len__(self) -> int:
        return len(self.target_pose)

    def __getitem__(self, rows: Rows) -> StrikeCommands:
        return StrikeCommands(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def rotate(vectors: ArrayLike, yaw: ArrayLike) -> Array:
    """Planar vectors [..., 2] turned by yaw [...]: body to world with the body's yaw, world to body with minus it."""
    v, a = np.asarray(vectors, dtype=np.float64), np.asarray(yaw, dtype=np.float64)
    c, s, x, y = np.cos(a), np.sin(a), v[..., 0], v[..., 1]
    across = c * x - s * y
    turned = np.empty((*across.shape, 2))
    turned[..., 0], turned[..., 1] = across, s * x + c * y
    return turned


def cross(spin: Array, arm: Array) -> Array:
    """Velocity [N, 2] of a point at `arm` [N, 2] on a body that spins [N]."""
    return np.stack([-spin * arm[:, 1], spin * arm[:, 0]], axis=-1)


def wrap_angle(angle: ArrayLike) -> Array:
    """Angles brought into (-pi, pi]."""
    a = np.asarray(angle, dtype=np.float64)
    return np.asarray(np.pi - np.mod(np.pi - a, 2 * np.pi))
