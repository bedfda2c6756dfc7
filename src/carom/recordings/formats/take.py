"""What a reader of another maker's file gives: a take, in metres, radians and seconds, in the file's own axes.

Readers convert units and name what is lost; they do not turn frames, resample, cut or guess roles: `recipes.importing`
does that for all of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from carom.core.errors import RecordingError
from carom.state import Array

Axis = Literal["x", "y", "z"]


@dataclass(frozen=True)
class Track:
    """One body over time, on its own clock."""

    name: str  #: as the file names it
    time: Array  #: [T] s, strictly increasing, starts anywhere
    position: Array  #: [T, 3] m, in the file's axes; NaN where it was lost
    quaternion: Array | None = None  #: [T, 4] w-first, world from body, unit length; NaN where lost; None: not measured


@dataclass(frozen=True)
class Markers:
    """Points without orientation, all on one clock."""

    names: tuple[str, ...]  #: [K], unique
    time: Array  #: [T] s, strictly increasing
    position: Array  #: [T, K, 3] m, in the file's axes; NaN where a marker was not seen


@dataclass(frozen=True)
class Signal:
    """One more column of numbers: a joint's position, a command, a force."""

    name: str
    time: Array  #: [T] s, strictly increasing
    values: Array  #: [T], in `unit`
    unit: str = ""  #: as the file states it


@dataclass(frozen=True)
class Take:
    """One recording of another maker's system. A file may hold several (episodes): a reader gives a tuple of them."""

    name: str  #: of the recording: what its file is called, without suffix, or its episode
    format: str  #: for a person: "OptiTrack Motive CSV"
    version: str = ""  #: of the format, where the file states it
    tracks: tuple[Track, ...] = ()
    markers: tuple[Markers, ...] = ()
    signals: tuple[Signal, ...] = ()
    up: Axis | None = None  #: which axis of the file's frame is up, where the file says so
    clock: str = ""  #: which stamps the times are: "header stamps", "frame numbers over the rate"
    rate: float | None = None  #: [Hz] median of the rows, whatever the header claims
    said: tuple[str, ...] = ()  #: what was done: units converted, a header's counts that did not fit the rows
    left_out: tuple[str, ...] = ()  #: what was left out and why


@dataclass(frozen=True)
class ReadOptions:
    """What a user may have to tell a reader, because the file does not say it. Readers take what they need."""

    #: body -> names of what it is made from: columns of a table, a data set, a topic, a child frame, markers
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    time: str | None = None  #: column or data set with the stamps
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    length_unit: Literal["m", "cm", "mm"] | None = None  #: overrides what the file states
    angle_unit: Literal["rad", "deg"] | None = None
    quaternion_order: Literal["wxyz", "xyzw"] | None = None
    #: what three angles are: a rotation vector, or Euler angles, each about the axis as turned before
    angles: Literal["vector", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"] | None = None
    rate: float | None = None  #: [Hz] where the file has no stamps, or wrong ones
    definitions: tuple[Path, ...] = ()  #: files with definitions of message types (.msg)
    clock: Literal["header", "received"] | None = None  #: of bags


class NoPosesError(RecordingError):
    """A file was understood, but nothing in it can become a body's motion."""
