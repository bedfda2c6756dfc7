"""Scaled trajectories as the graph simulator learns from them: about centres of mass, and where contact is near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from carom.core.errors import CaromError
from carom.learn.graph.conditions import CONDITIONS, ENGINE_DEFAULTS, contact_of, encoded
from carom.learn.graph.dynamics import Moving, World
from carom.learn.graph.solids import solids_of
from carom.learn.graph.turning import matrices_of, turned_by
from carom.scale import ScaledTrajectory
from carom.state import Array

CLOSE = 0.03  #: [m] a body nearer to the ground than this is worth learning from
MOVES = 0.01  #: [m/s] what moves faster than this is worth learning from; of frames at rest,
AT_REST = 10  #: one in so many is


@dataclass(frozen=True)
class Frames:
    """Trajectories of as many bodies and samples, about centres of mass."""

    world: World
    position: torch.Tensor  #: [N, T, B, 3] [m]
    rotation: torch.Tensor  #: [N, T, B, 3, 3]
    velocity: torch.Tensor  #: [N, T - 1, B, 3] mean from a frame to the next [m/s]
    spin: torch.Tensor  #: [N, T - 1, B, 3] [rad/s]
    near: torch.Tensor  #: [N, T] whether something is close to the ground, or to another body, and moves

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, rows: slice) -> Frames:
        numbers = torch.arange(len(self))[rows]
        parts = {n: getattr(self, n)[rows] for n in ("position", "rotation", "velocity", "spin", "near")}
        return replace(self, world=self.world[numbers], **parts)

    @property
    def bodies(self) -> int:
        return self.position.shape[2]

    def windows(self, length: int, *, flight: bool = False) -> torch.Tensor:
        """Rows and frames [K, 2] from which so many steps can be followed, with contact near; `flight`: all of them."""
        last = self.position.shape[1] - length
        found = (self.near[:, 1:last] | flight).nonzero()
        found[:, 1] += 1
        return found

    def at(self, row: torch.Tensor, frame: torch.Tensor) -> Moving:
        """The state of some rows at some frames; twists are those since the frame before."""
        return Moving(
            self.position[row, frame],
            self.rotation[row, frame],
            self.velocity[row, frame - 1],
            self.spin[row, frame - 1],
        )


def contacts_of(trajectories: Sequence[ScaledTrajectory], known: Mapping[str, float] | None = None) -> dict[str, Array]:
    """The four conditions of trajectories, each [N]; `known` says what measured ones cannot."""
    every = [contact_of(t.parameters or known or {}, ENGINE_DEFAULTS) for t in trajectories]
    return {name: np.array([float(contact[name]) for contact in every]) for name in CONDITIONS}


def frames_of(trajectories: Sequence[ScaledTrajectory], known: Mapping[str, float] | None = None) -> Frames:
    """Trajectories of as many bodies, cut to the shortest."""
    step = trajectories[0].period
    if any(t.ground is None or t.ground.normal != (0.0, 0.0, 1.0) for t in trajectories):
        raise CaromError(
            "the graph simulator learns over level ground; in some trajectories there is none, or it leans"
        )
    length = min(len(t) for t in trajectories)
    place = torch.as_tensor(np.stack([t.position[:length] for t in trajectories]))
    rotation = matrices_of(torch.as_tensor(np.stack([t.quaternion[:length] for t in trajectories])))
    solids = solids_of([t.bodies for t in trajectories], dtype=torch.float64)
    position = place + torch.einsum("ntbij,nbj->ntbi", rotation, solids.centre)
    velocity = (position[:, 1:] - position[:, :-1]) / step
    spin = turned_by(rotation[:, 1:] @ rotation[:, :-1].transpose(-1, -2)) / step
    height = torch.tensor([0.0 if t.ground is None else t.ground.height for t in trajectories])
    conditions = encoded(contacts_of(trajectories, known), step, len(trajectories)).to(torch.float32)
    gravity = torch.tensor([t.gravity for t in trajectories], dtype=torch.float32)
    world = World(solids.to(dtype=torch.float32), gravity, height, conditions, step)
    moving = [value.to(torch.float32) for value in (position, rotation, velocity, spin)]
    near = _near(world, moving[0], moving[1]) & _moves(world, moving[2], moving[3])
    return Frames(world, moving[0], moving[1], moving[2], moving[3], near)


def _moves(world: World, velocity: torch.Tensor, spin: torch.Tensor) -> torch.Tensor:
    """Frames [N, T] in which something moves, and some of those in which nothing does."""
    speed = velocity.norm(dim=-1) + spin.norm(dim=-1) * world.solids.gyration[:, None]
    moves = torch.nn.functional.pad((speed > MOVES).any(dim=-1), (1, 0), value=True)
    row, frame = torch.meshgrid(*(torch.arange(n) for n in moves.shape), indexing="ij")
    return moves | ((row + frame) % AT_REST == 0)


def _near(world: World, position: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    solids, near = world.solids, torch.zeros(position.shape[:2], dtype=torch.bool)
    if world.ground is not None:
        up = torch.einsum("ntbj,nbvj->ntbv", rotation[..., 2, :], solids.corners)
        up = torch.where(solids.corner_there[:, None], up, torch.inf)
        near = (up + position[..., 2:] - world.ground[:, None, None, None]).amin((-1, -2)) < CLOSE
    bodies = position.shape[2]
    for i in range(bodies):
        for j in range(i + 1, bodies):
            apart = (position[:, :, i] - position[:, :, j]).norm(dim=-1)
            near |= apart < (solids.reach[:, i] + solids.reach[:, j])[:, None]
    return near
