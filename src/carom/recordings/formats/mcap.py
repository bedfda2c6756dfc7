"""MCAP files on their own, as ROS 2, ROS 1 and Foxglove's tools write them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from carom.recordings.formats.bags import mcap_records
from carom.recordings.formats.bags.collecting import bag_take
from carom.recordings.formats.take import ReadOptions, Take

NAME = "MCAP"


def recognise(path: Path, head: bytes) -> float:
    """By the bytes that every MCAP file begins with."""
    return 0.95 if head.startswith(mcap_records.MAGIC) else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The poses, transforms and joints of a file, as one take."""
    return (bag_take(path, NAME, options, partial(mcap_records.messages, path)),)
