"""What a network sees of a strike: numbers without a unit that say the same of any target and any striker.

A blow in the contact frame depends on few ratios. Lengths are taken over the target's radius of gyration k, velocities
over the approach speed, masses over the target's. So one network can serve every scene, and one that was trained on a
single scene sees the same inputs, some of them constant.

The compliant teacher knows a side that goes on for ever: its outcomes are a function of these ratios, exactly. MuJoCo's
contact has a time constant of its own, sinks in by millimetres, knows the corners and rests on the ground while it
is struck: it needs the size and speed as well, how far the corners are, and how the target stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from carom.core.constants import GRAVITY
from carom.engines.contact_frames import SPEED_SCALE, Frames, shifted
from carom.scenes.parameters import Parameter
from carom.scenes.strike import KINEMATIC_MASS, StrikeScene
from carom.state import Array

SIZE_SCALE = 0.05  #: [m] reference of the logarithmic size
ANGLE_SCALE = 0.1  #: [rad]
STRIKER_GYRATION = 0.1  #: [m] radius of gyration of MuJoCo's striker, see `strike_spec`
_BOTH = ("lever_t", "lever_n", "heading", "curvature", "mass_share", "striker_friction", "ground_friction")
_FLAT = ("face_angle", "face_width", "inertia_share")
_SPRINGS = ("restitution", "travel", "tangential_stiffness")
_MUJOCO = ("speed", "size", "striker_damping", "ground_damping", "height", "spread", "reach")
_CORNERS = ("room", "room_difference", "turn", "turn_difference")
#: Inputs by teacher and by whether the striker has a flat face.
INPUTS: Mapping[tuple[str, bool], tuple[str, ...]] = {
    ("mujoco", False): (*_BOTH, *_MUJOCO, *_CORNERS, "radius"),
    ("mujoco", True): (*_BOTH, *_MUJOCO, *_CORNERS, *_FLAT),
    ("compliant", False): (*_BOTH, *_SPRINGS),
    ("compliant", True): (*_BOTH, *_SPRINGS, *_FLAT, "contact_time"),
}
ODD = ("lever_t", "heading", "face_angle", "room_difference", "turn_difference")  #: change sign in a mirror


def seen_from_declared(
    scene: StrikeScene, frames: Frames, parameters: Sequence[Parameter], values: torch.Tensor, local: torch.Tensor
) -> torch.Tensor:
    """Outcomes of the actual centre of mass [..., N, 3] as those of the declared one, which is what is measured.

    On a body that spins they differ by spin x offset. Differentiable in `values` [..., N, P].
    """
    index = {p.name: i for i, p in enumerate(parameters)}
    if "com_x" not in index and "com_y" not in index:
        return local
    axes = torch.as_tensor(frames.axes_target, dtype=values.dtype)
    zero = values.new_zeros(())
    x, y = (values[..., index[n]] if n in index else zero for n in ("com_x", "com_y"))
    offset_t, offset_n = axes[:, 0, 0] * x + axes[:, 0, 1] * y, axes[:, 1, 0] * x + axes[:, 1, 1] * y
    spin = local[..., 2] / scene.gyration_radius
    return torch.stack([local[..., 0] + spin * offset_n, local[..., 1] - spin * offset_t, local[..., 2]], dim=-1)


def feature_names(scene: StrikeScene, teacher: str) -> tuple[str, ...]:
    """Names of the network's inputs, in order."""
    return INPUTS[teacher, scene.striker.flat]


def features(
    scene: StrikeScene, teacher: str, frames: Frames, parameters: Sequence[Parameter], values: torch.Tensor
) -> torch.Tensor:
    """Network inputs [..., N, F] for parameters `values` [..., N, P]; differentiable in `values`."""
    columns = _Columns(scene, teacher, frames, parameters, values)
    shape = values.shape[:-1]
    found = [getattr(columns, name)() for name in feature_names(scene, teacher)]
    return torch.stack([c.expand(shape) for c in found], dim=-1)


def blow_scale(
    scene: StrikeScene, frames: Frames, parameters: Sequence[Parameter], values: torch.Tensor
) -> torch.Tensor:
    """Effective mass of the blow over the target's [..., N, 1]: what outcomes grow with, networks need not learn it."""
    columns = _Columns(scene, "", frames, parameters, values)
    gain = 1 / (1 + scene.mass / columns.striker_mass() + columns.lever_t() ** 2)
    return gain.expand(values.shape[:-1])[..., None]


def mirror_signs(names: Sequence[str]) -> Array:
    """-1 for the inputs that change sign in a mirror, +1 for the others [F]."""
    return np.array([-1.0 if n in ODD else 1.0 for n in names])


