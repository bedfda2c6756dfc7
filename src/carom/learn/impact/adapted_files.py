"""Corrected impact models on disk: the base models' folder plus what the recordings added."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from carom.core.errors import CaromError, ModelError
from carom.core.tensors import load_tensors, write_tensors
from carom.learn.impact.adapted_model import AdaptedModel
from carom.learn.impact.base_files import Correction, load_bases, read_header, save_bases
from carom.learn.impact.hypotheses import Hypothesis, hypotheses_for
from carom.learn.impact.members import Members, Teacher
from carom.learn.impact.paper import TunedModel
from carom.learn.impact.rigid import RigidTeacher
from carom.learn.impact.seen import Explanation
from carom.state import Array, Impacts, Strikes

CORRECTION = "correction.safetensors"
KIND = "weighed laws"  #: of correction that this version makes by default
_STRIKES = ("target_pose", "target_velocity", "striker_pose", "striker_velocity", "posture")


def save_model(
    folder: Path,
    model: AdaptedModel | TunedModel,
    *,
    made_by: Mapping[str, Any],
    made_from: Mapping[str, Any] | None = None,
) -> None:
    """Write a corrected model; the header is written last, so a folder with one is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(model, TunedModel):
        files = {CORRECTION: write_tensors(folder / CORRECTION, {"values": torch.as_tensor(model.values)})}
        correction = Correction({"kind": "paper"}, files)
        save_bases(folder, [model.base], made_by=made_by, made_from=made_from, correction=correction)
        return
    tensors = {f"train.{name}": torch.as_tensor(getattr(model.train.strikes, name)) for name in _STRIKES}
    tensors |= {f"train.{name}": torch.as_tensor(getattr(model.train, name)) for name in ("post", "post_std")}
    for e in model.explanations:
        for field in ("values", "weights"):
            tensors[f"{e.base.teacher}.members.{field}"] = torch.as_tensor(getattr(e.members, field))
    files = {CORRECTION: write_tensors(folder / CORRECTION, tensors)}
    keys = {
        "kind": KIND,
        "teachers": {e.base.teacher: {"sharpness": e.members.sharpness} for e in model.explanations},
        "hypotheses": [
            {"teacher": h.teacher, "correction": h.correction, "weight": float(w), "words": h.words}
            for h, w in zip(model.hypotheses, model.weights, strict=True)
        ],
        "stretch": model.stretch,
        "names": list(model.train.names),
        "odd": list(model.odd),
    }
    save_bases(folder, model.bases, made_by=made_by, made_from=made_from, correction=Correction(keys, files))


def load_model(folder: Path) -> AdaptedModel | TunedModel:
    """A corrected model from its folder; raises by name if it is damaged or was never corrected."""
    header = read_header(folder)
    correction = header.get("correction")
    if not isinstance(correction, dict):
        raise ModelError(
            f"{folder} holds a base model, not yet corrected; run: carom adapt {folder} RECORDINGS --out DIR"
        )
    bases = load_bases(folder)
    tensors = {k: v.double().numpy() for k, v in load_tensors(folder / CORRECTION, header["files"]).items()}
    try:
        if correction["kind"] == "paper":
            return TunedModel(bases[0], tensors["values"])
        if correction["kind"] != KIND:
            raise ModelError(
                f"{folder} was corrected by another version of Carom ('{correction['kind']}', expected '{KIND}'): "
                "run carom adapt again"
            )
        teachers: tuple[Teacher, ...] = (*bases, RigidTeacher(bases[0].scene))
        explanations = tuple(
            _explanation(folder, teacher, correction, tensors)
            for teacher in teachers
            if teacher.teacher in correction["teachers"]
        )
        found = correction["hypotheses"]
        hypotheses = tuple(Hypothesis(str(h["teacher"]), str(h["correction"])) for h in found)
        weights = np.array([float(h["weight"]) for h in found])
        if {*hypotheses} - {*hypotheses_for(tuple(e.base.teacher for e in explanations))}:
            raise ModelError(f"{folder} names hypotheses that this version does not know: run carom adapt again")
        wider = float(correction["stretch"])
        if not (np.isfinite([*weights, wider]).all() and wider > 0 and weights.min() >= 0 and weights.sum() > 0):
            raise ModelError(f"{folder}: weights of hypotheses must be finite and not negative")
        strikes = Strikes(**{name: tensors[f"train.{name}"] for name in _STRIKES})
        train = Impacts(strikes, tensors["train.post"], tensors["train.post_std"], tuple(correction["names"]))
        odd = tuple(str(name) for name in correction["odd"])
    except ModelError:
        raise
    except (CaromError, KeyError, AttributeError, TypeError, ValueError, IndexError) as error:
        words = f"{type(error).__name__} {' '.join(str(error).split()):.200}"
        raise ModelError(f"{folder / CORRECTION} is damaged: {words}") from error
    model = AdaptedModel(bases, explanations, hypotheses, weights, wider, train, odd)
    try:
        model.refuse_wild()
    except ModelError as error:
        raise ModelError(f"{folder / CORRECTION}: {error}") from error
    return model


def _explanation(folder: Path, base: Teacher, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Explanation:
    values, weights = (tensors[f"{base.teacher}.members.{field}"] for field in ("values", "weights"))
    if values.shape != (len(weights), len(base.parameters)) or not (weights >= 0).all() or not weights.sum() > 0:
        raise ModelError(f"{folder / CORRECTION}: members do not fit the parameters of '{base.teacher}'")
    return Explanation(base, Members(values, weights, float(header["teachers"][base.teacher]["sharpness"])))
