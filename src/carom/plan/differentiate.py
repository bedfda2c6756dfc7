"""Where a struck target comes to rest, and how that changes with the strike: through impact network and slider."""

from __future__ import annotations

import numpy as np
import torch

from carom.core.errors import CaromError
from carom.engines.contact_frames import SPEED_SCALE
from carom.engines.contract import Simulator
from carom.hybrid.simulator import HybridSimulator
from carom.learn.impact.student import Perturbed, Student
from carom.plan.space import StrikeSpace
from carom.state import Array


def rest_and_derivative(simulator: Simulator, space: StrikeSpace, points: Array) -> tuple[Array, Array]:
    """Poses at rest [N, 3] of strikes [N, 3] of the unit cube, and their derivatives [N, 3, 3] by the points."""
    u = torch.as_tensor(points).clone().requires_grad_(True)
    rest = differentiable_rest(simulator, space, u)
    slopes = [torch.autograd.grad(rest[:, i].sum(), u, retain_graph=i < 2)[0] for i in range(3)]
    return rest.detach().numpy(), np.stack([s.numpy() for s in slopes], axis=1)


def differentiable_rest(simulator: Simulator, space: StrikeSpace, u: torch.Tensor) -> torch.Tensor:
    """Poses of the target's frame at rest [N, 3], differentiable in points [N, 3] of the unit cube.

    Needs a hybrid that slides on its patch and whose impact is one network: MuJoCo has no derivatives to give.
    """
    if not isinstance(simulator, HybridSimulator) or simulator.sliding != "slider":
        raise CaromError("method 'gradient' needs the hybrid with the slider; other engines take 'cma' or 'cem'")
    model = simulator.impact.model
    student, shift = (model.student, model.shift) if isinstance(model, Perturbed) else (model, np.zeros(3))
    if not isinstance(student, Student):
        raise CaromError("method 'gradient' needs the hybrid's small network, not the corrected model itself")
    scene, k = space.scene, space.scene.gyration_radius
    point, outward, turn, speed = space.strike(u)
    inward = -outward
    columns = [point / k, inward, -turn[:, None], torch.log(speed / SPEED_SCALE)[:, None]]
    columns += [torch.zeros_like(speed)[:, None]] if scene.striker.flat else []
    mean, std = student.local(torch.cat(columns, dim=-1).float())
    local = (mean + std * mean.new_tensor(shift)).double() * speed[:, None]
    tangent = torch.stack([inward[:, 1], -inward[:, 0]], dim=-1)
    velocity = torch.cat([local[:, :1] * tangent + local[:, 1:2] * inward, local[:, 2:] / k], dim=-1)
    x, y, yaw = (float(v) for v in space.pose)
    c, s = np.cos(yaw), np.sin(yaw)
    vx, vy, spin = velocity.unbind(-1)
    world = torch.stack([c * vx - s * vy, s * vx + c * vy, spin], dim=-1)
    com = np.asarray(scene.target.planar_com)
    start = u.new_tensor([x + c * com[0] - s * com[1], y + s * com[0] + c * com[1], yaw]).expand(len(u), 3)
    end = simulator.impact.slider.slide(start, world).pose[:, -1]
    ce, se = torch.cos(end[:, 2]), torch.sin(end[:, 2])
    back_x, back_y = ce * com[0] - se * com[1], se * com[0] + ce * com[1]
    return torch.stack([end[:, 0] - back_x, end[:, 1] - back_y, end[:, 2]], dim=-1)
