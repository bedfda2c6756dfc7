"""What moves in the graph simulator, and what every network of it does: bring the bodies to the next frame.

The state is a pose and the mean twist since the last frame (Verlet): what a camera sees, with nothing hidden in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from carom.learn.graph.candidates import Candidates
from carom.learn.graph.solids import Solids
from carom.learn.graph.turning import turn


@dataclass(frozen=True)
class World:
    """What does not change over a rollout of N rows."""

    solids: Solids
    gravity: torch.Tensor  #: [N] downwards [m/s^2]
    ground: torch.Tensor | None  #: [N] height [m]; None over an air table
    conditions: torch.Tensor  #: [N, K] parameters as the network reads them
    step: float  #: [s]
    nudge: torch.Tensor | None = None  #: [N, 4] what a correction adds to the coefficients of impulses

    def __getitem__(self, rows: torch.Tensor) -> World:
        ground, nudge = (None if v is None else v[rows] for v in (self.ground, self.nudge))
        solids, gravity, conditions = self.solids[rows], self.gravity[rows], self.conditions[rows]
        return replace(self, solids=solids, gravity=gravity, ground=ground, conditions=conditions, nudge=nudge)


@dataclass(frozen=True)
class Moving:
    """N rows of B bodies, about their centres of mass."""

    position: torch.Tensor  #: [N, B, 3] [m]
    rotation: torch.Tensor  #: [N, B, 3, 3] world from body
    velocity: torch.Tensor  #: [N, B, 3] mean since the last frame [m/s]
    spin: torch.Tensor  #: [N, B, 3] mean since the last frame, world [rad/s]


def inertia_in_world(rotation: torch.Tensor, inertia: torch.Tensor) -> torch.Tensor:
    """Inertias [..., 3, 3] of turned bodies in the world's axes."""
    return rotation @ inertia @ rotation.transpose(-1, -2)


def mean_spin(rotation: torch.Tensor, inertia: torch.Tensor, momentum: torch.Tensor, step: float) -> torch.Tensor:
    """Spin over the step that keeps the angular momentum: inertia is taken where the body is in its middle."""
    spin: torch.Tensor = torch.linalg.solve(inertia_in_world(rotation, inertia), momentum)
    for _ in range(2):
        spin = torch.linalg.solve(inertia_in_world(turn(step / 2 * spin) @ rotation, inertia), momentum)
    return spin


class Advanced(NamedTuple):
    """The next frame, and what touched on the way."""

    moving: Moving
    found: Candidates | None  #: None where a network knows no impulses
    impulse: torch.Tensor | None  #: [C, 3] of the candidates [N s]


class GraphNetwork(nn.Module, ABC):
    """A network that brings bodies from one frame to the next."""

    preset: ClassVar[str]  #: name of its kind
    flies: ClassVar[bool] = True  #: free flight is closed form: there is nothing to learn from it

    @abstractmethod
    def advance(self, world: World, now: Moving, *, half: bool = False) -> Advanced:
        """The next frame.

        `half`: the twist given is that of this very instant, not the mean since the last frame; so the change until the
        middle of the step counts only half (exact in flight and in steady contact).
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What it takes to make this network again, weights apart."""

    def step_loss(self, world: World, now: Moving, then: Moving) -> torch.Tensor:
        """What the next frame misses of the true one, for training."""
        return twist_loss(world, self.advance(world, now).moving, then)

    def prepare(self, examples: Sequence[tuple[World, Moving, Moving]]) -> None:
        """See some examples of a frame and the next one before training; most networks have no use for it."""


SPEED_SCALE = 0.03  #: [m/s] beyond which errors count in proportion, not squared


def huber(linear: torch.Tensor, angular: torch.Tensor, scale: float) -> torch.Tensor:
    """Pseudo-Huber loss of errors [..., 3], those of angles times their lever."""
    square = (linear * linear).sum(-1) + (angular * angular).sum(-1)
    return (torch.sqrt(1 + square / scale**2) - 1).mean()


def twist_loss(world: World, found: Moving, wanted: Moving) -> torch.Tensor:
    """Pseudo-Huber loss of twists, in the norm of the kinetic energy."""
    lever = world.solids.gyration[..., None]
    return huber(found.velocity - wanted.velocity, (found.spin - wanted.spin) * lever, SPEED_SCALE)
