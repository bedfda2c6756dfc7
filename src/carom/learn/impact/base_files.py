"""Impact models on disk: a folder with a JSON header and safetensors, checked before use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from carom.core import artefacts
from carom.core.artefacts import UNITS, Header, Keys, versions, write_header
from carom.core.errors import CaromError, ModelError, short
from carom.core.tensors import load_tensors, write_tensors
from carom.learn.impact.base_model import BaseModel, Preset, new_network
from carom.learn.impact.network import ACTIVATIONS, with_weights
from carom.learn.impact.ranges import Ranges
from carom.scenes.load import scene_from_dict, scene_to_dict
from carom.scenes.strike import DISTILLED

FORMAT = "carom-impact-model/2"
HEADER = "model.json"
WIDEST, DEEPEST = 4096, 64  #: layers of a network


class BaseKeys(Keys):
    """What a header says of a base model."""

    file: str
    teacher: str
    preset: Preset
    parameters: list[str]
    held_out: dict[str, float]
    curve: list[tuple[int, float, float]]
    ranges: Ranges | None


class TeacherKeys(Keys):
    """What a header says of a teacher's members."""

    sharpness: float


class HypothesisKeys(Keys):
    """What a header says of a hypothesis."""

    teacher: str
    correction: str
    weight: float
    words: str


class CorrectionKeys(Keys):
    """What recordings added to base models; all but the kind is missing in that of the paper."""

    kind: str
    teachers: dict[str, TeacherKeys] = Field(default_factory=dict)
    hypotheses: list[HypothesisKeys] = Field(default_factory=list)
    stretch: float = 1.0
    names: list[str] = Field(default_factory=list)
    odd: list[str] = Field(default_factory=list)


class ModelHeader(Header):
    """The header of base models, or of a corrected model."""

    units: dict[str, str]
    scene: dict[str, Any]
    bases: list[BaseKeys]
    made_by: dict[str, Any]
    correction: CorrectionKeys | None = None


@dataclass(frozen=True)
class Correction:
    """What recordings added to base models, as it is kept."""

    keys: Mapping[str, Any]  #: for the header
    files: Mapping[str, str]  #: SHA-256 of the files that were written for it, by name


def save_bases(
    folder: Path,
    bases: Sequence[BaseModel],
    *,
    made_by: Mapping[str, Any],
    made_from: Mapping[str, Any] | None = None,
    correction: Correction | None = None,
) -> None:
    """Write base models of one scene into a folder: networks first, the header last."""
    folder.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = []
    digests: dict[str, str] = {}
    for base in bases:
        name = f"{base.teacher}-{base.preset.name}.safetensors"
        digests[name] = write_tensors(folder / name, dict(base.network.state_dict()))
        entries.append(
            {
                "file": name,
                "teacher": base.teacher,
                "preset": asdict(base.preset),
                "parameters": [p.name for p in base.parameters],
                "held_out": base.held_out,
                "curve": [list(point) for point in base.curve],
                "ranges": None if base.ranges is None else asdict(base.ranges),
            }
        )
    header: dict[str, Any] = {
        "format": FORMAT,
        "units": UNITS,
        "scene": scene_to_dict(bases[0].scene),
        "bases": entries,
        "made_by": dict(made_by),
        "made_from": dict(made_from or {}),
        "made_with": versions(("mujoco", "torch", "numpy", "safetensors")),
        "files": digests,
    }
    if correction is not None:
        header |= {"correction": dict(correction.keys), "files": {**digests, **correction.files}}
    write_header(folder / HEADER, header)


def read_header(folder: Path) -> dict[str, Any]:
    """The header of a model folder, checked for format and units."""
    missing = f"{folder} holds no impact model ({HEADER} is missing); make one with: carom adapt RECORDINGS --out MODEL"
    again = "carom distill, or carom adapt,"
    return artefacts.read_header(folder / HEADER, ModelHeader, FORMAT, missing=missing, again=again, units=UNITS)


def load_bases(folder: str | Path) -> tuple[BaseModel, ...]:
    """The base models of a folder, ready to use and frozen."""
    folder = Path(folder)
    header = read_header(folder)
    try:
        scene = scene_from_dict(header["scene"], source=str(folder / HEADER))
        entries = [(e["file"], e["teacher"], Preset(**e["preset"]), e) for e in header["bases"]]
    except (KeyError, TypeError) as error:
        raise ModelError(f"{folder / HEADER} is damaged: {type(error).__name__} {error!s:.200}") from error
    except CaromError as error:
        raise ModelError(f"{folder / HEADER}: {error}") from error
    bases = []
    for file, teacher, preset, entry in entries:
        if Path(file).name != file:
            raise ModelError(f"{folder / HEADER}: '{short(file)}' is not a plain file name")
        form = preset.activation in ACTIVATIONS and 1 <= preset.width <= WIDEST and 1 <= preset.layers <= DEEPEST
        if not form or teacher not in DISTILLED:
            raise ModelError(
                f"{folder / HEADER}: expected one of {' or '.join(DISTILLED)}, with {' or '.join(ACTIVATIONS)} "
                f"up to {WIDEST} wide and {DEEPEST} deep, got {short(teacher)} with {short(preset.activation)}, "
                f"{preset.width} wide and {preset.layers} deep"
            )
        expected = [p.name for p in scene.parameters(teacher)]
        if entry.get("parameters") != expected:
            raise ModelError(
                f"{folder / HEADER}: parameters {entry.get('parameters')!s:.200} are not those of the scene, {expected}"
            )
        network = new_network(scene, teacher, preset)
        network = with_weights(network, load_tensors(folder / file, header["files"]), folder / file)
        curve = tuple((int(a), float(b), float(c)) for a, b, c in entry.get("curve", ()))
        ranges = None if entry.get("ranges") is None else Ranges.of(entry["ranges"], folder / HEADER)
        bases.append(BaseModel(scene, teacher, preset, network, dict(entry.get("held_out", {})), curve, ranges))
    if not bases:
        raise ModelError(f"{folder / HEADER} lists no base model")
    return tuple(bases)
