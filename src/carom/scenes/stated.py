"""A body as people state it in YAML, alike in recordings and in scene files: its keys, and what they mean in SI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from carom.core.errors import SceneError, unknown_name
from carom.core.folders import file_within
from carom.scenes.shapes import FACE_THICKNESS, SHAPE_FIELDS, STRIKER_HEIGHT, Shape

Pair = tuple[float, float]
Vector3 = tuple[float, float, float]
Axis = Literal["x", "y", "z", "-x", "-y", "-z"]
#: What each shape of a file needs; `face` is a striker of which only the face is known.
STATED_FIELDS: Mapping[str, tuple[str, ...]] = {**SHAPE_FIELDS, "face": ("width",)}
#: What each may have beside.
OPTIONAL_FIELDS: Mapping[str, tuple[str, ...]] = {"disc": ("height",), "face": ("height",), "mesh": ("scale", "part")}
LEAST_INERTIA, MOST_INERTIA = 1e-14, 1e12  #: [kg m^2] that an engine can count with
GEOMETRY = ("size", "radius", "height", "diameter", "width", "outline", "outlines", "file", "scale", "part")


class StatedModel(BaseModel):
    """Part of a file that people write: a key that is not in it is refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class BodyModel(StatedModel):
    """Shape, mass and forward of a body. Everything is optional here: who uses it says what is needed."""

    shape: str | None = None
    size: Vector3 | None = None
    radius: float | None = None
    height: float | None = None
    diameter: float | None = None
    width: float | None = None
    outline: list[Pair] | None = None
    outlines: list[list[Pair]] | None = None
    file: str | None = None
    mass: float | None = None
    inertia: Vector3 | None = None
    inertia_z: float | None = None
    com: Vector3 | None = None
    forward: Axis | Vector3 | float | None = None


def lacking_keys(model: BodyModel) -> list[str]:
    """Keys that the stated shape needs and the file does not have; raises if there is no such shape."""
    if model.shape is None or model.shape not in STATED_FIELDS:
        raise SceneError(unknown_name("shape", str(model.shape), STATED_FIELDS))
    return [key for key in STATED_FIELDS[model.shape] if getattr(model, key) is None]


def refuse_needless(model: BodyModel) -> None:
    """Raise if a key has no meaning for the stated shape: one that is accepted and ignored would hide a mistake."""
    usable = {*STATED_FIELDS[str(model.shape)], *OPTIONAL_FIELDS.get(str(model.shape), ())}
    for key in GEOMETRY:
        if getattr(model, key, None) is not None and key not in usable:
            raise SceneError(f"shape {model.shape} has no '{key}'; it takes: {', '.join(sorted(usable))}")


def scaled(values: Vector3 | None, factor: float) -> Vector3 | None:
    """Three values in another unit."""
    return None if values is None else (values[0] * factor, values[1] * factor, values[2] * factor)


def stated_shape(model: BodyModel, folder: Path, *, length: float, angle: float) -> Shape:
    """The shape in metres; `length` [m] and `angle` [rad] are the file's units."""
    if model.shape == "face":
        return _slab(model, length=length, angle=angle)
    radius = model.diameter / 2 if model.shape == "disc" and model.diameter is not None else model.radius
    return Shape(
        kind=str(model.shape),
        size=scaled(model.size, length) or (),
        radius=None if radius is None else radius * length,
        height=None if model.height is None else model.height * length,
        outline=tuple((x * length, y * length) for x, y in model.outline or ()),
        outlines=tuple(tuple((x * length, y * length) for x, y in part) for part in model.outlines or ()),
        file=None if model.file is None else str(file_within(folder, model.file, error=SceneError)),
    )


def stated_inertia(model: BodyModel) -> Vector3 | None:
    """Three principal values [kg m^2]; where only `inertia_z` is stated, those of a thin plate.

    Planar tables list the one value that planar motion uses. A `Body` wants three: those of a thin plate, for which
    Ix + Iy = Iz holds, are the smallest that a physics engine accepts as physical.
    """
    values = model.inertia
    if values is None and model.inertia_z is not None:
        values = (model.inertia_z / 2, model.inertia_z / 2, model.inertia_z)
    if values is not None and not (min(values) >= LEAST_INERTIA and max(values) <= MOST_INERTIA):
        raise SceneError(
            f"inertia must be positive [kg m^2], got {list(values)} (expected {LEAST_INERTIA:g} to {MOST_INERTIA:g})"
        )
    if values is not None and 2 * max(values) > sum(values):
        raise SceneError(
            f"inertia {list(values)} [kg m^2] is impossible: no solid has one moment that is larger than the other two "
            "together; measure them anew, or leave them out"
        )
    return values


def stated_forward(model: BodyModel, *, angle: float) -> Vector3 | None:
    """Where a striker looks in its own frame, as a vector; `angle` [rad] is the file's unit."""
    given = model.forward
    if given is None:
        return None
    if isinstance(given, str):
        sign, letter = (-1.0 if given[0] == "-" else 1.0), given[-1]
        return (sign * (letter == "x"), sign * (letter == "y"), sign * (letter == "z"))
    if isinstance(given, tuple):
        if not any(given):
            raise SceneError(
                f"forward: expected x, y, z, -x, -y, -z, an angle or a vector with a direction, got {list(given)}"
            )
        return given
    return (float(np.cos(given * angle)), float(np.sin(given * angle)), 0.0)


def heading(model: BodyModel, *, angle: float) -> float:
    """Where a striker looks in its own frame, as an angle about z from x [rad]; x where nothing is stated."""
    if isinstance(model.forward, float):
        return model.forward * angle  # as it stands: a scene that is written and read again is the same scene
    x, y, z = stated_forward(model, angle=angle) or (1.0, 0.0, 0.0)
    if abs(z) > 1e-6 * np.hypot(x, y):
        raise SceneError(f"forward: a scene's striker looks along the ground, got {model.forward!r}; give x, y or both")
    return float(np.arctan2(y, x))


def _slab(model: BodyModel, *, length: float, angle: float) -> Shape:
    """A face of which only the width is known, as a thin box that looks along `forward`."""
    x, y, z = stated_forward(model, angle=angle) or (0.0, 0.0, 0.0)
    along = np.abs([x, y, z]) > 1e-9 * max(abs(x), abs(y), abs(z), 1e-12)
    if along.sum() != 1 or along[2]:
        raise SceneError("shape face needs 'forward: x' or another one of x, y, -x, -y; or state the tool as a box")
    width = float(model.width or 0.0) * length
    height = STRIKER_HEIGHT if model.height is None else model.height * length
    return Shape("box", size=(FACE_THICKNESS, width, height) if along[0] else (width, FACE_THICKNESS, height))
