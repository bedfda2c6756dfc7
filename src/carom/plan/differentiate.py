"""Where a struck target comes to rest, and how that changes with the strike: through impact network and slider."""

from __future__ import annotations

import numpy as np
import torch

from carom.engines.contract import AimedStrikes, Simulator
from carom.plan.space import StrikeSpace
from carom.state import Array


def rest_and_derivative(simulator: Simulator, space: StrikeSpace, points: Array) -> tuple[Array, Array]:
    """Poses at rest [N, 3] of strikes [N, 3] of the unit cube, and their derivatives [N, 3, 3] by the points."""
    u = torch.as_tensor(points).clone().requires_grad_(True)
    rest = differentiable_rest(simulator, space, u)
    slopes = [torch.autograd.grad(rest[:, i].sum(), u, retain_graph=i < 2)[0] for i in range(3)]
    return rest.detach().numpy(), np.stack([s.numpy() for s in slopes], axis=1)


def differentiable_rest(simulator: Simulator, space: StrikeSpace, u: torch.Tensor) -> torch.Tensor:
    """Poses of the target's frame at rest [N, 3], differentiable in points [N, 3] of the unit cube."""
    point, outward, turn, speed = space.strike(u)
    return simulator.differentiable_rest(AimedStrikes(space.pose, point, -outward, turn, speed))
