"""One step of the graph simulator: free motion in closed form, impulses where bodies may touch, then new poses.

The state is a pose and the mean twist since the last frame (Verlet): what a camera sees, with nothing hidden in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from carom.learn.graph.candidates import Candidates, candidates
from carom.learn.graph.network import Bodies, ImpulseNetwork
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

    def __getitem__(self, rows: torch.Tensor) -> World:
        ground = None if self.ground is None else self.ground[rows]
        return replace(
            self, solids=self.solids[rows], gravity=self.gravity[rows], ground=ground, conditions=self.conditions[rows]
        )


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


def advance(
    network: ImpulseNetwork, world: World, now: Moving, *, half: bool = False
) -> tuple[Moving, Candidates, torch.Tensor]:
    """The next frame; the candidates of this step and their impulses [C, 3] [N s].

    `half`: the twist given is that of this very instant, not the mean since the last frame; so the change until the
    middle of the step counts only half (exact in flight and in steady contact).
    """
    step, solids = world.step, world.solids
    middle = now.rotation if half else turn(-step / 2 * now.spin) @ now.rotation
    momentum = torch.einsum("nbij,nbj->nbi", inertia_in_world(middle, solids.inertia), now.spin)
    falling = now.velocity.clone()
    falling[..., 2] = falling[..., 2] - step * world.gravity[:, None]
    here = inertia_in_world(now.rotation, solids.inertia)
    spin = torch.linalg.solve(here, momentum)
    with torch.no_grad():
        reach = step * (falling.norm(dim=-1) + spin.norm(dim=-1) * solids.reach)
    found = candidates(solids, now.position, now.rotation, world.ground, reach)
    impulse = found.point.new_zeros(0, 3)
    after, angular = falling, momentum
    if len(found):
        bodies = Bodies(1 / solids.mass.flatten(), torch.linalg.inv(here.flatten(0, 1)), now.position.flatten(0, 1))
        told = world.conditions[torch.div(found.second, now.position.shape[1], rounding_mode="floor")]
        impulse, after, pushed = network(found, bodies, falling.flatten(0, 1), spin.flatten(0, 1), told, step)
        after = after.reshape(falling.shape)
        angular = momentum + torch.einsum("nbij,nbj->nbi", here, pushed.reshape(spin.shape) - spin)
    if half:
        after, angular = (now.velocity + after) / 2, (momentum + angular) / 2
    turning = _mean_spin(now.rotation, solids.inertia, angular, step)
    moved = Moving(now.position + step * after, turn(step * turning) @ now.rotation, after, turning)
    return moved, found, impulse


def _mean_spin(rotation: torch.Tensor, inertia: torch.Tensor, momentum: torch.Tensor, step: float) -> torch.Tensor:
    """Spin over the step that keeps the angular momentum: inertia is taken where the body is in its middle."""
    spin: torch.Tensor = torch.linalg.solve(inertia_in_world(rotation, inertia), momentum)
    for _ in range(2):
        spin = torch.linalg.solve(inertia_in_world(turn(step / 2 * spin) @ rotation, inertia), momentum)
    return spin
