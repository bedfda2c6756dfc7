"""AdamW (Loshchilov and Hutter) for small networks: all weights in one vector, and nothing else to import.

`torch.optim` imports torch's compiler, which takes 3 s and 150 MB: more than teaching a student does.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import final

import torch

FIRST, SECOND, TINY = 0.9, 0.999, 1e-8  #: how slowly the averages of the slope and of its square forget; least divisor


@final
class AdamW:
    """Steps down a loss; the parameters become views of one vector, and so do their gradients."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter], *, weight_decay: float) -> None:
        given = list(parameters)
        self.weights = torch.cat([p.detach().reshape(-1) for p in given])
        self.slope = torch.zeros_like(self.weights)
        self.mean, self.square = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.weight_decay, self.steps, low = weight_decay, 0, 0
        for parameter in given:
            part = slice(low, low := low + parameter.numel())
            parameter.data = self.weights[part].view_as(parameter)
            parameter.grad = self.slope[part].view_as(parameter)

    @torch.no_grad()
    def step(self, loss: torch.Tensor, rate: float) -> None:
        """One step down this loss at this learning rate."""
        self.slope.zero_()
        with torch.enable_grad():
            loss.backward()  # type: ignore[no-untyped-call]
        self.steps += 1
        self.weights.mul_(1 - rate * self.weight_decay)
        self.mean.lerp_(self.slope, 1 - FIRST)
        self.square.mul_(SECOND).addcmul_(self.slope, self.slope, value=1 - SECOND)
        size = (self.square.sqrt() / sqrt(1 - SECOND**self.steps)).add_(TINY)
        self.weights.addcdiv_(self.mean, size, value=-rate / (1 - FIRST**self.steps))
