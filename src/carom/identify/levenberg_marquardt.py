"""Levenberg-Marquardt in the unit cube, for many starts at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from carom.core.progress import Steps

#: residuals [S, N, R] and their derivatives [S, N, R, A] at points [S, A]
Linearised = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Damping:
    """How the damping of a start follows its success, and how far one step may go."""

    down: float  #: divides it after a step that helped
    up: float  #: multiplies it after one that did not
    farthest: float = float("inf")  #: that one step moves any parameter
    along_bounds: bool = True  #: on a bound and pushed outwards: the others move as if that one were fixed


@dataclass(frozen=True)
class Descent:
    """Where S starts ended, and where they have been."""

    unit: torch.Tensor  #: [S, A]
    residual: torch.Tensor  #: [S, N, R]
    jacobian: torch.Tensor  #: [S, N, R, A]
    tried: torch.Tensor  #: [T, A] all points
    losses: torch.Tensor  #: [T] their sums of squares


def descend_all(
    linearised: Linearised,
    unit: torch.Tensor,
    damping: Damping,
    *,
    steps: int,
    weight: torch.Tensor | None = None,
    progress: Steps | None = None,
) -> Descent:
    """Follow every start [S, A]; `weight` [S, N] counts rows of residuals, for each start in its own way."""
    residual, jacobian = linearised(unit)
    rows = torch.ones(residual.shape[:2], dtype=torch.float64) if weight is None else weight
    loss = (residual.pow(2) * rows[..., None]).sum(dim=(1, 2))
    tried, losses = [unit], [loss]
    level = torch.full((len(unit),), 1e-2, dtype=torch.float64)
    for step in range(steps):
        new = (unit - _step(unit, residual, jacobian, rows, level, damping)).clamp(0.0, 1.0)
        new_residual, new_jacobian = linearised(new)
        new_loss = (new_residual.pow(2) * rows[..., None]).sum(dim=(1, 2))
        tried.append(new)
        losses.append(new_loss)
        better = new_loss < loss
        unit = torch.where(better[:, None], new, unit)
        residual = torch.where(better[:, None, None], new_residual, residual)
        jacobian = torch.where(better[:, None, None, None], new_jacobian, jacobian)
        loss = torch.where(better, new_loss, loss)
        level = torch.where(better, level / damping.down, level * damping.up).clamp(1e-7, 1e6)
        if progress:
            progress(step + 1, steps)
    return Descent(unit, residual, jacobian, torch.cat(tried), torch.cat(losses))


def _step(
    unit: torch.Tensor,
    residual: torch.Tensor,
    jacobian: torch.Tensor,
    rows: torch.Tensor,
    level: torch.Tensor,
    damping: Damping,
) -> torch.Tensor:
    """The damped Gauss-Newton step [S, A] of every start, to be subtracted."""
    weighted = (jacobian * rows[..., None, None]).flatten(1, 2)
    gram = weighted.transpose(1, 2) @ jacobian.flatten(1, 2)
    pull = (weighted.transpose(1, 2) @ residual.flatten(1)[..., None])[..., 0]
    stuck = ((unit <= 0) & (pull > 0)) | ((unit >= 1) & (pull < 0))
    free = (~stuck if damping.along_bounds else torch.ones_like(stuck)).double()
    size = gram.diagonal(dim1=1, dim2=2).mean(dim=1, keepdim=True).clamp_min(1e-12)
    more = torch.diag_embed(level[:, None] * size * free + 1 - free)
    system = gram * free[:, :, None] * free[:, None, :] + more
    step: torch.Tensor = torch.linalg.solve(system, pull * free)
    return step.clamp(-damping.farthest, damping.farthest)
