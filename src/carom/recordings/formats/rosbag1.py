"""Bags of ROS 1."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from carom.recordings.formats.bags import ros1_records
from carom.recordings.formats.bags.collecting import bag_take
from carom.recordings.formats.take import ReadOptions, Take

NAME = "ROS 1 bag"


def recognise(path: Path, head: bytes) -> float:
    """By the line that every bag begins with."""
    return 0.95 if head.startswith(ros1_records.MAGIC) else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The poses, transforms and joints of a bag, as one take."""
    return (bag_take(path, NAME, options, partial(ros1_records.messages, path), version="2.0"),)
