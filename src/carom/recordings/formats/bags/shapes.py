"""Where the poses in a message are, found from the names of its fields, whatever its type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from carom.recordings.formats.bags.decoding import Values

#: names of the fields of a position and of an orientation (x, y, z; x, y, z, w) below a common beginning
_POSES = (
    (("position.x", "position.y", "position.z"), ("orientation.x", "orientation.y", "orientation.z", "orientation.w")),
    (("translation.x", "translation.y", "translation.z"), ("rotation.x", "rotation.y", "rotation.z", "rotation.w")),
    (("position.x", "position.y", "position.z"), ("quaternion.x", "quaternion.y", "quaternion.z", "quaternion.w")),
    (("x_trans", "y_trans", "z_trans"), ("x_rot", "y_rot", "z_rot", "w")),
    (("x", "y", "z"), ("qx", "qy", "qz", "qw")),
    (("pos_x", "pos_y", "pos_z"), ("rot_x", "rot_y", "rot_z", "rot_w")),
    (("point.x", "point.y", "point.z"), ()),
)
_NAMES = ("rigid_body_name", "body_name", "subject_name", "segment_name", "name", "id")
_PARENTS = ("header.frame_id", "parent_frame_id", "frame_id")
_STAMPS = (
    ("header.stamp.sec", "header.stamp.nanosec"),
    ("stamp.sec", "stamp.nanosec"),
    ("timestamp.sec", "timestamp.nanosec"),
)
MOST_LISTED = 1_000  #: elements of a list of poses


@dataclass(frozen=True)
class Pose:
    """A pose that a message holds."""

    label: str  #: of an element of a list, or of the body that the message names; empty: only the topic names it
    index: int | None  #: in a list
    parent: str  #: the frame that it is given in; empty: not said
    child: str  #: the frame that it is the pose of; empty: not said
    transform: bool  #: whether it joins two frames, as those of tf do
    stamp: float | None  #: [s] in the header; None: there is none
    numbers: tuple[float, ...]  #: x, y, z, and qx, qy, qz, qw if the orientation is there


@dataclass(frozen=True)
class Shape:
    """Which of a message's fields are a pose."""

    keys: tuple[str, ...]  #: of its numbers, in the order of `Pose.numbers`
    stamp: tuple[str, str] | None
    parent: str | None
    child: str | None
    name: str | None

    def read(self, values: Values, index: int | None, outer: Pose | None) -> Pose:
        """The pose in such a message; raises KeyError where a message lacks its fields."""
        stamp = stamp_of(values, self.stamp)
        child = _frame(values[self.child]) if self.child else ""
        return Pose(
            str(values[self.name]) if self.name else "",
            index,
            _frame(values[self.parent]) if self.parent else outer.parent if outer else "",
            child,
            bool(child) and "translation.x" in self.keys[0],
            stamp if stamp is not None else outer.stamp if outer else None,
            tuple(map(float, itemgetter(*self.keys)(values))),
        )


def stamp_of(values: Values, keys: tuple[str, str] | None) -> float | None:
    """Seconds of a header's stamp; None where there is none, or where it was never set."""
    if keys is None:
        return None
    seconds, nanoseconds = values[keys[0]], values[keys[1]]
    return float(seconds) + 1e-9 * float(nanoseconds) if seconds or nanoseconds else None


def stamp_keys(values: Values) -> tuple[str, str] | None:
    """The fields of a message's stamp."""
    return next((keys for keys in _STAMPS if keys[0] in values and keys[1] in values), None)


def shapes_in(values: Values) -> tuple[Shape, ...]:
    """The poses among a message's own fields."""
    stamp = stamp_keys(values)
    parent = next((key for key in _PARENTS if isinstance(values.get(key), str)), None)
    child = "child_frame_id" if isinstance(values.get("child_frame_id"), str) else None
    name = next((key for key in _NAMES if isinstance(values.get(key), str | int)), None)
    found: list[Shape] = []
    taken: set[str] = set()
    for place, turn in _POSES:
        for key in values:
            within = key.removesuffix(place[0])
            keys = tuple(within + part for part in (*place, *turn))
            if (
                key == keys[0]
                and (not within or within.endswith("."))
                and key not in taken
                and _all_numbers(values, keys)
            ):
                found.append(Shape(keys, stamp, parent, child, name))
                taken.add(key)
    return tuple(found)


def could_hold(names: Iterable[str]) -> bool:
    """Whether fields of these names may be a pose."""
    there = set(names)
    return any(
        all(name.removesuffix(place[0]) + part in there for part in (*place, *turn))
        for name in there
        for place, turn in _POSES
        if name.endswith(place[0])
    )


def _all_numbers(values: Values, keys: Iterable[str]) -> bool:
    return all(isinstance(values.get(key), int | float) for key in keys)


def _frame(name: object) -> str:
    """A frame's name as tf knows it: ROS 1 wrote some with a slash in front, and some without."""
    return str(name).lstrip("/")


@dataclass
class PoseFinder:
    """Finds the poses in the messages of one channel."""

    shapes: tuple[Shape, ...] | None = None  #: None: no message was seen

    def __call__(self, values: Values) -> Iterator[Pose]:
        """The poses in a message: its own, then those in its lists."""
        if self.shapes is None:
            self.shapes = shapes_in(values)
        for shape in self.shapes:
            yield shape.read(values, None, None)
        for name, listed in values.items():
            if isinstance(listed, list) and listed and isinstance(listed[0], dict):
                yield from self._listed(values, name, listed)

    def _listed(self, values: Values, name: str, listed: list[Any]) -> Iterator[Pose]:
        shape: tuple[Shape, ...] = shapes_in(listed[0])
        if not shape:
            return
        parent = next((_frame(values[key]) for key in _PARENTS if isinstance(values.get(key), str)), "")
        outer = Pose("", None, parent, "", False, stamp_of(values, stamp_keys(values)), ())
        for index, element in enumerate(listed[:MOST_LISTED]):
            yield shape[0].read(element, index, outer)
