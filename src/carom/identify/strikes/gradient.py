"""Identification by gradient through a frozen base model (section III-C of CLASH, Eq. 3).

The base model is anything that predicts scaled outcomes from parameters and is differentiable in them; what it knows
of the strikes (`frames`) is its own affair. All starts are one tensor: a step costs the same for one as for many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import qmc

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Steps
from carom.identify import trust
from carom.identify.result import Errors, Identification
from carom.identify.strikes.surrogate import Differentiable, Problem
from carom.scenes.parameters import Parameter
from carom.state import Array

PROBES = 8  #: places from which each parameter is moved over its whole range, to see whether it does anything
MOST_FOLDS = 12
REFINED = 6  #: starts that are followed again with strikes left out
MARGIN = 1e-3  #: of the range: parameters are kept so far from where the paper's steps would leave it


@dataclass(frozen=True)
class Preset:
    """How the parameters are moved."""

    name: str
    starts: int
    steps: int
    newton: bool  #: Levenberg-Marquardt in unit space; else AdamW on the values
    learning_rate: float = 0.0
    weight_decay: float = 0.0


#: `paper` is section IV-A: 1,000 steps of AdamW, learning rate 0.001, weight decay 0.01. It gives no number of starts.
PRESETS = {
    "default": Preset("default", starts=64, steps=40, newton=True),
    "paper": Preset("paper", starts=4, steps=1000, newton=False, learning_rate=1e-3, weight_decay=0.01),
}


def descend(
    model: Differentiable,
    frames: Any,
    local: ArrayLike,
    *,
    parameters: Sequence[Parameter | str] | None = None,
    fixed: Mapping[str, float] | None = None,
    preset: str = "default",
    speed: ArrayLike | None = None,
    starts: int | None = None,
    scene: str = "",
    teacher: str = "mujoco",
    seed: int = 0,
    progress: Steps | None = None,
) -> Identification:
    """Parameters for which a frozen base model explains measured outcomes best.

    `frames` are the strikes as the model takes them, `local` [N, 3] the measured outcomes in its scaled form. With
    the approach `speed` [N] [m/s] the loss is that of Eq. 3 in m/s; without, every strike counts alike.
    """
    begun = perf_counter()
    if preset not in PRESETS:
        raise CaromError(unknown_name("preset", preset, PRESETS))
    chosen = PRESETS[preset]
    outcomes = np.asarray(local, dtype=np.float64)
    if outcomes.ndim != 2 or outcomes.shape[1] != 3 or not len(outcomes):
        raise CaromError(f"local: expected measured outcomes of shape (N, 3), N > 0, got {outcomes.shape}")
    speeds = None if speed is None else np.asarray(speed, dtype=np.float64)
    problem = Problem(model, frames, outcomes, speeds, trust.held_values(model.parameters, parameters, fixed))
    dead = _probe(problem, seed)
    problem.give_up(dead)
    count = starts or chosen.starts
    first = torch.as_tensor(_spread(count, len(problem.active), seed))
    mask = torch.ones(count, len(outcomes), dtype=torch.float64)
    ends = _move(problem, chosen, first, mask, progress)
    return _result(problem, chosen, first, ends, dead, scene=scene, teacher=teacher, seed=seed, begun=begun)


def _spread(count: int, width: int, seed: int) -> Array:
    """Evenly spread unit points [count, width]."""
    power = int(np.ceil(np.log2(max(count, 2))))
    return np.asarray(qmc.Sobol(width, seed=seed).random_base2(power)[:count])


def _probe(problem: Problem, seed: int) -> dict[str, float]:
    """Largest relative effect of each parameter that moves no outcome over its whole range; raises if none does."""
    count = len(problem.active)
    places = torch.as_tensor(qmc.Sobol(count, seed=seed).random(PROBES))
    ends = []
    for level in (0.0, 1.0):
        moved = places[:, None].repeat(1, count, 1)
        moved[:, torch.arange(count), torch.arange(count)] = level
        with torch.no_grad():
            ends.append(problem.at(moved.reshape(-1, count)).reshape(PROBES, count, -1))
    change = (ends[1] - ends[0]).pow(2).mean(dim=-1).amax(dim=0).sqrt()
    size = (problem.measured * problem.weight).pow(2).mean().sqrt().clamp_min(1e-9)
    names = [problem.parameters[i].name for i in problem.active]
    return trust.without_effect(names, (change / size).tolist())


def _move(
    problem: Problem,
    preset: Preset,
    unit: torch.Tensor,
    mask: torch.Tensor,
    progress: Steps | None = None,
) -> torch.Tensor:
    """Where starts [S, A] end, each with its own weights of the strikes `mask` [S, N] (Eq. 3)."""
    return (_newton if preset.newton else _adamw)(problem, preset, unit, mask, progress)


def _newton(
    problem: Problem,
    preset: Preset,
    unit: torch.Tensor,
    mask: torch.Tensor,
    progress: Steps | None,
) -> torch.Tensor:
    """Levenberg-Marquardt for every start at once, in the unit cube."""
    unit, damping = unit.clone(), torch.full((len(unit),), 1e-2, dtype=torch.float64)
    weight = mask[..., None]
    residual, jacobian = problem.linearised(unit)
    loss = (residual.pow(2) * weight).sum(dim=(1, 2))
    for step in range(preset.steps):
        weighted = (jacobian * weight[..., None]).flatten(1, 2)
        gram = weighted.transpose(1, 2) @ jacobian.flatten(1, 2)
        pull = (weighted.transpose(1, 2) @ residual.flatten(1)[..., None])[..., 0]
        # on a bound and pushed outwards: the others move as if that one were fixed
        stuck = ((unit <= 0) & (pull > 0)) | ((unit >= 1) & (pull < 0))
        free = (~stuck).double()
        size = gram.diagonal(dim1=1, dim2=2).mean(dim=1, keepdim=True).clamp_min(1e-12)
        more = torch.diag_embed(damping[:, None] * size * free + 1 - free)
        system = gram * free[:, :, None] * free[:, None, :] + more
        tried = (unit - torch.linalg.solve(system, pull * free)).clamp(0.0, 1.0)
        new_residual, new_jacobian = problem.linearised(tried)
        new_loss = (new_residual.pow(2) * weight).sum(dim=(1, 2))
        better = new_loss < loss
        unit = torch.where(better[:, None], tried, unit)
        residual = torch.where(better[:, None, None], new_residual, residual)
        jacobian = torch.where(better[:, None, None, None], new_jacobian, jacobian)
        loss = torch.where(better, new_loss, loss)
        damping = torch.where(better, damping / 3, damping * 4).clamp(1e-7, 1e6)
        if progress:
            progress(step + 1, preset.steps)
    return unit


def _adamw(
    problem: Problem,
    preset: Preset,
    unit: torch.Tensor,
    mask: torch.Tensor,
    progress: Steps | None,
) -> torch.Tensor:
    """The paper's AdamW on the values themselves; those with a unit as shares of their range, or 1e-3 would be far."""
    active = [problem.parameters[i] for i in problem.active]
    low = torch.tensor([p.low for p in active], dtype=torch.float64)
    width = torch.tensor([p.high - p.low for p in active], dtype=torch.float64)
    scale = torch.where(torch.tensor([p.unit == "1" for p in active]), torch.ones_like(width), width)

    def to_unit(x: torch.Tensor) -> torch.Tensor:
        value = torch.minimum(torch.maximum(x * scale, low + MARGIN * width), low + (1 - MARGIN) * width)
        safe = torch.where(problem.log, value, torch.ones_like(value))
        return (torch.where(problem.log, safe.log(), value) - problem.low) / problem.range

    start = torch.stack([torch.as_tensor(p.from_unit(unit[:, i].numpy())) for i, p in enumerate(active)], dim=-1)
    x = (start / scale).clone().requires_grad_(True)
    # Adam scales every number by its own gradient, so all starts in one tensor are as many runs of their own
    optimiser = torch.optim.AdamW([x], lr=preset.learning_rate, weight_decay=preset.weight_decay)
    share = mask / mask.sum(dim=1, keepdim=True)
    for step in range(preset.steps):
        loss = (problem.at(to_unit(x)).pow(2).sum(dim=-1) * share).sum()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            x.copy_(torch.minimum(torch.maximum(x, low / scale), (low + width) / scale))
        if progress and step % 50 == 49:
            progress(step + 1, preset.steps)
    with torch.no_grad():
        return to_unit(x).clamp(0.0, 1.0).detach()


