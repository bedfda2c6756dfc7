"""The header of a recordings folder, `recordings.yaml`: its models, its reading, and its errors with line numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from carom.core.constants import ANGLES, LENGTHS
from carom.core.errors import CaromError, SceneError, unknown_name
from carom.core.folders import file_within
from carom.core.yaml_files import Where, YamlError, explain, line_of, read_yaml, refuse_duplicates
from carom.recordings.faults import FaultError
from carom.recordings.tracked import Tracked
from carom.recordings.trajectory import Ground
from carom.scenes.shapes import HEAVIEST, LIGHTEST, MASSES, ROLES, Body, Shape
from carom.scenes.stated import (
    BodyModel,
    StatedModel,
    Vector3,
    lacking_keys,
    scaled,
    stated_forward,
    stated_inertia,
    stated_shape,
)

HEADER_NAME = "recordings.yaml"
FORMAT = "carom-recordings/1"
STRONGEST = 1e5  #: [m/s^2] gravity that can be counted with; `check` says more of one in another unit


class UnitsModel(StatedModel):
    """Units of the data files and of every length in the header; masses, inertias and gravity are always SI."""

    length: Literal["m", "cm", "mm"] = "m"
    angle: Literal["rad", "deg"] = "rad"
    time: Literal["s", "ms", "us"] = "s"


class TrackedModel(StatedModel):
    """The frame that was tracked, as seen in the frame that shape, `com` and `forward` refer to."""

    position: Vector3 = (0.0, 0.0, 0.0)
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)


class RecordedBodyModel(BodyModel):
    """A body as the header states it. Everything is optional here: a trajectory may supply the rest."""

    role: str | None = None
    tracked: TrackedModel | None = None


class GroundModel(StatedModel):
    """The ground's plane."""

    normal: Vector3 | None = None
    height: float = 0.0


class TrajectoryModel(StatedModel):
    """One data file and what is special about it."""

    file: str
    tags: dict[str, Any] = Field(default_factory=dict)
    bodies: dict[str, RecordedBodyModel] = Field(default_factory=dict)
    orientation: bool | None = None


class HeaderModel(StatedModel):
    """The whole of `recordings.yaml`."""

    format: str
    units: UnitsModel = Field(default_factory=UnitsModel)
    frame: Literal["z-up", "y-up"] = "z-up"
    gravity: float | None = Field(default=None, ge=-STRONGEST, le=STRONGEST)
    bodies: dict[str, RecordedBodyModel]
    ground: GroundModel | None = None
    trajectories: list[TrajectoryModel] | None = None
    imported: dict[str, Any] = Field(default_factory=dict)  #: what `carom import` did, for people


_KNOWN_KEYS: dict[str, type[StatedModel]] = {"units": UnitsModel, "ground": GroundModel}


def read_header(folder: Path) -> HeaderModel:
    """The validated header of a folder; a `FaultError` with the line where it goes wrong."""
    path = folder / HEADER_NAME
    if not folder.is_dir():
        raise FaultError("no such folder; give the folder that holds recordings.yaml", code="no-folder", file=folder)
    if not path.is_file():
        raise FaultError(
            "missing; a recordings folder needs it to name bodies, units and frame", code="no-header", file=path
        )
    try:
        data, node = read_yaml(path)
        if not isinstance(data, dict):
            raise YamlError("expected a mapping that starts with 'format:', got no mapping", code="bad-yaml", line=None)
        refuse_duplicates(node)
        # first of all: a later version may well have keys that this one would call wrong
        version = data.get("format")
        if version != FORMAT:
            message = (
                f"expected format: {FORMAT}, got {'nothing' if version is None else f'{version!r:.60}'}; "
                "this version of carom reads format 1 only"
            )
            raise YamlError(message, code="bad-version", line=line_of(node, "format"))
        try:
            return HeaderModel.model_validate(data)
        except ValidationError as error:
            raise explain(error, node, _keys, whole="the header") from error
    except YamlError as fault:
        raise FaultError(fault.message, code=fault.code, file=path, row=fault.line) from fault


def _keys(where: Where) -> list[str]:
    parents = [step for step in where[:-1] if isinstance(step, str)]
    if parents and parents[-1] == "tracked":
        model: type[StatedModel] = TrackedModel
    elif "bodies" in parents:
        model = RecordedBodyModel
    elif parents and parents[0] == "trajectories":
        model = TrajectoryModel
    else:
        model = _KNOWN_KEYS.get(parents[0], HeaderModel) if parents else HeaderModel
    return list(model.model_fields)


def merge(base: RecordedBodyModel, override: RecordedBodyModel | None) -> RecordedBodyModel:
    """A folder's body with a trajectory's own values on top; a key's value is replaced as a whole."""
    if override is None:
        return base
    own = {key: getattr(override, key) for key in override.model_fields_set}
    return base.model_copy(update={key: value for key, value in own.items() if value is not None})


