"""How bodies of a plain table are turned: by a quaternion, by roll, pitch and yaw, or by a heading."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from carom.core.errors import RecordingError, short
from carom.core.rotations import about_z, from_scipy
from carom.recordings.formats.plain_columns import Columns
from carom.recordings.formats.take import ReadOptions
from carom.state import Array

ANGULAR = 2 * np.pi + 0.1  #: [rad]; larger angles are degrees
SAID_ANGLES = {
    "xyz": "roll, pitch, yaw are about the fixed axes x, y, z in this order, as in ROS (say --angles if that is wrong)",
    "vector": "roll, pitch, yaw are a rotation vector, as you say",
}


def turns_of(path: Path, columns: Columns, data: Array, options: ReadOptions, told: list[str]) -> Array | None:
    """Quaternions [T, 4] w-first, from a quaternion, roll pitch yaw (fixed axes, as in ROS), or a heading."""
    at = columns.at
    if columns.ordered is not None:
        raw = data[:, list(columns.ordered)]
        order = options.quaternion_order or _order(path, columns.name, raw, told)
        return raw if order == "wxyz" else raw[:, [3, 0, 1, 2]]
    if {"qw", "qx", "qy", "qz"} <= set(at):
        told.append(f"{columns.name}: quaternion by its columns' names")
        return data[:, [at["qw"], at["qx"], at["qy"], at["qz"]]]
    if "yaw" not in at or ({"roll", "pitch"} & set(at) and not {"roll", "pitch"} <= set(at)):
        return None
    labels = ["roll", "pitch", "yaw"] if "roll" in at else ["yaw"]
    angles = data[:, [at[label] for label in labels]]
    unit = options.angle_unit or columns.units.get("angle")
    if unit is None:
        unit = "deg" if float(np.nanmax(np.abs(angles), initial=0.0)) > ANGULAR else "rad"
        told.append(f"{columns.name}: {', '.join(labels)} are taken as {unit}, from their size")
    angles = angles * (np.pi / 180 if unit == "deg" else 1.0)
    if len(labels) == 1:
        return about_z(angles[:, 0])
    from scipy.spatial.transform import Rotation

    order = options.angles or "xyz"
    told.append(f"{columns.name}: {SAID_ANGLES.get(order, f'roll, pitch, yaw are Euler angles {order}, as you say')}")
    found = np.full((len(data), 4), np.nan)
    good = np.isfinite(angles).all(axis=-1)
    if good.any():
        turned = angles[good]
        found[good] = from_scipy(
            Rotation.from_rotvec(turned)
            if order == "vector"
            else Rotation.from_euler(order, turned[:, ["xyz".index(axis) for axis in order.lower()]])
        )
    return found


def _order(path: Path, name: str, raw: Array, told: list[str]) -> str:
    """Where w is, as far as the rows tell: 1 where nothing is turned, and turns about the vertical have two zeros."""
    good = raw[np.isfinite(raw).all(axis=-1)]
    large = np.abs(good) > 0.03
    seen = [bool(large[:, i].any()) for i in range(4)]
    first, last = (bool(len(good)) and float(np.abs(good[:, i]).max()) > 0.999 for i in (0, 3))
    order = ""
    if first != last:
        order = "wxyz" if first else "xyzw"
    elif not seen[1] and not seen[2] and seen[0] and seen[3]:
        order = "wxyz"  # or turns about x alone with w last, which is seldom
    elif not seen[0] and not seen[1] and seen[2] and seen[3]:
        order = "xyzw"
    if not order:
        raise RecordingError(
            f"{path}: body '{short(name)}' has four columns of a quaternion and nothing tells where w is; say it with "
            "--quaternion wxyz or --quaternion xyzw"
        )
    told.append(f"{name}: quaternion is {order}, found from the rows (say --quaternion if that is wrong)")
    return order
