"""Parameter candidates given to a frozen base model, many at once: residuals and their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike

from carom.core.errors import CaromError
from carom.identify.problem import Held, Problem
from carom.scenes.parameters import Parameter
from carom.state import Array


class Differentiable(Protocol):
    """A frozen model of impacts; a distilled base model fulfils it."""

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    def outcome(self, frames: Any, values: torch.Tensor) -> torch.Tensor:
        """Scaled outcomes [..., N, 3] (t, n, k * spin, over the approach speed) for parameters `values` [..., N, P]."""
        ...


@dataclass(frozen=True)
class Outcomes:
    """Measured strikes as a base model takes them."""

    frames: Any  #: what the model knows of the strikes
    local: ArrayLike  #: [N, 3] outcomes in the model's scaled form; NaN where not measured
    speed: ArrayLike | None = None  #: [N] of the approach [m/s]: the loss is then Eq. 3 in m/s; None: all count alike
    #: for values [P]: changes of all outcomes [N, 3], in the model's scaled form, that no recording rules out
    drifts: Callable[[Array], Sequence[Array]] | None = None


@dataclass(frozen=True, kw_only=True)
class ModelProblem(Problem):
    """Measured outcomes to be explained by a base model."""

    model: Differentiable
    frames: Any
    measured: torch.Tensor  #: [N, 3] 0 where not known
    known: torch.Tensor  #: [N, 3] whether it was measured
    weight: torch.Tensor  #: [N, 1] of each strike

    @classmethod
    def of(cls, model: Differentiable, outcomes: Outcomes, held: Held) -> ModelProblem:
        """The problem of these outcomes."""
        local = np.asarray(outcomes.local, dtype=np.float64)
        if local.ndim != 2 or local.shape[1] != 3 or not len(local):
            raise CaromError(f"local: expected measured outcomes of shape (N, 3), N > 0, got {local.shape}")
        speed = np.ones(len(local)) if outcomes.speed is None else np.asarray(outcomes.speed, dtype=np.float64)
        return cls(
            parameters=tuple(model.parameters),
            held=held,
            model=model,
            frames=outcomes.frames,
            measured=torch.as_tensor(np.nan_to_num(local), dtype=torch.float64),
            known=torch.as_tensor(np.isfinite(local)),
            weight=torch.as_tensor(speed, dtype=torch.float64)[:, None],
        )

    def scales(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Scales [A] of the parameters looked for: whether logarithmic; lower end and width, as logarithms if so."""
        ends = [(np.log(p.low), np.log(p.high)) if p.log else (p.low, p.high) for p in self.sought]
        low = torch.tensor([low for low, _ in ends], dtype=torch.float64)
        width = torch.tensor([high - low for low, high in ends], dtype=torch.float64)
        return torch.tensor([p.log for p in self.sought]), low, width

    def tensor_values(self, unit: torch.Tensor) -> torch.Tensor:
        """What `values` gives, for any shape [..., A] -> [..., P], and differentiable."""
        log, low, width = self.scales()
        scaled = low + unit * width
        found = torch.where(log, torch.exp(torch.where(log, scaled, torch.zeros_like(scaled))), scaled)
        held = {p.name: self.held[p.name][0] if p.name in self.held else p.default for p in self.parameters}
        columns = [torch.full(unit.shape[:-1], held[p.name], dtype=torch.float64) for p in self.parameters]
        for column, i in enumerate(self.active):
            columns[i] = found[..., column]
        return torch.stack(columns, dim=-1)

    def residual(self, rows: torch.Tensor) -> torch.Tensor:
        """Residuals [S, N, 3] of unit candidates given for every strike [S, N, A]."""
        self.effort.evaluations += rows.shape[0] * rows.shape[1]
        predicted = self.model.outcome(self.frames, self.tensor_values(rows)).double()
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
