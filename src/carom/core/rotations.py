"""Rotations as unit quaternions [..., 4]: w first, world from body.

scipy's `Rotation` has w last; `to_scipy` and `from_scipy` are the only places that know.

>>> quarter = about_z(np.pi / 2)
>>> to_world(quarter, np.array([1.0, 0.0, 0.0])).round(9).tolist()
[0.0, 1.0, 0.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def to_scipy(quaternion: Array) -> Any:
    """The scipy `Rotation` of a quaternion [4], or the rotations of quaternions [N, 4]; any length but 0."""
    from scipy.spatial.transform import Rotation  # slow to import, and not every user of this module needs it

    return Rotation.from_quat(quaternion[..., [1, 2, 3, 0]])


def from_scipy(rotation: Any) -> Array:
    """Quaternions [4] or [N, 4] of a scipy `Rotation`."""
    return np.asarray(rotation.as_quat()[..., [3, 0, 1, 2]], dtype=np.float64)


def matrices(quaternion: Array) -> Array:
    """Rotation matrices [..., 3, 3] of quaternions [4] or [N, 4] of any length but 0."""
    return np.asarray(to_scipy(quaternion).as_matrix())


def axes(quaternion: Array) -> Array:
    """The body's three axes in the world [..., 3, 3], one per row, of unit quaternions [..., 4]; NaN stays NaN."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    rows = [
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=-1),
        np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], axis=-1),
        np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=-1),
    ]
    return np.stack(rows, axis=-2)


def unit(quaternion: Array) -> Array:
    """The same rotations [..., 4] with quaternions of length 1."""
    return np.asarray(quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True))


def to_world(quaternion: Array, vectors: Array) -> Array:
    """Vectors [..., 3] of the bodies' frames in the world, for unit quaternions [..., 4]."""
    w, axis = quaternion[..., :1], quaternion[..., 1:]
    cross = 2 * np.cross(axis, vectors)
    return np.asarray(vectors + w * cross + np.cross(axis, cross))


def to_body(quaternion: Array, vectors: Array) -> Array:
    """World vectors [..., 3] in the frames of bodies with these unit quaternions [..., 4]."""
    return to_world(quaternion * np.array([1.0, -1.0, -1.0, -1.0]), vectors)


def multiply(left: Array, right: Array) -> Array:
    """Products of quaternions [..., 4]: first `right`, then `left`."""
    a, b = np.moveaxis(np.asarray(left), -1, 0), np.moveaxis(np.asarray(right), -1, 0)
    return np.stack(
        [
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        ],
        axis=-1,
    )


def about_z(angle: ArrayLike) -> Array:
    """Quaternions [..., 4] of turns about the vertical [...] [rad]; NaN stays NaN."""
    half = np.asarray(angle, dtype=np.float64) / 2
    return np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=-1)


def from_vector(vector: Array) -> Array:
    """Quaternion [4] of a rotation vector [3] [rad]."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * vector / angle])


def random_turn(rng: np.random.Generator) -> Array:
    """Quaternion [4], every orientation equally likely."""
    q = rng.normal(size=4)
    return np.asarray(q / np.linalg.norm(q))


def of_tilt(tilt_x: ArrayLike, tilt_y: ArrayLike) -> Array:
    """Quaternions [..., 4] of a ground whose upward normal leans by small angles along x and y [...] [rad]."""
    x, y = np.broadcast_arrays(np.asarray(tilt_x, dtype=np.float64), np.asarray(tilt_y, dtype=np.float64))
    return unit(np.stack([np.ones_like(x), -y / 2, x / 2, np.zeros_like(x)], axis=-1))


def yaw(quaternion: Array) -> Array:
    """Rotation about z [...] rad of quaternions [..., 4], in [-pi, pi]."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.asarray(np.arctan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z))


def pitch_and_roll(quaternion: Array) -> Array:
    """Elevation of the body's x axis, and the turn about it [..., 2] rad, of unit quaternions [..., 4]."""
    upward = axes(quaternion)[..., 2]
    return np.stack([np.arcsin(np.clip(upward[..., 0], -1, 1)), np.arctan2(upward[..., 1], upward[..., 2])], axis=-1)


def unwrapped_yaw(quaternion: Array) -> Array:
    """Rotation about z [T] rad of quaternions [T, 4], without jumps of a turn; lost samples stay NaN."""
    angle = yaw(quaternion)
    good = np.isfinite(angle)
    angle[good] = np.unwrap(angle[good])
    return angle
