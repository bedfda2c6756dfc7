"""Writing a whole recordings folder, format version 1, so that reading it gives back what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from carom.core.artefacts import atomically
from carom.core.errors import RecordingError, unknown_name
from carom.core.yaml_files import yaml_text
from carom.recordings.formats.folder import ANGULAR_VELOCITY, POSITION, QUATERNION, VELOCITY
from carom.recordings.formats.header import FORMAT, HEADER_NAME
from carom.recordings.formats.tables import SUFFIXES, write_table
from carom.recordings.tracked import Tracked
from carom.recordings.trajectory import Recordings, Trajectory
from carom.scenes.shapes import Body
from carom.state import Array

FileFormat = Literal["csv", "npz", "parquet"]


def write(
    path: str | Path,
    recordings: Recordings,
    *,
    file_format: FileFormat = "csv",
    tracked: Mapping[str, Tracked] | None = None,
) -> None:
    """Write a folder that `read` gives back as it was; data files first, the header last, each one whole.

    `tracked`: bodies whose poses are those of a tracked frame, and where that is; `read` moves them.
    """
    if file_format not in SUFFIXES.values():
        raise RecordingError(unknown_name("file format", file_format, SUFFIXES.values()))
    names = [f"{Path(trajectory.name).stem}.{file_format}" for trajectory in recordings.trajectories]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RecordingError(f"two trajectories would both be written to {twice}; give them different names")
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for bodies in (recordings.bodies, *(trajectory.bodies for trajectory in recordings.trajectories)):
        for body in bodies.values():
            _copy_mesh(body, folder)
    shared = _shared(recordings)
    listed: list[dict[str, Any]] = []
    for name, trajectory in zip(names, recordings.trajectories, strict=True):
        write_table(folder / name, dict(_columns(trajectory)))
        listed.append(_entry(name, trajectory, shared))
    header: dict[str, Any] = {"format": FORMAT, "units": {"length": "m", "angle": "rad", "time": "s"}, "frame": "z-up"}
    if recordings.gravity is not None:
        header["gravity"] = float(recordings.gravity)
    for name, frame in (tracked or {}).items():
        shared[name]["tracked"] = {"position": list(frame.position), "quaternion": list(frame.quaternion)}
    header["bodies"] = shared
    if recordings.ground is not None:
        header["ground"] = {
            "normal": [float(v) for v in recordings.ground.normal],
            "height": float(recordings.ground.height),
        }
    if recordings.imported:
        header["imported"] = dict(recordings.imported)
    header["trajectories"] = listed
    text = yaml_text(header, flow=None, width=110)
    atomically(folder / HEADER_NAME, lambda file: file.write(text.encode()))


def _copy_mesh(body: Body, folder: Path) -> None:
    """Put a mesh beside the header that names it: a folder is read without what lies elsewhere."""
    if body.shape is None or body.shape.file is None:
        return
    source = Path(body.shape.file)
    place, content = folder / source.name, source.read_bytes()
    if place.is_file() and place.read_bytes() != content:
        raise RecordingError(f"{place} is another mesh than {source}, of the same name; rename one of them")
    if not place.is_file():
        atomically(place, lambda file: file.write(content))


def _columns(trajectory: Trajectory) -> Iterator[tuple[str, Array]]:
    yield "time", trajectory.time
    empty = np.full((len(trajectory.time), 4), np.nan)
    for body, position in trajectory.position_world.items():
        quaternion = trajectory.quaternion_world[body]
        yield from _named(body, POSITION, position)
        yield from _named(body, QUATERNION, empty if quaternion is None else quaternion)
        if body in trajectory.velocity_world:
            yield from _named(body, VELOCITY, trajectory.velocity_world[body])
        if body in trajectory.angular_velocity_world:
            yield from _named(body, ANGULAR_VELOCITY, trajectory.angular_velocity_world[body])
    for name, values in trajectory.controls.items():
        yield f"ctrl.{name}", values


def _named(body: str, parts: tuple[str, ...], values: Array) -> Iterator[tuple[str, Array]]:
    for index, part in enumerate(parts):
        yield f"{body}.{part}", np.ascontiguousarray(values[:, index])


def _shared(recordings: Recordings) -> dict[str, dict[str, Any]]:
    """What the header can say of each body: an entry may add to it or change it, but not take away."""
    shared: dict[str, dict[str, Any]] = {name: _body_entry(body) for name, body in recordings.bodies.items()}
    for trajectory in recordings.trajectories:
        for name, body in trajectory.bodies.items():
            own = _body_entry(body)
            shared[name] = {key: value for key, value in shared.get(name, own).items() if key in own}
    return shared


def _entry(name: str, trajectory: Trajectory, shared: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    entry: dict[str, Any] = {"file": name}
    if trajectory.tags:
        entry["tags"] = dict(trajectory.tags)
    own: dict[str, Any] = {}
    for body_name, body in trajectory.bodies.items():
        differs = {key: value for key, value in _body_entry(body).items() if shared[body_name].get(key) != value}
        if differs:
            own[body_name] = differs
    if own:
        entry["bodies"] = own
    return entry


def _body_entry(body: Body) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": body.role}
    shape = body.shape
    if shape is not None:
        entry["shape"] = shape.kind
        if shape.kind == "box":
            entry["size"] = [float(v) for v in shape.size]
        elif shape.kind == "extruded":
            entry["outline"] = [[float(x), float(y)] for x, y in shape.outline]
        elif shape.kind == "compound":
            entry["outlines"] = [[[float(x), float(y)] for x, y in part] for part in shape.outlines]
        elif shape.kind == "mesh":
            entry["file"] = Path(str(shape.file)).name
        elif shape.kind == "disc" and shape.radius is not None:
            entry["diameter"] = 2 * float(shape.radius)
        elif shape.radius is not None:
            entry["radius"] = float(shape.radius)
        if shape.height is not None and shape.kind not in ("disc", "sphere", "mesh", "box"):
            entry["height"] = float(shape.height)
    if body.mass is not None:
        entry["mass"] = float(body.mass)
    for key, values in (("inertia", body.inertia), ("com", body.com), ("forward", body.forward)):
        if values is not None:
            entry[key] = [float(v) for v in values]
    return entry
