"""A policy of pushes trained by backpropagation through the graph simulator, without rewards and without trying around.

The policy says a push, the simulator where the other body ends, and the derivative of the miss goes all the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import final

import numpy as np
import torch
from torch import nn

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.envs.push import HIGH, LOW, OBSERVED, REACHED, SCALE, observation, push_of
from carom.learn.graph import GraphEngine
from carom.plan.push_tasks import PushTasks
from carom.plan.pushes import ends_of
from carom.state import Array

HIDDEN = 64
RATE = 3e-3
STEEPEST = 5.0  #: times the median of its batch: a steeper derivative is cut, contacts make some very steep


@final
class PushPolicy(nn.Module):
    """Actions from what is observed."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(OBSERVED, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 3)
        )

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """Actions [K, 3] from -1 to 1."""
        return torch.tanh(self.net(seen))

    def push(self, tasks: PushTasks) -> Array:
        """Pushes [K, 3] for tasks."""
        with torch.no_grad():
            return push_of(self(torch.as_tensor(observation(tasks))).double().numpy())


@dataclass(frozen=True)
class PushTraining:
    """A policy, and how its training went."""

    policy: PushPolicy
    curve: tuple[tuple[int, float, float], ...]  #: simulated steps so far, mean miss [m] and success of the batch
    seconds: float


def train_pushes(
    engine: GraphEngine,
    tasks: PushTasks,
    *,
    values: Mapping[str, float] | None = None,
    updates: int = 100,
    batch: int = 64,
    seed: int = 0,
    enough: Callable[[int, PushPolicy], bool] = lambda steps, policy: False,
    progress: Progress = silent,
) -> PushTraining:
    """Train a policy on random batches of tasks; `values` are the engine's parameters.

    `enough` is asked after each update, with the number of simulated steps so far, whether training may end.
    """
    if updates < 1 or batch < 1:
        raise CaromError(f"expected one update and one task or more, got {updates} and {batch}")
    start, rng, curve = perf_counter(), np.random.default_rng(seed), []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        policy = PushPolicy()
    optimiser = torch.optim.Adam(policy.parameters(), lr=RATE)
    low, high = (torch.tensor(v, dtype=torch.float32) for v in (LOW, HIGH))
    for update in range(updates):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (0.55 + 0.45 * float(np.cos(np.pi * update / updates)))
        picked = tasks[rng.integers(len(tasks), size=batch)]
        action = policy(torch.as_tensor(observation(picked)))
        push = low + (action + 1) / 2 * (high - low)
        asked = push.detach().to(device=engine.device, dtype=engine.dtype).requires_grad_()
        off = ends_of(engine, picked, asked, values) - engine.tensor(picked.goal)
        miss = torch.sqrt((off * off).sum(-1) + 1e-8)
        loss = torch.sqrt(1 + (miss / REACHED) ** 2) - 1
        (slope,) = torch.autograd.grad(loss.sum(), asked)
        (push * _tamed(slope).to(device=push.device, dtype=push.dtype)).sum(-1).mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        away = miss.detach().nan_to_num(10 * SCALE)
        steps = (update + 1) * batch * round(picked.duration / engine.timestep)
        curve.append((steps, float(away.mean()), float((away < REACHED).float().mean())))
        progress("train a policy by backpropagation", update + 1, updates)
        if enough(steps, policy):
            break
    return PushTraining(policy, tuple(curve), perf_counter() - start)


def _tamed(slope: torch.Tensor) -> torch.Tensor:
    """Derivatives [K, 3] without those that are not finite, the steepest cut to a multiple of the median."""
    slope = torch.where(torch.isfinite(slope).all(dim=-1, keepdim=True), slope, torch.zeros_like(slope))
    size = slope.norm(dim=-1, keepdim=True)
    most = STEEPEST * size.median().clamp_min(1e-9)
    tamed: torch.Tensor = slope * (most / size.clamp_min(1e-9)).clamp_max(1.0)
    return tamed
