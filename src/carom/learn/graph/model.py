"""A trained graph simulator: its network, its time step, what it was trained within; and as a folder on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from carom.core import artefacts
from carom.core.artefacts import UNITS, Header, versions, write_header
from carom.core.errors import CaromError, ModelError, unknown_name
from carom.core.tensors import load_tensors, write_tensors
from carom.learn.graph.dynamics import GraphNetwork
from carom.learn.graph.network import ImpulseNetwork, Sizes

FORMAT = "carom-graph/2"
HEADER, WEIGHTS = "graph.json", "network.safetensors"


PRESETS = ("default",)


def new_network(preset: str = "default", sizes: Mapping[str, int] | None = None) -> GraphNetwork:
    """An untrained network of a preset; `sizes` where they are not the preset's own."""
    if preset not in PRESETS:
        raise CaromError(unknown_name("preset of graph simulators", preset, PRESETS))
    try:
        return ImpulseNetwork(Sizes(**(sizes or {})))
    except TypeError as error:
        raise ModelError(f"sizes of a network: {error}") from error


class GraphHeader(Header):
    """The header of a graph simulator."""

    units: dict[str, str]
    step: float
    preset: str
    sizes: dict[str, int]
    defaults: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    held_out: dict[str, float]
    made_by: dict[str, Any]


@dataclass(frozen=True)
class GraphModel:
    """A network that gives impulses, and where it may be asked."""

    network: GraphNetwork
    step: float  #: [s] from one frame to the next
    defaults: Mapping[str, float]  #: parameters of contacts as it learned them, in the mean
    ranges: Mapping[str, tuple[float, float]]  #: lowest and highest of what it was trained with, by name
    held_out: Mapping[str, float] = field(default_factory=dict)  #: errors of rollouts that it was not trained on
    made_by: Mapping[str, Any] = field(default_factory=dict)

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
            "made_from": dict(made_from or {}),
            "made_with": versions(("mujoco", "torch", "numpy", "safetensors")),
            "files": {WEIGHTS: digest},
        }
        write_header(folder / HEADER, header)


def load_graph(folder: str | Path) -> GraphModel:
    """The graph simulator in a folder; refuses one that is damaged, or that is none."""
    folder = Path(folder)
    missing = f"{folder} holds no graph simulator ({HEADER} is missing); make one with: carom.learn.graph.train_graph"
    header = artefacts.read_header(
        folder / HEADER, GraphHeader, FORMAT, missing=missing, again="carom.learn.graph.train_graph", units=UNITS
    )
    network = new_network(header["preset"], header["sizes"])
    tensors = load_tensors(folder / WEIGHTS, header["files"])
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError(f"{folder / WEIGHTS} is damaged: {str(error).splitlines()[0]}") from error
    ranges = {name: (float(low), float(high)) for name, (low, high) in header["ranges"].items()}
    return GraphModel(
        network.requires_grad_(False), header["step"], header["defaults"], ranges, header["held_out"], header["made_by"]
    )
