"""Candidates of contact with the masses that their impulses meet, and the way from impulses to motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch

from carom.learn.graph.candidates import NEAR, Candidates

TOUCHING = 0.002  #: [m] nearer candidates share their bodies' masses


@dataclass(frozen=True)
class Bodies:
    """Bodies of all rows in one list [M], as the solver needs them."""

    inverse_mass: torch.Tensor  #: [M] [1/kg]
    inverse_inertia: torch.Tensor  #: [M, 3, 3] world [1/(kg m^2)]
    position: torch.Tensor  #: [M, 3] [m]


@final
class Pairs:
    """Candidates with the masses that their impulses meet, and the way from impulses to motion.

    All candidates push at once. So that many of them do not push too much together, each meets only its share of its
    bodies' masses (mass splitting): however many there are, stopping the approach takes no more than what is there.
    """

    def __init__(
        self, found: Candidates, bodies: Bodies, velocity: torch.Tensor, spin: torch.Tensor, step: float
    ) -> None:
        self.found, self.bodies = found, bodies
        self.second, self.grounded = found.second, found.first < 0
        self.first_index = found.first.clamp_min(0)
        self.arm_first = self._bodies_only(found.point - bodies.position[self.first_index])
        self.arm_second = found.point - bodies.position[self.second]
        ahead = found.gap + step * (self.relative(velocity, spin) * found.normal).sum(-1)
        least = ahead.minimum(found.gap)
        self.window = ((NEAR - least) / NEAR).clamp(0, 1)  #: [C] 0: it cannot touch
        touching = ((TOUCHING - least) / TOUCHING).clamp(0, 1)
        crowd = self.pool(touching[:, None])[:, 0].clamp_min(1.0)  #: [M] candidates that share a body
        self.crowd_first, self.crowd_second = crowd[self.first_index], crowd[self.second]
        easy = self._straight(self.crowd_first, self.crowd_second)
        along = easy + self._turning(found.normal, self.crowd_first, self.crowd_second)
        axes = torch.eye(3, dtype=found.gap.dtype, device=found.gap.device)
        every = 3 * easy + sum(
            (self._turning(axis.expand_as(found.normal), self.crowd_first, self.crowd_second) for axis in axes),
            torch.zeros_like(along),
        )
        self.mass = 1 / along  #: [C] effective, along the normal [kg]
        self.mass_across = 2 / (every - along)  #: [C] effective, across it, in the mean [kg]
        self.share = easy / along  #: [C] of a central blow's
        self.mass_held = self._shared_along(touching)  #: [C] like `mass`, shared with what pushes the same way alone

    def _shared_along(self, touching: torch.Tensor) -> torch.Tensor:
        """Effective masses [C] along normals, shared by how much the candidates of a body push along each other."""
        normal = self.found.normal
        outer = touching[:, None, None] * normal[:, :, None] * normal[:, None]
        pushed = self.pool(outer.flatten(1)).reshape(-1, 3, 3)
        first, second = (
            torch.einsum("ci,cij,cj->c", normal, pushed[body], normal).clamp_min(1.0)
            for body in (self.first_index, self.second)
        )
        return 1 / (self._straight(first, second) + self._turning(normal, first, second))

    def _straight(self, crowd_first: torch.Tensor, crowd_second: torch.Tensor) -> torch.Tensor:
        """Inverse masses [C] of both bodies, by how many candidates share each."""
        inverse = self.bodies.inverse_mass
        return self._bodies_only(crowd_first * inverse[self.first_index]) + crowd_second * inverse[self.second]

    def _turning(self, direction: torch.Tensor, crowd_first: torch.Tensor, crowd_second: torch.Tensor) -> torch.Tensor:
        """What turning adds to the inverse of the effective mass along directions [C, 3]."""
        inverse = self.bodies.inverse_inertia
        lever = torch.linalg.cross(self.arm_first, direction)
        first = crowd_first * torch.einsum("ci,cij,cj->c", lever, inverse[self.first_index], lever)
        lever = torch.linalg.cross(self.arm_second, direction)
        second = crowd_second * torch.einsum("ci,cij,cj->c", lever, inverse[self.second], lever)
        return self._bodies_only(first) + second

    def _bodies_only(self, values: torch.Tensor) -> torch.Tensor:
        """Values [C, ...] of the first bodies; zero for the ground, which borrows the index of some body.

        Chosen, not multiplied: what is not finite in a row that went wrong is none of the other rows' business.
        """
        ground = self.grounded.reshape(-1, *[1] * (values.ndim - 1))
        return torch.where(ground, torch.zeros_like(values), values)

    def first(self, values: torch.Tensor) -> torch.Tensor:
        """Values [M, ...] of the first bodies [C, ...]; zero for the ground."""
        return self._bodies_only(values[self.first_index])

    def both(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Values [M, ...] of the first and of the second bodies; their mean twice where neither is the first by nature.

        So the order in which bodies are named changes nothing.
        """
        one, other = self.first(values), values[self.second]
        crossed = self.found.crossed.reshape(-1, *[1] * (values.ndim - 1))
        mean = (one + other) / 2
        return torch.where(crossed, mean, one), torch.where(crossed, mean, other)

    def ordered(self, first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Values [C] of the two bodies; the larger one first where neither is the first by nature."""
        crossed = self.found.crossed
        larger, less = torch.maximum(first, second), torch.minimum(first, second)
        return torch.where(crossed, larger, first), torch.where(crossed, less, second)

    def pool(self, values: torch.Tensor) -> torch.Tensor:
        """Sums [M, W] over the candidates of each body of values [C, W]."""
        result = values.new_zeros(len(self.bodies.inverse_mass), values.shape[-1])
        return result.index_add(0, self.second, values).index_add(0, self.first_index, self._bodies_only(values))

    def relative(self, velocity: torch.Tensor, spin: torch.Tensor) -> torch.Tensor:
        """Velocity [C, 3] of the second body against the first where they touch."""
        ours = velocity[self.second] + torch.linalg.cross(spin[self.second], self.arm_second)
        theirs = velocity[self.first_index] + torch.linalg.cross(spin[self.first_index], self.arm_first)
        moving: torch.Tensor = ours - self._bodies_only(theirs)
        return moving

    def apply(
        self, impulse: torch.Tensor, velocity: torch.Tensor, spin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Velocities and spins [M, 3] after impulses [C, 3] on the second bodies, and their opposites on the first."""
        back = self._bodies_only(impulse)
        linear = torch.zeros_like(velocity).index_add(0, self.second, impulse)
        linear = linear.index_add(0, self.first_index, -back)
        angular = torch.zeros_like(spin).index_add(0, self.second, torch.linalg.cross(self.arm_second, impulse))
        angular = angular.index_add(0, self.first_index, -torch.linalg.cross(self.arm_first, back))
        turned = torch.einsum("mij,mj->mi", self.bodies.inverse_inertia, angular)
        return velocity + linear * self.bodies.inverse_mass[:, None], spin + turned


def split(vector: torch.Tensor, normal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The part along the normal [C], and what is left across it [C, 3]."""
    along = (vector * normal).sum(-1)
    return along, vector - along[:, None] * normal


def length(vector: torch.Tensor) -> torch.Tensor:
    """Lengths [C], with a derivative at zero."""
    return torch.sqrt((vector * vector).sum(-1) + 1e-12)
