"""What a network sees of a strike: contact frames with the geometry of `P` applied, as numbers of order one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from carom.engines.contact_frames import SPEED_SCALE, Frames, shifted
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array

GEOMETRY = ("face_tilt", "face_offset", "com_x", "com_y")  #: parameters that act by moving the contact frame
ANGLE_SCALE = 0.1  #: [rad]


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


def feature_names(scene: StrikeScene, parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Names of the network's inputs, in order."""
    state = ["lever_t", "lever_n", "velocity_ratio", "log_speed"]
    state += ["face_angle"] if scene.striker.flat else []
    state += ["curvature"] if scene.shape.kind == "semi-cylinder" else []
    return (*state, *(p.name for p in parameters if p.name not in GEOMETRY))


def features(scene: StrikeScene, frames: Frames, parameters: Sequence[Parameter], values: torch.Tensor) -> torch.Tensor:
    """Network inputs [..., N, F] for parameters `values` [..., N, P]; differentiable in `values`."""
    k = scene.gyration_radius
    lever_t, lever_n, angle = shifted(frames, parameters, values)
    velocity = torch.as_tensor(frames.velocity, dtype=values.dtype)
    speed = torch.as_tensor(frames.speed, dtype=values.dtype)
    shape = np.broadcast_shapes(lever_t.shape, values.shape[:-1])
    columns = [lever_t / k, lever_n / k, torch.atan2(velocity[:, 0], velocity[:, 1]), torch.log(speed / SPEED_SCALE)]
    if scene.striker.flat:
        columns.append(angle / ANGLE_SCALE)
    if scene.shape.kind == "semi-cylinder":
        columns.append(torch.as_tensor(frames.curvature, dtype=values.dtype) * k)
    for i, p in enumerate(parameters):
        if p.name not in GEOMETRY:
            low, high = (np.log(p.low), np.log(p.high)) if p.log else (p.low, p.high)
            v = torch.log(values[..., i]) if p.log else values[..., i]
            columns.append(2 * (v - low) / (high - low) - 1)
    return torch.stack([c.expand(shape) for c in columns], dim=-1)


def mirror_signs(names: Sequence[str]) -> Array:
    """-1 for the inputs that change sign in a mirror, +1 for the others [F]."""
    return np.array([-1.0 if n in ("lever_t", "velocity_ratio", "face_angle") else 1.0 for n in names])
