"""By how much the clocks of two files differ, from what both saw: the same body's speed, or a blow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from carom.core.errors import RecordingError
from carom.recordings.formats.take import Track
from carom.state import Array

RATE = 200.0  #: [Hz] of the speeds that are laid over each other
SMOOTH = 0.03  #: [s] over which speeds are taken
SHARED = 1.0  #: [s] for which two clocks must overlap to be taken for one, and
LEAST = 0.5  #: correlation that two speeds must reach
CLEAR = 1.15  #: times the best correlation elsewhere
APART = 0.3  #: [s] away from the best offset is elsewhere
SLOW = 0.05  #: [m/s]; bodies that are faster count as moving, however fast
STEP = 0.01  #: [s] between velocities of bodies of which one may push the other
FEWEST = 20  #: samples of a motion
SEEN = 0.8  #: of the target's motion, which the tool must be seen during
NEAR, CLEARLY = 0.1, 2.0  #: [s] farther from the best offset velocities must differ so many times as much
ALONG = 0.35  #: of the target's speed by which a tool that pushes it may go otherwise
MOST_COMPARED = 300_000_000
ALIKE = "{} and {} go alike while the one pushes the other"
MOST_SAMPLES = 400_000
Kind = Literal["speeds", "jolts", "moves"]
BLURRED = 0.03  #: [s] by which an offset from jolts may be off
LATENCY = 0.5  #: [s] by which the clocks of files that share one may differ


@dataclass(frozen=True)
class Offset:
    """What is added to the stamps of a file to bring them to the first file's clock."""

    seconds: float
    words: str


def offset_of(
    first: Sequence[Track],
    second: Sequence[Track],
    roles: Mapping[str, str],
    asked: float | None,
    files: tuple[str, str],
) -> Offset:
    """The offset of the second file's clock; a `RecordingError` where nothing shows it."""
    what = f"{files[1]}: its clock"
    if asked is not None:
        return Offset(asked, f"{what} is moved by {asked:.6g} s, as you say")
    begin, end = (max, min)
    overlap = end(_span(first)[1], _span(second)[1]) - begin(_span(first)[0], _span(second)[0])
    shorter = min(_span(first)[1] - _span(first)[0], _span(second)[1] - _span(second)[0])
    one_clock = overlap > min(SHARED, 0.5 * shorter) and _span(first)[0] > 1e5
    shared = {t.name for t in first} & {t.name for t in second}
    if not one_clock and not shared and _same_stamps(first, second):
        return Offset(0.0, f"{what} and that of {files[0]} begin and end at the same stamps: taken as one")
    found = _best(first, second, roles, LATENCY if one_clock else None)
    if found is not None:
        seconds, score, pair = found
        if one_clock and abs(seconds) < BLURRED and not shared:
            return Offset(
                0.0, f"{what} and that of {files[0]} both count from 1970, and what moves agrees: taken as one"
            )
        return Offset(
            seconds,
            f"{what} is moved by {seconds:.4f} s: {pair} (correlation {score:.2f}; say --offset if that is wrong)",
        )
    if one_clock:
        return Offset(0.0, f"{what} and that of {files[0]} both count from 1970 and overlap: taken as one")
    raise RecordingError(
        f"{files[1]}: nothing shows how its clock and that of {files[0]} lie (no body in both, no blow in both); give "
        "--offset SECONDS, which is added to its stamps (0 if the clock is the same)"
    )


def _same_stamps(first: Sequence[Track], second: Sequence[Track]) -> bool:
    """Whether two files begin and end at the same stamps, to within a sample, as exports of one take do."""
    steps = [float(np.median(np.diff(t.time))) for t in (*first, *second) if len(t.time) > 1]
    if not steps or max(steps) > 1.02 * min(steps):
        return False
    return all(abs(a - b) < 1.5 * steps[0] for a, b in zip(_span(first), _span(second), strict=True))


def _span(tracks: Sequence[Track]) -> tuple[float, float]:
    return min(float(t.time[0]) for t in tracks), max(float(t.time[-1]) for t in tracks)


def _best(
    first: Sequence[Track], second: Sequence[Track], roles: Mapping[str, str], within: float | None
) -> tuple[float, float, str] | None:
    """Offset, correlation and what was laid over what; None where nothing fits clearly."""
    shared = [(a, b) for a in first for b in second if a.name == b.name]
    found = [
        (each, f"{a.name} is in both, and its speeds fit") for a, b in shared if (each := _laid(a, b, within, "speeds"))
    ]
    if not found:
        movers = [
            (a, b)
            for a in first
            for b in second
            if ("target" in (roles[a.name], roles[b.name])) and roles[a.name] != roles[b.name]
        ]
        kinds: tuple[tuple[Kind, str], ...] = (
            ("jolts", "{} and {} jolt at the same instants"),
            ("moves", "{} and {} move at the same times, which is good to some tenths of a second"),
        )
        for kind, words in kinds if within is None else kinds[:1]:  # clocks that are one are known better
            if kind == "moves":
                found = [(each, ALIKE.format(a.name, b.name)) for a, b in movers if (each := _pushed(a, b, roles))]
            if found:
                break
            found += [(each, words.format(a.name, b.name)) for a, b in movers if (each := _laid(a, b, within, kind))]
            if found:
                break  # jolts are sharper
    if not found:
        return None
    (seconds, score), words = max(found, key=lambda each: each[0][1])
    return seconds, score, words


