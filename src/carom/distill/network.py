"""The impact network: a small MLP that keeps mirror symmetry exactly, and the plain one of the paper."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

OUTPUT_SIGNS = (-1.0, 1.0, -1.0)  #: what a mirror does to (t, n, k*spin)


class ImpactNetwork(nn.Module):
    """`f(features) -> outcome` [..., 3], where a mirrored strike gives the mirrored outcome if `mirror` is given."""

    def __init__(
        self, inputs: int, *, width: int, layers: int, activation: str, mirror: Sequence[float] | None
    ) -> None:
        super().__init__()
        act = {"relu": nn.ReLU, "silu": nn.SiLU}[activation]
        sizes = [inputs] + [width] * layers
        blocks: list[nn.Module] = []
        for a, b in zip(sizes, sizes[1:], strict=False):
            blocks += [nn.Linear(a, b), act()]
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(width, 3)
        self.register_buffer("shift", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        signs = torch.ones(inputs) if mirror is None else torch.tensor(mirror, dtype=torch.float32)
        self.register_buffer("signs", signs)
        self.register_buffer("output_signs", torch.tensor(OUTPUT_SIGNS))
        self.mirror = mirror is not None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shift, scale = self.get_buffer("shift"), self.get_buffer("scale")
        y = self.head(self.body((x - shift) / scale))
        if self.mirror:
            flipped = self.head(self.body((x * self.get_buffer("signs") - shift) / scale))
            y = 0.5 * (y + self.get_buffer("output_signs") * flipped)
        return torch.as_tensor(y)
