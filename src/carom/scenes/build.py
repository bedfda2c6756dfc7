"""From the content of a scene file to the scene: units, shapes, roles and parameters, each error with its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.constants import ANGLES, LENGTHS
from carom.core.errors import SceneError, unknown_name
from carom.scenes.mesh_files import LARGEST
from carom.scenes.meshes import mesh_body
from carom.scenes.parameters import Parameter, known, with_bounds
from carom.scenes.schema import Place, SceneModel, TargetModel, UnitsModel, at
from carom.scenes.shapes import SHAPE_FIELDS, Body, Shape
from carom.scenes.strike import TEACHERS, Striker, StrikeScene

CONTACT = tuple(dict.fromkeys(name for names in TEACHERS.values() for name in names))


def build_scene(model: SceneModel, place: Place, folder: Path, stem: str) -> StrikeScene:
    """The scene that a file's content describes; the errors of its parts get the file's name and line."""
    target, striker = _roles(model, place, folder)
    angle = ANGLES[model.units.angle]
    options: dict[str, Any] = {}
    if model.speed is not None:
        options["speed"] = model.speed
    for key in ("deflection", "face_angle"):
        value = getattr(model, key)
        if value is not None:
            if not 0 <= value * angle < np.pi / 2:
                raise SceneError(f"{at(place, key)}: {key} must lie between 0 and a right angle, got {value:g}")
            options[key] = value * angle
    if model.arc is not None:
        if target.shape is None or target.shape.kind != "semi-cylinder":
            raise SceneError(f"{at(place, 'arc')}: arc is the range of strikes on a semi-cylinder; leave it out here")
        options["arc"] = (model.arc[0] * angle, model.arc[1] * angle)
    unknown = _parameters(model, "unknown", place)
    bounds = _parameters(model, "bounds", place)
    try:
        scene = StrikeScene(model.name or stem, target, striker, unknown, bounds, **options)
        extent = float(np.ptp(scene.outline.vertices, axis=0).max())
    except SceneError as error:
        raise SceneError(f"{place[0]}: {error}") from error
    if extent > LARGEST:
        raise SceneError(
            f"{at(place, 'target')}: target is {extent:g} m wide; if its lengths are millimetres, "
            "say so: 'units: {length: mm}'"
        )
    return scene


def _roles(model: SceneModel, place: Place, folder: Path) -> tuple[Body, Striker]:
    """Target and striker, as the file states them or as its MJCF does."""
    if model.mjcf is not None:
        extra = next((key for key in ("target", "striker") if getattr(model, key) is not None), None)
        if extra is not None:
            raise SceneError(f"{at(place, extra)}: the MJCF gives the {extra}; keep either 'mjcf' or '{extra}'")
        if model.roles is None:
            raise SceneError(
                f"{at(place, 'mjcf')}: key 'roles' is missing; add 'roles: {{target: BODY, striker: BODY}}'"
            )
        from carom.scenes.mjcf import bodies_from_mjcf  # here: MuJoCo is slow to import, most scenes don't need it

        try:
            bodies = bodies_from_mjcf(folder / model.mjcf, model.roles.model_dump())
            return bodies["target"], _striker_of(bodies["striker"])
        except SceneError as error:
            raise SceneError(f"{at(place, 'mjcf')}: {error}") from error
    if model.roles is not None:
        raise SceneError(f"{at(place, 'roles')}: roles name bodies of an MJCF; add 'mjcf: file.xml' or leave them out")
    if model.target is None or model.striker is None:
        key = "target" if model.target is None else "striker"
        raise SceneError(f"{place[0]}: key '{key}' is missing; add it, or 'mjcf' with 'roles'")
    try:
        target = _target(model.target, model.units, folder)
    except SceneError as error:
        raise SceneError(f"{at(place, 'target')}: target: {error}") from error
    stated = model.striker.model_dump(exclude_none=True)
    length = LENGTHS[model.units.length]
    stated |= {key: stated[key] * length for key in ("radius", "width", "height") if key in stated}
    stated["forward"] = stated["forward"] * ANGLES[model.units.angle]
    try:
        return target, Striker(**stated)
    except SceneError as error:
        raise SceneError(f"{at(place, 'striker')}: {error}") from error


def _target(model: TargetModel, units: UnitsModel, folder: Path) -> Body:
    if model.shape not in SHAPE_FIELDS:
        raise SceneError(unknown_name("shape", model.shape, SHAPE_FIELDS))
    needed = SHAPE_FIELDS[model.shape]
    lacking = [key for key in needed if getattr(model, key) is None]
    if lacking:
        raise SceneError(f"shape {model.shape} needs {', '.join(lacking)}")
    # a key that is accepted and ignored would hide a mistake; a disc may have a height
    usable = {*needed, *{"mesh": ("scale", "part"), "disc": ("height",)}.get(model.shape, ())}
    for key in ("size", "radius", "height", "diameter", "outline", "file", "scale", "part"):
        if getattr(model, key) is not None and key not in usable:
            raise SceneError(f"shape {model.shape} has no '{key}'; it takes: {', '.join(sorted(usable))}")
    unit = LENGTHS[units.length]
    com = None if model.com is None else (model.com[0] * unit, model.com[1] * unit, model.com[2] * unit)
    if model.shape == "mesh":
        return mesh_body(
            folder / str(model.file),
            name=model.name,
            mass=model.mass,
            scale=model.scale or 1.0,
            part=model.part,
            inertia=model.inertia,
            com=com,
        )
    radius = model.diameter / 2 if model.diameter is not None else model.radius
    shape = Shape(
        model.shape,
        size=() if model.size is None else tuple(v * unit for v in model.size),
        radius=None if radius is None else radius * unit,
        height=None if model.height is None else model.height * unit,
        outline=tuple((x * unit, y * unit) for x, y in model.outline or ()),
    )
    return Body(model.name, "target", shape, model.mass, model.inertia, com)


def _striker_of(body: Body) -> Striker:
    """The striker that an MJCF's body is: round if it is a sphere or cylinder, else a face that looks along its +x."""
    if body.shape is None:
        raise SceneError(f"body '{body.name}' has no shape: it cannot be the striker")
    if body.shape.is_round:
        return Striker(radius=body.shape.radius, height=body.shape.full_height, mass=body.mass)
    width = float(np.ptp(body.shape.planar_outline[:, 1]))
    return Striker(width=width, height=body.shape.full_height, mass=body.mass)


def _parameters(model: SceneModel, section: str, place: Place) -> tuple[Parameter, ...]:
    """The parameters of `unknown` or `bounds`, in SI units."""
    factors = {"m": LENGTHS[model.units.length], "rad": ANGLES[model.units.angle]}
    found = []
    for name, limits in getattr(model, section).items():
        try:
            factor = factors.get(known(name).unit, 1.0)
            if (name in CONTACT) != (section == "bounds"):
                right = "bounds" if name in CONTACT else "unknown"
                raise SceneError(f"'{name}' belongs under '{right}'")
            if len(limits) not in (2, 3):
                raise SceneError(f"'{name}' needs [lower, upper], got {limits}")
            parameter = with_bounds(name, [v * factor for v in limits[:2]])
            found.append(parameter if len(limits) == 2 else _with_default(parameter, limits[2] * factor))
        except SceneError as error:
            raise SceneError(f"{at(place, section, name)}: {section}: {error}") from error
    return tuple(found)


def _with_default(parameter: Parameter, default: float) -> Parameter:
    if not parameter.low <= default <= parameter.high:
        raise SceneError(f"'{parameter.name}': the default {default:g} lies outside its bounds")
    return replace(parameter, default=default)
