"""Parameter candidates given to a frozen base model, many at once: residuals and their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch

from carom.scenes.parameters import Parameter
from carom.state import Array


class Differentiable(Protocol):
    """A frozen model of impacts; a distilled base model fulfils it."""

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    def outcome(self, frames: Any, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes [..., N, 3] (t, n, k * spin, over the approach speed) for parameters `values` [..., N, P]."""
        ...


class Problem:
    """Residuals of many parameter candidates at once, and their derivatives."""

    def __init__(
        self,
        model: Differentiable,
        frames: Any,
        local: Array,
        speed: Array | None,
        held: dict[str, tuple[float, str]],
    ) -> None:
        self.model, self.frames, self.held = model, frames, held
        self.parameters = tuple(model.parameters)
        self.active = [i for i, p in enumerate(self.parameters) if p.name not in held]
        self.measured = torch.as_tensor(np.nan_to_num(local), dtype=torch.float64)
        self.known = torch.as_tensor(np.isfinite(local))
        self.weight = torch.as_tensor(np.ones(len(local)) if speed is None else speed, dtype=torch.float64)[:, None]
        self.evaluations = 0
        self._bounds()

    def _bounds(self) -> None:
        active = [self.parameters[i] for i in self.active]
        ends = [(np.log(p.low), np.log(p.high)) if p.log else (p.low, p.high) for p in active]
        self.low = torch.tensor([low for low, _ in ends], dtype=torch.float64)
        self.range = torch.tensor([high - low for low, high in ends], dtype=torch.float64)
        self.log = torch.tensor([p.log for p in active])

    def give_up(self, dead: Mapping[str, float]) -> None:
        """Leave these parameters at their defaults."""
        self.held |= {p.name: (p.default, "") for p in self.parameters if p.name in dead}
        self.active = [i for i in self.active if self.parameters[i].name not in dead]
        self._bounds()

    def values(self, unit: torch.Tensor) -> torch.Tensor:
        """All parameters [..., P] for unit ones [..., A]; differentiable."""
        scaled = self.low + unit * self.range
        found = torch.where(self.log, torch.exp(torch.where(self.log, scaled, torch.zeros_like(scaled))), scaled)
        columns: list[torch.Tensor] = []
        for i, p in enumerate(self.parameters):
            if i in self.active:
                columns.append(found[..., self.active.index(i)])
            else:
                columns.append(torch.full(unit.shape[:-1], self.held[p.name][0], dtype=torch.float64))
        return torch.stack(columns, dim=-1)

    def residual(self, rows: torch.Tensor) -> torch.Tensor:
        """Residuals [S, N, 3] of unit candidates given for every strike [S, N, A]."""
        self.evaluations += rows.shape[0] * rows.shape[1]
        predicted = self.model.outcome(self.frames, self.values(rows)).double()
        return torch.where(self.known, predicted - self.measured, torch.zeros_like(predicted)) * self.weight

    def at(self, unit: torch.Tensor) -> torch.Tensor:
        """Residuals [S, N, 3] of unit candidates [S, A]."""
        return self.residual(unit[:, None, :].expand(-1, len(self.measured), -1))

    def linearised(self, unit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Residuals [S, N, 3] and derivatives [S, N, 3, A]: each row depends on its own copy, so three sweeps do."""
        rows = unit[:, None, :].repeat(1, len(self.measured), 1).requires_grad_(True)
        residual = self.residual(rows)
        columns = [
            torch.autograd.grad(residual[..., c].sum(), rows, retain_graph=c < residual.shape[-1] - 1)[0]
            for c in range(residual.shape[-1])
        ]
        return residual.detach(), torch.stack(columns, dim=-2)
