"""Tasks of pushing by name or from a file: what a user types where a command asks for a scene of pushing.

    format: carom-pushing/1
    mjcf: cell.xml                        # beside this file; position servos on joints, each with a ctrlrange
    roles: {target: puck, tool: finger}   # the body that is pushed, on a free joint, and the one that pushes
    start: {centre: [0.1, 0], far: 0.08}  # where blocks begin: a disc, or a sector of a ring (near, aside)
    goal: {centre: [0.1, 0], far: 0.15}   # where they are to go
    border: {far: 0.4}                    # beyond it block or tool has left, and an episode is cut off
    turn: 60                              # greatest turn that is asked for; without it only the place counts
    steps: 80                             # control periods of 0.05 s
    reach: 0.03                           # of a joint in a period, at an action of 1 [m] or [rad]

Lengths in metres, angles in degrees. A site on the tool's body is its tip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from carom.core.errors import CaromError, SceneError, unknown_name
from carom.core.folders import file_within
from carom.core.yaml_files import Where, YamlError, explain, read_yaml, refuse_duplicates
from carom.envs.pushing.starts import Places, Zone
from carom.envs.pushing.task import PushingTask, pushing_task
from carom.scenes.pushing import OWN, PushScene
from carom.scenes.scene import MjcfScene
from carom.scenes.stated import StatedModel

FORMAT = "carom-pushing/1"
LEAST = 0.05  #: [m] between start and goal, where a file does not say


class ZoneKeys(StatedModel):
    """A part of the table."""

    centre: tuple[float, float] = (0.0, 0.0)
    near: float = Field(default=0.0, ge=0)
    far: float = Field(gt=0, le=10)
    aside: float = Field(default=180.0, gt=0, le=180)

    def zone(self) -> Zone:
        """In radians."""
        return Zone(self.centre, self.near, self.far, float(np.radians(self.aside)))


class RoleKeys(StatedModel):
    """Which body is pushed, and which pushes."""

    target: str
    tool: str


class PushingKeys(StatedModel):
    """The whole of a file."""

    format: Literal["carom-pushing/1"]
    name: str | None = None
    mjcf: str
    roles: RoleKeys
    start: ZoneKeys
    goal: ZoneKeys
    border: ZoneKeys
    least: float = Field(default=LEAST, ge=0)
    turn: float | None = Field(default=None, gt=0, le=180)
    steps: int = Field(default=80, ge=2, le=10_000)
    reach: float = Field(default=0.03, gt=0, le=1)


_INSIDE: Mapping[str, type[StatedModel]] = {"roles": RoleKeys, **dict.fromkeys(("start", "goal", "border"), ZoneKeys)}


def load_task(what: str | Path) -> PushingTask:
    """The task of this name, or of a file; an error says what exists.

    >>> load_task("planar-t").turns
    True
    """
    if str(what) in OWN:
        return pushing_task(str(what))
    path = Path(what)
    if path.suffix.lower() in (".xml", ".mjcf"):
        raise SceneError(
            f"{path.name} is an MJCF, and pushing needs to know what pushes what where; write {path.stem}.yaml beside "
            f"it: {{format: {FORMAT}, mjcf: {path.name}, roles: {{target: BODY, tool: BODY}}, start: {{far: 0.1}}, "
            "goal: {far: 0.15}, border: {far: 0.4}}"
        )
    if not path.is_file():
        if path.suffix or len(path.parts) > 1 or path.is_dir():
            raise SceneError(f"{path}: expected a file (.yaml) or one of {', '.join(OWN)}; there is no such file")
        raise SceneError(f"{unknown_name('scene of pushing', str(what), OWN)}; or give a file (.yaml)")
    return _task(path, _read(path))


def fingerprint_of(task: PushingTask) -> dict[str, Any]:
    """What a policy keeps of its task, so that it is not tried in another one."""
    own = task.scene.own
    kept = {"scene": task.scene.name, "steps": task.steps, "reach": task.reach, "turns": task.turns}
    if own is None:
        return {**kept, "mass": task.scene.mass}
    text = own.spec().to_xml()
    return {**kept, "roles": dict(own.roles), "mjcf_sha256": sha256(text.encode()).hexdigest()}


def _read(path: Path) -> PushingKeys:
    try:
        data, node = read_yaml(path)
        refuse_duplicates(node)
        if not isinstance(data, Mapping):
            raise SceneError(f"{path}: expected a mapping that starts with 'format: {FORMAT}', got no mapping")
        if data.get("format") != FORMAT:
            raise SceneError(f"{path}: expected format: {FORMAT}, got {data.get('format')!r:.60}")
        return PushingKeys.model_validate(data)
    except ValidationError as error:
        raise _refused(path, explain(error, node, _keys)) from error
    except YamlError as fault:
        raise _refused(path, fault) from fault


def _task(path: Path, keys: PushingKeys) -> PushingTask:
    for name in ("start", "goal", "border"):
        zone: ZoneKeys = getattr(keys, name)
        if zone.near >= zone.far:
            raise SceneError(f"{path}: {name}: expected near below far, got {zone.near:g} and {zone.far:g}")
    name = keys.name or path.stem
    try:
        file = file_within(path.parent, keys.mjcf, error=SceneError)
        scene = PushScene(name, own=MjcfScene(name, file=file, roles=keys.roles.model_dump()))
    except CaromError as error:
        raise SceneError(f"{path}: {error}") from error
    turn = 0.0 if keys.turn is None else float(np.radians(keys.turn))
    places = Places(keys.start.zone(), keys.goal.zone(), keys.least, turn, keys.border.zone())
    task = PushingTask(scene, places, keys.steps, keys.reach, turns=keys.turn is not None)
    _check_starts(path, task)
    return task


def _check_starts(path: Path, task: PushingTask) -> None:
    """Refuse zones in which an episode ends before it begins."""
    start, goals = task.sample(64, np.random.default_rng(0))
    away = np.hypot(*(goals.position - start.position[:, 0])[:, :2].T)
    if away.min() < task.places.least:
        least = f"{task.places.least:g} m"
        raise SceneError(f"{path}: goal: some starts have no place in it that is {least} away; make it larger")
    out = task.outside(start)
    if out.any():
        tool = task.scene.tool_position(start.joint_position)[0]
        raise SceneError(
            f"{path}: border: {out.mean():.0%} of the starts lie outside of it (the tool begins at x {tool[0]:.3g}, "
            f"y {tool[1]:.3g} m); make it larger"
        )


def _keys(where: Where) -> Iterable[str]:
    return _INSIDE.get(".".join(map(str, where[:-1])), PushingKeys).model_fields


def _refused(path: Path, fault: YamlError) -> SceneError:
    return SceneError(f"{path if fault.line is None else f'{path}, line {fault.line}'}: {fault.message}")
