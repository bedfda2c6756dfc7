"""A planned strike as set-points that a robot can run: a straight motion through the contact, within its limits.

The striker does not turn and stays at one height. It starts from rest, gathers speed along a straight line, passes the
contact at the commanded velocity, and brakes to rest. The files hold the same motion for any robot (`strike.csv`,
`strike.json`), and as the Cartesian velocities that libfranka takes every millisecond.

What is not checked, because it needs the arm's posture: reach, the limits of its joints, and what stands in the way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import ruckig
from numpy.typing import ArrayLike

from carom.core.artefacts import json_default, write_text
from carom.core.errors import CaromError
from carom.state import Array, rotate, wrap_angle

FORMAT = "carom-strike/1"

#: Time [s] for which the commanded velocity is kept after the contact. libfranka holds each set-point for a cycle
#: (half a millisecond late on average) and by default smooths it with a low-pass filter of 100 Hz (1.6 ms late), so
#: the arm arrives about 2 ms after the set-points; the rest is for the impact itself.
HOLD = 0.005

#: Time [s] at the commanded velocity before the contact. The arm has caught up by then, and cameras see enough of a
#: steady approach: a velocity read at 240 Hz off a path that still gathered speed 50 ms before is too high by a third.
STEADY = 0.08

#: Samples at rest after the motion, so that the differences of the set-points end at zero too.
REST = 2

#: The rate [Hz] at which libfranka takes set-points.
FRANKA_RATE = 1000.0

COLUMNS = ("time_s", "x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s", "wx_rad_s", "wy_rad_s", "wz_rad_s")
TWIST = COLUMNS[4:]  #: the order of franka::CartesianVelocities


@dataclass(frozen=True)
class CartesianLimits:
    """What a robot's tool can do along a straight line; each bounds the norm of the vector, not its components."""

    velocity: float  #: [m/s]
    acceleration: float  #: [m/s^2]
    jerk: float  #: [m/s^3]

    def __post_init__(self) -> None:
        for column in fields(self):
            value = getattr(self, column.name)
            if not (math.isfinite(value) and value > 0):
                raise CaromError(f"limits: {column.name}: expected a positive number, got {value}")


# libfranka, include/franka/rate_limiting.h (kMaxTranslational...), as it was for the Panda and as it is for the FR3;
# the same numbers as in "Robot and interface specifications", https://frankarobotics.github.io/docs. The header itself
# takes 1e-3 off each, and on the Panda 0.04 m/s off the velocity for lost packets; `SHARE` leaves more than that.
PANDA = CartesianLimits(velocity=1.7, acceleration=13.0, jerk=6500.0)
FR3 = CartesianLimits(velocity=3.0, acceleration=9.0, jerk=4500.0)

#: The share of the published limits that is used: an arm that lost a packet or is corrected on the way has some left.
SHARE = 0.9

#: The smaller of both arms' limits, times `SHARE`, so that one file runs on either.
FRANKA = CartesianLimits(
    velocity=SHARE * min(PANDA.velocity, FR3.velocity),
    acceleration=SHARE * min(PANDA.acceleration, FR3.acceleration),
    jerk=SHARE * min(PANDA.jerk, FR3.jerk),
)


@dataclass(frozen=True)
class StrikeMotion:
    """The set-points of one strike, from rest to rest. Frame of the striker in the world; it does not turn."""

    time: Array  #: [T] since the start, sample k at exactly k / rate [s]
    position: Array  #: [T, 3] world [m]
    velocity: Array  #: [T, 3] linear, world [m/s]; the angular velocity is zero
    contact_time: float  #: when the striker touches, exactly the time of a sample [s]
    contact_index: int  #: that sample
    run_up: float  #: distance from the start to the contact [m]
    stopping_distance: float  #: distance from the contact to rest [m]
    yaw: float  #: of the striker's frame, throughout [rad]
    rate: float  #: samples per second [Hz]
    limits: CartesianLimits

    def __len__(self) -> int:
        return len(self.time)


