"""What every kind of bag gives: messages as bytes, each on a channel that says what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from carom.core.errors import CaromError, RecordingError

LARGEST_MESSAGE = 64_000_000  #: [bytes] of a message or a piece of a file that is looked into
ZSTD = b"\x28\xb5\x2f\xfd"  #: what everything packed with zstd begins with
LARGEST_CHUNK = 256_000_000  #: [bytes] of a compressed part of a bag, unpacked
Encoding = Literal["ros1", "cdr", "json", "protobuf", "other"]


@dataclass(frozen=True)
class Channel:
    """A topic of a bag, and what its messages are."""

    topic: str
    kind: str  #: the type of its messages, `package/Name`
    encoding: Encoding
    definition: bytes = b""  #: as the bag holds it; empty: it does not
    language: str = "msg"  #: of the definition: msg (both ROS), idl, jsonschema, protobuf


#: channel, time of receipt [ns], the message
Message = tuple[Channel, int, bytes]
Wanted = Callable[[Channel], bool]
Messages = Iterator[Message]


def extra_needed(path: Path, what: str) -> CaromError:
    """What to say where a library of the extra `import` is not there."""
    return RecordingError(f"{path}: {what} needs the extra 'import': pip install 'carom[import]'")


class Unpacker:
    """Unpacks zstd, lz4 and bz2, as far as the bytes are whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, kind: str, data: bytes, *, most: int = LARGEST_CHUNK) -> tuple[bytes, bool]:
        """The content of a compressed part, and whether all of it could be unpacked."""
        if kind in ("", "none"):
            return data, True
        if kind == "bz2":
            return _bz2(data, most)
        if kind == "lz4":
            return self._lz4(data, most)
        if kind == "zstd":
            return self._zstd(data, most)
        raise RecordingError(f"{self.path}: expected parts packed with zstd, lz4 or bz2, got '{kind[:40]}'")

    def _zstd(self, data: bytes, most: int) -> tuple[bytes, bool]:
        try:
            import zstandard
        except ImportError as error:
            raise extra_needed(self.path, "zstd") from error
        found = bytearray()
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data, read_across_frames=True)
        try:
            while len(found) < most and (piece := reader.read(1 << 20)):
                found += piece
        except (zstandard.ZstdError, MemoryError):
            return bytes(found), False
        return bytes(found), len(found) < most and bool(found)

    def _lz4(self, data: bytes, most: int) -> tuple[bytes, bool]:
        try:
            import lz4.frame
        except ImportError as error:
            raise extra_needed(self.path, "lz4") from error
        reader = lz4.frame.LZ4FrameDecompressor()
        found = bytearray()
        try:
            while len(found) < most and not reader.eof:
                piece = reader.decompress(data, max_length=1 << 20)
                data = b""
                if not piece:
                    break
                found += piece
        except (RuntimeError, EOFError, MemoryError):
            return bytes(found), False
        return bytes(found), bool(reader.eof)


def _bz2(data: bytes, most: int) -> tuple[bytes, bool]:
    import bz2

    reader = bz2.BZ2Decompressor()
    found = bytearray()
    try:
        while len(found) < most and not reader.eof:
            piece = reader.decompress(data, max_length=1 << 20)
            data = b""
            if not piece:
                break
            found += piece
    except (OSError, ValueError, MemoryError):
        return bytes(found), False
    return bytes(found), reader.eof
