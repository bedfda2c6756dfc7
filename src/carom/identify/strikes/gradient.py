"""Identification by gradient through a frozen base model (section III-C of CLASH, Eq. 3).

The base model is anything that predicts scaled outcomes from parameters and is differentiable in them; what it knows
of the strikes (`frames`) is its own affair. Starts are followed in tensors of some of them, as a step costs hardly
more for these than for one. A cluster can share the tensors (`core.work`); they are the same there, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np
import torch

from carom.core.errors import CaromError, unknown_name
from carom.core.spread import even_spread
from carom.core.work import in_order
from carom.identify import trust
from carom.identify.levenberg_marquardt import Damping, descend_all
from carom.identify.problem import Effort, held_values, without_effect
from carom.identify.result import Errors, Identification
from carom.identify.strikes.surrogate import Differentiable, ModelProblem, Outcomes
from carom.scenes.parameters import Parameter
from carom.state import Array

ROWS = 640  #: starts times strikes that are followed together: fewer take no time
PROBES = 8  #: places from which each parameter is moved over its whole range, to see whether it does anything
MOST_FOLDS = 12
REFINED = 6  #: starts that are followed again with strikes left out
LEVELS, LED = 11, 12  #: places of each parameter over its range, and steps in which the others follow, for intervals
DAMPING = Damping(down=3.0, up=4.0)
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
    outcomes: Outcomes,
    *,
    parameters: Sequence[Parameter | str] | None = None,
    fixed: Mapping[str, float] | None = None,
    preset: str | Preset = "default",
    scene: str = "",
    teacher: str = "mujoco",
    seed: int = 0,
) -> Identification:
    """Parameters for which a frozen base model explains measured outcomes best; `scene` and `teacher` name them."""
    begun = perf_counter()
    if isinstance(preset, str) and preset not in PRESETS:
        raise CaromError(unknown_name("preset", preset, PRESETS))
    chosen = PRESETS[preset] if isinstance(preset, str) else preset
    problem = ModelProblem.of(model, outcomes, held_values(model.parameters, parameters, fixed))
    problem = problem.giving_up(_probe(problem, seed))
    first = torch.as_tensor(even_spread(chosen.starts, len(problem.active), seed))
    everything = torch.ones(chosen.starts, len(problem.measured), dtype=torch.float64)
    ends = _move(problem, chosen, first, everything)
    found = _result(problem, chosen, first, ends, outcomes.drifts, seed)
    return replace(found, scene=scene, teacher=teacher, seconds=perf_counter() - begun)


def _probe(problem: ModelProblem, seed: int) -> dict[str, float]:
    """Largest relative effect of each parameter that moves no outcome over its whole range; raises if none does."""
    count = len(problem.active)
    places = torch.as_tensor(even_spread(PROBES, count, seed))
    ends = []
    for level in (0.0, 1.0):
        moved = places[:, None].repeat(1, count, 1)
        moved[:, torch.arange(count), torch.arange(count)] = level
        with torch.no_grad():
            ends.append(problem.at(moved.reshape(-1, count)).reshape(PROBES, count, -1))
    change = (ends[1] - ends[0]).pow(2).mean(dim=-1).amax(dim=0).sqrt()
    size = (problem.measured * problem.weight).pow(2).mean().sqrt().clamp_min(1e-9)
    return without_effect([p.name for p in problem.sought], (change / size).tolist())


def _move(problem: ModelProblem, preset: Preset, unit: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Where starts [S, A] end, each with its own weights of the strikes `mask` [S, N] (Eq. 3)."""
    return _in_pieces(partial(_moved, preset=preset), problem, unit, mask)


def _moved(problem: ModelProblem, unit: torch.Tensor, mask: torch.Tensor, *, preset: Preset) -> torch.Tensor:
    if preset.newton:
        return descend_all(problem.linearised, unit, DAMPING, steps=preset.steps, weight=mask).unit
    return _adamw(problem, preset, unit, mask)


Follow = Callable[[ModelProblem, torch.Tensor, torch.Tensor], torch.Tensor]


