"""The motion of an arm's joints, or of its tool alone, as files: CSV, JSON, ROS messages in JSON (which is YAML)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import ruckig

from carom.core.artefacts import write_text
from carom.core.errors import CaromError
from carom.plan.arm import Arm
from carom.plan.export import StrikeMotion
from carom.plan.joint_motion import Base, JointMotion
from carom.state import Array

FORMAT = "carom-trajectory/1"
TIP = ("time_s", "x_m", "y_m", "z_m", "qw", "qx", "qy", "qz", "vx_m_s", "vy_m_s", "vz_m_s")


def approach_motion(arm: Arm, start: Array, rate: float) -> Array:
    """Positions [T, J] of the joints from home to the start of a strike, from rest to rest, within the arm's limits."""
    count = len(arm.joints)
    task = ruckig.InputParameter(count)
    task.current_position, task.target_position = arm.home[arm.place].tolist(), start.tolist()
    task.max_velocity, task.max_acceleration = arm.velocity.tolist(), arm.acceleration.tolist()
    task.max_jerk = arm.jerk.tolist()
    trajectory = ruckig.Trajectory(count)
    result = ruckig.Ruckig(count).calculate(task, trajectory)
    if result != ruckig.Result.Working:
        raise CaromError(f"no motion from the arm's home to the start of the strike: ruckig says {result.name}")
    times = np.arange(int(np.ceil(trajectory.duration * rate)) + 1) / rate
    return np.array([trajectory.at_time(min(t, trajectory.duration))[0] for t in times])


def tip_table(tip: StrikeMotion, base: Base, turn: float = 0.0) -> Array:
    """The tool's motion [T, 11] in the robot's frame, columns as in `TIP`: z axis down, x axis along the striker's."""
    half = 0.5 * (tip.yaw - base.yaw + turn)
    quaternion = np.tile([0.0, np.cos(half), np.sin(half), 0.0], (len(tip), 1))
    return np.column_stack([tip.time, base.place(tip.position), quaternion, base.direction(tip.velocity)]) + 0.0


def write_tip(folder: Path, tip: StrikeMotion, base: Base, strike: Mapping[str, Any], turn: float = 0.0) -> list[Path]:
    """The tool's motion: `tip.csv`, `trajectory.json`, and `tip.ros.json` (MultiDOFJointTrajectory)."""
    table = tip_table(tip, base, turn)
    facts = {**_facts(tip, base, strike), "set_points": dict(zip(TIP, table.T.tolist(), strict=True))}
    return _written(
        folder, {"tip.csv": _csv(TIP, table), "tip.ros.json": _json(_multi_dof(table)), "trajectory.json": _json(facts)}
    )


def write_joints(folder: Path, motion: JointMotion, strike: Mapping[str, Any]) -> list[Path]:
    """The same, and the joints: `joints.csv`, `approach.csv`, `joints.ros.json` (JointTrajectory)."""
    arm, tip = motion.arm, motion.tip
    table = tip_table(tip, motion.base, motion.turn)
    names = [f"{name}{unit}" for unit in ("_rad", "_rad_s", "_rad_s2", "_N_m") for name in arm.joints]
    joints = np.column_stack([tip.time, motion.position, motion.velocity, motion.acceleration, motion.torque]) + 0.0
    way = approach_motion(arm, motion.position[0], tip.rate)
    approach = np.column_stack([np.arange(len(way)) / tip.rate, way])
    limits = {name: getattr(arm, name).tolist() for name in ("velocity", "acceleration", "jerk")}
    limits["torque"] = [float(t) if np.isfinite(t) else None for t in arm.torque]
    limits["range"] = [[float(v) if np.isfinite(v) else None for v in ends] for ends in arm.range]
    facts = {
        **_facts(tip, motion.base, strike),
        "arm": {"mjcf": arm.name, "site": arm.site, "joints": arm.joints, "limits": limits},
        "nearest_to_limits": [asdict(stop) for stop in motion.nearest],
        "contact_joints_rad": motion.position[tip.contact_index].tolist(),
        "set_points": {
            "time_s": tip.time.tolist(),
            "position_rad": motion.position.tolist(),
            "velocity_rad_s": motion.velocity.tolist(),
            "acceleration_rad_s2": motion.acceleration.tolist(),
        },
    }
    texts = {
        "tip.csv": _csv(TIP, table),
        "tip.ros.json": _json(_multi_dof(table)),
        "joints.csv": _csv(("time_s", *names), joints),
        "approach.csv": _csv(("time_s", *(f"{name}_rad" for name in arm.joints)), approach),
        "joints.ros.json": _json(_joint_trajectory(motion)),
        "trajectory.json": _json(facts),
    }
    return _written(folder, texts)


def _facts(tip: StrikeMotion, base: Base, strike: Mapping[str, Any]) -> dict[str, Any]:
    from carom.core.version import __version__

    k = tip.contact_index
    return {
        "format": FORMAT,
        "carom": __version__,
        "units": {"length": "m", "angle": "rad", "time": "s"},
        "frame": "the robot's base; the tool's z axis points down, its x axis along the striker's unless turned",
        "rate_hz": tip.rate,
        "base_in_world": asdict(base),
        "tip_limits": asdict(tip.limits),
        "contact": {
            "time_s": tip.contact_time,
            "index": k,
            "position_m": base.place(tip.position[k : k + 1])[0].tolist(),
            "velocity_m_s": base.direction(tip.velocity[k : k + 1])[0].tolist(),
        },
        "run_up_m": tip.run_up,
        "stopping_distance_m": tip.stopping_distance,
        "strike": dict(strike),
    }


def _stamp(time: float) -> dict[str, int]:
    """A time as ROS has it."""
    nanoseconds = round(time * 1e9)
    return {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}


def _header() -> dict[str, Any]:
    return {"stamp": _stamp(0.0), "frame_id": "base"}


def _joint_trajectory(motion: JointMotion) -> dict[str, Any]:
    """trajectory_msgs/msg/JointTrajectory."""
    rows = zip(motion.tip.time, motion.position, motion.velocity, motion.acceleration, strict=True)
    points = [
        {
            "positions": at.tolist(),
            "velocities": going.tolist(),
            "accelerations": gaining.tolist(),
            "effort": [],
            "time_from_start": _stamp(time),
        }
        for time, at, going, gaining in rows
    ]
    return {"header": _header(), "joint_names": list(motion.arm.joints), "points": points}


def _multi_dof(table: Array) -> dict[str, Any]:
    """trajectory_msgs/msg/MultiDOFJointTrajectory of the tool."""

    def vector(values: Array) -> dict[str, float]:
        return dict(zip("xyz", values.tolist(), strict=True))

    points = []
    for row in table:
        w, x, y, z = row[4:8].tolist()
        transform = {"translation": vector(row[1:4]), "rotation": {"x": x, "y": y, "z": z, "w": w}}
        twist = {"linear": vector(row[8:11]), "angular": vector(np.zeros(3))}
        points.append(
            {
                "transforms": [transform],
                "velocities": [twist],
                "accelerations": [],
                "time_from_start": _stamp(float(row[0])),
            }
        )
    return {"header": _header(), "joint_names": ["tool"], "points": points}


def _csv(names: Sequence[str], rows: Array) -> str:
    return "\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n"


def _json(content: Any) -> str:
    return json.dumps(content, allow_nan=False, default=list) + "\n"


def _written(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files, the last one only when all others are there."""
    last = [*texts][-1]
    (folder / last).unlink(missing_ok=True)
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]