def _result(
    problem: Problem,
    preset: Preset,
    first: torch.Tensor,
    ends: torch.Tensor,
    dead: Mapping[str, float],
    *,
    scene: str,
    teacher: str,
    seed: int,
    begun: float,
) -> Identification:
    with torch.no_grad():
        loss = problem.at(ends).pow(2).sum(dim=-1).mean(dim=-1)
    best = int(torch.argmin(loss))
    residual, jacobian = problem.linearised(ends[best : best + 1])
    held_out, refits = _held_out(problem, preset, first, ends, loss, seed)
    others = torch.cat([ends, refits])
    with torch.no_grad():
        others_loss = problem.at(others).pow(2).sum(dim=-1).mean(dim=-1)
    none = np.zeros((len(problem.active),) * 2)
    fit = trust.Fit(
        ends[best].numpy(), residual[0].numpy(), jacobian[0].numpy(), none, others.numpy(), others_loss.numpy()
    )
    near = int((loss <= 1.05 * loss[best] + 1e-12).sum())
    return Identification(
        method=f"gradient-{preset.name}",
        scene=scene,
        estimates=trust.estimates(problem.parameters, fit, problem.active, held=problem.held, dead=dead),
        training=_errors(problem, residual[0].numpy()),
        held_out=held_out,
        held_out_by=trust.held_out_words(len(residual[0]), MOST_FOLDS),
        evaluations=problem.evaluations,
        failures=0,
        seconds=perf_counter() - begun,
        seed=seed,
        teacher=teacher,
        notes=(f"{near} of {len(ends)} starts end within 5 % of the best loss",),
    )


