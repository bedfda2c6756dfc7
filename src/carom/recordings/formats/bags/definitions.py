"""Message definitions of ROS 1 and ROS 2, as text: what their fields are, in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from carom.core.errors import CaromError, short

Dialect = Literal["ros1", "ros2"]

#: name of a primitive: its `struct` code and size [bytes]
PRIMITIVES: Mapping[str, tuple[str, int]] = {
    "bool": ("?", 1),
    "byte": ("B", 1),
    "char": ("B", 1),
    "int8": ("b", 1),
    "uint8": ("B", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "uint64": ("Q", 8),
    "float32": ("f", 4),
    "float64": ("d", 8),
}
TEXTS = ("string", "wstring")
LARGEST = 500_000  #: characters of a definition
MOST_FIELDS = 2_000  #: of one type
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TYPE = re.compile(r"([A-Za-z][A-Za-z0-9_/]*)(?:<=\d+)?(\[(?:<=)?(\d*)\])?$")
_PARTS = re.compile(r"^=+$", re.MULTILINE)


@dataclass(frozen=True)
class Field:
    """One field of a message."""

    name: str
    kind: str  #: a primitive, `string`, `wstring`, or a type `package/Name`
    count: int | None  #: of a list: how many, or -1 where the message says so; None: a single value


Definitions = Mapping[str, tuple[Field, ...]]


def normal(name: str) -> str:
    """A type's name in its short form, which both generations of ROS share.

    >>> normal("geometry_msgs/msg/PoseStamped")
    'geometry_msgs/PoseStamped'
    """
    parts = [part for part in name.strip().split("/") if part]
    return f"{parts[0]}/{parts[-1]}" if len(parts) > 1 else name.strip()


def parse(kind: str, text: str) -> dict[str, tuple[Field, ...]]:
    """The types that a definition holds: its own, and those after lines of `=` with `MSG: package/Name`."""
    if len(text) > LARGEST:
        raise CaromError(f"the definition of {short(kind)} has {len(text)} characters; expected at most {LARGEST}")
    first, *others = _PARTS.split(text)
    found = {normal(kind): _fields(normal(kind), first)}
    for part in others:
        head, _, body = part.strip().partition("\n")
        word, _, name = head.partition(":")
        if word.strip() in ("MSG", "IDL") and name.strip():
            found[normal(name)] = _fields(normal(name), body)
    return found


def _fields(kind: str, text: str) -> tuple[Field, ...]:
    package = kind.rpartition("/")[0]
    fields: list[Field] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split(None, 2)
        if len(words) < 2 or "=" in words[1] or (len(words) == 3 and words[2].startswith("=")):
            continue  # empty, a comment, or a constant
        match = _TYPE.fullmatch(words[0])
        if match is None or not _NAME.fullmatch(words[1]):
            raise CaromError(f"the definition of {short(kind)} has a line that is no field: '{short(line)}'")
        count = None if match[2] is None else int(match[3]) if match[3] and "<" not in match[2] else -1
        fields.append(Field(words[1], _full(match[1], package), count))
        if len(fields) > MOST_FIELDS:
            raise CaromError(f"the definition of {short(kind)} has more than {MOST_FIELDS} fields")
    return tuple(fields)


def _full(name: str, package: str) -> str:
    if name in PRIMITIVES or name in TEXTS or name in ("time", "duration"):
        return name
    if name == "Header":
        return "std_msgs/Header"
    return normal(name) if "/" in name else f"{package}/{name}"


_COMMON = """\
geometry_msgs/Point
float64 x
float64 y
float64 z
===
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
===
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
===
MSG: geometry_msgs/Pose
Point position
Quaternion orientation
===
MSG: geometry_msgs/Transform
Vector3 translation
Quaternion rotation
===
MSG: geometry_msgs/Twist
Vector3 linear
Vector3 angular
===
MSG: geometry_msgs/PoseWithCovariance
Pose pose
float64[36] covariance
===
MSG: geometry_msgs/TwistWithCovariance
Twist twist
float64[36] covariance
===
MSG: geometry_msgs/PointStamped
std_msgs/Header header
Point point
===
MSG: geometry_msgs/PoseStamped
std_msgs/Header header
Pose pose
===
MSG: geometry_msgs/PoseArray
std_msgs/Header header
Pose[] poses
===
MSG: geometry_msgs/PoseWithCovarianceStamped
std_msgs/Header header
PoseWithCovariance pose
===
MSG: geometry_msgs/TransformStamped
std_msgs/Header header
string child_frame_id
Transform transform
===
MSG: nav_msgs/Odometry
std_msgs/Header header
string child_frame_id
geometry_msgs/PoseWithCovariance pose
geometry_msgs/TwistWithCovariance twist
===
MSG: nav_msgs/Path
std_msgs/Header header
geometry_msgs/PoseStamped[] poses
===
MSG: sensor_msgs/JointState
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
===
MSG: tf2_msgs/TFMessage
geometry_msgs/TransformStamped[] transforms
===
MSG: tf/tfMessage
geometry_msgs/TransformStamped[] transforms
===
MSG: mocap4r2_msgs/RigidBody
string rigid_body_name
mocap4r2_msgs/Marker[] markers
geometry_msgs/Pose pose
===
MSG: mocap4r2_msgs/Marker
int8 id_type
int32 marker_index
string marker_name
geometry_msgs/Point translation
===
MSG: mocap4r2_msgs/RigidBodies
std_msgs/Header header
uint32 frame_number
RigidBody[] rigidbodies
===
"""
_HEADS: Mapping[Dialect, str] = {
    "ros1": "MSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n",
    "ros2": "MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n===\n"
    "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n",
}


def standard(dialect: Dialect) -> dict[str, tuple[Field, ...]]:
    """The types of poses and joints that every ROS has, for bags which do not hold their definitions."""
    head, _, body = _COMMON.partition("\n")
    return parse(head, body + _HEADS[dialect])
