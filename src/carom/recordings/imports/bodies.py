"""Shapes and masses of imported bodies, from a file of the user's: other makers' files have poses only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from carom.core.errors import RecordingError, unknown_name
from carom.core.yaml_files import YamlError, explain, read_yaml, refuse_duplicates
from carom.recordings.faults import FaultError
from carom.recordings.formats.header import (
    FORMAT,
    HEADER_NAME,
    HeaderModel,
    RecordedBodyModel,
    to_body,
    to_ground,
    to_tracked,
)
from carom.recordings.tracked import Tracked
from carom.recordings.trajectory import Ground, Trajectory
from carom.scenes.shapes import Body


def read_bodies(path: Path) -> tuple[HeaderModel, Path]:
    """What a file with `bodies:` says, as a header of ours has it, and the folder of meshes that it names."""
    file = path / HEADER_NAME if path.is_dir() else path
    if not file.is_file():
        raise RecordingError(f"{file}: no such file; expected one with 'bodies:' as a recordings.yaml has them")
    try:
        data, node = read_yaml(file)
        if not isinstance(data, dict) or not isinstance(data.get("bodies"), dict):
            raise YamlError("expected 'bodies:' with a name, shape and mass for each", code="missing-key", line=None)
        refuse_duplicates(node)
        data = {
            "format": FORMAT,
            **{key: value for key, value in data.items() if key not in ("trajectories", "imported")},
        }
        try:
            header = HeaderModel.model_validate(data)
        except ValidationError as error:
            raise explain(error, node, lambda _: list(RecordedBodyModel.model_fields), whole="the file") from error
    except YamlError as fault:
        raise FaultError(fault.message, code=fault.code, file=file, row=fault.line) from fault
    return header, file.parent


def ground_of(header: HeaderModel, folder: Path) -> Ground | None:
    """The ground that such a file states."""
    return to_ground(header.ground, header, folder / HEADER_NAME)


def with_bodies(trajectory: Trajectory, header: HeaderModel, folder: Path, *, stated: Mapping[str, str]) -> Trajectory:
    """A recording whose bodies are as a file states them; `stated`: roles that the user says with --map."""
    unknown = [name for name in header.bodies if name not in trajectory.bodies and header.bodies[name].role != "ground"]
    if unknown:
        raise RecordingError(
            f"{folder}: {unknown_name('body', unknown[0], trajectory.bodies)}; say which one it is with "
            f"--map 'BODY={unknown[0]}:ROLE'"
        )
    bodies, position, quaternion = (
        dict(trajectory.bodies),
        dict(trajectory.position_world),
        dict(trajectory.quaternion_world),
    )
    for name, model in header.bodies.items():
        role = stated.get(name) or model.role or (trajectory.bodies[name].role if name in bodies else "ground")
        own = model.model_copy(update={"role": role})
        body = to_body(name, own, header, folder, complete=True)
        bodies[name] = body
        tracked = to_tracked(name, own, header, folder)
        if tracked is not None and name in position:
            position[name], quaternion[name] = _moved(name, tracked, position[name], quaternion[name])
    return replace(trajectory, bodies=bodies, position_world=position, quaternion_world=quaternion)


def _moved(
    name: str, tracked: Tracked, position: np.ndarray, quaternion: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    if quaternion is None:
        if any(tracked.position):
            raise RecordingError(
                f"body '{name}' has no measured orientation: where its tracked frame is on it cannot be counted with; "
                "leave 'tracked' out"
            )
        return position, None
    place, turn, _ = tracked.own(position, quaternion)
    return place, turn


def plain_bodies(bodies: Mapping[str, Body]) -> list[str]:
    """Targets and strikers without a shape: what they lack before anything can be identified."""
    return [name for name, body in bodies.items() if body.shape is None and body.role in ("target", "striker", "tool")]
