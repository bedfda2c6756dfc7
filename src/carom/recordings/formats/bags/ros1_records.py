"""Bags of ROS 1 (`#ROSBAG V2.0`) as containers: their records in the order of the file, without the index at its end.

A record is a header of `name=value` fields and data, each with its length before it (4 bytes). Messages lie in chunks,
packed with bz2 or lz4 or not at all, or directly in the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from carom.core.errors import RecordingError
from carom.recordings.formats.bags.channels import LARGEST_CHUNK, Channel, Messages, Unpacker, Wanted
from carom.recordings.formats.bags.definitions import normal

MAGIC = b"#ROSBAG V2.0\n"
MESSAGE, BAG, INDEX, CHUNK, CHUNK_INFO, CONNECTION = 2, 3, 4, 5, 6, 7
LARGEST_HEADER = 1_000_000  #: [bytes]


@dataclass
class _State:
    """What has been read of a bag."""

    unpack: Unpacker
    channels: dict[int, Channel] = field(default_factory=dict)
    wanted: dict[int, bool] = field(default_factory=dict)
    broken: int = 0  #: parts that could not be read as a whole


def messages(path: Path, wants: Wanted, said: list[str]) -> Messages:
    """The messages of a bag on the channels that are wanted; `said` gets what is damaged."""
    state = _State(Unpacker(path))
    whole = False
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise RecordingError(
                f"{path}: expected a bag of ROS 1 that begins with #ROSBAG V2.0, got another beginning"
            )
        for fields, data in _records(file, state):
            code = _number(fields, b"op", "B")
            whole = whole or code == CHUNK_INFO
            yield from _of(code, fields, data, state, wants)
    if not whole:
        said.append("the bag has no index (it was cut off, or never closed): what is whole was read")
    if state.broken:
        said.append(f"{state.broken} parts of the bag are damaged: what is whole in them was read")


def _records(file: BinaryIO, state: _State) -> Iterator[tuple[Mapping[bytes, bytes], bytes]]:
    """Fields and data of the records; the last data may be cut off."""
    while len(head := file.read(4)) == 4:
        (length,) = struct.unpack("<I", head)
        header = file.read(length) if length <= LARGEST_HEADER else b""
        size = file.read(4)
        if len(header) != length or len(size) != 4:
            state.broken += 1
            return  # where the next record begins nobody knows
        fields, (wanted,) = _fields(header), struct.unpack("<I", size)
        data = file.read(min(wanted, LARGEST_CHUNK))
        if len(data) == wanted or _number(fields, b"op", "B") == CHUNK:  # messages before the cut of a chunk are whole
            yield fields, data


def _fields(header: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = 0
    while at + 4 <= len(header):
        (length,) = struct.unpack_from("<I", header, at)
        name, equals, value = header[at + 4 : at + 4 + length].partition(b"=")
        if equals:
            found[name] = value
        at += 4 + length
    return found


def _number(fields: Mapping[bytes, bytes], name: bytes, code: str) -> int:
    """A field that is a number; -1 if it is not there."""
    value = fields.get(name, b"")
    return int(struct.unpack(f"<{code}", value)[0]) if len(value) == struct.calcsize(code) else -1


def _of(code: int, fields: Mapping[bytes, bytes], data: bytes, state: _State, wants: Wanted) -> Messages:
    """The messages of a record, which may be a whole chunk."""
    number = _number(fields, b"conn", "I")
    if code == CONNECTION:
        about = _fields(data)
        topic = (fields.get(b"topic") or about.get(b"topic", b"")).decode("utf-8", errors="replace")
        kind = normal(about.get(b"type", b"").decode("utf-8", errors="replace"))
        if topic and kind:
            channel = Channel(topic, kind, "ros1", about.get(b"message_definition", b""))
            state.channels[number], state.wanted[number] = channel, wants(channel)
    elif code == MESSAGE:
        stamp = fields.get(b"time", b"")
        if state.wanted.get(number, False) and len(stamp) == 8:
            seconds, nanoseconds = struct.unpack("<II", stamp)
            yield state.channels[number], seconds * 1_000_000_000 + nanoseconds, data
    elif code == CHUNK:
        packing = fields.get(b"compression", b"none").decode("utf-8", errors="replace")
        unpacked, whole = state.unpack(packing, data)
        state.broken += not whole
        yield from _inside(unpacked, state, wants)


def _inside(data: bytes, state: _State, wants: Wanted) -> Messages:
    at = 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        if length > len(data) - at - 8:
            return
        (size,) = struct.unpack_from("<I", data, at + 4 + length)
        start = at + 8 + length
        if size > len(data) - start:
            return
        fields = _fields(data[at + 4 : at + 4 + length])
        code = _number(fields, b"op", "B")
        if code in (CONNECTION, MESSAGE):
            yield from _of(code, fields, data[start : start + size], state, wants)
        at = start + size
