"""Bags for tests, written by the libraries that other people use (`rosbags`, `mcap`): readers are our own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

START = 1_700_000_000.0  #: [s] of the header stamps
DELAY = 0.004  #: [s] that receipt is later


@dataclass(frozen=True)
class Path3:
    """A body's motion at 100 Hz."""

    time: np.ndarray = field(default_factory=lambda: START + np.arange(50) / 100)

    @property
    def position(self) -> np.ndarray:
        t = self.time - START
        return np.column_stack([0.3 * t, np.sin(3 * t), 0.5 - t**2])

    @property
    def quaternion(self) -> np.ndarray:
        """[T, 4] w-first"""
        half = 0.8 * (self.time - START)
        return np.column_stack([np.cos(half), 0 * half, 0.6 * np.sin(half), 0.8 * np.sin(half)])


MOTION = Path3()
TYPES = {
    "pose": "geometry_msgs/msg/PoseStamped",
    "transform": "geometry_msgs/msg/TransformStamped",
    "odometry": "nav_msgs/msg/Odometry",
    "covariance": "geometry_msgs/msg/PoseWithCovarianceStamped",
    "array": "geometry_msgs/msg/PoseArray",
    "tf": "tf2_msgs/msg/TFMessage",
    "joints": "sensor_msgs/msg/JointState",
    "string": "std_msgs/msg/String",
    "bare": "geometry_msgs/msg/Pose",
}


@dataclass(frozen=True)
class Sent:
    """One message."""

    topic: str
    kind: str  #: a key of `TYPES`
    stamp: float  #: [s]
    position: Any = (0.0, 0.0, 0.0)
    quaternion: Any = (1.0, 0.0, 0.0, 0.0)
    parent: str = "world"
    child: str = ""
    received: float | None = None
    joints: tuple[float, ...] = ()


def stream(topic: str, kind: str, *, motion: Path3 = MOTION, **more: Any) -> list[Sent]:
    """A message for each sample of a motion."""
    rows = zip(motion.time, motion.position, motion.quaternion, strict=True)
    return [Sent(topic, kind, float(t), p, q, **more) for t, p, q in rows]


