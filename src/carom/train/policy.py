"""A trained policy as Carom keeps it: the deterministic actor alone, in safetensors with a JSON header.

A policy is shared between people and run on robots, so its file must not be able to run code: no pickle. It needs
neither the library that trained it nor Gymnasium, and says the same as `model.predict(..., deterministic=True)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from carom.core.artefacts import Header, read_header, versions, write_header
from carom.core.errors import CaromError, ModelError, short, unknown_name
from carom.core.tensors import load_tensors, write_tensors
from carom.scenes.load import scene_from_dict
from carom.scenes.strike import StrikeScene
from carom.train.presets import ALGORITHMS

Floats = NDArray[np.float32]

FORMAT = "carom-policy/1"
HEADER = "policy.json"
WEIGHTS = "policy.safetensors"
ACTIVATIONS = ("relu", "tanh")
_LIBRARIES = ("safetensors", "stable-baselines3", "sbx-rl", "gymnasium", "torch", "jax", "numpy", "mujoco")


class PolicyHeader(Header):
    """The header of a policy."""

    algorithm: str
    environment: str
    sizes: list[int] = Field(min_length=2)
    activation: str
    squashed: bool
    observation: list[list[float]] = Field(min_length=2, max_length=2)
    action: list[list[float]] = Field(min_length=2, max_length=2)
    made_by: dict[str, Any]


@dataclass(frozen=True)
class Policy:
    """A small network from observations to the mean action, within the action's bounds."""

    algorithm: str  #: sac or ppo
    environment: str  #: what it was trained in, e.g. carom/StrikeSegment-v0
    activation: str  #: of the hidden layers: relu or tanh
    squashed: bool  #: mean goes through tanh and is scaled to the bounds (SAC); otherwise it is clipped (PPO)
    weights: tuple[Floats, ...]  #: by layer [out, in]
    biases: tuple[Floats, ...]  #: by layer [out]
    observation_low: Floats  #: [O]
    observation_high: Floats  #: [O]
    action_low: Floats  #: [A]
    action_high: Floats  #: [A]
    made_by: Mapping[str, Any] = field(default_factory=dict)  #: seed, steps, simulator, preset, timing [s]

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ModelError(f"policy: {unknown_name('algorithm', self.algorithm, ALGORITHMS)}")
        if self.activation not in ACTIVATIONS:
            raise ModelError(f"policy: expected activation {' or '.join(ACTIVATIONS)}, got '{short(self.activation)}'")
        sizes = self.sizes
        shapes = [w.shape for w in self.weights]
        if shapes != list(zip(sizes[1:], sizes, strict=False)) or [len(b) for b in self.biases] != list(sizes[1:]):
            raise ModelError(f"policy: the layers do not follow each other: weights {shapes}")
        if self.observation_high.shape != (sizes[0],) or self.action_high.shape != (sizes[-1],):
            raise ModelError(
                f"policy: the network goes from {sizes[0]} to {sizes[-1]} numbers, its bounds are for "
                f"{len(self.observation_low)} and {len(self.action_low)}"
            )
        if not all(np.isfinite(a).all() for a in (*self.weights, *self.biases)):
            raise ModelError("policy: weights are not finite; the training has diverged, train anew")
        bounds = ((self.observation_low, self.observation_high), (self.action_low, self.action_high))
        if not all(np.isfinite(high - low).all() and (low < high).all() for low, high in bounds):
            raise ModelError("policy: expected finite bounds of observation and action, the lower below the upper")

    @property
    def scene(self) -> StrikeScene | None:
        """What it was trained to strike; None: it does not say."""
        kept = self.made_by.get("scene")
        return None if kept is None else scene_from_dict(kept, source="the policy's scene")

    @property
    def length(self) -> float | None:
        """Of the segments it was trained on [m]; None: it does not say, and they were of the usual length."""
        kept = self.made_by.get("length_m")
        if kept is not None and not isinstance(kept, int | float):
            raise ModelError(f"policy: length_m: expected a number [m], got {kept!r:.40}")
        return kept

    @property
    def sizes(self) -> tuple[int, ...]:
        """Width of each layer, observation first, action last."""
        return (len(self.observation_low), *(len(w) for w in self.weights))

    def act(self, observations: NDArray[np.floating[Any]]) -> Floats:
        """Actions [N, A] for observations [N, O]; rows do not depend on each other."""
        x: Floats = np.asarray(observations, dtype=np.float32)
        if x.ndim != 2 or x.shape[1] != self.sizes[0]:
            raise CaromError(f"observations: expected shape (N, {self.sizes[0]}), got {x.shape}")
        if not np.isfinite(x).all():
            raise CaromError("observations: expected finite numbers; the environment or a sensor has failed")
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weight.T + bias
            if i < len(self.weights) - 1:
                x = np.maximum(x, 0) if self.activation == "relu" else np.tanh(x)
        if self.squashed:
            x = self.action_low + 0.5 * (np.tanh(x) + 1) * (self.action_high - self.action_low)
        return np.clip(x, self.action_low, self.action_high).astype(np.float32)