class _Columns:
    """Each input [N] or [..., N], under its name."""

    def __init__(
        self, scene: StrikeScene, teacher: str, frames: Frames, parameters: Sequence[Parameter], values: torch.Tensor
    ) -> None:
        self.scene, self.teacher, self.frames, self.values = scene, teacher, frames, values
        self.k = scene.gyration_radius
        self.index = {p.name: i for i, p in enumerate(parameters)}
        self.shifted = shifted(frames, parameters, values)
        self.approach = self.known(frames.speed)

    def known(self, numbers: Array | float) -> torch.Tensor:
        return torch.as_tensor(numbers, dtype=self.values.dtype)

    def value(self, name: str, otherwise: float = 0.0) -> torch.Tensor:
        return self.values[..., self.index[name]] if name in self.index else self.known(otherwise)

    def lever_t(self) -> torch.Tensor:
        return self.shifted[0] / self.k

    def lever_n(self) -> torch.Tensor:
        return self.shifted[1] / self.k

    def heading(self) -> torch.Tensor:
        return self.known(np.arctan2(self.frames.velocity[:, 0], self.frames.velocity[:, 1]))

    def curvature(self) -> torch.Tensor:
        return self.known(self.frames.curvature * self.k)

    def speed(self) -> torch.Tensor:
        return torch.log(self.approach / SPEED_SCALE)

    def size(self) -> torch.Tensor:
        return self.known(np.log(self.k / SIZE_SCALE))

    def striker_mass(self) -> torch.Tensor:
        return self.value("striker_mass", self.scene.striker_mass)

    def mass_share(self) -> torch.Tensor:
        return self.scene.mass / (self.scene.mass + self.striker_mass())

    def inertia_share(self) -> torch.Tensor:
        """The target's inertia over that of both; what the striker's face turns on is the teacher's affair."""
        own = self.scene.mass * self.k**2
        if self.teacher == "mujoco":
            return self.known(own / (own + self.scene.striker_mass * STRIKER_GYRATION**2))
        return own / (own + self.value("striker_inertia", KINEMATIC_MASS))

    def face_angle(self) -> torch.Tensor:
        return self.shifted[2] / ANGLE_SCALE

    def face_width(self) -> torch.Tensor:
        return torch.log(self.value("face_width", float(self.scene.striker.width or 0.0)) / self.k)

    def radius(self) -> torch.Tensor:
        return self.known(np.log(float(self.scene.striker.radius or 0.0) / self.k))

    def striker_friction(self) -> torch.Tensor:
        return torch.log(self.value("striker_friction"))

    def ground_friction(self) -> torch.Tensor:
        """Of springs: the share of the approach speed that the ground takes while a blow lasts."""
        friction = self.value("ground_friction")
        if self.teacher == "compliant":
            friction = friction * GRAVITY * self.value("contact_time") / self.approach
        return torch.log(friction)

    def striker_damping(self) -> torch.Tensor:
        return torch.log(self.value("striker_damping"))

    def ground_damping(self) -> torch.Tensor:
        return torch.log(self.value("ground_damping"))

    def restitution(self) -> torch.Tensor:
        """At the speed of the approach, as `compliant` has it."""
        normal = np.maximum(np.maximum(self.frames.velocity[:, 1], 0.05 * self.frames.speed), 0.01)
        pace = self.known(np.log(normal / SPEED_SCALE))
        return (self.value("restitution") * torch.exp(-pace * self.value("restitution_slope"))).clamp(0.02, 0.98)

    def contact_time(self) -> torch.Tensor:
        return torch.log(self.value("contact_time") / 0.01)

    def travel(self) -> torch.Tensor:
        """Way of the striker while a blow lasts, over k."""
        return torch.log(self.value("contact_time") * self.approach / self.k)

    def tangential_stiffness(self) -> torch.Tensor:
        return torch.log(self.value("tangential_stiffness"))

    def height(self) -> torch.Tensor:
        return self.known(np.log(self.scene.shape.full_height / self.k))

    def spread(self) -> torch.Tensor:
        """Distance of the outline's corners from the centre of mass, over k: what the ground resists spin with."""
        corners = self.scene.outline.vertices - self.scene.target.planar_com
        return self.known(np.sqrt((corners**2).sum(-1).mean()) / self.k)

    def reach(self) -> torch.Tensor:
        """How far the target reaches ahead of its centre of mass, along the blow, over k: what it would tip over."""
        corners = self.scene.outline.vertices - self.scene.target.planar_com
        ahead = self.known((self.frames.axes_target[:, 1] @ corners.T).max(axis=-1))
        declared = self.known(self.frames.lever[:, 1])
        return (ahead + self.shifted[1] - declared) / self.k

    def _rooms(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Way to the corners ahead and behind along the side: 0 at a corner, 1 far from it."""
        room, _ = self.scene.outline.corners_around(self.frames.point)
        moved = -self.value("face_offset")
        ways = (self.known(room[:, 0]) - moved, self.known(room[:, 1]) + moved)
        ahead, behind = (1 - self.k / (way.clamp_min(0.0) + self.k) for way in ways)
        return ahead, behind

    def room(self) -> torch.Tensor:
        ahead, behind = self._rooms()
        return ahead + behind

    def room_difference(self) -> torch.Tensor:
        ahead, behind = self._rooms()
        return ahead - behind

    def turn(self) -> torch.Tensor:
        _, turn = self.scene.outline.corners_around(self.frames.point)
        return self.known(turn.sum(-1))

    def turn_difference(self) -> torch.Tensor:
        _, turn = self.scene.outline.corners_around(self.frames.point)
        return self.known(turn[:, 0] - turn[:, 1])