def _errors(problem: Problem, residual: Array) -> Errors:
    size = np.linalg.norm((problem.measured * problem.weight).numpy(), axis=-1)
    return trust.errors(residual, np.linalg.norm(residual, axis=-1) / np.maximum(size, 1e-9))


def _held_out(
    problem: Problem, preset: Preset, first: torch.Tensor, ends: torch.Tensor, loss: torch.Tensor, seed: int
) -> tuple[Errors | None, torch.Tensor]:
    """Error on strikes left out in turn, and the parameters [K, A] fitted without them."""
    count = len(problem.measured)
    if count < 3:
        return None, ends[:0]
    parts = trust.folds(count, most=MOST_FOLDS, seed=seed)
    tried = torch.argsort(loss)[: REFINED if preset.newton else 1]
    # a start's end is where Newton would go on from; the paper's fixed number of steps begins anew
    begin = (ends if preset.newton else first)[tried].repeat(len(parts), 1)
    mask = torch.ones(len(parts), count, dtype=torch.float64)
    for row, part in zip(mask, parts, strict=True):
        row[torch.as_tensor(part)] = 0.0
    mask = mask.repeat_interleave(len(tried), dim=0)
    moved = _move(problem, preset, begin, mask)
    with torch.no_grad():
        residual = problem.at(moved)
    inside = (residual.pow(2).sum(dim=-1) * mask).sum(dim=-1).reshape(len(parts), len(tried))
    pick = inside.argmin(dim=1) + torch.arange(len(parts)) * len(tried)
    left = np.zeros((count, 3))
    for row, part in zip(pick.tolist(), parts, strict=True):
        left[part] = residual[row][torch.as_tensor(part)].numpy()
    return _errors(problem, left), moved[pick]
