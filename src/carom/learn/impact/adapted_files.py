"""Corrected impact models on disk: the base models' folder plus what the recordings added."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from carom.core.errors import ModelError
from carom.core.tensors import load_tensors, write_tensors
from carom.learn.impact.adapted_model import AdaptedModel, Correction
from carom.learn.impact.base_files import load_bases, read_header, save_bases
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.members import Members
from carom.learn.impact.paper import TunedModel
from carom.learn.impact.process import HYPER, Standard
from carom.state import Array, Impacts, Strikes

CORRECTION = "correction.safetensors"
KIND = "mixture"  #: of correction that this version makes by default
_STRIKES = ("target_pose", "target_velocity", "striker_pose", "striker_velocity", "posture")


def save_model(folder: Path, model: AdaptedModel | TunedModel, *, made_by: Mapping[str, Any]) -> None:
    """Write a corrected model; the header is written last, so a folder with one is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model, TunedModel):
        write_tensors(folder / CORRECTION, {"values": torch.as_tensor(model.values)})
        save_bases(folder, [model.base], made_by=made_by, extra={"correction": {"kind": "paper"}})
        return
    tensors = {f"train.{name}": torch.as_tensor(getattr(model.train.strikes, name)) for name in _STRIKES}
    tensors |= {
        "train.post": torch.as_tensor(model.train.post),
        "train.post_std": torch.as_tensor(model.train.post_std),
    }
    for kind in ("posture", "contact"):
        standard: Standard = getattr(model, kind)
        tensors |= {f"{kind}.{f}": torch.as_tensor(getattr(standard, f)) for f in ("mean", "scale", "keep")}
    for c in model.corrections:
        for field in ("values", "weights"):
            tensors[f"{c.base.teacher}.members.{field}"] = torch.as_tensor(getattr(c.members, field))
    write_tensors(folder / CORRECTION, tensors)
    correction = {
        "kind": KIND,
        "hyper": {c.base.teacher: c.hyper for c in model.corrections},
        "evidence": model.evidence,
        "names": list(model.train.names),
    }
    save_bases(folder, [c.base for c in model.corrections], made_by=made_by, extra={"correction": correction})


def load_model(folder: Path) -> AdaptedModel | TunedModel:
    """A corrected model from its folder; raises by name if it is damaged or was never corrected."""
    header = read_header(folder)
    correction = header.get("correction")
    if not isinstance(correction, dict):
        raise ModelError(
            f"{folder} holds a base model, not yet corrected; run: carom adapt {folder} RECORDINGS --out DIR"
        )
    bases = load_bases(folder)
    tensors = {k: v.double().numpy() for k, v in load_tensors(folder / CORRECTION).items()}
    try:
        if correction["kind"] == "paper":
            return TunedModel(bases[0], tensors["values"])
        if correction["kind"] != KIND:
            raise ModelError(
                f"{folder} was corrected by another version of Carom ('{correction['kind']}', expected '{KIND}'): "
                "run carom adapt again"
            )
        corrections = tuple(_correction(folder, base, correction, tensors) for base in bases)
        standards = {
            kind: Standard(*(tensors[f"{kind}.{f}"] for f in ("mean", "scale", "keep")))
            for kind in ("posture", "contact")
        }
        strikes = Strikes(**{name: tensors[f"train.{name}"] for name in _STRIKES})
        train = Impacts(strikes, tensors["train.post"], tensors["train.post_std"], tuple(correction["names"]))
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise ModelError(f"{folder} is damaged: {type(error).__name__} {error}") from error
    return AdaptedModel(corrections, standards["posture"], standards["contact"], train)


def _correction(folder: Path, base: BaseModel, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Correction:
    teacher = base.teacher
    members = Members(tensors[f"{teacher}.members.values"], tensors[f"{teacher}.members.weights"])
    fitting = members.values.shape == (len(members.weights), len(base.parameters))
    if not fitting or not np.isfinite(members.values).all():
        raise ModelError(f"{folder / CORRECTION}: members do not fit the base model's parameters")
    hyper = {name: float(header["hyper"][teacher][name]) for name in HYPER}
    return Correction(base, members, hyper, float(header["evidence"][teacher]))