def _in_pieces(follow: Follow, problem: ModelProblem, unit: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Where starts [S, A] end that are followed a few at a time, each with its row of `rows`, by who makes pieces."""
    size = max(ROWS // len(problem.measured), 1)
    pieces = [(unit[k : k + size].numpy(), rows[k : k + size].numpy()) for k in range(0, len(unit), size)]
    ends = []
    for end, effort in in_order(_Piece(follow, problem), pieces):
        problem.effort.add(effort)
        ends.append(torch.tensor(end))  # a copy: what came back may be read-only
    return torch.cat(ends)


@dataclass(frozen=True)
class _Piece:
    """A function of a few starts and their rows: where they end, and what that cost."""

    follow: Follow
    problem: ModelProblem

    def __call__(self, piece: tuple[Array, Array]) -> tuple[Array, Effort]:
        own = replace(self.problem, effort=Effort())
        ends = self.follow(own, *(torch.tensor(part) for part in piece))
        return ends.numpy(), own.effort


def _adamw(problem: ModelProblem, preset: Preset, unit: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The paper's AdamW on the values themselves; those with a unit as shares of their range, or 1e-3 would be far."""
    active = problem.sought
    log, least, extent = problem.scales()
    low = torch.tensor([p.low for p in active], dtype=torch.float64)
    width = torch.tensor([p.high - p.low for p in active], dtype=torch.float64)
    scale = torch.where(torch.tensor([p.unit == "1" for p in active]), torch.ones_like(width), width)

    def to_unit(x: torch.Tensor) -> torch.Tensor:
        value = torch.minimum(torch.maximum(x * scale, low + MARGIN * width), low + (1 - MARGIN) * width)
        safe = torch.where(log, value, torch.ones_like(value))
        return (torch.where(log, safe.log(), value) - least) / extent

    start = torch.stack([torch.as_tensor(p.from_unit(unit[:, i].numpy())) for i, p in enumerate(active)], dim=-1)
    x = (start / scale).clone().requires_grad_(True)
    # Adam scales every number by its own gradient, so all starts in one tensor are as many runs of their own
    optimiser = torch.optim.AdamW([x], lr=preset.learning_rate, weight_decay=preset.weight_decay)
    share = mask / mask.sum(dim=1, keepdim=True)
    for _ in range(preset.steps):
        loss = (problem.at(to_unit(x)).pow(2).sum(dim=-1) * share).sum()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            x.copy_(torch.minimum(torch.maximum(x, low / scale), (low + width) / scale))
    with torch.no_grad():
        return to_unit(x).clamp(0.0, 1.0).detach()


def _result(
    problem: ModelProblem,
    preset: Preset,
    first: torch.Tensor,
    ends: torch.Tensor,
    drifts: Callable[[Array], Sequence[Array]] | None,
    seed: int,
) -> Identification:
    """What starts `first` [S, A] that ended at `ends` [S, A] tell; the caller knows scene, teacher and time."""
    with torch.no_grad():
        loss = problem.at(ends).pow(2).sum(dim=-1).mean(dim=-1)
    best = int(torch.argmin(loss))
    residual, jacobian = problem.linearised(ends[best : best + 1])
    held_out, refits = _held_out(problem, preset, first, ends, loss, seed)
    others = torch.cat([ends, refits, _led(problem, ends[best])])
    with torch.no_grad():
        others_loss = problem.at(others).pow(2).sum(dim=-1).mean(dim=-1)
    none = np.zeros((len(problem.active),) * 2)
    fit = trust.Fit(
        ends[best].numpy(), residual[0].numpy(), jacobian[0].numpy(), none, others.numpy(), others_loss.numpy()
    )
    if drifts is not None:
        weight = problem.weight.numpy() * problem.known.numpy()
        fit = replace(fit, drifts=[np.nan_to_num(d) * weight for d in drifts(problem.values(fit.unit)[0])])
    near = int((loss <= 1.05 * loss[best] + 1e-12).sum())
    return Identification(
        method=f"gradient-{preset.name}",
        scene="",
        estimates=trust.estimates(problem, fit),
        training=_errors(problem, residual[0].numpy()),
        held_out=held_out,
        held_out_by=trust.held_out_words(len(residual[0]), MOST_FOLDS),
        evaluations=problem.effort.evaluations,
        failures=0,
        seconds=0.0,
        seed=seed,
        notes=(f"{near} of {len(ends)} starts end within 5 % of the best loss",),
    )


def _led(problem: ModelProblem, best: torch.Tensor) -> torch.Tensor:
    """Points [A * levels, A] with each parameter held at places over its range and all others fitted to that."""
    count = len(best)
    which = torch.arange(count).repeat_interleave(LEVELS)
    start = best.repeat(count * LEVELS, 1)
    start[torch.arange(len(start)), which] = torch.linspace(0.0, 1.0, LEVELS, dtype=start.dtype).repeat(count)
    return _in_pieces(_without, problem, start, torch.nn.functional.one_hot(which, count).double())


def _without(problem: ModelProblem, start: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
    """Where starts [S, A] end whose parameters `held` [S, A] stay."""

    def linearised(unit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        residual, jacobian = problem.linearised(unit)
        return residual, jacobian * (1.0 - held)[:, None, None]

    return descend_all(linearised, start, DAMPING, steps=LED).unit


def _errors(problem: ModelProblem, residual: Array) -> Errors:
    size = np.linalg.norm((problem.measured * problem.weight).numpy(), axis=-1)
    return trust.errors(residual, size)


def _held_out(
    problem: ModelProblem, preset: Preset, first: torch.Tensor, ends: torch.Tensor, loss: torch.Tensor, seed: int
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
