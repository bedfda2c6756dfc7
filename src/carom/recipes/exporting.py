"""`carom export`: a planned strike as the motion of a real arm's tool, or of its joints, within given limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from carom.core.artefacts import read_json
from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.plan.arm import Limits, load_arm, read_limits
from carom.plan.export import FORMAT, STEADY, strike_motion
from carom.plan.joint_files import approach_motion, write_joints, write_tip
from carom.plan.joint_motion import Base, Blow, JointMotion, Stop, joint_motion
from carom.plan.playback import HEAVIER, Played, play
from carom.recipes.result import PrintedTable, Result, command

__all__ = ["ExportResult", "RobotOptions", "export"]

STRIKE = "strike.json"
PLACE, SPEED = 2e-3, 0.05  #: [m], share of the commanded speed: how far off a strike may arrive when it is played back


@dataclass(frozen=True)
class RobotOptions:
    """The robot that carries out a strike."""

    arm: str | Path | None = None  #: MJCF file, or `arm`: Carom's own; None: the tool's motion alone
    tool: str | None = None  #: site that strikes; None: `tool`, or the only one
    limits: Path | None = None  #: file of limits; None: careful ones
    base: tuple[float, float, float] | None = None  #: [m, m, rad] of the robot in the world; None: as it was planned
    height: float = 0.0  #: [m] of the robot's base above the ground


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class _Contact(_Loose):
    position_world_m: tuple[float, float, float]
    yaw_world_rad: float
    velocity_world_m_s: tuple[float, float, float]


class _Robot(_Loose):
    x_m: float
    y_m: float
    yaw_rad: float


class _Strike(_Loose):
    """What is needed of a strike as `carom plan --export` writes it."""

    contact: _Contact
    robot_base: _Robot
    rate_hz: float = Field(ge=50, le=4000)
    strike: dict[str, Any]


@final
@dataclass(frozen=True)
class ExportResult(Result):
    """Files for a robot, and how near the motion comes to its limits."""

    out: Path
    files: tuple[Path, ...]
    facts: dict[str, Any]
    nearest: tuple[Stop, ...] = ()  #: to each limit of the arm
    played: Played | None = None  #: on the arm in MuJoCo
    careful: bool = False  #: whether nobody has stated what the joints can do

    def to_dict(self) -> dict[str, Any]:
        kept = {
            "files": [str(path) for path in self.files],
            **self.facts,
            "nearest_to_limits": [asdict(s) for s in self.nearest],
        }
        if self.played is not None:
            kept["played_back"] = {k: v for k, v in asdict(self.played).items() if k != "position"}
        return kept

    def tables(self) -> Sequence[PrintedTable]:
        rows: list[list[Any]] = [[name, value] for name, value in self.facts.items()]
        rows += [
            [f"nearest to its limit of {stop.limit}", f"{stop.ratio:.0%}: {stop.words()}"] for stop in self.nearest
        ]
        if (played := self.played) is not None:
            rows += [
                ["played back: tip off at contact [mm]", 1e3 * played.position_error],
                ["played back: velocity off at contact [share]", played.speed_error],
                ["played back: joints within their ranges", "yes" if played.range_kept else "no"],
            ]
        notes = (
            ()
            if played is None
            else (f"played back in MuJoCo on links {HEAVIER - 1:.0%} heavier, with joints that rub",)
        )
        return (PrintedTable(f"motion in {self.out}", ("what", "value"), rows, notes),)

    def next_commands(self) -> Sequence[str]:
        return (command("check", "RECORDINGS"),)  # of the strike as it was carried out

    def notes(self) -> Sequence[str]:
        lines = [f"wrote {path}" for path in self.files]
        if self.played is not None and not _arrives(self.played):
            lines.append(
                f"warning: played back it is off by {1e3 * self.played.position_error:.1f} mm and "
                f"{self.played.speed_error:.0%} of its speed: the arm is too weak, or its limits are too wide"
            )
        if self.careful:
            lines.append(
                "no limits of the joints were given: careful ones were taken; state your robot's with --limits"
            )
        lines.append("before running: nothing but the arm itself was looked at; keep its way clear")
        return lines


def export(
    strike: str | Path,
    out: str | Path,
    *,
    robot: RobotOptions | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> ExportResult:
    """Make a motion for a robot of a strike that `carom plan --export` wrote, and write it into `out`.

    With an arm the joints' motion is found by inverse kinematics and played back on it; raises with the limit that
    stops the strike if there is one.
    """
    place, robot = Path(strike), robot or RobotOptions()
    path = place / STRIKE if place.is_dir() else place
    asked = _read(path)
    limits = Limits() if robot.limits is None else read_limits(robot.limits)
    at, heading = np.array(asked.contact.position_world_m), np.array(asked.contact.velocity_world_m_s)
    own = asked.robot_base
    x, y, yaw = (own.x_m, own.y_m, own.yaw_rad) if robot.base is None else robot.base
    base = Base(x, y, robot.height, yaw)
    if robot.arm is None:
        for name, value in (("--tool", robot.tool),):
            if value is not None:
                raise CaromError(f"{name} is for --arm: it is a site of the robot's MJCF")
        tip = strike_motion(
            at[:2], heading[:2], height=at[2], yaw=asked.contact.yaw_world_rad, limits=limits.tip, rate=asked.rate_hz
        )
        files = write_tip(Path(out), tip, base, asked.strike)
        facts = {"run_up_m": tip.run_up, "stopping_m": tip.stopping_distance, "seconds": float(tip.time[-1])}
        return ExportResult(Path(out), tuple(files), facts)
    arm = load_arm(robot.arm, tool=robot.tool, limits=limits)
    progress("inverse kinematics", 0, 2)
    motion = joint_motion(
        arm,
        Blow(at[:2], heading[:2], height=float(at[2]), yaw=asked.contact.yaw_world_rad),
        base=base,
        limits=limits.tip,
        free_turn=asked.strike.get("striker") == "round",
        settle=STEADY,
        rate=asked.rate_hz,
        seed=seed,
    )
    progress("play it back", 1, 2)
    played = play(motion)
    files = write_joints(Path(out), motion, asked.strike)
    progress("play it back", 2, 2)
    return ExportResult(Path(out), tuple(files), _facts(motion), motion.nearest, played, arm.careful)


def _arrives(played: Played) -> bool:
    """Whether a strike that was played back may count as the one that was planned."""
    return played.position_error < PLACE and played.speed_error < SPEED and played.range_kept


def _facts(motion: JointMotion) -> dict[str, Any]:
    tip = motion.tip
    way = approach_motion(motion.arm, motion.position[0], tip.rate)
    return {
        "run_up_m": tip.run_up,
        "stopping_m": tip.stopping_distance,
        "seconds": float(tip.time[-1]),
        "seconds_from_home_to_start": (len(way) - 1) / tip.rate,
        "contact_speed_m_s": float(np.linalg.norm(tip.velocity[tip.contact_index])),
    }


def _read(path: Path) -> _Strike:
    """A strike as `carom plan --export` wrote it."""
    if not path.is_file():
        raise CaromError(
            f"{path}: no such file; expected {STRIKE}, or its folder, from: carom plan MODEL --export FOLDER"
        )
    content = read_json(path, error=CaromError)
    if content.get("format") != FORMAT:
        raise CaromError(f"{path}: expected a strike ({FORMAT}), from: carom plan MODEL --export FOLDER")
    try:
        found = _Strike.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise CaromError(f"{path}: {where}: {first['msg']}; write it again with: carom plan --export") from error
    numbers = (*found.contact.position_world_m, *found.contact.velocity_world_m_s, found.contact.yaw_world_rad)
    if max(map(abs, numbers)) > 100:
        raise CaromError(f"{path}: contact: expected metres, metres per second and radians below 100, got {numbers}")
    return found
