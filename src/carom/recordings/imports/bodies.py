"""Shapes and masses of imported bodies, from a file of the user's: other makers' files have poses only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

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


def with_bodies(trajectory: Trajectory, header: HeaderModel, folder: Path, *, roles: Mapping[str, str]) -> Trajectory:
    """A recording whose bodies are as a file states them; `roles`: those that the user says with --map."""
    unknown = [name for name in header.bodies if name not in trajectory.bodies and header.bodies[name].role != "ground"]
    if unknown:
        raise RecordingError(
            f"{folder}: {unknown_name('body', unknown[0], trajectory.bodies)}; say which one it is with "
            f"--map 'BODY={unknown[0]}:ROLE'"
        )
    bodies = dict(trajectory.bodies)
    for name, model in header.bodies.items():
        role = roles.get(name) or model.role or (trajectory.bodies[name].role if name in bodies else "ground")
        bodies[name] = to_body(name, model.model_copy(update={"role": role}), header, folder, complete=True)
    return replace(trajectory, bodies=bodies)


def without_others(header: HeaderModel, known: Collection[str]) -> HeaderModel:
    """A header of an earlier import without the bodies that are no longer there."""
    kept = {name: model for name, model in header.bodies.items() if name in known or model.role == "ground"}
    return header.model_copy(update={"bodies": kept})


def tracked_of(header: HeaderModel, folder: Path, known: Collection[str]) -> dict[str, Tracked]:
    """Bodies whose tracked frame is not their own, and where it is."""
    found = {name: to_tracked(name, model, header, folder) for name, model in header.bodies.items() if name in known}
    return {name: tracked for name, tracked in found.items() if tracked is not None}


def plain_bodies(bodies: Mapping[str, Body]) -> list[str]:
    """Targets and strikers without a shape: what they lack before anything can be identified."""
    return [name for name, body in bodies.items() if body.shape is None and body.role in ("target", "striker", "tool")]
