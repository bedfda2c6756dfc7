"""The impact network: a small MLP that keeps mirror symmetry exactly, and the plain one of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from carom.core.errors import ModelError

CHUNK = 2048  #: strikes answered together when nothing is learned: what fits into a cache is twice as fast
ACTIVATIONS: Mapping[str, type[nn.Module]] = {"relu": nn.ReLU, "silu": nn.SiLU}
OUTPUT_SIGNS = (-1.0, 1.0, -1.0)  #: what a mirror does to (t, n, k*spin)


class ImpactNetwork(nn.Module):
    """`f(features) -> outcome` [..., 3], where a mirrored strike gives the mirrored outcome if `mirror` is given."""

    def __init__(
        self, inputs: int, *, width: int, layers: int, activation: str, mirror: Sequence[float] | None
    ) -> None:
        super().__init__()
        act = ACTIVATIONS[activation]
        sizes = [inputs] + [width] * layers
        blocks: list[nn.Module] = []
        for a, b in pairwise(sizes):
            blocks += [nn.Linear(a, b), act()]
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(width, 3)
        self.register_buffer("shift", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        signs = torch.ones(inputs) if mirror is None else torch.tensor(mirror, dtype=torch.float32)
        self.register_buffer("signs", signs)
        self.register_buffer("output_signs", torch.tensor(OUTPUT_SIGNS))
        self.mirror = mirror is not None

    def one_sided(self, x: torch.Tensor) -> torch.Tensor:
        """The network without its mirror image: what is trained, on strikes mirrored at random."""
        return torch.as_tensor(self.head(self.body((x - self.get_buffer("shift")) / self.get_buffer("scale"))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled() or x[..., 0].numel() <= CHUNK:
            return self._both_sided(x)
        parts = torch.split(x.reshape(-1, x.shape[-1]), CHUNK)
        return torch.cat([self._both_sided(part) for part in parts]).reshape(*x.shape[:-1], 3)

    def _both_sided(self, x: torch.Tensor) -> torch.Tensor:
        y = self.one_sided(x)
        if self.mirror:
            y = 0.5 * (y + self.get_buffer("output_signs") * self.one_sided(x * self.get_buffer("signs")))
        return y


Answers = Callable[[NDArray[np.float32]], NDArray[np.float64]]  #: outcomes [N, 3] of inputs [N, F]


def answers_of(network: ImpactNetwork) -> Answers:
    """What a trained network says, in NumPy: for a single strike torch takes longer to begin than this to end.

    Only for networks of SiLU layers and without a mirror, as students are. Later training does not change it.
    """
    linear = [layer for layer in (*network.body, network.head) if isinstance(layer, nn.Linear)]
    if network.mirror or not all(isinstance(layer, nn.Linear | nn.SiLU) for layer in network.body):
        raise ModelError("answers_of: expected a network of SiLU layers without a mirror")
    # the scaling of the inputs goes into the first layer
    layers = [[layer.weight.detach().double().numpy().T, layer.bias.detach().double().numpy()] for layer in linear]
    shift, scale = (network.get_buffer(name).double().numpy() for name in ("shift", "scale"))
    layers[0][0] = layers[0][0] / scale[:, None]
    layers[0][1] = layers[0][1] - shift @ layers[0][0]
    *hidden, (out, last) = [(w.astype(np.float32), b.astype(np.float32)) for w, b in layers]

    def answers(x: NDArray[np.float32]) -> NDArray[np.float64]:
        found = np.empty((len(x), 3))
        for low in range(0, len(x), CHUNK):
            y = x[low : low + CHUNK]
            with np.errstate(over="ignore"):  # of exp: far below zero SiLU is zero
                for weight, bias in hidden:
                    y = y @ weight + bias
                    y /= 1.0 + np.exp(-y)
            found[low : low + CHUNK] = y @ out + last
        return found

    return answers


def frozen(network: ImpactNetwork) -> ImpactNetwork:
    """The network itself, ready to use and no longer trained."""
    network.eval()
    for p in network.parameters():
        p.requires_grad_(False)
        p.grad = None
    return network


def with_weights(network: ImpactNetwork, tensors: Mapping[str, torch.Tensor], path: Path) -> ImpactNetwork:
    """The network with the weights that were read from `path`, frozen; raises if they are not for this network."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise ModelError(f"{path} does not fit its scene: {str(error).splitlines()[0]}") from error
    return frozen(network)
