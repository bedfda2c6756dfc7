"""Pushes planned by gradient through the graph simulator: one body is set going so that another stops at a goal.

Few-shot paper, Fig. 1. The unknowns are the velocity of the pushed body along the ground and its spin about the
vertical. Several first guesses are improved together, each by Levenberg-Marquardt steps with the derivatives of a whole
rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from carom.core.errors import CaromError
from carom.learn.graph import GraphEngine
from carom.plan.push_tasks import PushTasks
from carom.state import Array

SCALE = (0.3, 0.1, 1.0)  #: [m/s], [m/s], [rad/s]: what a change of a push is measured in
#: of a push: forwards, and not faster than anybody pushes
BOUNDS = ((0.05, -1.0, -15.0), (4.0, 1.0, 15.0))
GUESSES = 8
EPOCHS = 10
GROWS, FALLS = 4.0, 0.3  #: of the damping after a step that was worse, and better


@dataclass(frozen=True)
class PushPlan:
    """The best push of a task, and what the simulator says that it does."""

    push: Array  #: [3] velocity ahead and aside [m/s], and spin [rad/s]
    miss: float  #: [m] that the moved body stops away from the goal, by the simulator
    curve: tuple[float, ...]  #: least miss so far [m], at the first guesses and after each epoch
    rollouts: int  #: simulated


def plan_pushes(
    engine: GraphEngine,
    tasks: PushTasks,
    *,
    values: Mapping[str, float] | None = None,
    guesses: int = GUESSES,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> tuple[PushPlan, ...]:
    """For each task the push that brings its body nearest to the goal; all are simulated together.

    `values` are the engine's parameters.
    """
    if guesses < 1 or epochs < 1:
        raise CaromError(f"expected one first guess and one epoch or more, got {guesses} and {epochs}")
    if not len(tasks):
        return ()
    every = tasks[np.repeat(np.arange(len(tasks)), guesses)]
    push, damping = np.tile(_guesses(guesses, seed), (len(tasks), 1)), np.full(len(every), 1e-2)
    miss, off, slope = _tried(engine, every, push, values)
    curve = [miss.reshape(len(tasks), guesses).min(axis=1)]
    for _ in range(epochs):
        gram = np.einsum("kri,krj->kij", slope, slope) + damping[:, None, None] * np.eye(3)
        step = -np.linalg.solve(gram, np.einsum("kri,kr->ki", slope, off)[..., None])[..., 0]
        asked = np.clip(push + np.clip(step, -2.0, 2.0) * SCALE, *BOUNDS)
        new_miss, new_off, new_slope = _tried(engine, every, asked, values)
        better = new_miss < miss
        push = np.where(better[:, None], asked, push)
        off, slope = np.where(better[:, None], new_off, off), np.where(better[:, None, None], new_slope, slope)
        miss, damping = np.where(better, new_miss, miss), damping * np.where(better, FALLS, GROWS)
        curve.append(miss.reshape(len(tasks), guesses).min(axis=1))
    best = np.arange(len(tasks)) * guesses + miss.reshape(len(tasks), guesses).argmin(axis=1)
    ways = np.array(curve).T
    return tuple(
        PushPlan(push[own], float(miss[own]), tuple(ways[n].tolist()), guesses * (epochs + 1))
        for n, own in enumerate(best)
    )


def _guesses(count: int, seed: int) -> Array:
    """First guesses [G, 3]: towards the other body, slow to fast, some to the side."""
    rng = np.random.default_rng(seed)
    speed = np.geomspace(0.5, 2.0, count)
    return np.stack([speed, 0.1 * speed * rng.uniform(-1, 1, count), np.zeros(count)], axis=-1)


def ends_of(
    engine: GraphEngine, tasks: PushTasks, push: torch.Tensor, values: Mapping[str, float] | None = None
) -> torch.Tensor:
    """Where the moved bodies are at the end [K, 2] [m], of pushes [K, 3]: can be differentiated by them."""
    every, names = torch.arange(len(tasks), device=engine.device), tasks.start.bodies
    pushed = torch.full_like(every, names.index(tasks.pushed))
    going = torch.einsum("ki,kij->kj", push[:, :2], engine.tensor(tasks.axes))
    none = engine.tensor(np.zeros_like(tasks.start.velocity))
    velocity = none.index_put((every, pushed), torch.nn.functional.pad(going, (0, 1)))
    spin = none.index_put((every, pushed), torch.nn.functional.pad(push[:, 2:], (2, 0)))
    steps = round(tasks.duration / engine.timestep)
    track = engine.follow(tasks.start, steps, values=values, velocity=velocity, spin=spin)
    return track.position[:, -1, names.index(tasks.moved), :2]


def _tried(
    engine: GraphEngine, tasks: PushTasks, push: Array, values: Mapping[str, float] | None
) -> tuple[Array, Array, Array]:
    """Misses [K] [m], offsets from the goal [K, 2], and their derivatives [K, 2, 3] in steps of `SCALE`."""
    asked = engine.tensor(push).requires_grad_()
    off = ends_of(engine, tasks, asked, values) - engine.tensor(tasks.goal)
    slopes = [torch.autograd.grad(off[:, axis].sum(), asked, retain_graph=axis == 0)[0] for axis in range(2)]
    slope = torch.stack(slopes, dim=1).double().cpu().numpy() * SCALE
    away = off.detach().double().cpu().numpy()
    fine = np.isfinite(slope).all(axis=(1, 2)) & np.isfinite(away).all(axis=1)
    miss = np.where(fine, np.linalg.norm(away, axis=-1), np.inf)
    return miss, np.where(fine[:, None], away, 0.0), np.where(fine[:, None, None], slope, 0.0)
