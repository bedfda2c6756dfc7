"""What the topics of a bag hold: which can be decoded, which have poses or joints, and why others are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from carom.core.errors import CaromError, RecordingError, short
from carom.recordings.formats.bags.channels import Channel
from carom.recordings.formats.bags.decoding import Decoder, UndefinedError, Values
from carom.recordings.formats.bags.definitions import LARGEST, Dialect, Field, normal, parse, standard
from carom.recordings.formats.bags.other_encodings import ProtobufDecoder, from_json
from carom.recordings.formats.bags.shapes import could_hold

JOINTS, FORCES = "sensor_msgs/JointState", "geometry_msgs/WrenchStamped"
NOT_MEASURED = ("nav_msgs/Path", "visualization_msgs/")  #: poses that are drawn or planned
#: packages that every ROS has: of their types, those which hold poses are defined here
KNOWN = tuple(
    f"{package}/"
    for package in (
        "std_msgs",
        "sensor_msgs",
        "geometry_msgs",
        "nav_msgs",
        "tf2_msgs",
        "builtin_interfaces",
        "rcl_interfaces",
        "rosgraph_msgs",
        "diagnostic_msgs",
        "trajectory_msgs",
        "shape_msgs",
        "stereo_msgs",
        "actionlib_msgs",
        "action_msgs",
        "control_msgs",
        "lifecycle_msgs",
        "statistics_msgs",
        "dynamic_reconfigure",
        "bond",
        "rosbag2_interfaces",
    )
)
UNSURE = 20  #: messages of JSON or protobuf after which a topic without poses is not looked at any more

Decode = Callable[[bytes], Values]
_WRENCH = "std_msgs/Header header\nWrench wrench\n===\nMSG: geometry_msgs/Wrench\nVector3 force\nVector3 torque\n"


@dataclass
class Topics:
    """Decides what to do with each channel of a bag."""

    path: Path  #: of the bag, for messages
    texts: Mapping[str, str]  #: definitions that the user gives, by the type's name without its package
    decoders: dict[Channel, Decode] = field(default_factory=dict)
    undefined: dict[str, list[str]] = field(default_factory=dict)  #: topics by the type that nobody defines
    others: dict[str, str] = field(default_factory=dict)  #: topics without poses or joints: their types
    drawn: dict[str, str] = field(default_factory=dict)  #: topics with poses that nobody measured: their types

    @classmethod
    def of(cls, path: Path, definitions: Sequence[Path]) -> Topics:
        """With the message definitions in these files, each named like its type."""
        return cls(path, {file.stem: _definition(file) for file in definitions})

    def wants(self, channel: Channel) -> bool:
        """Whether a channel's messages are worth decoding; keeps how, or why not."""
        if channel in self.decoders:
            return True
        if channel.kind.startswith(NOT_MEASURED):
            self.drawn[channel.topic] = channel.kind
            return False
        try:
            decode = self._decoder(channel)
        except UndefinedError as error:
            if channel.kind.startswith(KNOWN):
                self.others[channel.topic] = channel.kind
                return False
            self.undefined.setdefault(error.kind, []).append(channel.topic)
            return False
        except CaromError as error:
            raise RecordingError(f"{self.path}: topic {short(channel.topic)}: {error}") from error
        if isinstance(decode, Decoder) and not (
            channel.kind in (JOINTS, FORCES) or any(map(could_hold, decode.fields()))
        ):
            self.others[channel.topic] = channel.kind
            return False
        self.decoders[channel] = decode
        return True

    def _decoder(self, channel: Channel) -> Decode:
        if channel.encoding == "json":
            return from_json
        if channel.encoding == "protobuf":
            return ProtobufDecoder(channel.kind, channel.definition)
        if channel.encoding == "other":
            raise UndefinedError(channel.kind)
        dialect: Dialect = "ros1" if channel.encoding == "ros1" else "ros2"
        known: dict[str, tuple[Field, ...]] = {**parse(FORCES, _WRENCH), **standard(dialect)}
        if channel.definition and channel.language == "msg":
            known |= parse(channel.kind, channel.definition.decode("utf-8", errors="replace"))
        tried: set[str] = set()
        kind = channel.kind
        while True:
            if (text := self.texts.get(kind.rpartition("/")[2])) is not None and kind not in tried:
                known |= parse(kind, text)
                tried.add(kind)
            try:
                return Decoder(channel.kind, known, dialect)
            except UndefinedError as error:
                if error.kind in tried or error.kind.rpartition("/")[2] not in self.texts:
                    raise
                kind = error.kind

    def left_out(self) -> tuple[str, ...]:
        """What was not looked into, and why."""
        found: list[str] = []
        if self.others:
            kinds = sorted(set(self.others.values()))
            found.append(f"{len(self.others)} topics have neither poses nor joints ({_listed(kinds)})")
        if self.drawn:
            found.append(f"{_listed(sorted(self.drawn))}: poses that were planned or drawn, not measured")
        for kind, topics in sorted(self.undefined.items()):
            found.append(f"{_listed(topics)}: the type {short(kind)} is not defined in the bag; {_ask(kind)}")
        return tuple(found)

    def without_poses(self) -> str:
        """Why there are no poses, for a message."""
        listed = {**self.others, **self.drawn, **{t: k for k, topics in self.undefined.items() for t in topics}}
        what = _listed([f"{topic} ({kind})" for topic, kind in sorted(listed.items())]) or "no message at all"
        asked = "".join(
            f"; the type {short(kind)} is not defined in it: {_ask(kind)}" for kind in sorted(self.undefined)
        )
        return f"no poses in this bag, but {what}{asked}"


def _ask(kind: str) -> str:
    return f"give its definition with --types {short(kind.rpartition('/')[2])}.msg"


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(short, names[:most])) + more


def _definition(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise RecordingError(f"{path}: expected the definition of a message type, got more than {LARGEST} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: cannot be read as the definition of a message type ({short(error)})") from error
    if "\0" in text:
        raise RecordingError(f"{path}: expected the definition of a message type as text, got another file")
    try:
        parse(normal(path.stem), text)
    except CaromError as error:
        raise RecordingError(f"{path}: {error}") from error
    return text
