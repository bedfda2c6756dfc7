"""From the content of a scene file to the scene: units, shapes, roles and parameters, each error with its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.constants import ANGLES, LENGTHS
from carom.core.errors import SceneError
from carom.core.folders import file_within
from carom.scenes.mesh_files import LARGEST
from carom.scenes.meshes import mesh_body
from carom.scenes.parameters import Parameter, known, with_bounds
from carom.scenes.schema import Place, SceneModel, StrikerModel, TargetModel, UnitsModel, at
from carom.scenes.shapes import Body
from carom.scenes.stated import (
    STATED_FIELDS,
    BodyModel,
    heading,
    lacking_keys,
    refuse_needless,
    scaled,
    stated_inertia,
    stated_shape,
)
from carom.scenes.strike import TEACHERS, Striker, StrikeScene, width_across

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
            bodies = bodies_from_mjcf(file_within(folder, model.mjcf, error=SceneError), model.roles.model_dump())
            return bodies["target"], _striker_of(bodies["striker"])
        except SceneError as error:
            raise SceneError(f"{at(place, 'mjcf')}: {error}") from error
    if model.roles is not None:
        raise SceneError(f"{at(place, 'roles')}: roles name bodies of an MJCF; add 'mjcf: file.xml' or leave them out")
    if model.target is None or model.striker is None:
        key = "target" if model.target is None else "striker"
        raise SceneError(f"{place[0]}: key '{key}' is missing; add it, or 'mjcf' with 'roles'")
    for key in ("shape", "mass"):
        if getattr(model.target, key) is None:
            raise SceneError(f"{at(place, 'target')}: key 'target.{key}' is missing; add it")
    try:
        target = _target(model.target, model.units, folder)
    except SceneError as error:
        raise SceneError(f"{at(place, 'target')}: target: {error}") from error
    try:
        return target, _striker(model.striker, model.units, folder)
    except SceneError as error:
        message = str(error) if str(error).startswith("striker: ") else f"striker: {error}"
        raise SceneError(f"{at(place, 'striker')}: {message}") from error


def _target(model: TargetModel, units: UnitsModel, folder: Path) -> Body:
    if model.shape == "face":
        raise SceneError("only a striker can be a face; give the target's whole shape")
    if model.forward is not None:
        raise SceneError("'forward' says where a striker looks; leave it out here")
    _complete(model)
    length, angle = LENGTHS[units.length], ANGLES[units.angle]
    com, inertia = scaled(model.com, length), stated_inertia(model)
    if model.shape == "mesh":
        return mesh_body(
            file_within(folder, str(model.file), error=SceneError),
            name=model.name,
            mass=model.mass,
            scale=model.scale or 1.0,
            part=model.part,
            inertia=inertia,
            com=com,
        )
    shape = stated_shape(model, folder, length=length, angle=angle)
    return Body(model.name, "target", shape, model.mass, inertia, com)


def _complete(model: BodyModel) -> None:
    lacking = lacking_keys(model)
    if lacking:
        raise SceneError(f"shape {model.shape} needs {', '.join(lacking)}")
    refuse_needless(model)


def _striker(model: StrikerModel, units: UnitsModel, folder: Path) -> Striker:
    """Round at its word, or the face that it shows where it looks."""
    for key in ("inertia", "inertia_z", "com"):
        if getattr(model, key) is not None:
            raise SceneError(f"a scene's striker is known by its shape, mass and forward; leave '{key}' out")
    length, angle = LENGTHS[units.length], ANGLES[units.angle]
    ahead = heading(model, angle=angle)
    if model.shape is None:  # the short form, as older files have it
        needless = next((key for key in ("size", "diameter", "outline", "file") if getattr(model, key)), None)
        if needless is not None:
            raise SceneError(f"'{needless}' needs a 'shape' beside it; one of {', '.join(STATED_FIELDS)}")
    else:
        _complete(model)
    if model.shape in (None, "face"):
        lengths = {key: getattr(model, key) for key in ("radius", "width", "height")}
        stated = {key: value * length for key, value in lengths.items() if value is not None}
        return Striker(**stated, mass=model.mass, forward=ahead)
    shape = stated_shape(model, folder, length=length, angle=angle)
    return _striker_of(Body("striker", "striker", shape, model.mass), ahead)


def _striker_of(body: Body, forward: float = 0.0) -> Striker:
    """The striker that a body is: round if it is so seen from above, else the face that it shows where it looks."""
    if body.shape is None:
        raise SceneError(f"body '{body.name}' has no shape: it cannot be the striker")
    height = body.shape.full_height
    if body.shape.is_round:
        return Striker(radius=body.shape.radius, height=height, mass=body.mass, forward=forward)
    return Striker(width=width_across(body.shape, forward), height=height, mass=body.mass, forward=forward)


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
