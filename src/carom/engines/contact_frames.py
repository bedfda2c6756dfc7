"""Strikes seen from the contact: a frame in which impacts of all places and directions look alike.

The frame stands on the boundary point nearest to the striker's face: `n` points into the target, `t` along
its side. Seen from there an impact depends on few numbers: the lever arms of the contact over the radius of
gyration, the angle of a flat face, the ratio of the velocities, and the parameters. Outcomes are scaled by
the approach speed. Mirror images are one impact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray

from carom.engines.approach import seen_face, touching
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes, rotate

MIN_SPEED = 0.02  #: [m/s] approach speeds below this are not impacts; outcomes are never divided by less
SPEED_SCALE = 0.5  #: [m/s] reference of the logarithmic speed feature


@dataclass(frozen=True)
class Frames:
    """N strikes in their contact frames, with the geometry as declared."""

    lever: Array  #: [N, 2] contact point from the declared centre of mass, along t and n [m]
    axes: Array  #: [N, 2, 2] t and n in the world, as rows
    axes_target: Array  #: [N, 2, 2] t and n in the target's frame, as rows
    point: Array  #: [N, 2] contact point in the target's frame [m]
    curvature: Array  #: [N] of the target's boundary at the contact [1/m]
    angle: Array  #: [N] of the striker's face against the boundary [rad]; 0 for a round striker
    velocity: Array  #: [N, 2] of the striker relative to the target at the contact, along t and n [m/s]
    spin: Array  #: [N] of the striker relative to the target [rad/s]
    before: Array  #: [N, 3] the target's velocity before the impact, world frame [m/s, m/s, rad/s]

    def __len__(self) -> int:
        return len(self.lever)

    def first(self, count: int) -> Frames:
        """The first `count` strikes."""
        return self.at(np.arange(count))

    def at(self, rows: NDArray[np.int64]) -> Frames:
        """Some of the strikes."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @property
    def speed(self) -> Array:
        """Approach speed that outcomes are scaled by [N] [m/s]."""
        return np.asarray(np.maximum(np.hypot(self.velocity[:, 0], self.velocity[:, 1]), MIN_SPEED))


def contact_frames(scene: StrikeScene, strikes: Strikes, *, touch: bool = False) -> Frames:
    """The contact frame of each strike, from what was known before contact; `touch`: they touch as they are."""
    face, direction = seen_face(scene, strikes, {}) if touch else touching(scene, strikes, {})
    point, outward = scene.outline.nearest(face)
    n = -outward
    t = np.stack([n[:, 1], -n[:, 0]], axis=-1)
    lever = point - scene.target.planar_com
    yaw = strikes.target_pose[:, 2]
    before = strikes.target_velocity
    arm, *axes = rotate(np.stack([lever, t, n]), yaw)
    at_contact = before[:, :2] + before[:, 2:] * np.stack([-arm[:, 1], arm[:, 0]], axis=-1)
    relative = rotate(strikes.striker_velocity[:, :2] - at_contact, -yaw)
    axes_target = np.stack([t, n], axis=1)
    angle = np.zeros(len(face))
    if scene.striker.flat:
        normal = np.stack([np.cos(direction), np.sin(direction)], axis=-1)
        angle = np.arctan2(-(normal * t).sum(-1), (normal * n).sum(-1))
    return Frames(
        lever=np.einsum("nij,nj->ni", axes_target, lever),
        axes=np.stack(axes, axis=1),
        axes_target=axes_target,
        point=point,
        curvature=boundary_curvature(scene, point),
        angle=angle,
        velocity=np.einsum("nij,nj->ni", axes_target, relative),
        spin=strikes.striker_velocity[:, 2] - before[:, 2],
        before=before,
    )


def boundary_curvature(scene: StrikeScene, point: Array) -> Array:
    """Curvature of the target's boundary at these points [N] [1/m]: zero on flat sides."""
    shape = scene.shape
    if shape.kind == "semi-cylinder":
        radius = float(shape.radius or 1.0)
        return np.where(point[:, 1] > 1e-3 * radius, 1.0 / radius, 0.0)
    if shape.is_round:
        return np.full(len(point), 1.0 / float(shape.radius or 1.0))
    return np.zeros(len(point))


def shifted(frames: Frames, parameters: Sequence[Parameter], values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Lever arms along t and n [..., N] and face angle [..., N] with the geometry in `values` [..., N, P] applied.

    Differentiable in `values`. A face that is offset by d stands d further along the side, and on a curved
    side also meets it at another angle.
    """
    index = {p.name: i for i, p in enumerate(parameters)}
    zero = values.new_zeros(())

    def value(name: str) -> torch.Tensor:
        return values[..., index[name]] if name in index else zero

    axes = torch.as_tensor(frames.axes_target, dtype=values.dtype)
    curvature = torch.as_tensor(frames.curvature, dtype=values.dtype)
    lever = torch.as_tensor(frames.lever, dtype=values.dtype)
    # the side direction of the face and t are opposite: both complete a right-handed frame with their normal
    offset = -value("face_offset")
    lever_t = lever[:, 0] + offset - axes[:, 0, 0] * value("com_x") - axes[:, 0, 1] * value("com_y")
    lever_n = lever[:, 1] - axes[:, 1, 0] * value("com_x") - axes[:, 1, 1] * value("com_y")
    angle = torch.as_tensor(frames.angle, dtype=values.dtype) + value("face_tilt") - curvature * offset
    return lever_t, lever_n, angle


def to_local(scene: StrikeScene, frames: Frames, post: Array) -> Array:
    """Outcomes in the world [..., N, 3] as scaled changes in the contact frame [..., N, 3]: (t, n, k*spin) / speed."""
    change = post - frames.before
    local = np.einsum("nij,...nj->...ni", frames.axes, change[..., :2])
    spin = scene.gyration_radius * change[..., 2:]
    return np.concatenate([local, spin], axis=-1) / frames.speed[:, None]


def to_world(scene: StrikeScene, frames: Frames, local: Array) -> Array:
    """The inverse of `to_local`: velocities in the world [..., N, 3] [m/s, m/s, rad/s]."""
    change = local * frames.speed[:, None]
    linear = np.einsum("nij,...ni->...nj", frames.axes, change[..., :2])
    return np.concatenate([linear, change[..., 2:] / scene.gyration_radius], axis=-1) + frames.before