def _pushed(a: Track, b: Track, roles: Mapping[str, str]) -> tuple[float, float] | None:
    """The offset at which a tool goes as the target does that it pushes, and how much alike; None where none shows it.

    Of the target's motion most must be seen, and elsewhere the two must go clearly less alike.
    """
    first = roles[a.name] == "target"
    seen, other = _velocity(a if first else b), _velocity(b if first else a)
    if seen is None or other is None:
        return None
    (start, velocity), (begin, tool) = seen, other
    moves = np.flatnonzero(np.linalg.norm(velocity, axis=-1) > SLOW)
    lags = np.arange(-len(tool), len(velocity))
    if len(moves) < FEWEST or len(moves) * len(lags) > MOST_COMPARED:
        return None
    whole = np.linalg.norm(velocity[moves], axis=-1)
    off = np.full(len(lags), np.inf)
    for place, lag in enumerate(lags):
        at = moves - lag
        inside = (at >= 0) & (at < len(tool))
        if inside.mean() > SEEN:
            off[place] = np.linalg.norm(tool[at[inside]] - velocity[moves[inside]], axis=-1).sum() / whole[inside].sum()
    best = int(np.argmin(off))
    elsewhere = off[np.abs(lags - lags[best]) * STEP > NEAR]
    if off[best] > ALONG or CLEARLY * off[best] > elsewhere.min(initial=np.inf):
        return None
    seconds = float(lags[best] * STEP + start - begin)
    return (seconds if first else -seconds), float(1 - off[best])


def _velocity(track: Track) -> tuple[float, Array] | None:
    """Start and velocities [T, 3] of a body, `STEP` apart."""
    good = np.isfinite(track.position).all(axis=-1)
    time, position = track.time[good], track.position[good]
    if len(time) < FEWEST or time[-1] - time[0] > MOST_SAMPLES * STEP:
        return None
    even = np.arange(time[0], time[-1], STEP)
    path = np.column_stack([np.interp(even, time, position[:, k]) for k in range(3)])
    return float(even[0]) + 1.5 * STEP, (path[3:] - path[:-3]) / (3 * STEP)


def _laid(a: Track, b: Track, within: float | None, kind: Kind) -> tuple[float, float] | None:
    """The offset at which what two bodies do fits best, and the correlation there."""
    one, two = _record(a, kind), _record(b, kind)
    if one is None or two is None:
        return None
    (start, x), (begin, y) = one, two
    if len(x) + len(y) > MOST_SAMPLES:
        return None
    score, lag = _correlation(x, y)
    seconds = lag / RATE + start - begin
    usable = np.abs(seconds) <= within if within is not None else np.ones(len(seconds), dtype=bool)
    if not usable.any():
        return None
    score = np.where(usable, score, -1.0)
    best = int(np.argmax(score))
    elsewhere = score[np.abs(seconds - seconds[best]) > APART]
    if score[best] < LEAST or (within is None and len(elsewhere) and score[best] < CLEAR * elsewhere.max()):
        return None
    fine = 0.0
    if 0 < best < len(score) - 1:
        left, middle, right = score[best - 1 : best + 2]
        bend = left - 2 * middle + right
        fine = float(0.5 * (left - right) / bend) if bend < 0 else 0.0
    return float(seconds[best] + fine / RATE), float(score[best])


def _record(track: Track, kind: Kind) -> tuple[float, Array] | None:
    """Start and samples at `RATE` of a body's speed, of how fast its velocity changes, or of whether it moves."""
    good = np.isfinite(track.position).all(axis=-1)
    time, position = track.time[good], track.position[good]
    if len(time) < 20 or (time[-1] - time[0]) * RATE > MOST_SAMPLES:
        return None
    even = np.arange(time[0], time[-1], 1 / RATE)
    path = np.column_stack([np.interp(even, time, position[:, k]) for k in range(3)])
    width = max(int(SMOOTH * RATE), 2)
    velocity = (path[width:] - path[:-width]) * (RATE / width)
    start = float(even[0]) + 0.5 * width / RATE
    if kind == "jolts":
        velocity = (velocity[width:] - velocity[:-width]) * (RATE / width)
        start += 0.5 * width / RATE
    size = np.linalg.norm(velocity, axis=-1)
    if len(size) < 20 or not float(size.std()) > 0:
        return None
    if kind == "moves":
        size = size / (size + SLOW)
    return start, size


def _correlation(x: Array, y: Array) -> tuple[Array, Array]:
    """Normalised correlation of two records at each lag [samples] that `y` is moved by, over where they overlap."""
    from scipy.signal import correlate

    x, y = x - np.median(x), y - np.median(y)
    ones_x, ones_y = np.ones(len(x)), np.ones(len(y))
    product = correlate(x, y, mode="full", method="fft")
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.sqrt(
            np.maximum(correlate(x**2, ones_y, mode="full", method="fft"), 0)
            * np.maximum(correlate(ones_x, y**2, mode="full", method="fft"), 0)
        )
    count = correlate(ones_x, ones_y, mode="full", method="fft")
    whole = np.sqrt(float((x**2).sum()) * float((y**2).sum()))
    score = np.where(
        (count > 0.2 * min(len(x), len(y))) & (power > 0.3 * whole), product / np.maximum(power, 1e-12), -1.0
    )
    return np.asarray(score), np.arange(len(score), dtype=np.float64) - (len(y) - 1.0)
