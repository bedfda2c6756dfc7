"""One long take cut into events: strikes, tosses or pushes of a target, each with what came before and after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from carom.recordings.differentiate import measured_rows
from carom.recordings.imports.falling import SHORTEST, SPANS, falls_along, pieces_of
from carom.recordings.pushes import gap_between, push_of, tools_of
from carom.recordings.sampled import noise_floor
from carom.recordings.trajectory import Trajectory
from carom.state import Array

Event = Literal["strike", "toss", "push"]
EVENTS: tuple[Event, ...] = ("strike", "toss", "push")
WINDOW = 0.05  #: [s] over which speeds are taken
STILL = 0.015  #: [m/s] below which a target rests, unless its noise is larger
SHARE = 0.1  #: of its top speed, from which on a motion counts
LEAST_WAY = 0.004  #: [m] of a motion; less is shaking
PAUSE = 0.15  #: [s] of rest that end a motion
BEFORE, AFTER = 0.5, 0.4  #: [s] of a recording before its event begins and after it ended
SUDDEN = 0.12  #: [s] within which a struck body has most of its speed
MOST = 0.7  #: of its top speed
LEAST_SPEED = 0.05  #: [m/s] of a struck body
LIFT = 0.02  #: [m] by which a body may rise that is struck or pushed
REACH = 0.06  #: [m] between two bodies' outlines at a blow; several times that between frames, where shapes are unknown
FRAMES = 0.35  #: [m] between frames
THROW = 0.3  #: of a piece in free fall, that may still be in the hand
SEEN = 0.3  #: share of an event's samples that must be seen


@dataclass(frozen=True)
class Piece:
    """A stretch of a take with one event."""

    event: Event
    begin: float  #: [s]
    end: float  #: [s]


@dataclass(frozen=True)
class Cut:
    """What a take was cut into, and why the rest was left out."""

    pieces: tuple[Piece, ...]
    others: Mapping[str, int]  #: reason -> how many motions


def cut(take: Trajectory, wanted: Event | None = None) -> Cut:
    """The events of a take; with `wanted` those of one kind, else those of the kind that it shows most often."""
    pieces: list[Piece] = []
    others = Counter[str]()
    for target in take.targets:
        spans = _motions(take, target)
        for place, span in enumerate(spans):
            earlier = spans[place - 1][1] if place else float(take.time[0])
            later = spans[place + 1][0] if place + 1 < len(spans) else float(take.time[-1])
            found = _event(take, target, span, (earlier, later))
            if isinstance(found, str):
                others[found] += 1
            else:
                pieces.append(found)
    counts = Counter(piece.event for piece in pieces)
    kind = wanted or (counts.most_common(1)[0][0] if counts else None)
    for event, count in counts.items():
        if event != kind:
            others[f"a {event}, and only one kind goes into a folder"] += count
    chosen = sorted((p for p in pieces if p.event == kind), key=lambda piece: piece.begin)
    kept: list[Piece] = []
    for piece in chosen:  # several targets may be moved by the same event
        if kept and piece.begin < kept[-1].end and len(take.targets) > 1:
            kept[-1] = Piece(piece.event, kept[-1].begin, max(piece.end, kept[-1].end))
        else:
            kept.append(piece)
    return Cut(tuple(kept), dict(others))


def between(take: Trajectory, begin: float, end: float, name: str) -> Trajectory:
    """The samples of a take from `begin` to `end`."""
    keep = (take.time >= begin) & (take.time <= end)

    def part(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {each: array[keep] for each, array in arrays.items()}

    return replace(
        take,
        name=name,
        time=take.time[keep],
        position_world=part(take.position_world),
        quaternion_world={n: None if q is None else q[keep] for n, q in take.quaternion_world.items()},
        controls=part(take.controls),
    )


def _motions(take: Trajectory, target: str) -> list[tuple[float, float]]:
    """Stretches of time in which a target moves, those less than `PAUSE` apart as one."""
    time, path = take.time, take.position_world[target]
    seen = np.flatnonzero(measured_rows(path))
    if len(seen) < 12:
        return []
    t, p = time[seen], path[seen]
    window = max(WINDOW, 4 * take.period)
    after, before = (np.searchsorted(t, t + side * window / 2).clip(0, len(t) - 1) for side in (1, -1))
    lasting = np.maximum(t[after] - t[before], take.period)
    speed = np.linalg.norm(p[after] - p[before], axis=-1) / lasting
    noise = float(np.linalg.norm(np.nan_to_num(noise_floor(t, p))))
    found = _stretches(t, speed > max(STILL, 5 * noise / window))
    # what creeps or shakes before and after a motion is no part of it
    parts = [
        (first + begin, first + end)
        for first, last in found
        for begin, end in _stretches(
            t[first : last + 1], speed[first : last + 1] > SHARE * speed[first : last + 1].max()
        )
    ]
    far = [float(np.linalg.norm(np.ptp(p[a : b + 1], axis=0))) for a, b in parts]
    return [(float(t[a]), float(t[b])) for (a, b), way in zip(parts, far, strict=True) if way > LEAST_WAY]


def _stretches(time: Array, moving: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last rows of stretches in which something moves; shorter rests than `PAUSE` do not end one."""
    rows = np.flatnonzero(moving)
    if not len(rows):
        return []
    breaks = np.flatnonzero(np.diff(time[rows]) > PAUSE)
    starts, ends = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(rows) - 1]])
    return [(int(rows[a]), int(rows[b])) for a, b in zip(starts, ends, strict=True)]


