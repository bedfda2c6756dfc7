"""The header of a recordings folder, `recordings.yaml`: its models, its reading, and its errors with line numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from carom.core.errors import SceneError, unknown_name
from carom.recordings.faults import FaultError
from carom.recordings.trajectory import Ground
from carom.scenes.shapes import ROLES, SHAPE_FIELDS, Body, Shape

HEADER_NAME = "recordings.yaml"
FORMAT = "carom-recordings/1"
LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
ANGLES = {"rad": 1.0, "deg": float(np.pi / 180)}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}

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
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        row = None if mark is None else mark.line + 1
        raise FaultError(f"not valid YAML: {problem}", code="bad-yaml", file=path, row=row) from error
    if not isinstance(data, dict):
        raise FaultError("expected a mapping that starts with 'format:', got no mapping", code="bad-yaml", file=path)
    _refuse_duplicates(path, node)
    _check_version(path, node, data)
    try:
        return HeaderModel.model_validate(data)
    except ValidationError as error:
        raise _explain(path, node, error) from error


def _check_version(path: Path, node: yaml.Node, data: dict[Any, Any]) -> None:
    # before everything else: a later version may well have keys that this one would call wrong
    version = data.get("format")
    if version != FORMAT:
        raise FaultError(
            f"expected format: {FORMAT}, got {'nothing' if version is None else repr(version)}; "
            "this version of carom reads format 1 only",
            code="bad-version",
            file=path,
            row=_line(node, ("format",)),
        )


def _refuse_duplicates(path: Path, node: yaml.Node | None) -> None:
    # YAML readers keep the last of two equal keys without a word
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                row = key.start_mark.line + 1
                raise FaultError(
                    f"key '{key.value}' is there twice; keep one", code="duplicate-key", file=path, row=row
                )
            seen.add(key.value)
            _refuse_duplicates(path, value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_duplicates(path, value)


def _line(node: yaml.Node | None, where: tuple[int | str, ...]) -> int | None:
    """1-based line of the place in the YAML text, or of the nearest thing around it."""
    row = None if node is None else node.start_mark.line + 1
    for step in where:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(step)), None)
            if pair is None:
                break
            row, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            row = node.start_mark.line + 1
        else:
            break
    return row


def _explain(path: Path, node: yaml.Node, error: ValidationError) -> FaultError:
    first = error.errors()[0]
    where = tuple(first["loc"])
    name = ".".join(str(step) for step in where)
    kind, got = first["type"], first.get("input")
    if kind == "extra_forbidden":
        message = unknown_name(f"key in {'.'.join(map(str, where[:-1])) or 'the header'}", str(where[-1]), _keys(where))
        code = "unknown-key"
    elif kind == "missing":
        message, code = f"key '{name}' is missing; add it", "missing-key"
    elif kind == "literal_error":
        known = str(first.get("ctx", {}).get("expected", ""))
        message, code = f"{name}: expected {known}, got {got!r}", "bad-value"
    else:
        message, code = f"{name}: {first['msg'][0].lower()}{first['msg'][1:]}, got {got!r}", "bad-value"
    return FaultError(message, code=code, file=path, row=_line(node, where))


def _keys(where: tuple[int | str, ...]) -> list[str]:
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
        )
    except SceneError as error:
        raise FaultError(f"body '{name}': {error}", code="bad-shape", file=path) from error


def _scaled(values: Vector3, factor: float) -> Vector3:
    return (values[0] * factor, values[1] * factor, values[2] * factor)


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
