"""MCAP as a container: its records in the order of the file, so that one that was cut off is read as far as it goes.

The layout is that of https://mcap.dev/spec: after the magic bytes, records of an opcode (1 byte), a length (8 bytes)
and that much content. Index and summary at the end are not needed, and not trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from carom.core.errors import RecordingError
from carom.recordings.formats.bags.channels import LARGEST_MESSAGE, Channel, Encoding, Messages, Unpacker, Wanted
from carom.recordings.formats.bags.definitions import normal

MAGIC = b"\x89MCAP0\r\n"
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
_ENCODINGS: dict[str, Encoding] = {"ros1": "ros1", "cdr": "cdr", "json": "json", "protobuf": "protobuf"}
_LANGUAGES = {"ros1msg": "msg", "ros2msg": "msg", "ros2idl": "idl", "jsonschema": "jsonschema", "protobuf": "protobuf"}


class _CutError(Exception):
    """A record ends before its content does."""


@dataclass
class _Content:
    """The content of a record, read from its beginning."""

    data: bytes
    at: int = 0

    def number(self, code: str) -> int:
        try:
            (value,) = struct.unpack_from(f"<{code}", self.data, self.at)
        except struct.error as error:
            raise _CutError from error
        self.at += struct.calcsize(code)
        return int(value)

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise _CutError
        self.at += length
        return self.data[self.at - length : self.at]

    def text(self) -> str:
        return self.take(self.number("I")).decode("utf-8", errors="replace")

    def rest(self) -> bytes:
        return self.data[self.at :]


@dataclass
class _State:
    """What has been read of a file."""

    path: Path
    unpack: Unpacker
    schemas: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)  #: name, language, definition
    channels: dict[int, Channel] = field(default_factory=dict)
    wanted: dict[int, bool] = field(default_factory=dict)
    broken: int = 0  #: parts that could not be read as a whole


def messages(path: Path, wants: Wanted, said: list[str]) -> Messages:
    """The messages of a file on the channels that are wanted; `said` gets what is damaged."""
    state = _State(path, Unpacker(path))
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise RecordingError(f"{path}: expected an MCAP file, got another beginning")
        ended = False
        for code, content in _records(file, state):
            if code in (DATA_END, FOOTER):
                ended = True
                break
            yield from _of(code, content, state, wants)
        if not ended:
            said.append("the file is cut off: what is whole before the cut was read")
        elif file.seek(-len(MAGIC), 2) and file.read() != MAGIC:
            said.append("the end of the file is missing; its messages are all there")
    if state.broken:
        said.append(f"{state.broken} parts of the file are damaged: what is whole in them was read")


def _records(file: BinaryIO, state: _State) -> Iterator[tuple[int, bytes]]:
    """Opcodes and contents; the last content may be cut off."""
    size = state.path.stat().st_size
    while len(head := file.read(9)) == 9:
        code, length = struct.unpack("<BQ", head)
        if code == 0 or (length > size and code != CHUNK):
            state.broken += 1
            return  # no record begins so: where the next one begins nobody knows
        if code not in (SCHEMA, CHANNEL, MESSAGE, CHUNK):
            if code in (DATA_END, FOOTER):
                yield code, b""
            file.seek(length, 1)
            continue
        if length > 4 * LARGEST_MESSAGE:
            state.broken += 1
            if length > size:
                return
            file.seek(length, 1)
            continue
        content = file.read(length)
        if len(content) == length or code == CHUNK:  # of a chunk that was cut off, messages before the cut are whole
            yield code, content


def _of(code: int, content: bytes, state: _State, wants: Wanted) -> Messages:
    """The messages of a record, which may be a whole chunk."""
    record = _Content(content)
    try:
        if code == SCHEMA:
            number, name, language = record.number("H"), record.text(), record.text()
            definition = record.take(record.number("I"))
            state.schemas[number] = (name, _LANGUAGES.get(language, "other"), definition)
        elif code == CHANNEL:
            _channel(record, state, wants)
        elif code == MESSAGE:
            number, _, received = record.number("H"), record.number("I"), record.number("Q")
            record.number("Q")  # the time of publication, which writers set to that of receipt
            if state.wanted.get(number, False):
                yield state.channels[number], received, record.rest()
        elif code == CHUNK:
            record.at = 28  # times of its first and last message, size, checksum
            packing = record.text()
            record.number("Q")
            data, whole = state.unpack(packing, record.rest())
            state.broken += not whole
            yield from _inside(data, state, wants)
    except _CutError:
        state.broken += 1


def _inside(data: bytes, state: _State, wants: Wanted) -> Messages:
    at = 0
    while at + 9 <= len(data):
        code, length = struct.unpack_from("<BQ", data, at)
        if length > len(data) - at - 9:
            return
        if code in (SCHEMA, CHANNEL, MESSAGE):
            yield from _of(code, data[at + 9 : at + 9 + length], state, wants)
        at += 9 + length


def _channel(record: _Content, state: _State, wants: Wanted) -> None:
    number, schema, topic, encoding = record.number("H"), record.number("H"), record.text(), record.text()
    name, language, definition = state.schemas.get(schema, ("", "other", b""))
    kind = normal(name) if encoding in ("ros1", "cdr") else name
    channel = Channel(topic, kind, _ENCODINGS.get(encoding, "other"), definition, language)
    state.channels[number], state.wanted[number] = channel, wants(channel)