def _event(take: Trajectory, target: str, span: tuple[float, float], free: tuple[float, float]) -> Piece | str:
    """The event in a motion, or why there is none; `free`: when the motions before and after it end and begin."""
    begin, end = span
    around = (max(begin - BEFORE, free[0]), min(end + AFTER, free[1]))
    piece = between(take, *around, "piece")
    path = piece.position_world[target]
    inside = (piece.time >= begin) & (piece.time <= end)
    good = measured_rows(path)
    if (good & inside).sum() < 6 or good[inside].mean() < SEEN:
        return "hardly seen"
    pieces = pieces_of(piece.time, path, (SHORTEST, *SPANS))
    falls = falls_along(pieces, "z")
    if int(falls.sum()) >= 2:
        # the fall's first piece may hold a part of the throw
        left = (pieces.begin + THROW * (pieces.end - pieces.begin))[falls]
        return Piece("toss", max(float(left.min()), around[0]), around[1])
    heights = path[good & inside, 2]
    if float(np.ptp(np.quantile(heights, [0.05, 0.95]))) > LIFT:
        return "carried (it rises and does not fall freely)"
    if _is_sudden(piece, target, begin) and begin - around[0] > 0.1 and _is_near(piece, target, begin):
        return Piece("strike", *around)
    if (push := push_of(piece)) is not None and push.target == target:
        return Piece("push", *around)
    if begin - around[0] <= 0.1:
        return "no rest before it"
    return "moved slowly, or with nothing near it"


def _is_sudden(piece: Trajectory, target: str, begin: float) -> bool:
    """Whether a body has most of its top speed soon after it began to move."""
    good = np.flatnonzero(measured_rows(piece.position_world[target]))
    t, p = piece.time[good], piece.position_world[target][good]
    window = max(0.02, 3 * piece.period)
    after = np.searchsorted(t, t + window).clip(0, len(t) - 1)
    speed = np.linalg.norm(p[after] - p, axis=-1) / np.maximum(t[after] - t, piece.period)
    if len(speed) > 4:
        speed[1:-1] = np.median(np.stack([speed[:-2], speed[1:-1], speed[2:]]), axis=0)
    top = float(speed.max(initial=0.0))
    fast = t[speed > MOST * top]
    return top > LEAST_SPEED and len(fast) > 0 and float(fast[0]) - begin < SUDDEN


def _is_near(piece: Trajectory, target: str, time: float) -> bool:
    """Whether another body was near the target when it began to move."""
    names: Sequence[str] = tools_of(piece)
    near = np.abs(piece.time - time) < 0.1
    for name in names:
        gap, shaped = gap_between(piece, target, name)
        gap = gap[near & np.isfinite(gap)]
        if len(gap) and float(gap.min()) < (REACH if shaped else FRAMES):
            return True
    return not names
