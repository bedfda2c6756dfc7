"""What may stand in a scene file, `carom-scene/1`: its models, and errors that name file, line and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from carom.core.errors import SceneError
from carom.core.yaml_files import Where, YamlError, explain, line_of, read_yaml, refuse_duplicates
from carom.scenes.stated import BodyModel, Pair, StatedModel

FORMAT = "carom-scene/1"

#: Where something stands in the file: its name for messages, and the YAML nodes that know their lines.
Place = tuple[str, yaml.Node | None]


class UnitsModel(StatedModel):
    """Units of every length and angle in the file; masses, inertias, times and speeds are always SI."""

    length: Literal["m", "cm", "mm"] = "m"
    angle: Literal["rad", "deg"] = "rad"


class TargetModel(BodyModel):
    """The target: a body as in recordings, with a shape and a mass [kg]."""

    name: str = "target"
    scale: float | None = Field(default=None, gt=0)
    part: int | None = Field(default=None, ge=1)


class StrikerModel(BodyModel):
    """The striker: a body as in recordings; held stiffly unless it has a `mass` [kg].

    Without a `shape` a `radius` means a cylinder and a `width` a face, as older files have it.
    """


class RolesModel(StatedModel):
    """Which bodies of the MJCF are struck and strike."""

    target: str
    striker: str


class SceneModel(StatedModel):
    """The whole of a scene file."""

    format: str
    name: str | None = None
    units: UnitsModel = Field(default_factory=UnitsModel)
    target: TargetModel | None = None
    striker: StrikerModel | None = None
    mjcf: str | None = None
    roles: RolesModel | None = None
    unknown: dict[str, list[float]] = Field(default_factory=dict)
    bounds: dict[str, list[float]] = Field(default_factory=dict)
    speed: Pair | None = None
    deflection: float | None = None
    face_angle: float | None = None
    arc: Pair | None = None


_INSIDE: dict[str, type[StatedModel]] = {
    "units": UnitsModel,
    "target": TargetModel,
    "striker": StrikerModel,
    "roles": RolesModel,
}


def read_model(path: Path) -> tuple[SceneModel, Place]:
    """The validated content of a scene file, and the place that later errors refer to."""
    try:
        data, node = read_yaml(path)
    except YamlError as fault:
        raise _scene_error(path.name, fault) from fault
    place = (path.name, node)
    return validate(data, place), place


def validate(data: Any, place: Place) -> SceneModel:
    """The content of a scene file as its model; an error says where it goes wrong and what exists."""
    if not isinstance(data, Mapping):
        raise SceneError(f"{place[0]}: expected a mapping that starts with 'format: {FORMAT}', got no mapping")
    try:
        refuse_duplicates(place[1])
    except YamlError as fault:
        raise _scene_error(place[0], fault) from fault
    version = data.get("format")
    if isinstance(version, str) and version.startswith("carom-recordings/"):
        raise SceneError(recordings_message(place[0]))
    if version != FORMAT:  # first of all: another version may well have keys that this one would call wrong
        got = "nothing" if version is None else f"{version!r:.60}"
        raise SceneError(f"{at(place, 'format')}: expected format: {FORMAT}, got {got}")
    try:
        return SceneModel.model_validate(data)
    except ValidationError as error:
        raise _scene_error(place[0], explain(error, place[1], _keys)) from error


def recordings_message(what: str) -> str:
    """The message for recordings where a scene was expected."""
    return (
        f"{what} holds recordings, not a scene; read them and derive their scene: "
        "scene_from_bodies(carom.recordings.read(folder).bodies)"
    )


def at(place: Place, *steps: int | str) -> str:
    """File and line of a place in it, as a message starts with: `block.yaml, line 3`."""
    name, node = place
    line = line_of(node, *steps)
    return name if line is None else f"{name}, line {line}"


def _scene_error(name: str, fault: YamlError) -> SceneError:
    return SceneError(f"{name if fault.line is None else f'{name}, line {fault.line}'}: {fault.message}")


def _keys(where: Where) -> Iterable[str]:
    return _INSIDE.get(".".join(map(str, where[:-1])), SceneModel).model_fields