def strike_motion(
    contact_world: ArrayLike,
    velocity_world: ArrayLike,
    *,
    height: float,
    yaw: float,
    limits: CartesianLimits = FRANKA,
    rate: float = 1000.0,
    settle: float = STEADY,
) -> StrikeMotion:
    """The motion that brings the striker to `contact_world` [2, m] at `velocity_world` [2, m/s], and to rest after it.

    `contact_world` is where the striker's frame is as it touches; `height` [m] and `yaw` [rad] are kept throughout.
    The commanded velocity is reached at least `settle` seconds before the contact and is kept for `HOLD` seconds after
    it. The run-up is lengthened by less than a sample so that the contact is one.

    >>> motion = strike_motion([0.5, 0.1], [0.0, 0.8], height=0.03, yaw=0.0)
    >>> motion.position[motion.contact_index].round(9).tolist()
    [0.5, 0.1, 0.03]
    >>> motion.velocity[motion.contact_index].tolist(), motion.velocity[-1].tolist()
    ([0.0, 0.8, 0.0], [0.0, 0.0, 0.0])
    >>> f"{motion.run_up:.3f} m in {motion.contact_time:.3f} s, {motion.stopping_distance:.3f} m to stop"
    '0.104 m in 0.181 s, 0.044 m to stop'
    """
    contact, velocity = _vector("contact_world", contact_world), _vector("velocity_world", velocity_world)
    for name, value in (("height", height), ("yaw", yaw)):
        if not math.isfinite(value):
            raise CaromError(f"{name}: expected a finite number, got {value}")
    if not (math.isfinite(settle) and settle >= 0):
        raise CaromError(f"settle: expected a time in seconds, zero or more, got {settle}")
    if not (math.isfinite(rate) and rate > 0):
        raise CaromError(f"rate: expected a positive number of samples per second, got {rate}")
    speed = _speed(velocity, limits)

    up, brake = _ramp(0.0, speed, limits), _ramp(speed, 0.0, limits)
    touch = math.ceil((up.duration + settle) * rate)
    release = touch + math.ceil(HOLD * rate)
    end = release + math.ceil(brake.duration * rate) + REST
    time = np.arange(end + 1) / rate
    there, gathering = _sample(up, time[: release + 1], final=speed)
    back, braking = _sample(brake, time[release + 1 :] - time[release], final=0.0)
    travelled = np.concatenate([there, there[-1] + back]) - there[touch]  # zero at the contact [m]
    share = np.concatenate([gathering, braking]) / speed

    # The shares multiply the velocity as commanded, so that it is met to the last bit while they are one.
    line = np.append(velocity, 0.0)
    return StrikeMotion(
        time=time,
        position=np.append(contact, height) + travelled[:, None] * (line / speed),
        velocity=share[:, None] * line + 0.0,  # adding zero turns -0.0 into 0.0
        contact_time=float(time[touch]),
        contact_index=touch,
        run_up=float(-travelled[0]),
        stopping_distance=float(travelled[-1]),
        yaw=float(yaw),
        rate=float(rate),
        limits=limits,
    )


