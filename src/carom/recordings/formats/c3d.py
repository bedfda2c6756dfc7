"""C3D: markers from any processor's files (Intel, DEC, MIPS), integers and floats. Read here, without a library."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from carom.core.errors import short
from carom.recordings.faults import FaultError
from carom.recordings.formats.c3d_parameters import BLOCK, Floats, Parameters, read_parameters
from carom.recordings.formats.clean import lost_points
from carom.recordings.formats.stated import compare_counts
from carom.recordings.formats.tables import MOST_CELLS
from carom.recordings.formats.take import Axis, Markers, NoPosesError, ReadOptions, Take
from carom.recordings.formats.text_rows import LENGTHS, unique
from carom.state import Array

NAME = "C3D"
KEY = 0x50
PROCESSORS = (84, 85, 86)
MODELLED = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS")  #: lists of points that are no places


def recognise(path: Path, head: bytes) -> float:
    """Sure where the second byte is C3D's key and the block of parameters names a processor."""
    if len(head) < 4 or head[1] != KEY or head[0] < 1:
        return 0.0
    at = (head[0] - 1) * BLOCK
    if len(head) <= at + 3:
        return 0.6
    return 1.0 if head[at + 3] in PROCESSORS else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The markers of a C3D file."""
    content = path.read_bytes()
    if len(content) < BLOCK or content[1] != KEY:
        raise _fault(path, f"expected a header of {BLOCK} bytes, got {len(content)} bytes; take a copy that is whole")
    floats, parameters = read_parameters(path, content)
    head = _Header.of(path, content, floats, parameters)
    if head.points == 0:
        raise NoPosesError(f"{path}: no rigid bodies: a C3D file without points ({head.analog} analog channels)")
    raw, said = _frames(path, content, floats, parameters, head)
    unit, words = _unit(path, parameters, options)
    position, words2 = _positions(raw, head)
    names = _names(parameters, head.points)
    kept, left = _places(parameters, names)
    if not kept:
        raise NoPosesError(f"{path}: no rigid bodies: all {head.points} points are outputs of models (angles, forces)")
    rate = options.rate or head.rate
    if not (np.isfinite(rate) and rate > 0):
        raise _fault(path, f"expected a rate in Hz, got {rate:g}; give --rate HZ")
    if head.analog:
        left.append(f"{head.analog} analog values in each frame")
    if "ROTATION" in parameters.groups():
        left.append("rotations of segments (group ROTATION)")
    time = np.arange(len(position)) / rate
    return (
        Take(
            name=path.stem,
            format=NAME,
            version={84: "Intel", 85: "DEC", 86: "MIPS"}[floats.processor]
            + (", floats" if head.real else ", integers"),
            markers=(Markers(tuple(names[i] for i in kept), time, position[:, kept] * unit),),
            up=_up(parameters),
            clock="frame numbers over the rate",
            rate=float(rate),
            said=(*said, *words, *words2),
            left_out=tuple(left),
        ),
    )


def _fault(path: Path, message: str) -> FaultError:
    return FaultError(message, code="bad-file", file=path)


class _Header:
    """The first block's numbers, corrected by the parameters."""

    def __init__(
        self, points: int, analog: int, frames: tuple[int, ...], scale: float, start: int, rate: float
    ) -> None:
        self.points, self.analog, self.frames = points, analog, frames  # `frames`: what several places claim
        self.scale, self.start, self.rate = scale, start, rate
        self.real = scale < 0

    @classmethod
    def of(cls, path: Path, content: bytes, floats: Floats, parameters: Parameters) -> _Header:
        words = floats.words(content[:BLOCK])
        points = int(words[1])
        used = parameters.number("POINT", "USED")
        if points == 0 and used:
            points = int(used)
        scale = parameters.number("POINT", "SCALE")
        scale = float(floats.reals(content[12:16])[0]) if scale is None or scale == 0 else scale
        rate = parameters.number("POINT", "RATE")
        rate = rate or float(floats.reals(content[20:24])[0])
        claimed = [int(words[4]) - int(words[3]) + 1]
        claimed += [int(v) for v in (parameters.number("POINT", n) for n in ("FRAMES", "LONG_FRAMES")) if v]
        span = parameters.long_range("TRIAL", "ACTUAL_START_FIELD", "ACTUAL_END_FIELD")
        claimed += [span] if span else []
        start = int(words[8]) or int(parameters.number("POINT", "DATA_START") or 0)
        if start < 2 or (start - 1) * BLOCK > len(content):
            raise _fault(
                path, f"its samples should begin at block {start}, the file has {len(content) // BLOCK} blocks"
            )
        if not np.isfinite(scale) or scale == 0:
            raise _fault(path, f"expected a scale of its points, got {scale:g}")
        return cls(points, int(words[2]), tuple(c for c in claimed if c > 0), scale, (start - 1) * BLOCK, rate)


