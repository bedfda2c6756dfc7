"""The base models that come with Carom: one network per teacher and kind of striker, for any convex target.

They were trained once, on scenes drawn at random (`make`), and lie beside this file: `header.json` says how they were
made, `networks.safetensors` holds the weights. A new shape needs no training of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from carom.core.artefacts import UNITS, Header, Keys, read_header, versions, write_header
from carom.core.errors import ModelError
from carom.core.tensors import load_tensors, write_tensors
from carom.learn.impact.base_model import BaseModel, Preset
from carom.learn.impact.dataset import simulated
from carom.learn.impact.features import INPUTS, mirror_signs
from carom.learn.impact.network import ImpactNetwork, with_weights
from carom.learn.impact.ranges import Ranges
from carom.learn.impact.training import accuracy_of, relative_errors
from carom.scenes.strike import DISTILLED, StrikeScene

FORMAT = "carom-any-base/1"
HEADER, NETWORKS = "header.json", "networks.safetensors"
MAKER = "python -m carom.learn.impact.shipped, or install Carom,"
TRIED = 512  #: simulated impacts of a scene that base models are tried on
STRIKERS = {False: "round", True: "flat"}


class NetworkKeys(Keys):
    """What the header says of one network."""

    teacher: str
    striker: str
    inputs: list[str]
    held_out: dict[str, float]


class AnyHeader(Header):
    """The header of base models for any scene."""

    units: dict[str, str]
    preset: Preset
    ranges: Ranges
    networks: list[NetworkKeys]
    made_by: dict[str, Any]


@dataclass(frozen=True)
class AnyBase:
    """A network for any scene of one teacher and one kind of striker."""

    teacher: str
    flat: bool
    preset: Preset
    ranges: Ranges
    network: ImpactNetwork
    held_out: dict[str, float]  #: accuracy on scenes that were not trained on; small outcomes count as 0.15 of speed

    def of(self, scene: StrikeScene) -> BaseModel:
        """The base model of a scene; how well it knows just this one is tried on a few impacts."""
        base = BaseModel(scene, self.teacher, self.preset, self.network, {}, ranges=self.ranges)
        tried = simulated(scene, self.teacher, TRIED, seed=0)
        return replace(base, held_out=accuracy_of(relative_errors(base, tried)))


def shipped_bases(scene: StrikeScene) -> tuple[BaseModel, ...]:
    """The base models that come with Carom, for this scene, tried on it: a second. They are checked when first read."""
    with as_file(files(__name__)) as folder:
        found = load_any(folder)
    return tuple(found[teacher, scene.striker.flat].of(scene) for teacher in DISTILLED)


def any_network(teacher: str, flat: bool, preset: Preset) -> ImpactNetwork:
    """An untrained network of one teacher and kind of striker."""
    names = INPUTS[teacher, flat]
    return ImpactNetwork(
        len(names),
        width=preset.width,
        layers=preset.layers,
        activation=preset.activation,
        mirror=mirror_signs(names).tolist(),
    )


def save_any(folder: Path, bases: list[AnyBase], *, made_by: Mapping[str, Any]) -> None:
    """Write base models for any scene into a folder: networks first, the header last."""
    tensors = {
        f"{base.teacher}.{STRIKERS[base.flat]}.{name}": tensor.half()  # half as large, and as good
        for base in bases
        for name, tensor in base.network.state_dict().items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    digest = write_tensors(folder / NETWORKS, tensors)
    header = {
        "format": FORMAT,
        "units": UNITS,
        "preset": asdict(bases[0].preset),
        "ranges": asdict(bases[0].ranges),
        "networks": [
            {
                "teacher": base.teacher,
                "striker": STRIKERS[base.flat],
                "inputs": list(INPUTS[base.teacher, base.flat]),
                "held_out": base.held_out,
            }
            for base in bases
        ],
        "made_by": dict(made_by),
        "made_with": versions(("mujoco", "torch", "numpy")),
        "files": {NETWORKS: digest},
    }
    write_header(folder / HEADER, header)


@lru_cache(maxsize=2)
def load_any(folder: Path) -> Mapping[tuple[str, bool], AnyBase]:
    """Base models for any scene, by teacher and whether the striker is flat; raises by name if they are damaged."""
    path, again = folder / NETWORKS, "install Carom again"
    missing = f"{folder / HEADER} is missing: {again}"
    header = read_header(folder / HEADER, AnyHeader, FORMAT, missing=missing, again=MAKER, units=UNITS)
    tensors = load_tensors(path, header["files"], half=True)
    try:
        preset = Preset(**header["preset"])
        ranges = Ranges.of(header["ranges"], folder / HEADER)
        entries = {(e["teacher"], e["striker"] == "flat"): e for e in header["networks"]}
        found = {}
        for (teacher, flat), names in INPUTS.items():
            entry = entries[teacher, flat]
            if entry["inputs"] != list(names):
                raise ModelError(f"{path}: made for other inputs, {entry['inputs']}, than {list(names)}: {again}")
            start = f"{teacher}.{STRIKERS[flat]}."
            own = {k.removeprefix(start): v.float() for k, v in tensors.items() if k.startswith(start)}
            network = with_weights(any_network(teacher, flat, preset), own, path)
            found[teacher, flat] = AnyBase(teacher, flat, preset, ranges, network, dict(entry["held_out"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelError(f"{folder / HEADER} is damaged: {type(error).__name__} {error}") from error
    return found