def message(store: Any, sent: Sent, *, ros1: bool = False) -> Any:
    """The message, as an object of a type store of `rosbags`."""
    types = store.types
    make = {name: types[kind] for name, kind in TYPES.items() if kind in types}
    nanoseconds = round(sent.stamp * 1e9)
    stamp = types["builtin_interfaces/msg/Time"](sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
    head = {"stamp": stamp, "frame_id": sent.parent, **({"seq": 3} if ros1 else {})}
    header = types["std_msgs/msg/Header"](**head)
    x, y, z = map(float, sent.position)
    w, i, j, k = map(float, sent.quaternion)
    turn = types["geometry_msgs/msg/Quaternion"](x=i, y=j, z=k, w=w)
    pose = types["geometry_msgs/msg/Pose"](position=types["geometry_msgs/msg/Point"](x=x, y=y, z=z), orientation=turn)
    if sent.kind == "bare":
        return pose
    if sent.kind == "string":
        return make["string"](data="nothing to see")
    if sent.kind == "joints":
        names = [f"joint_{n}" for n in range(len(sent.joints))]
        values = np.array(sent.joints)
        return make["joints"](header=header, name=names, position=values, velocity=2 * values, effort=np.array([]))
    if sent.kind == "pose":
        return make["pose"](header=header, pose=pose)
    if sent.kind == "array":
        return make["array"](header=header, poses=[pose, pose])
    with_covariance = types["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=np.zeros(36))
    if sent.kind == "covariance":
        return make["covariance"](header=header, pose=with_covariance)
    vector = types["geometry_msgs/msg/Vector3"]
    if sent.kind == "odometry":
        twist = types["geometry_msgs/msg/Twist"](
            linear=vector(x=1.0, y=2.0, z=3.0), angular=vector(x=4.0, y=5.0, z=6.0)
        )
        of = types["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=np.zeros(36))
        return make["odometry"](header=header, child_frame_id=sent.child, pose=with_covariance, twist=of)
    moved = types["geometry_msgs/msg/Transform"](translation=vector(x=x, y=y, z=z), rotation=turn)
    transform = make["transform"](header=header, child_frame_id=sent.child, transform=moved)
    return transform if sent.kind == "transform" else make["tf"](transforms=[transform])


def write_ros2(
    folder: Path,
    sent: Sequence[Sent],
    *,
    storage: Literal["db3", "mcap"] = "db3",
    packed: Literal["no", "file", "message", "chunks"] = "no",
    version: Literal[8, 9] = 9,
) -> None:
    """A folder of rosbag2, written by `rosbags`."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    plugin = StoragePlugin.SQLITE3 if storage == "db3" else StoragePlugin.MCAP
    writer = Writer(folder, version=version, storage_plugin=plugin)
    modes = {"file": CompressionMode.FILE, "message": CompressionMode.MESSAGE, "chunks": CompressionMode.STORAGE}
    if packed != "no":
        writer.set_compression(modes[packed], CompressionFormat.ZSTD)
    with writer:
        topics: dict[str, Any] = {}
        for each in sent:
            kind = TYPES[each.kind]
            if each.topic not in topics:
                topics[each.topic] = writer.add_connection(each.topic, kind, typestore=store)
            data = store.serialize_cdr(message(store, each), kind)
            writer.write(topics[each.topic], _received(each), data)


def write_ros1(file: Path, sent: Sequence[Sent], *, packed: Literal["no", "bz2", "lz4"] = "no") -> None:
    """A bag of ROS 1, written by `rosbags`."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    writer = Writer(file)
    if packed != "no":
        writer.set_compression(getattr(Writer.CompressionFormat, packed.upper()))
    with writer:
        topics: dict[str, Any] = {}
        for each in sent:
            kind = TYPES[each.kind]
            if each.topic not in topics:
                topics[each.topic] = writer.add_connection(each.topic, kind, typestore=store)
            data = store.serialize_ros1(message(store, each, ros1=True), kind)
            writer.write(topics[each.topic], _received(each), bytes(data))


def _received(sent: Sent) -> int:
    return round((sent.stamp + DELAY if sent.received is None else sent.received) * 1e9)


def write_json(file: Path, sent: Sequence[Sent], *, protobuf: bool = False) -> None:
    """An MCAP file with Foxglove's PoseInFrame in JSON, or in protobuf, written by `mcap`."""
    from mcap.writer import Writer

    with file.open("wb") as opened:
        writer = Writer(opened, chunk_size=2000)
        writer.start()
        kind = "foxglove.PoseInFrame"
        data = _descriptors() if protobuf else json.dumps({"type": "object"}).encode()
        schema = writer.register_schema(kind, "protobuf" if protobuf else "jsonschema", data)
        topics: dict[str, int] = {}
        for each in sent:
            if each.topic not in topics:
                topics[each.topic] = writer.register_channel(each.topic, "protobuf" if protobuf else "json", schema)
            content = _protobuf(each) if protobuf else json.dumps(_foxglove(each)).encode()
            at = _received(each)
            writer.add_message(topics[each.topic], at, content, at)
        writer.finish()


def _foxglove(sent: Sent) -> dict[str, Any]:
    nanoseconds = round(sent.stamp * 1e9)
    w, x, y, z = map(float, sent.quaternion)
    position = dict(zip("xyz", map(float, sent.position), strict=True))
    return {
        "timestamp": {"sec": nanoseconds // 10**9, "nsec": nanoseconds % 10**9},
        "frame_id": sent.parent,
        "pose": {"position": position, "orientation": {"x": x, "y": y, "z": z, "w": w}},
    }


def _files() -> Any:
    from google.protobuf import descriptor_pb2, timestamp_pb2

    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    file = descriptor_pb2.FileDescriptorProto(name="pose.proto", package="foxglove", syntax="proto3")
    file.dependency.append(stamp.name)
    number, text, inner = 1, 9, 11
    types: dict[str, list[tuple[str, int, str]]] = {
        "Vector3": [(axis, number, "") for axis in "xyz"],
        "Quaternion": [(axis, number, "") for axis in "xyzw"],
        "Pose": [("position", inner, ".foxglove.Vector3"), ("orientation", inner, ".foxglove.Quaternion")],
        "PoseInFrame": [
            ("timestamp", inner, ".google.protobuf.Timestamp"),
            ("frame_id", text, ""),
            ("pose", inner, ".foxglove.Pose"),
        ],
    }
    for name, fields in types.items():
        made = file.message_type.add(name=name)
        for place, (field_name, kind, of) in enumerate(fields, start=1):
            added = made.field.add(name=field_name, number=place, type=kind, label=1)
            if of:
                added.type_name = of
    return descriptor_pb2.FileDescriptorSet(file=[stamp, file])


def _descriptors() -> bytes:
    return bytes(_files().SerializeToString())


def _protobuf(sent: Sent) -> bytes:
    from google.protobuf import descriptor_pool, json_format, message_factory

    pool = descriptor_pool.DescriptorPool()
    for each in _files().file:
        pool.Add(each)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("foxglove.PoseInFrame"))()
    plain = {**_foxglove(sent)}
    del plain["timestamp"]
    json_format.ParseDict(plain, made)
    nanoseconds = round(sent.stamp * 1e9)
    made.timestamp.seconds, made.timestamp.nanos = nanoseconds // 10**9, nanoseconds % 10**9
    return bytes(made.SerializeToString())
