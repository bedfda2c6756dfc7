"""A base model in closed form, and outcomes that it explains: identification by gradient without a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from carom.scenes.parameters import Parameter, known

CONTACT = (known("striker_friction"), known("striker_damping"), known("ground_damping"), known("com_x"))


@dataclass(frozen=True)
class Analytic:
    """A differentiable stand-in for a base model: friction turns, damping slows, the offset spins; one is not used."""

    parameters: tuple[Parameter, ...] = CONTACT

    def outcome(self, frames: np.ndarray, values: torch.Tensor) -> torch.Tensor:
        lever = torch.as_tensor(frames)
        friction, damping, _, com = values.unbind(-1)
        normal = 1 + torch.exp(-2 * damping)
        tangential = torch.tanh(3 * friction) * lever * normal
        spin = normal * (lever - 100 * com) * 0.5
        return torch.stack([tangential, normal.expand_as(spin), spin], dim=-1)


FRAMES = np.linspace(-0.6, 0.8, 10)
TRUE = np.array([0.25, 0.6, 1.0, 0.002])


def measured(noise: float, seed: int = 0) -> np.ndarray:
    exact = Analytic().outcome(FRAMES, torch.as_tensor(TRUE).expand(10, -1)).numpy()
    return exact + noise * np.random.default_rng(seed).standard_normal(exact.shape)
