"""The take of a plan: the strike as the model simulates it, where it is wanted, and the robot's set-points."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.plan import approach
from carom.plan.search import FARTHEST, HORIZON
from carom.report.style import BLUE, ORANGE
from carom.scenes.strike import FASTEST, StrikeScene
from carom.state import Array, StrikeCommands
from carom.view.learned import scene_shapes
from carom.view.shown import COLOURS, Arrow, Mark, Take, Track
from carom.view.strikes import (
    PLANAR,
    STRIKER,
    TARGET,
    StrikeEngineShown,
    StrikePlace,
    impulse_arrow,
    simulated,
    until_rest,
)

FILE = "strike.json"
POSES = {"contact_point_target_frame_m": 2, "velocity_target_frame_m_s": 2, "target_pose": 3, "expected_pose": 3}
LARGEST = 50e6  #: bytes of a plan's file
SET_POINTS = "set-points of the robot"


@dataclass(frozen=True)
class PlanFile:
    """What a plan's file says."""

    path: Path
    commands: StrikeCommands
    wanted: Array  #: [3] of the target's frame [m, m, rad]; yaw NaN: any
    expected: Array  #: [3]
    model: Path | None  #: that it was planned with, if it says so
    points: Track | None  #: the striker's set-points

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """The plan in `strike.json` (from `carom plan --export`) or in the file of `carom plan --json`."""
        file = path / FILE if path.is_dir() else path
        if file.stat().st_size > LARGEST:
            raise CaromError(f"{file}: expected a plan of at most {LARGEST / 1e6:.0f} MB")
        try:
            content = json.loads(file.read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise CaromError(
                f"{file}: expected the JSON of `carom plan`, got something else ({error!s:.120})"
            ) from error
        plan = content.get("strike", content) if isinstance(content, dict) else {}
        try:
            rows = {name: _numbers(plan[name], width) for name, width in POSES.items()}
            wanted = _numbers([np.nan if v is None else v for v in plan["wanted_pose"]], 3, free=True)
            points = _set_points(content) if "set_points" in content else None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            said = f"{type(error).__name__} {' '.join(str(error).split()):.160}"
            raise CaromError(f"{file}: expected the JSON of `carom plan`: {said}") from error
        point, velocity, pose, expected = (rows[name] for name in POSES)
        if max(np.abs(a).max() for a in (point, pose, expected)) > FARTHEST or not 0 < np.hypot(*velocity) <= FASTEST:
            raise CaromError(f"{file}: expected places within {FARTHEST:g} m and a speed up to {FASTEST:g} m/s")
        commands = StrikeCommands(point[None], velocity[None], pose[None])
        named = plan.get("model")
        return cls(file, commands, wanted, expected, Path(named) if isinstance(named, str) else None, points)


def is_plan(path: Path) -> bool:
    """Whether a path is, or holds, a plan."""
    return (path.is_dir() and (path / FILE).is_file()) or (path.is_file() and path.suffix == ".json")


def _numbers(values: Any, width: int, *, free: bool = False) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (width,) or not (np.isfinite(array[:2]).all() and (free or np.isfinite(array).all())):
        raise ValueError(f"expected {width} finite numbers, got {values!r:.60}")
    return array


def _set_points(content: Mapping[str, Any]) -> Track:
    """The motion of the striker's frame, contact at zero."""
    points, contact = content["set_points"], content["contact"]
    time = np.asarray(points["time_s"], dtype=np.float64) - float(contact["time_s"])
    place = np.column_stack([np.asarray(points[name], dtype=np.float64) for name in ("x_m", "y_m", "z_m")])
    if not (len(time) > 1 and np.isfinite(time).all() and np.isfinite(place).all() and (np.diff(time) > 0).all()):
        raise ValueError("set_points: expected finite numbers and a time that increases")
    turn = np.tile(about_z(float(contact["yaw_world_rad"])), (len(time), 1, 1))
    return Track(SET_POINTS, (STRIKER,), time, place[:, None], turn)


@dataclass(frozen=True)
class PlanTakes:
    """One plan in the model that it was made with, and in others."""

    plan: PlanFile
    scene: StrikeScene
    engines: Sequence[StrikeEngineShown]

    def __call__(self, index: int) -> Take:
        """The strike from shortly before its contact until it rests."""
        scene, strikes = self.scene, approach(self.scene, self.plan.commands)
        place = StrikePlace.flat(scene, (float(strikes.target_pose[0, 2]), float(strikes.striker_pose[0, 2])))
        tracks: list[Track] = []
        arrows: list[Arrow] = []
        words = [PLANAR]
        for number, engine in enumerate(self.engines):
            colour = COLOURS[(number + 2) % len(COLOURS)]
            track, post, reason = simulated(engine, strikes, HORIZON, place, colour, from_there=True)
            if track is None:
                words.append(f"{engine.name}: {reason}.")
                continue
            tracks.append(track)
            arrows += impulse_arrow(engine.name, scene, strikes, post, place.height)
            away = 1e3 * float(np.linalg.norm(track.position[-1, 0, :2] - self.plan.wanted[:2]))
            words.append(f"{engine.name}: ends {away:.1f} mm from the wanted place.")
        tracks = until_rest(tracks)
        if self.plan.points is not None:
            tracks.append(self.plan.points)
        if not tracks:
            tracks.append(place.still(strikes))
        marks = (self._mark("wanted", self.plan.wanted, BLUE), self._mark("expected", self.plan.expected, ORANGE))
        words.append("Blue wire: where the target is wanted. Orange wire: where the plan expects it.")
        return Take(self.plan.path.name, scene_shapes(scene), tuple(tracks), tuple(arrows), marks, words=tuple(words))

    def _mark(self, name: str, pose: Array, colour: str) -> Mark:
        yaw = pose[2] if np.isfinite(pose[2]) else self.plan.expected[2]
        place = np.array([pose[0], pose[1], self.scene.shape.full_height / 2])
        return Mark(name, TARGET, place, about_z(yaw), colour)