def to_body(name: str, model: RecordedBodyModel, header: HeaderModel, folder: Path, *, complete: bool) -> Body:
    """A `Body` in SI units. `complete` demands what its shape needs; a folder's body may leave that to trajectories."""
    path = folder / HEADER_NAME
    if model.role is None:
        raise FaultError(
            f"body '{name}': key 'role' is missing; one of {', '.join(ROLES)}", code="missing-key", file=path
        )
    if model.mass is not None and not LIGHTEST <= model.mass <= HEAVIEST:
        message = f"body '{name}': mass must be positive [kg], got {model.mass:g} ({MASSES})"
        raise FaultError(message, code="bad-mass", file=path)
    if model.role not in ROLES:
        raise FaultError(f"body '{name}': {unknown_name('role', model.role, ROLES)}", code="bad-role", file=path)
    length, angle = LENGTHS[header.units.length], ANGLES[header.units.angle]
    try:
        inertia = stated_inertia(model)
    except SceneError as error:
        raise FaultError(f"body '{name}': {error}", code="bad-mass", file=path) from error
    try:
        forward = stated_forward(model, angle=angle)
    except SceneError as error:
        raise FaultError(f"body '{name}': {error}", code="bad-value", file=path) from error
    try:
        shape = _shape(name, model, header, folder, complete)
        return Body(name, model.role, shape, model.mass, inertia, scaled(model.com, length), forward)
    except SceneError as error:
        raise FaultError(f"body '{name}': {error}", code="bad-shape", file=path) from error


def to_tracked(name: str, model: RecordedBodyModel, header: HeaderModel, folder: Path) -> Tracked | None:
    """Where a body's tracked frame is [m], or None where it is the body's own."""
    if model.tracked is None:
        return None
    quaternion, length = model.tracked.quaternion, float(np.linalg.norm(model.tracked.quaternion))
    if not abs(length - 1) < 1e-3:
        raise FaultError(
            f"body '{name}': tracked.quaternion: expected a unit quaternion, w first, got {list(quaternion)} of length "
            f"{length:g}; divide it by its length",
            code="bad-value",
            file=folder / HEADER_NAME,
        )
    w, x, y, z = (v / length for v in quaternion)
    position = scaled(model.tracked.position, LENGTHS[header.units.length])
    return Tracked(position or (0.0, 0.0, 0.0), (w, x, y, z))


def _shape(name: str, model: BodyModel, header: HeaderModel, folder: Path, complete: bool) -> Shape | None:
    if model.shape is None:
        if complete and model.width is not None:
            raise SceneError("'width' is that of a face; add 'shape: face' and 'forward', or state the tool as a box")
        return None
    lacking = lacking_keys(model)
    if lacking and complete:
        raise SceneError(f"shape {model.shape} needs {', '.join(lacking)}")
    if lacking and model.shape in ("box", "extruded", "compound", "mesh", "face"):
        return None  # such a Shape cannot be half known
    path = folder / HEADER_NAME
    if model.shape == "mesh" and not _within(folder, str(model.file), f"body '{name}': ").is_file():
        raise FaultError(f"body '{name}': mesh file {model.file} does not exist", code="no-file", file=path)
    if model.shape == "face" and model.forward is None and not complete:
        return None
    return stated_shape(model, folder, length=LENGTHS[header.units.length], angle=ANGLES[header.units.angle])


def _within(folder: Path, file: str, what: str) -> Path:
    try:
        return file_within(folder, file)
    except CaromError as error:
        raise FaultError(f"{what}{error}", code="outside", file=folder / HEADER_NAME) from error


def data_file(folder: Path, model: TrajectoryModel) -> Path:
    """The place of a trajectory's data file, which is in the folder."""
    return _within(folder, model.file, "trajectories: ")


def to_ground(model: GroundModel | None, header: HeaderModel, path: Path) -> Ground | None:
    """The ground in metres and z-up, or None where the folder does not state it."""
    if model is None:
        return None
    up = (0.0, 0.0, 1.0) if header.frame == "z-up" else (0.0, 1.0, 0.0)
    normal = np.asarray(model.normal if model.normal is not None else up, dtype=float)
    length = float(np.linalg.norm(normal))
    if not abs(length - 1) < 1e-3:
        raise FaultError(
            f"ground.normal: expected a unit vector, got {normal.tolist()} of length {length:g}; "
            f"divide it by its length",
            code="bad-value",
            file=path,
        )
    if header.frame == "y-up":
        normal = np.array([normal[0], -normal[2], normal[1]])
    return Ground((float(normal[0]), float(normal[1]), float(normal[2])), model.height * LENGTHS[header.units.length])
