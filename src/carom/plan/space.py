"""The strikes a planner may choose from: where on the outline, how far from the normal, how fast."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from carom.core.errors import CaromError
from carom.scenes.strike import StrikeScene
from carom.state import Array, StrikeCommands, Strikes, rotate

STANDOFF = 0.02  #: [m] between striker and target where a planned strike's simulation starts
CORNER = 0.08  #: share of each side left out at both of its ends: no striker is aimed that well

#: Stretches of an outline: where each starts, its direction times length, and the outward normals at its ends [M, 2]
Stretches = tuple[Array, Array, Array, Array]


@dataclass(frozen=True)
class StrikeSpace:
    """All strikes at a resting target, as points of the unit cube: place on the outline, deflection, speed."""

    scene: StrikeScene
    pose: Array  #: [3] x, y, yaw of the target's frame before the strike, world [m, m, rad]
    speed: tuple[float, float]  #: of the striker at contact [m/s]
    deflection: float  #: largest angle between velocity and inward normal [rad]
    part: Stretches | None = None  #: of the outline that may be struck; None: all of it, or the scene's arc

    @cached_property
    def _sides(self) -> Stretches:
        """The usable stretches of the outline."""
        if self.part is not None:
            return self.part
        shape = self.scene.shape
        if self.scene.arc is not None or shape.is_round:
            low, high = self.scene.arc if self.scene.arc is not None else (-np.pi, np.pi)
            theta = np.linspace(low, high, 97)
            outward = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
            corners = float(shape.radius or 0.0) * outward
            return corners[:-1], np.diff(corners, axis=0), outward[:-1], outward[1:]
        edge, normal, first, last = self.scene.outline.edges
        # a corner that stands for a curve needs no room, and its normals are blended: a search can follow the curve
        low = CORNER * (np.abs(first - normal).max(axis=1) < 1e-9)[:, None]
        high = 1 - CORNER * (np.abs(last - normal).max(axis=1) < 1e-9)[:, None]
        start = self.scene.outline.vertices + low * edge
        return start, (high - low) * edge, first + low * (last - first), first + high * (last - first)

    def strike(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Contact points and outward normals [N, 2] (target's frame), deflections and speeds [N] of unit points [N, 3].

        Differentiable within each side.
        """
        start, edge, first, last = (torch.as_tensor(a, dtype=u.dtype) for a in self._sides)
        length = torch.linalg.vector_norm(edge, dim=-1)
        ends = torch.cumsum(length, 0)
        along = u[:, 0].clamp(0, 1) * ends[-1]
        side = torch.searchsorted(ends, along.detach().contiguous()).clamp(max=len(ends) - 1)
        share = ((along - (ends - length)[side]) / length[side])[:, None]
        point = start[side] + share * edge[side]
        normal = (1 - share) * first[side] + share * last[side]
        normal = normal / torch.linalg.vector_norm(normal, dim=-1, keepdim=True)
        low, high = self.speed
        return point, normal, self.deflection * (2 * u[:, 1] - 1), low + (high - low) * u[:, 2]

    def commands(self, u: Array) -> StrikeCommands:
        """What a robot is asked for, for points [N, 3] of the unit cube."""
        point, outward, turn, speed = (a.numpy() for a in self.strike(torch.as_tensor(np.asarray(u, dtype=np.float64))))
        velocity = speed[:, None] * rotate(-outward, turn)
        return StrikeCommands(point, velocity, np.tile(self.pose, (len(point), 1)))

    def initial(self, u: Array) -> Strikes:
        """States from which these strikes are simulated: the striker on its way, `STANDOFF` before it touches."""
        return approach(self.scene, self.commands(u))


def strike_space(
    scene: StrikeScene, pose: Array, *, speed: tuple[float, float] | None = None, deflection: float | None = None
) -> StrikeSpace:
    """The strikes of a scene, within its own ranges or narrower ones."""
    low, high = speed or scene.speed
    if not 0 < low < high:
        raise CaromError(f"speed: expected two positive numbers [m/s], lower first, got {low:g} {high:g}")
    if low < 0.9 * scene.speed[0] or high > 1.1 * scene.speed[1]:
        raise CaromError(
            f"speed {low:g} to {high:g} m/s: the model has learned {scene.speed[0]:g} to {scene.speed[1]:g} m/s; "
            "choose within, or record and distil faster strikes"
        )
    turn = scene.deflection if deflection is None else float(deflection)
    if not 0 < turn <= 1.1 * scene.deflection:
        raise CaromError(f"deflection: expected more than 0 and at most {scene.deflection:.3g} rad, got {turn:g}")
    at = np.asarray(pose, dtype=np.float64)
    if at.shape != (3,) or not np.isfinite(at).all():
        raise CaromError(f"pose: expected three finite numbers, x y yaw [m, m, rad], got {pose}")
    return StrikeSpace(scene, at, (low, high), turn)


def approach(scene: StrikeScene, commands: StrikeCommands, *, standoff: float = STANDOFF) -> Strikes:
    """States from which commanded strikes are simulated: the striker `standoff` [m] before it touches."""
    _, outward = scene.outline.nearest(commands.contact_point)
    yaw = commands.target_pose[:, 2]
    reach = 0.0 if scene.striker.flat else float(scene.striker.radius or 0.0)
    speed = np.linalg.norm(commands.velocity, axis=1, keepdims=True)
    place = commands.contact_point + reach * outward - standoff * commands.velocity / speed
    inward = np.arctan2(-outward[:, 1], -outward[:, 0])
    place, going = rotate(np.stack([place, commands.velocity]), yaw)
    striker = np.column_stack([commands.target_pose[:, :2] + place, inward + yaw - scene.striker.forward])
    velocity = np.column_stack([going, np.zeros(len(yaw))])
    return Strikes(commands.target_pose, np.zeros((len(yaw), 3)), striker, velocity)
