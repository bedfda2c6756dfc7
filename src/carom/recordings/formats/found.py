"""Which reader a file of another maker is for: found by its content, whatever its name ends in.

A reader is a module of this package with three names:

    NAME: str                                          what the format is called, for a person
    recognise(path: Path, head: bytes) -> float        how sure it is, 0 to 1, from the first `HEAD` bytes (a folder has
                                                       none); it must not raise
    read(path: Path, options: ReadOptions) -> tuple[Take, ...]      faults are a `CaromError` with the place

An extra is imported inside `read` only: every reader's module is imported to ask whether it recognises a file.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

from carom.core.errors import RecordingError
from carom.recordings.formats import plain_table
from carom.recordings.formats.take import ReadOptions, Take

HEAD = 1 << 16  #: [bytes] that a reader is shown to recognise its format
LIKELY = 0.5  #: how sure a reader has to be
#: modules of this package, the most particular ones first: of equally sure readers the first one reads
READERS: tuple[str, ...] = (
    "motive",
    "motive_rows",
    "vicon",
    "qualisys",
    "c3d",
    "trc",
    "rosbag2",
    "rosbag1",
    "mcap",
    "lerobot",
    "hdf5",
    "tum",
    "euroc",
    "kitti",
    "plain_table",
)


class Reader(Protocol):
    """What a reader's module offers."""

    NAME: str

    def recognise(self, path: Path, head: bytes) -> float:
        """How sure it is that this is its format, 0 to 1."""

    def read(self, path: Path, options: ReadOptions) -> tuple[Take, ...]:
        """The takes in a file or folder."""


def readers() -> tuple[Reader, ...]:
    """All readers of other makers' files."""
    return tuple(import_module(f"carom.recordings.formats.{name}") for name in READERS)


def reader_of(path: Path) -> Reader:
    """The reader that recognises a file or folder by its content; a `RecordingError` if none does."""
    if not path.exists():
        raise RecordingError(f"{path}: no such file; give a recording of a capture system, or a folder of one")
    if (path / "recordings.yaml").is_file():
        raise RecordingError(f"{path}: this is a folder of recordings already; use it as it is: carom check {path}")
    head = b""
    if path.is_file():
        try:
            with path.open("rb") as file:
                head = file.read(HEAD)
        except OSError as error:
            raise RecordingError(f"{path}: cannot be read: {error.strerror or error}") from error
        if not head:
            raise RecordingError(f"{path}: the file is empty; expected a recording")
    sure, _, reader = max(
        ((reader.recognise(path, head), -place, reader) for place, reader in enumerate(readers())),
        key=lambda each: each[:2],
        default=(0.0, 0, None),
    )
    if reader is None or sure < LIKELY:
        known = ", ".join(each.NAME for each in readers())
        raise RecordingError(
            f"{path}: its content is of no known format; expected one of: {known}; for another table of numbers, name "
            "its columns with --map 'BODY=X,Y,Z,QW,QX,QY,QZ'"
        )
    return reader


def read_take(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The takes in a file or folder of any known format; a table whose columns the user names is read as he says."""
    if path.is_file() and plain_table.claims(path, options):
        return plain_table.read(path, options)
    return reader_of(path).read(path, options)