def _frames(
    path: Path, content: bytes, floats: Floats, parameters: Parameters, head: _Header
) -> tuple[Array, list[str]]:
    """Raw points [T, K, 4] of as many frames as there are, and what to say of their number."""
    size = (4 * head.points + head.analog) * (4 if head.real else 2)
    after = (content[0] - 1) * BLOCK
    end = after if after > head.start else len(content)
    there = (end - head.start) // size
    fitting = [count for count in head.frames if count <= there]
    count = max(fitting) if fitting else there
    if count == 0:
        raise _fault(path, "not one frame is whole; take a copy that is whole")
    if count * (4 * head.points + head.analog) > MOST_CELLS:
        raise _fault(path, f"{count} frames of {head.points} points: too large; export a part of the take")
    piece = content[head.start : head.start + count * size]
    flat = floats.reals(piece) if head.real else floats.words(piece).astype(np.int16).astype(np.float64)
    raw = np.asarray(flat, dtype=np.float64).reshape(count, -1)[:, : 4 * head.points]
    return raw.reshape(count, head.points, 4), compare_counts(max(head.frames, default=count), count)


def _positions(raw: Array, head: _Header) -> tuple[Array, list[str]]:
    """Positions [T, K, 3] in the file's unit; NaN where the residual is negative or a mark of loss stands."""
    position = raw[..., :3] * (1.0 if head.real else abs(head.scale))
    lost = ~np.isfinite(raw[..., 3]) | (raw[..., 3] < 0)
    said = []
    if lost.all():
        lost[:] = False
        said.append("every residual is negative: they mean nothing here, and points count where they are not zero")
    with np.errstate(invalid="ignore"):
        position = np.where(np.abs(position) < 1e9, position, np.nan)
    position = lost_points(position, zero=True)
    position[lost] = np.nan
    return position, said


def _unit(path: Path, parameters: Parameters, options: ReadOptions) -> tuple[float, list[str]]:
    stated = options.length_unit or parameters.text("POINT", "UNITS")
    if not stated:
        return LENGTHS["mm"], ["no unit is stated: millimetres taken, converted to metres"]
    if stated.lower() not in LENGTHS:
        raise _fault(path, f"unknown unit of its points {short(stated)!r}; give it with --length-unit")
    factor = LENGTHS[stated.lower()]
    return factor, [] if factor == 1 else [f"{stated} converted to metres"]


def _names(parameters: Parameters, count: int) -> tuple[str, ...]:
    labels: list[str] = []
    for more in ("", *map(str, range(2, 50))):
        labels += parameters.texts("POINT", f"LABELS{more}")
        if len(labels) >= count:
            break
    return unique([*labels[:count], *([""] * (count - len(labels)))], "point")


def _places(parameters: Parameters, names: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """Points that are places, and what was left out because it is not."""
    modelled = {name for kind in MODELLED for name in parameters.texts("POINT", kind)}
    kept = [i for i, name in enumerate(names) if name not in modelled]
    left = len(names) - len(kept)
    return kept, [f"{left} outputs of models (angles, forces and the like)"] if left else []


def _up(parameters: Parameters) -> Axis | None:
    """The axis that stands upright on the screen, where the file says it."""
    return {"+X": "x", "+Y": "y", "+Z": "z"}.get(parameters.text("POINT", "Y_SCREEN").upper())  # type: ignore[return-value]