def write_motion(
    folder: Path, motion: StrikeMotion, *, strike: Mapping[str, Any], base: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> tuple[Path, ...]:
    """Write a motion into `folder` for a robot, and say which files there are.

    `strike.csv` and `strike.json` are in the world's frame. `franka_cartesian_velocities.csv` has one row for each of
    libfranka's cycles, in the frame of the robot's base, whose pose (x, y, yaw) [m, m, rad] in the world is `base`.
    `strike` goes into the JSON file as it is: what was planned, and what is expected of it.
    """
    pose = np.asarray(base, dtype=np.float64)
    if pose.shape != (3,) or not np.isfinite(pose).all():
        raise CaromError(f"base: expected x, y, yaw of the robot's base in the world, three finite numbers, got {base}")
    if motion.rate != FRANKA_RATE:
        raise CaromError(
            f"libfranka takes a set-point every millisecond, the motion has {motion.rate:g} per second; "
            f"make it with rate={FRANKA_RATE:g}"
        )
    linear = np.column_stack([rotate(motion.velocity[:, :2], -pose[2]), motion.velocity[:, 2]]) + 0.0
    still = np.zeros_like(linear)
    table = np.column_stack([motion.time, motion.position, motion.velocity, still])
    texts = {
        "strike.csv": _csv(COLUMNS, table),
        "franka_cartesian_velocities.csv": _csv(("time_s", *TWIST), np.column_stack([motion.time, linear, still])),
    }
    # Last, and an older one goes first: a JSON file always stands beside the tables it describes.
    texts["strike.json"] = _json(_header(motion, pose, [*texts]), strike, dict(zip(COLUMNS, table.T, strict=True)))
    folder = Path(folder)
    (folder / "strike.json").unlink(missing_ok=True)
    for name, text in texts.items():
        write_text(folder / name, text)
    return tuple(folder / name for name in texts)


def _vector(name: str, value: ArrayLike) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (2,) or not np.isfinite(array).all():
        raise CaromError(f"{name}: expected two finite numbers, x and y in the world, got {array.tolist()}")
    return array


def _speed(velocity: Array, limits: CartesianLimits) -> float:
    """The norm of a commanded velocity [m/s], if the robot can do it."""
    speed = math.hypot(*velocity)
    if speed == 0:
        raise CaromError("velocity_world: the commanded speed is zero, and a striker at rest strikes nothing")
    if speed > limits.velocity:
        raise CaromError(
            f"velocity_world: the commanded speed of {speed:.3g} m/s is above the robot's limit of "
            f"{limits.velocity:.3g} m/s; plan a slower strike, or give the limits of a faster robot"
        )
    return speed


def _ramp(start: float, end: float, limits: CartesianLimits) -> Any:
    """The fastest way from one speed to another [m/s], without acceleration at either end: a ruckig.Trajectory."""
    task = ruckig.InputParameter(1)
    task.control_interface = ruckig.ControlInterface.Velocity  # the place is free, it follows from the speed
    task.current_position, task.current_velocity, task.current_acceleration = [0.0], [start], [0.0]
    task.target_velocity, task.target_acceleration = [end], [0.0]
    task.max_acceleration, task.max_jerk = [limits.acceleration], [limits.jerk]
    trajectory = ruckig.Trajectory(1)
    result = ruckig.Ruckig(1).calculate(task, trajectory)
    if result != ruckig.Result.Working:
        raise CaromError(f"no motion from {start:g} to {end:g} m/s within {limits}: ruckig says {result.name}")
    return trajectory


def _sample(trajectory: Any, time: Array, *, final: float) -> tuple[Array, Array]:
    """Distance [m] and speed [m/s] at each time [s] of a ramp, and at constant speed `final` [m/s] after its end."""
    states = np.array([trajectory.at_time(t)[:2] for t in time])[..., 0]
    return states[:, 0], np.where(time < trajectory.duration, states[:, 1], final)  # ruckig ends within a rounding


def _header(motion: StrikeMotion, base: Array, tables: list[str]) -> dict[str, Any]:
    """What a reader has to know of a motion before running it."""
    from carom.core.version import __version__

    start, touch = motion.position[0], motion.contact_index
    start_base = np.append(rotate(start[:2] - base[:2], -base[2]), start[2])
    return {
        "format": FORMAT,
        "carom": __version__,
        "units": {"length": "m", "angle": "rad", "time": "s"},
        "frames": {
            "world": "z up, the frame of the recordings; set-points are the striker's frame in it",
            "base": "the robot's base: its z axis is the world's, its pose in the world is robot_base; "
            "franka_cartesian_velocities.csv is in it, linear and angular velocity as libfranka's O_dP_EE",
        },
        "before_running": "bring the striker to start and to rest; joint limits, reach and obstacles are not checked",
        "tables": tables,
        "rate_hz": motion.rate,
        "limits": {"of": "the norm of the translation, in SI units", **asdict(motion.limits)},
        "robot_base": {"x_m": base[0], "y_m": base[1], "yaw_rad": base[2]},
        "start": {
            "position_world_m": start,
            "yaw_world_rad": motion.yaw,
            "position_base_m": start_base,
            "yaw_base_rad": wrap_angle(motion.yaw - base[2]),
        },
        "contact": {
            "time_s": motion.contact_time,
            "index": touch,
            "position_world_m": motion.position[touch],
            "yaw_world_rad": motion.yaw,
            "velocity_world_m_s": motion.velocity[touch],
        },
        "run_up_m": motion.run_up,
        "stopping_distance_m": motion.stopping_distance,
    }


def _csv(names: tuple[str, ...], rows: Array) -> str:
    """A table as text; every number is written so that reading it gives the same one."""
    return "\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n"


def _json(header: Mapping[str, Any], strike: Mapping[str, Any], points: Mapping[str, Array]) -> str:
    """The JSON file's text. Readers in other languages refuse NaN, so nothing that has it is written."""
    for name, value in strike.items():
        try:
            json.dumps(value, default=json_default, allow_nan=False)
        except ValueError as error:
            raise CaromError(
                f"strike: {name}: JSON has no NaN and no infinity, got {value}; leave it out, or give None"
            ) from error
    content = {**header, "strike": dict(strike), "set_points": points}
    return json.dumps(content, default=json_default, allow_nan=False, indent=1) + "\n"
