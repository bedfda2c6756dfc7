"""A trained graph simulator: its network, its time step, what it was trained within; and as a folder on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, FiniteFloat

from carom.core import artefacts
from carom.core.artefacts import UNITS, Header, Keys, versions, write_header
from carom.core.errors import CaromError, ModelError, short, unknown_name
from carom.core.tensors import load_tensors, write_tensors
from carom.learn.graph.dynamics import GraphNetwork
from carom.learn.graph.face_network import FaceNetwork, FaceSizes
from carom.learn.graph.network import ImpulseNetwork, Sizes

FORMAT = "carom-graph/4"  #: another number where weights mean something else
HEADER, WEIGHTS = "graph.json", "network.safetensors"


PRESETS = ("default", "paper")
LARGEST = 1024  #: of each of a network's sizes
ALIKE = 1e-3  #: relative difference of sample periods that does not matter: clocks of recordings are rounded


def new_network(preset: str = "default", sizes: Mapping[str, int] | None = None) -> GraphNetwork:
    """An untrained network of a preset; `sizes` where they are not the preset's own."""
    if preset not in PRESETS:
        raise CaromError(unknown_name("preset of graph simulators", preset, PRESETS))
    kind: type[Sizes | FaceSizes] = Sizes if preset == "default" else FaceSizes
    known = [f.name for f in fields(kind)]
    for name, value in (sizes or {}).items():
        if name not in known:
            raise CaromError(unknown_name("size of a network", name, known))
        if not 1 <= value <= LARGEST:
            raise CaromError(f"size '{name}' of a network: expected 1 to {LARGEST}, got {short(value)}")
    made = kind(**(sizes or {}))
    return ImpulseNetwork(made) if isinstance(made, Sizes) else FaceNetwork(made)


class DefaultKeys(Keys):
    """Parameters of contacts, by name."""

    friction: float = Field(ge=0, le=1e3)
    face_friction: float = Field(ge=0, le=1e3)
    stiffness: float = Field(gt=0, le=1e15)
    damping: float = Field(gt=0, le=1e15)


class CorrectionKeys(Keys):
    """What real recordings changed: logarithms of factors, and what is added to coefficients."""

    friction: float = Field(ge=-10, le=10)
    face_friction: float = Field(ge=-10, le=10)
    stiffness: float = Field(ge=-10, le=10)
    damping: float = Field(ge=-10, le=10)
    stopped: float = Field(ge=-10, le=10)
    pushed: float = Field(ge=-10, le=10)
    rubbed: float = Field(ge=-10, le=10)
    faced: float = Field(ge=-10, le=10)


class GraphHeader(Header):
    """The header of a graph simulator."""

    units: dict[str, str]
    step: float = Field(gt=0, le=1.0)
    preset: str
    sizes: dict[str, int]
    defaults: DefaultKeys
    ranges: dict[str, tuple[FiniteFloat, FiniteFloat]]
    held_out: dict[str, FiniteFloat]
    made_by: dict[str, Any]
    correction: CorrectionKeys | None = None


@dataclass(frozen=True)
class GraphModel:
    """A network that gives impulses, and where it may be asked."""

    network: GraphNetwork
    step: float  #: [s] from one frame to the next
    defaults: Mapping[str, float]  #: parameters of contacts as it learned them, in the mean
    ranges: Mapping[str, tuple[float, float]]  #: lowest and highest of what it was trained with, by name
    held_out: Mapping[str, float] = field(default_factory=dict)  #: errors of rollouts that it was not trained on
    made_by: Mapping[str, Any] = field(default_factory=dict)
    correction: Mapping[str, float] = field(default_factory=dict)  #: by real recordings; empty: none

    def save(self, folder: Path, *, made_from: Mapping[str, Any] | None = None) -> None:
        """Write it into a folder: the network first, the header last."""
        folder.mkdir(parents=True, exist_ok=True)
        digest = write_tensors(folder / WEIGHTS, dict(self.network.state_dict()))
        header = {
            "format": FORMAT,
            "units": UNITS,
            "step": self.step,
            "preset": self.network.preset,
            "sizes": self.network.settings(),
            "defaults": dict(self.defaults),
            "ranges": {name: list(bounds) for name, bounds in self.ranges.items()},
            "held_out": dict(self.held_out),
            "made_by": dict(self.made_by),
            "correction": dict(self.correction) or None,
            "made_from": dict(made_from or {}),
            "made_with": versions(("mujoco", "torch", "numpy", "safetensors")),
            "files": {WEIGHTS: digest},
        }
        write_header(folder / HEADER, header)


def put_weights(network: GraphNetwork, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Give a network the weights that were read from `path`; raises if they are not for this network."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise ModelError(f"{path} is damaged: {' '.join(str(error).split()):.200}") from error


def load_graph(folder: str | Path) -> GraphModel:
    """The graph simulator in a folder; refuses one that is damaged, or that is none."""
    folder = Path(folder)
    missing = f"{folder} holds no graph simulator ({HEADER} is missing); make one with: carom train-graph DATA"
    header = artefacts.read_header(
        folder / HEADER, GraphHeader, FORMAT, missing=missing, again="carom train-graph", units=UNITS
    )
    try:
        network = new_network(header["preset"], header["sizes"])
    except CaromError as error:
        raise ModelError(f"{folder / HEADER}: {error}") from error
    put_weights(network, load_tensors(folder / WEIGHTS, header["files"]), folder / WEIGHTS)
    ranges = {name: (float(low), float(high)) for name, (low, high) in header["ranges"].items()}
    return GraphModel(
        network.requires_grad_(False),
        header["step"],
        header["defaults"],
        ranges,
        header["held_out"],
        header["made_by"],
        header.get("correction") or {},
    )
