"""A user's robot as MJCF: its joints, what they can do, and the site that is the striker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from carom.core.errors import CaromError, unknown_name
from carom.core.yaml_files import YamlError, read_yaml
from carom.plan.export import FRANKA, CartesianLimits
from carom.scenes.mjcf_files import built, load_mjcf
from carom.scenes.pushing.robots import ROBOTS, robot_xml
from carom.scenes.stated import StatedModel
from carom.state import Array

if TYPE_CHECKING:
    import mujoco

Index = NDArray[np.intp]
OWN = "arm"  #: name of Carom's own arm, in place of a file
FEWEST = 6  #: joints that bring a tool to any pose
KEYFRAME = "home"
ALL = "all"  #: in a file of limits: every joint that is not named


class Rates(StatedModel):
    """What a joint can do; hinges in radians, slides in metres."""

    velocity: float = Field(default=2.0, ge=0.05, le=1e3)  #: [rad/s]
    acceleration: float = Field(default=10.0, ge=0.1, le=1e5)  #: [rad/s^2]
    jerk: float = Field(default=1000.0, ge=1.0, le=1e8)  #: [rad/s^3]


class TipRates(StatedModel):
    """What the tool's tip may do."""

    velocity: float = Field(default=FRANKA.velocity, ge=0.01, le=20.0)  #: [m/s]
    acceleration: float = Field(default=FRANKA.acceleration, ge=0.5, le=1e4)  #: [m/s^2]
    jerk: float = Field(default=FRANKA.jerk, ge=10.0, le=1e7)  #: [m/s^3]


class LimitsFile(StatedModel):
    """A file of limits, as a person writes it."""

    tip: TipRates = TipRates()
    joints: dict[str, Rates] = Field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """What is asked of a motion."""

    tip: CartesianLimits = FRANKA
    joints: Mapping[str, Rates] | None = None  #: by name, or `all`; None: nobody said, careful ones

    def of(self, names: Sequence[str]) -> tuple[Array, Array, Array]:
        """Velocity, acceleration and jerk [J] of these joints."""
        stated = self.joints or {}
        for name in stated:
            if name != ALL and name not in names:
                raise CaromError(f"limits: {unknown_name('joint', name, [*names, ALL])}")
        rates = [stated.get(name, stated.get(ALL, Rates())) for name in names]
        return tuple(np.array([getattr(r, what) for r in rates]) for what in Rates.model_fields)  # type: ignore[return-value]


def read_limits(path: Path) -> Limits:
    """Limits from a file: `tip: {velocity, acceleration, jerk}` and `joints: {NAME or all: the same}`."""
    try:
        content, _ = read_yaml(path)
        stated = LimitsFile.model_validate(content or {})
    except YamlError as error:
        raise CaromError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise CaromError(f"{path}: {where}: {first['msg']}; docs/exporting.md has every key") from error
    return Limits(CartesianLimits(**stated.tip.model_dump()), stated.joints or None)


@dataclass(frozen=True)
class Arm:
    """A robot whose joints lead from the world to a site."""

    name: str
    model: mujoco.MjModel
    site: str
    joints: tuple[str, ...]
    place: Index  #: [J] of the joints in qpos
    degree: Index  #: [J] of the joints in qvel
    range: Array  #: [J, 2] lowest and highest position [rad]; infinite where there is none
    velocity: Array  #: [J] greatest, [rad/s]
    acceleration: Array  #: [J] [rad/s^2]
    jerk: Array  #: [J] [rad/s^3]
    torque: Array  #: [J] [N m]; infinite where the MJCF states none
    home: Array  #: [Q] all positions of the model at its keyframe `home`, else its first, else as it is drawn
    careful: bool  #: whether nobody has stated what the joints can do


def load_arm(place: str | Path, *, tool: str | None = None, limits: Limits | None = None) -> Arm:
    """A robot from an MJCF file, or Carom's own (`arm`); `tool` is the site that strikes.

    >>> arm = load_arm("arm")
    >>> arm.joints[0], arm.site, arm.torque.tolist()
    ('joint_1', 'tool', [24.0, 24.0, 24.0, 8.0, 8.0, 8.0])
    """
    import mujoco

    if str(place) in ROBOTS and not Path(place).exists():
        model = built(f"robot {place}", lambda: mujoco.MjModel.from_xml_string(robot_xml(str(place))))
    else:
        model = load_mjcf(Path(place), mujoco.MjModel.from_xml_path)
    site = _site(model, str(place), tool)
    numbers = _chain(model, int(model.site(site).bodyid[0]), str(place))
    if len(numbers) < FEWEST:
        raise CaromError(
            f"robot {place}: {len(numbers)} joints lead to the site {site}, expected {FEWEST} or more, which bring a "
            "tool to any pose; without --arm the motion of the tool alone is written"
        )
    names = tuple(model.joint(j).name or f"joint {j}" for j in numbers)
    limited = model.jnt_limited[numbers].astype(bool)[:, None]
    rates = (limits or Limits()).of(names)
    return Arm(
        str(place),
        model,
        site,
        names,
        model.jnt_qposadr[numbers].astype(np.intp),
        model.jnt_dofadr[numbers].astype(np.intp),
        np.where(limited, model.jnt_range[numbers], [-np.inf, np.inf]),
        *rates,
        np.array([_torque(model, j) for j in numbers]),
        _home(model),
        limits is None or limits.joints is None,
    )


def _site(model: mujoco.MjModel, place: str, tool: str | None) -> str:
    names = [model.site(i).name for i in range(model.nsite) if model.site(i).name]
    if tool is not None and tool not in names:
        raise CaromError(f"robot {place}: {unknown_name('site', tool, names)}")
    if tool is not None:
        return tool
    if len(names) == 1 or "tool" in names:
        return "tool" if "tool" in names else names[0]
    has = f"it has {', '.join(names)}" if names else "it has none: add <site name='tool'/> to the body that strikes"
    raise CaromError(f"robot {place}: expected --tool SITE, the site that strikes; {has}")


def _chain(model: mujoco.MjModel, body: int, place: str) -> list[int]:
    """Joints from the world to a body."""
    found: list[int] = []
    while body:
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        for j in range(first, first + count):
            if int(model.jnt_type[j]) not in (2, 3):  # slide, hinge
                raise CaromError(f"robot {place}: joint {model.joint(j).name or j} is neither a hinge nor a slide")
        found = [*range(first, first + count), *found]
        body = int(model.body_parentid[body])
    return found


def _torque(model: mujoco.MjModel, j: int) -> float:
    """What drives a joint at most [N m]; infinite where nothing says."""
    found = [float(np.abs(model.jnt_actfrcrange[j]).min())] if model.jnt_actfrclimited[j] else []
    for a in range(model.nu):
        if (
            int(model.actuator_trntype[a]) == 0
            and int(model.actuator_trnid[a, 0]) == j
            and model.actuator_forcelimited[a]
        ):
            found.append(float(np.abs(model.actuator_forcerange[a]).min() * abs(model.actuator_gear[a, 0])))
    return min(found, default=np.inf)


def _home(model: mujoco.MjModel) -> Array:
    names: list[Any] = [model.key(k).name for k in range(model.nkey)]
    if not names:
        return np.array(model.qpos0)
    return np.array(model.key_qpos[names.index(KEYFRAME) if KEYFRAME in names else 0])
