"""Scenes by name, from a file and back: what a user types where a command asks for SCENE.

A scene file states what is struck, by what, and what was not measured:

    format: carom-scene/1
    name: my-block
    units: {length: mm, angle: deg}     # m and rad if not given; masses and speeds are always SI
    target: {shape: extruded, outline: [[-40, -20], [40, -20], [0, 40]], height: 50, mass: 0.2}
    striker: {shape: face, width: 40, forward: x}    # or any shape of a body; a mass makes it give way
    unknown: {face_tilt: [-5, 5], com_x: [-4, 4]}
    bounds: {striker_friction: [0.05, 0.8]}
    speed: [0.2, 0.8]
    deflection: 15

`mjcf: file.xml` with `roles: {target: block, striker: paddle}` stands in for `target` and `striker`. Paths
are relative to the scene file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from carom.core.artefacts import write_text
from carom.core.errors import SceneError, unknown_name
from carom.core.yaml_files import yaml_text
from carom.scenes.build import build_scene
from carom.scenes.meshes import MESH_SUFFIXES, mesh_body
from carom.scenes.parameters import Parameter, with_bounds
from carom.scenes.schema import FORMAT, Place, read_model, recordings_message, validate
from carom.scenes.shapes import SHAPE_FIELDS, Body, Shape
from carom.scenes.strike import BUILTIN, StrikeScene, builtin, from_bodies

ROUND = tuple(kind for kind, needed in SHAPE_FIELDS.items() if {"radius", "diameter"} & {*needed})


def load_scene(what: str | Path) -> StrikeScene:
    """The scene of this name or file; an error says what exists.

    >>> load_scene("triangle").mass
    0.17
    """
    if str(what) in BUILTIN:
        return builtin(str(what))
    path = Path(what)
    suffix = path.suffix.lower()
    if path.is_dir():
        if (path / "recordings.yaml").is_file():
            raise SceneError(recordings_message(str(path)))
        raise SceneError(f"{path} is a folder; give a scene file, or one of the built-in scenes: {', '.join(BUILTIN)}")
    if not path.is_file():
        if suffix or len(path.parts) > 1:
            raise SceneError(f"scene file {path} does not exist; built-in scenes: {', '.join(BUILTIN)}")
        raise SceneError(f"{unknown_name('scene', str(what), BUILTIN)}; or give a scene file (.yaml)")
    if suffix in MESH_SUFFIXES:
        raise SceneError(
            f"{path.name} is a mesh, and a scene needs a mass and a striker too; write {path.stem}.yaml beside it: "
            f"{{format: {FORMAT}, target: {{shape: mesh, file: {path.name}, mass: 0.2}}, "
            "striker: {shape: sphere, radius: 0.02}}"
        )
    if suffix in (".xml", ".mjcf"):
        raise SceneError(
            f"{path.name} is an MJCF, and a scene needs to know who strikes whom; write {path.stem}.yaml beside it: "
            f"{{format: {FORMAT}, mjcf: {path.name}, roles: {{target: BODY, striker: BODY}}}}"
        )
    model, place = read_model(path)
    return build_scene(model, place, path.parent, path.stem)


def scene_from_bodies(bodies: Mapping[str, Body] | Sequence[Body], *, forward: float = 0.0) -> StrikeScene:
    """The scene of a recording from the bodies in its header: its one target and its one striker.

    `forward` is the direction of approach in the striker's frame [rad], for a striker with a flat face.
    """
    everyone = list(bodies.values()) if isinstance(bodies, Mapping) else list(bodies)
    found: dict[str, Body | None] = {}
    for role in ("target", "striker"):
        names = [b.name for b in everyone if b.role == role]
        if len(names) > 1:
            raise SceneError(f"a strike scene has one {role}, these recordings have {len(names)}: {', '.join(names)}")
        found[role] = next((b for b in everyone if b.role == role), None)
    target = found["target"]
    if target is None:
        roles = ", ".join(f"{b.name}: {b.role}" for b in everyone) or "nobody"
        raise SceneError(f"the recordings declare no target (role: target); they have {roles}")
    for body in filter(None, found.values()):
        if body.shape is not None and body.shape.radius is None and body.shape.kind in ROUND:
            lacking = SHAPE_FIELDS[body.shape.kind][0]
            raise SceneError(f"body '{body.name}': its {lacking} is not the same in all recordings, or not stated")
    if target.shape is not None and target.shape.kind == "mesh":
        path = Path(str(target.shape.file))
        target = mesh_body(path, name=target.name, mass=target.mass, inertia=target.inertia, com=target.com)
    return from_bodies(target, found["striker"], forward=forward)


def save_scene(scene: StrikeScene, path: str | Path) -> None:
    """Write the scene as a scene file, which `load_scene` reads back to an equal scene."""
    write_text(Path(path), yaml_text(scene_to_dict(scene)))


def scene_to_dict(scene: StrikeScene) -> dict[str, Any]:
    """The scene as a scene file's content, in SI units, ready for JSON or YAML; a mesh becomes its outline."""
    striker = scene.striker
    data: dict[str, Any] = {
        "format": FORMAT,
        "name": scene.name,
        "units": {"length": "m", "angle": "rad"},
        "target": _target_to_dict(scene.target, scene.shape),
        "striker": {"shape": "face" if striker.flat else "cylinder"}
        | {
            key: float(getattr(striker, key))
            for key in ("radius", "width", "height", "mass", "forward")
            if getattr(striker, key) is not None
        },
        "unknown": {p.name: _limits(p) for p in scene.unknown},
        "bounds": {p.name: _limits(p) for p in scene.bounds},
        "speed": [float(v) for v in scene.speed],
        "deflection": float(scene.deflection),
        "face_angle": float(scene.face_angle),
    }
    return data if scene.arc is None else data | {"arc": [float(v) for v in scene.arc]}


def scene_from_dict(data: Mapping[str, Any], *, source: str = "scene") -> StrikeScene:
    """The scene that `scene_to_dict` described; errors start with `source`."""
    place: Place = (source, None)
    return build_scene(validate(data, place), place, Path(), source)


def _target_to_dict(body: Body, shape: Shape) -> dict[str, Any]:
    data: dict[str, Any] = {"name": body.name, "shape": shape.kind}
    if shape.kind == "mesh":
        data |= {"shape": "extruded", "outline": shape.planar_outline.tolist(), "height": float(shape.full_height)}
    elif shape.kind == "extruded":
        data["outline"] = [[float(x), float(y)] for x, y in shape.outline]
    elif shape.kind == "box":
        data["size"] = [float(v) for v in shape.size]
    elif shape.kind == "disc":
        data["diameter"] = 2 * float(shape.radius or 0.0)
    else:
        data["radius"] = float(shape.radius or 0.0)
    if shape.height is not None:
        data["height"] = float(shape.height)
    data["mass"] = None if body.mass is None else float(body.mass)
    for key in ("inertia", "com"):
        if getattr(body, key) is not None:
            data[key] = [float(v) for v in getattr(body, key)]
    return data


def _limits(parameter: Parameter) -> list[float]:
    """Bounds of a parameter, and its default where that isn't the usual one."""
    limits = [float(parameter.low), float(parameter.high)]
    usual = with_bounds(parameter.name, limits).default
    return limits if parameter.default == usual else [*limits, float(parameter.default)]