def save_policy(folder: Path, policy: Policy) -> None:
    """Write a policy into a folder: weights first, the header last."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        tensors[f"{i}.weight"] = torch.from_numpy(np.array(weight))
        tensors[f"{i}.bias"] = torch.from_numpy(np.array(bias))
    digest = write_tensors(folder / WEIGHTS, tensors)
    header = {
        "format": FORMAT,
        "algorithm": policy.algorithm,
        "environment": policy.environment,
        "sizes": list(policy.sizes),
        "activation": policy.activation,
        "squashed": policy.squashed,
        "observation": [policy.observation_low.tolist(), policy.observation_high.tolist()],
        "action": [policy.action_low.tolist(), policy.action_high.tolist()],
        "made_by": dict(policy.made_by),
        "made_from": {k: policy.made_by[k] for k in ("simulator", "folder", "digest") if k in policy.made_by},
        "made_with": versions(_LIBRARIES),
        "files": {WEIGHTS: digest},
    }
    write_header(folder / HEADER, header)


def load_policy(folder: str | Path) -> Policy:
    """The policy of a folder, checked; nothing but torch and NumPy is needed to run it."""
    folder = Path(folder)
    path = folder / HEADER
    missing = f"{folder} holds no policy ({HEADER} is missing); train one with: carom train"
    header = read_header(path, PolicyHeader, FORMAT, missing=missing, again="carom train, in a new folder,")
    try:
        sizes = [int(n) for n in header["sizes"]]
        observation, action = (np.asarray(header[k], dtype=np.float32) for k in ("observation", "action"))
        squashed, made_by = header["squashed"], dict(header["made_by"])
        names = {k: str(header[k]) for k in ("algorithm", "environment", "activation")}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{path} is damaged: {type(error).__name__} {error}") from error
    if len(sizes) < 2 or not isinstance(squashed, bool):
        raise ModelError(f"{path} is damaged: expected two sizes or more and 'squashed' true or false")
    if observation.shape != (2, sizes[0]) or action.shape != (2, sizes[-1]):
        raise ModelError(f"{path}: the bounds of observation or action do not fit the sizes {sizes}")
    arrays = _load_layers(folder / WEIGHTS, header["files"], sizes)
    layers = range(len(sizes) - 1)
    try:
        return Policy(
            **names,
            squashed=squashed,
            weights=tuple(arrays[f"{i}.weight"] for i in layers),
            biases=tuple(arrays[f"{i}.bias"] for i in layers),
            observation_low=observation[0],
            observation_high=observation[1],
            action_low=action[0],
            action_high=action[1],
            made_by=made_by,
        )
    except ModelError as error:
        raise ModelError(f"{folder}: {error}") from error


def _load_layers(path: Path, files: Mapping[str, str], sizes: list[int]) -> dict[str, Floats]:
    """Weights and biases by name; raises unless they make a network of these sizes."""
    tensors = load_tensors(path, files)
    expected: dict[str, tuple[int, ...]] = {f"{i}.weight": (b, a) for i, (a, b) in enumerate(pairwise(sizes))}
    expected |= {f"{i}.bias": (b,) for i, b in enumerate(sizes[1:])}
    got = {name: tuple(t.shape) for name, t in tensors.items()}
    if got != expected:
        wrong = sorted(k for k in {*got, *expected} if got.get(k) != expected.get(k))[0]
        raise ModelError(
            f"{path} does not fit its header: '{wrong}' expected {expected.get(wrong, 'nothing')}, "
            f"got {got.get(wrong, 'nothing')}"
        )
    return {name: t.to(torch.float32).numpy() for name, t in tensors.items()}
