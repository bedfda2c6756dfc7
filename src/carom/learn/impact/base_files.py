"""Impact models on disk: a folder with a JSON header and safetensors, checked before use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from carom.core.errors import CaromError, ModelError
from carom.learn.impact.base_model import BaseModel, Preset, new_network
from carom.scenes.load import scene_from_dict, scene_to_dict

FORMAT = "carom-impact-model/1"
HEADER = "model.json"
UNITS = {"length": "m", "angle": "rad", "time": "s", "mass": "kg"}


def save_bases(
    folder: Path, bases: Sequence[BaseModel], *, made_by: Mapping[str, Any], extra: Mapping[str, Any] | None = None
) -> None:
    """Write base models of one scene into a folder: networks first, the header last and in one piece."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for base in bases:
        name = f"{base.teacher}-{base.preset.name}.safetensors"
        write_tensors(folder / name, dict(base.network.state_dict()))
        entries.append(
            {
                "file": name,
                "teacher": base.teacher,
                "preset": asdict(base.preset),
                "parameters": [p.name for p in base.parameters],
                "held_out": base.held_out,
                "curve": [list(point) for point in base.curve],
            }
        )
    header = {
        "format": FORMAT,
        "units": UNITS,
        "scene": scene_to_dict(bases[0].scene),
        "bases": entries,
        "made_by": dict(made_by),
        "versions": {"mujoco": mujoco.__version__, "torch": torch.__version__, "numpy": np.__version__},
        **(extra or {}),
    }
    write_header(folder, header)


def write_header(folder: Path, header: Mapping[str, Any]) -> None:
    temporary = folder / f"{HEADER}.part"
    temporary.write_text(json.dumps(header, indent=1))
    os.replace(temporary, folder / HEADER)


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    temporary = path.with_name(path.name + ".part")
    save_file({k: v.contiguous() for k, v in tensors.items()}, temporary)
    os.replace(temporary, path)


def read_header(folder: Path) -> dict[str, Any]:
    """The header of a model folder, checked for format and units."""
    path = folder / HEADER
    if not path.is_file():
        raise ModelError(
            f"{folder} holds no impact model ({HEADER} is missing); make one with: carom distill SCENE --out {folder}"
        )
    try:
        header = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        got = header.get("format") if isinstance(header, dict) else type(header).__name__
        raise ModelError(f"{path}: expected format {FORMAT}, got {got}")
    if header.get("units") != UNITS:
        raise ModelError(f"{path}: expected units {UNITS}, got {header.get('units')}; Carom's models are in SI units")
    return header


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of a safetensors file; raises if it is missing or damaged."""
    if not path.is_file():
        raise ModelError(f"{path} is missing: the model folder is incomplete")
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error


def load_bases(folder: Path) -> tuple[BaseModel, ...]:
    """The base models of a folder, ready to use and frozen."""
    header = read_header(folder)
    try:
        scene = scene_from_dict(header["scene"], source=str(folder / HEADER))
        entries = [(e["file"], e["teacher"], Preset(**e["preset"]), e) for e in header["bases"]]
    except (KeyError, TypeError) as error:
        raise ModelError(f"{folder / HEADER} is damaged: {type(error).__name__} {error}") from error
    except CaromError as error:
        raise ModelError(f"{folder / HEADER}: {error}") from error
    bases = []
    for file, teacher, preset, entry in entries:
        if Path(file).name != file:
            raise ModelError(f"{folder / HEADER}: '{file}' is not a plain file name")
        expected = [p.name for p in scene.parameters(teacher)]
        if entry.get("parameters") != expected:
            raise ModelError(
                f"{folder / HEADER}: parameters {entry.get('parameters')} are not those of the scene, {expected}"
            )
        network = new_network(scene, scene.parameters(teacher), preset)
        try:
            network.load_state_dict(load_tensors(folder / file))
        except RuntimeError as error:
            raise ModelError(f"{folder / file} does not fit its header: {str(error).splitlines()[0]}") from error
        network.eval()
        for p in network.parameters():
            p.requires_grad_(False)
        curve = tuple((int(a), float(b), float(c)) for a, b, c in entry.get("curve", ()))
        bases.append(BaseModel(scene, teacher, preset, network, dict(entry.get("held_out", {})), curve))
    if not bases:
        raise ModelError(f"{folder / HEADER} lists no base model")
    return tuple(bases)
