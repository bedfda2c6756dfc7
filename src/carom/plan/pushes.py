"""Pushes planned by gradient through the graph simulator: one body is set going so that another stops at a target.

Few-shot paper, Fig. 1. The unknowns are the velocity of the pushed body along the ground and its spin about the
vertical. Several first guesses are improved together, each by Levenberg-Marquardt steps with the derivatives of a whole
rollout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from carom.core.errors import CaromError
from carom.learn.graph import GraphEngine
from carom.state import Array, SceneState

SCALE = (0.3, 0.1, 1.0)  #: [m/s], [m/s], [rad/s]: what a change of the unknowns is measured in
#: of the unknowns: forwards, and not faster than anybody pushes
BOUNDS = ((0.05, -1.0, -15.0), (4.0, 1.0, 15.0))
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

    def started(self, velocity: Array, spin: float) -> SceneState:
        """The start with the pushed body going at a velocity [2] [m/s] and a spin [rad/s]."""
        at, going, turning = self.start.bodies.index(self.pushed), 0 * self.start.velocity, 0 * self.start.spin
        going[:, at, :2], turning[:, at, 2] = velocity, spin
        return replace(self.start, velocity=going, spin=turning)

    @property
    def axes(self) -> Array:
        """Unit vectors [2, 2] from the pushed body to the moved one, and across."""
        names = self.start.bodies
        way = self.start.position[0, names.index(self.moved)] - self.start.position[0, names.index(self.pushed)]
        x, y = way[:2] / np.linalg.norm(way[:2])
        return np.array([[x, y], [-y, x]])

    def in_world(self, unknown: Array) -> Array:
        """A velocity [2] in the world, of one along `axes` [2 or more]."""
        return np.asarray(unknown[:2] @ self.axes)


@dataclass(frozen=True)
class PushPlan:
    """A push, and what the simulator says that it does."""

    velocity: Array  #: [2] of the pushed body [m/s]
    spin: float  #: about the vertical [rad/s]
    miss: float  #: [m] that the moved body stops away from the target, by the simulator
    curve: tuple[float, ...]  #: least miss so far [m], at the first guesses and after each epoch
    rollouts: int  #: simulated


def plan_pushes(
    engine: GraphEngine,
    tasks: Sequence[PushTask],
    *,
    values: Mapping[str, float] | None = None,
    guesses: int = GUESSES,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> tuple[PushPlan, ...]:
    """For each task the push that brings its body nearest to the target; all are simulated together.

    Tasks are of one scene and last as long; starts and targets may differ. `values` are the engine's parameters.
    """
    if guesses < 1 or epochs < 1:
        raise CaromError(f"expected one first guess and one epoch or more, got {guesses} and {epochs}")
    if len({task.duration for task in tasks}) > 1:
        raise CaromError("tasks that are planned together must last as long")
    if not tasks:
        return ()
    rows = _Rows(engine, tasks, guesses, values)
    unknown, damping = np.tile(_guesses(guesses, seed), (len(tasks), 1)), np.full(len(rows), 1e-2)
    miss, off, slope = rows.tried(unknown)
    curve = [rows.least(miss)]
    for _ in range(epochs):
        gram = np.einsum("kri,krj->kij", slope, slope) + damping[:, None, None] * np.eye(3)
        step = -np.linalg.solve(gram, np.einsum("kri,kr->ki", slope, off)[..., None])[..., 0]
        asked = np.clip(unknown + np.clip(step, -2.0, 2.0) * SCALE, *BOUNDS)
        new_miss, new_off, new_slope = rows.tried(asked)
        better = new_miss < miss
        unknown = np.where(better[:, None], asked, unknown)
        off, slope = np.where(better[:, None], new_off, off), np.where(better[:, None, None], new_slope, slope)
        miss, damping = np.where(better, new_miss, miss), damping * np.where(better, FALLS, GROWS)
        curve.append(rows.least(miss))
    made = []
    for number, task in enumerate(tasks):
        own = number * guesses + int(np.argmin(miss[number * guesses : (number + 1) * guesses]))
        velocity = task.in_world(unknown[own])
        ways = tuple(float(least[number]) for least in curve)
        made.append(PushPlan(velocity, float(unknown[own, 2]), float(miss[own]), ways, guesses * (epochs + 1)))
    return tuple(made)


def _guesses(count: int, seed: int) -> Array:
    """First guesses [G, 3]: towards the other body, slow to fast, some to the side."""
    rng = np.random.default_rng(seed)
    speed = np.geomspace(0.5, 2.0, count)
    return np.stack([speed, 0.1 * speed * rng.uniform(-1, 1, count), np.zeros(count)], axis=-1)


class _Rows:
    """Several guesses for each of several tasks, simulated together."""

    def __init__(
        self, engine: GraphEngine, tasks: Sequence[PushTask], guesses: int, values: Mapping[str, float] | None
    ) -> None:
        self.engine, self.tasks, self.guesses, self.values = engine, tasks, guesses, values
        each = [task for task in tasks for _ in range(guesses)]
        self.starts = [task.start for task in each]
        names = self.starts[0].bodies
        position = np.concatenate([s.position for s in self.starts])
        quaternion = np.concatenate([s.quaternion for s in self.starts])
        self.start = SceneState(names, position, quaternion, np.zeros_like(position), np.zeros_like(position))
        self.pushed = torch.tensor([names.index(task.pushed) for task in each])
        self.moved = torch.tensor([names.index(task.moved) for task in each])
        self.target = engine.tensor(np.array([task.target for task in each]))
        self.axes = engine.tensor(np.array([task.axes for task in each]))

    def __len__(self) -> int:
        return len(self.starts)

    def least(self, miss: Array) -> Array:
        """Least miss of each task [m]."""
        return np.asarray(miss.reshape(len(self.tasks), self.guesses).min(axis=1))

    def tried(self, unknown: Array) -> tuple[Array, Array, Array]:
        """Misses [K] [m], offsets from the target [K, 2], and their derivatives [K, 2, 3] in steps of `SCALE`."""
        asked = self.engine.tensor(unknown).requires_grad_()
        every = torch.arange(len(self))
        going = torch.einsum("ki,kij->kj", asked[:, :2], self.axes)
        none = self.engine.tensor(np.zeros_like(self.start.velocity))
        velocity = none.index_put((every, self.pushed), torch.nn.functional.pad(going, (0, 1)))
        spin = none.index_put((every, self.pushed), torch.nn.functional.pad(asked[:, 2:], (2, 0)))
        steps = round(self.tasks[0].duration / self.engine.timestep)
        track = self.engine.follow(self.start, steps, values=self.values, velocity=velocity, spin=spin)
        off = track.position[every, -1, self.moved, :2] - self.target
        slopes = [torch.autograd.grad(off[:, axis].sum(), asked, retain_graph=axis == 0)[0] for axis in range(2)]
        slope = torch.stack(slopes, dim=1).double().numpy() * SCALE
        away = off.detach().double().numpy()
        fine = np.isfinite(slope).all(axis=(1, 2)) & np.isfinite(away).all(axis=1)
        miss = np.where(fine, np.linalg.norm(away, axis=-1), np.inf)
        return miss, np.where(fine[:, None], away, 0.0), np.where(fine[:, None, None], slope, 0.0)
