"""The header of a recordings folder, `recordings.yaml`: its models, its reading, and its errors with line numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from carom.core.constants import LENGTHS
from carom.core.errors import SceneError, unknown_name
from carom.core.yaml_files import Where, YamlError, explain, line_of, read_yaml, refuse_duplicates
from carom.recordings.faults import FaultError
from carom.recordings.trajectory import Ground
from carom.scenes.shapes import ROLES, SHAPE_FIELDS, Body, Shape

HEADER_NAME = "recordings.yaml"
FORMAT = "carom-recordings/1"

Vector3 = tuple[float, float, float]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class UnitsModel(_Model):
    """Units of the data files and of every length in the header; masses, inertias and gravity are always SI."""

    length: Literal["m", "cm", "mm"] = "m"
    angle: Literal["rad", "deg"] = "rad"
    time: Literal["s", "ms", "us"] = "s"


class BodyModel(_Model):
    """A body as the header states it. Everything is optional here: a trajectory may supply the rest."""

    role: str | None = None
    shape: str | None = None
    size: Vector3 | None = None
    radius: float | None = None
    height: float | None = None
    diameter: float | None = None
    outline: list[tuple[float, float]] | None = None
    file: str | None = None
    mass: float | None = None
    inertia: Vector3 | None = None
    inertia_z: float | None = None
    com: Vector3 | None = None
    forward: Literal["x", "y", "z", "-x", "-y", "-z"] | Vector3 | None = None


class GroundModel(_Model):
    """The ground's plane."""

    normal: Vector3 | None = None
    height: float = 0.0


class TrajectoryModel(_Model):
    """One data file and what is special about it."""

    file: str
    tags: dict[str, Any] = Field(default_factory=dict)
    bodies: dict[str, BodyModel] = Field(default_factory=dict)
    orientation: bool | None = None


class HeaderModel(_Model):
    """The whole of `recordings.yaml`."""

    format: str
    units: UnitsModel = Field(default_factory=UnitsModel)
    frame: Literal["z-up", "y-up"] = "z-up"
    gravity: float | None = None
    bodies: dict[str, BodyModel]
    ground: GroundModel | None = None
    trajectories: list[TrajectoryModel] | None = None


_KNOWN_KEYS: dict[str, type[_Model]] = {"units": UnitsModel, "ground": GroundModel}


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
                f"expected format: {FORMAT}, got {'nothing' if version is None else repr(version)}; "
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
    if "bodies" in parents:
        model: type[_Model] = BodyModel
    elif parents and parents[0] == "trajectories":
        model = TrajectoryModel
    else:
        model = _KNOWN_KEYS.get(parents[0], HeaderModel) if parents else HeaderModel
    return list(model.model_fields)


def merge(base: BodyModel | None, override: BodyModel | None) -> BodyModel:
    """A folder's body with a trajectory's own values on top."""
    values = {} if base is None else base.model_dump(exclude_none=True)
    if override is not None:
        values |= override.model_dump(exclude_none=True)
    return BodyModel.model_construct(**values)


def to_body(name: str, model: BodyModel, header: HeaderModel, folder: Path, *, complete: bool) -> Body:
    """A `Body` in SI units. `complete` demands what its shape needs; a folder's body may leave that to trajectories."""
    path = folder / HEADER_NAME
    if model.role is None:
        raise FaultError(
            f"body '{name}': key 'role' is missing; one of {', '.join(ROLES)}", code="missing-key", file=path
        )
    if model.mass is not None and not model.mass > 0:
        raise FaultError(f"body '{name}': mass must be positive [kg], got {model.mass:g}", code="bad-mass", file=path)
    if model.role not in ROLES:
        raise FaultError(f"body '{name}': {unknown_name('role', model.role, ROLES)}", code="bad-role", file=path)
    try:
        return Body(
            name=name,
            role=model.role,
            shape=_shape(name, model, header, folder, complete),
            mass=model.mass,
            inertia=_inertia(name, model, path),
            com=None if model.com is None else _scaled(model.com, LENGTHS[header.units.length]),
            forward=_forward(name, model, path),
        )
    except SceneError as error:
        raise FaultError(f"body '{name}': {error}", code="bad-shape", file=path) from error


def _scaled(values: Vector3, factor: float) -> Vector3:
    return (values[0] * factor, values[1] * factor, values[2] * factor)


def _forward(name: str, model: BodyModel, path: Path) -> Vector3 | None:
    """The axis of its frame along which a striker looks, as a vector."""
    given = model.forward
    if given is None:
        return None
    if isinstance(given, str):
        sign, letter = (-1.0 if given[0] == "-" else 1.0), given[-1]
        return (sign * (letter == "x"), sign * (letter == "y"), sign * (letter == "z"))
    if not any(given):
        raise FaultError(
            f"body '{name}': forward: expected x, y, z, -x, -y, -z or a vector with a direction, got {list(given)}",
            code="bad-value",
            file=path,
        )
    return given


def _inertia(name: str, model: BodyModel, path: Path) -> Vector3 | None:
    if model.inertia is not None:
        values = model.inertia
    elif model.inertia_z is not None:
        # Planar tables list the one value planar motion uses. A Body wants three: those of a thin plate of that
        # polar value, for which Ix + Iy = Iz holds, are the smallest that a physics engine accepts as physical.
        values = (model.inertia_z / 2, model.inertia_z / 2, model.inertia_z)
    else:
        return None
    if not min(values) > 0:
        raise FaultError(
            f"body '{name}': inertia must be positive [kg m^2], got {list(values)}", code="bad-mass", file=path
        )
    return values


def _shape(name: str, model: BodyModel, header: HeaderModel, folder: Path, complete: bool) -> Shape | None:
    if model.shape is None:
        return None
    path = folder / HEADER_NAME
    if model.shape not in SHAPE_FIELDS:
        raise FaultError(
            f"body '{name}': {unknown_name('shape', model.shape, SHAPE_FIELDS)}", code="bad-shape", file=path
        )
    lacking = [key for key in SHAPE_FIELDS[model.shape] if getattr(model, key) is None]
    if lacking and complete:
        raise FaultError(f"body '{name}': shape {model.shape} needs {', '.join(lacking)}", code="bad-shape", file=path)
    if lacking and model.shape in ("box", "extruded", "mesh"):
        return None  # such a Shape cannot be half known
    if model.shape == "mesh" and not (folder / str(model.file)).is_file():
        raise FaultError(f"body '{name}': mesh file {model.file} does not exist", code="no-file", file=path)
    unit = LENGTHS[header.units.length]
    radius = model.diameter / 2 if model.shape == "disc" and model.diameter is not None else model.radius
    return Shape(
        kind=model.shape,
        size=() if model.size is None else _scaled(model.size, unit),
        radius=None if radius is None else radius * unit,
        height=None if model.height is None else model.height * unit,
        outline=() if model.outline is None else tuple((x * unit, y * unit) for x, y in model.outline),
        file=None if model.file is None else str(folder / model.file),
    )


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
