"""Pushes planned by gradient through the graph simulator: one body is set going so that another stops at a target.

Few-shot paper, Fig. 1. The unknowns are the velocity of the pushed body along the ground and its spin about the
vertical. Several first guesses are improved together, each by Levenberg-Marquardt steps with the derivatives of a whole
rollout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from carom.core.errors import CaromError
from carom.learn.graph import GraphEngine
from carom.state import Array, SceneState

SCALE = (0.3, 0.1, 1.0)  #: [m/s], [m/s], [rad/s]: what a change of the unknowns is measured in
FASTEST = 4.0  #: [m/s]
GUESSES = 8
EPOCHS = 10
GROWS, FALLS = 4.0, 0.3  #: of the damping after a step that was worse, and better


@dataclass(frozen=True)
class PushTask:
    """Bodies at rest, which of them is pushed, and where another is to stop."""

    start: SceneState  #: one row
    pushed: str
    moved: str
    target: tuple[float, float]  #: [m] of the moved body's frame, in the world
    duration: float = 1.0  #: [s] until everything has stopped

    def __post_init__(self) -> None:
        if len(self.start) != 1:
            raise CaromError(f"start: expected one row, got {len(self.start)}")
        for name in (self.pushed, self.moved):
            if name not in self.start.bodies:
                raise CaromError(f"expected one of the bodies {', '.join(self.start.bodies)}, got '{name}'")
        if not np.isfinite(self.target).all():
            raise CaromError(f"target: expected two finite numbers [m], got {self.target}")

    def started(self, velocity: Array, spin: Array) -> SceneState:
        """The start with the pushed body going, for velocities [K, 2] [m/s] and spins [K] [rad/s]."""
        count, at = len(velocity), self.start.bodies.index(self.pushed)
        rows = self.start[np.zeros(count, dtype=np.int64)]
        going, turning = rows.velocity.copy(), rows.spin.copy()
        going[:, at, :2], turning[:, at, 2] = velocity, spin
        return SceneState(rows.bodies, rows.position, rows.quaternion, going, turning)

    @property
    def towards(self) -> Array:
        """Unit vector [2] from the pushed body to the moved one."""
        names = self.start.bodies
        way = self.start.position[0, names.index(self.moved)] - self.start.position[0, names.index(self.pushed)]
        return np.asarray(way[:2] / np.linalg.norm(way[:2]))


@dataclass(frozen=True)
class PushPlan:
    """A push, and what the simulator says that it does."""

    velocity: Array  #: [2] of the pushed body [m/s]
    spin: float  #: about the vertical [rad/s]
    miss: float  #: [m] that the moved body stops away from the target, by the simulator
    curve: tuple[float, ...]  #: least miss so far [m], at the first guesses and after each epoch
    rollouts: int  #: simulated


def plan_push(
    engine: GraphEngine, task: PushTask, *, guesses: int = GUESSES, epochs: int = EPOCHS, seed: int = 0
) -> PushPlan:
    """The push that brings a body nearest to its target."""
    if guesses < 1 or epochs < 1:
        raise CaromError(f"expected one first guess and one epoch or more, got {guesses} and {epochs}")
    unknown, damping = _guesses(task, guesses, seed), np.full(guesses, 1e-2)
    miss, off, slope = _tried(engine, task, unknown)
    curve = [float(miss.min())]
    for _ in range(epochs):
        gram = np.einsum("kri,krj->kij", slope, slope) + damping[:, None, None] * np.eye(3)
        step = -np.linalg.solve(gram, np.einsum("kri,kr->ki", slope, off)[..., None])[..., 0]
        tried = _within(unknown + np.clip(step, -2.0, 2.0) * SCALE)
        new_miss, new_off, new_slope = _tried(engine, task, tried)
        better = new_miss < miss
        unknown = np.where(better[:, None], tried, unknown)
        off, slope = np.where(better[:, None], new_off, off), np.where(better[:, None, None], new_slope, slope)
        miss, damping = np.where(better, new_miss, miss), damping * np.where(better, FALLS, GROWS)
        curve.append(float(miss.min()))
    best = int(np.argmin(miss))
    velocity = _world(task, unknown[best : best + 1])[0]
    return PushPlan(velocity, float(unknown[best, 2]), float(miss[best]), tuple(curve), guesses * (epochs + 1))


def _guesses(task: PushTask, count: int, seed: int) -> Array:
    """First guesses [K, 3]: towards the other body, slow to fast, some to the side."""
    rng = np.random.default_rng(seed)
    speed = np.geomspace(0.5, 2.0, count)
    return np.stack([speed, 0.1 * speed * rng.uniform(-1, 1, count), np.zeros(count)], axis=-1)


def _within(unknown: Array) -> Array:
    """Unknowns that can be pushed: forwards, and not faster than anybody pushes."""
    return np.clip(unknown, [0.05, -1.0, -15.0], [FASTEST, 1.0, 15.0])


def _world(task: PushTask, unknown: Array) -> Array:
    """Velocities [K, 2] in the world, of unknowns along the way to the other body and across it."""
    x, y = task.towards
    return np.asarray(unknown[:, :2] @ np.array([[x, y], [-y, x]]))


def _tried(engine: GraphEngine, task: PushTask, unknown: Array) -> tuple[Array, Array, Array]:
    """Misses [K] [m], offsets from the target [K, 2], and their derivatives [K, 2, 3] in steps of `SCALE`."""
    start = task.started(_world(task, unknown), unknown[:, 2])
    asked = torch.tensor(unknown, dtype=engine.dtype, requires_grad=True)
    x, y = task.towards
    at, moved = start.bodies.index(task.pushed), start.bodies.index(task.moved)
    velocity, spin = engine.tensor(start.velocity), engine.tensor(start.spin)
    turn = engine.tensor(np.array([[x, y], [-y, x]]))
    velocity = velocity.index_put((torch.arange(len(asked)), torch.tensor(at)), _three(asked[:, :2] @ turn, 2))
    spin = spin.index_put((torch.arange(len(asked)), torch.tensor(at)), _three(asked[:, 2:], 1))
    steps = round(task.duration / engine.timestep)
    end = engine.follow(start, steps, velocity=velocity, spin=spin).position[:, -1, moved, :2]
    off = end - engine.tensor(np.array(task.target))
    slopes = [torch.autograd.grad(off[:, axis].sum(), asked, retain_graph=axis == 0)[0] for axis in range(2)]
    slope = torch.stack(slopes, dim=1).double().numpy() * SCALE
    away = off.detach().double().numpy()
    fine = np.isfinite(slope).all(axis=(1, 2)) & np.isfinite(away).all(axis=1)
    miss = np.where(fine, np.linalg.norm(away, axis=-1), np.inf)
    return miss, np.where(fine[:, None], away, 0.0), np.where(fine[:, None, None], slope, 0.0)


def _three(values: torch.Tensor, width: int) -> torch.Tensor:
    """Along the ground [K, 2], or about the vertical [K, 1], as vectors [K, 3]."""
    return torch.nn.functional.pad(values, (0, 1) if width == 2 else (2, 0))
